package engine_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/engine"
)

// held is a contract under which an output that says "broken" breaks it. The request
// is the input between brackets.
type held struct {
	cannot string // the target that cannot carry the request
	// unjudged and unmade are how often judging and making fail at first.
	unjudged, unmade atomic.Int32
}

func (h *held) Request(_ context.Context, job *onejob.Job, target *onejob.Target) (engine.Prepared, error) {
	if h.unmade.Add(-1) >= 0 {
		return engine.Prepared{}, errNoAnswer
	}
	if target.Name == h.cannot {
		return engine.Prepared{}, &onejob.CallError{
			Proof: onejob.ErrNotSent, Next: onejob.NextElsewhere, Phase: onejob.PhaseNotSent,
			Failure: onejob.Failure{Code: onejob.GateParamUnsupported, Message: "it cannot carry seed"},
		}
	}
	return engine.Prepared{Input: []byte("[" + string(job.Input) + "]"), Dropped: "seed", Rendered: true}, nil
}

func (h *held) JudgeOutput(_ context.Context, job *onejob.Job, _ *onejob.Attempt, r *onejob.Result) (*onejob.Failure, error) {
	if h.unjudged.Add(-1) >= 0 {
		return nil, errNoAnswer
	}
	if job.Input == nil {
		return nil, errors.New("the job came without its input")
	}
	if bytes.Contains(r.Body, []byte("broken")) {
		return &onejob.Failure{Code: onejob.FailureContractViolation, Message: "it says that it is broken"}, nil
	}
	return nil, nil
}

func (h *held) JudgeRuling(ctx context.Context, job *onejob.Job, a *onejob.Attempt, r *onejob.Result) (*onejob.Failure, error) {
	return h.JudgeOutput(ctx, job, a, r)
}

// underContract is a kind with a contract whose targets are declared to be equal.
func underContract(effect onejob.Effect, targets ...string) onejob.Policy {
	return onejob.Policy{
		Effect: effect, Targets: targets, Failover: onejob.FailoverDeclared, FailoverWhy: "a test",
		Contract: &onejob.ContractTerms{Digest: "v1:1"}, Timeout: time.Second, SendWithin: time.Second, Linger: time.Minute,
		Backoff: onejob.Backoff{Initial: time.Millisecond, Max: time.Millisecond},
	}
}

func TestAnOutputThatBreaksTheContractNeverWins(t *testing.T) {
	in(t, setting{
		policy: underContract(onejob.EffectNone, "a", "b"), engine: engine.Options{Contracts: &held{}},
		targets: map[string]behaviour{"a": answers(`"broken"`), "b": answers(`"good"`)},
	}, func(w *world) {
		job := w.until(w.submit("1").ID, onejob.JobSucceeded)
		if got := states(job); got != "succeeded: 1@a=failed 2@b=succeeded" {
			t.Fatalf("got %s", got)
		}
		a := w.attempt(job, 1)
		if a.Outcome != onejob.OutcomeContractViolation || a.Error.Code != onejob.FailureContractViolation || a.Result != nil {
			t.Errorf("the attempt is %s with error %+v and result %+v", a.Outcome, a.Error, a.Result)
		}
		if a.Evidence.Excerpt != `"broken"` || a.Evidence.DroppedParams != "seed" {
			t.Errorf("its evidence is %+v", a.Evidence)
		}
	})
}

func TestUnderAnEffectABrokenOutputLosesItsResultAndKeepsItsDoubt(t *testing.T) {
	for _, effect := range []onejob.Effect{onejob.EffectIdempotent, onejob.EffectExternal} {
		t.Run(string(effect), func(t *testing.T) {
			in(t, setting{
				policy: underContract(effect, "a", "b"), engine: engine.Options{Contracts: &held{}},
				targets: map[string]behaviour{"a": answers(`"broken"`), "b": answers(`"good"`)},
			}, func(w *world) {
				job := w.until(w.submit("1").ID, onejob.JobBlocked)
				if got := states(job); got != "blocked: 1@a=unknown" || job.Blocked.Reason != onejob.BlockAttemptUnknown {
					t.Fatalf("got %s for %+v", got, job.Blocked)
				}
				if a := w.attempt(job, 1); a.Outcome != onejob.OutcomeResultLost || a.Error.Code != onejob.FailureContractViolation {
					t.Errorf("the attempt is %s with error %+v", a.Outcome, a.Error)
				}
			})
		})
	}
}

func TestAProviderIsToldWhatWasMadeForIt(t *testing.T) {
	for name, policy := range map[string]onejob.Policy{
		"UnderAContract": underContract(onejob.EffectNone, "a"), "WithoutOne": {Effect: onejob.EffectNone, Targets: []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			rendered := make(chan bool, 1)
			in(t, setting{
				policy: policy, engine: engine.Options{Contracts: &held{}},
				targets: map[string]behaviour{"a": func(_ context.Context, r onejob.Request) (onejob.Answer, error) {
					rendered <- r.Rendered
					return onejob.Answer{Body: []byte(`"good"`)}, nil
				}},
			}, func(w *world) {
				w.until(w.submit("1").ID, onejob.JobSucceeded)
				if got, want := <-rendered, policy.Contract != nil; got != want {
					t.Errorf("rendered %t, want %t", got, want)
				}
			})
		})
	}
}

func TestALateAnswerIsJudgedToo(t *testing.T) {
	in(t, setting{
		policy: underContract(onejob.EffectNone, "a"), engine: engine.Options{Contracts: &held{}},
		targets: map[string]behaviour{"a": answersAfter(10*time.Second, `"broken"`)},
	}, func(w *world) {
		job := w.submit("1")
		w.until(job.ID, onejob.JobBlocked)
		if got := states(w.until(job.ID, onejob.JobFailed)); got != "failed: 1@a=failed" {
			t.Errorf("got %s", got)
		}
	})
}

func TestWhatIsFoundOutIsJudgedToo(t *testing.T) {
	for effect, want := range map[onejob.Effect]string{
		onejob.EffectNone: "failed: 1@a=failed", onejob.EffectExternal: "blocked: 1@a=unknown",
	} {
		t.Run(string(effect), func(t *testing.T) {
			found := onejob.Answer{Outcome: onejob.OutcomeSucceeded, Body: []byte(`"broken"`)}
			policy := underContract(effect, "a")
			policy.Linger = time.Second
			in(t, setting{
				policy: policy, engine: engine.Options{Contracts: &held{}},
				targets: map[string]behaviour{"a": silent}, probe: map[string]probing{"a": says(found)},
				reconcile: map[string]onejob.Reconcile{"a": {Search: true, ByAttempt: true, Every: time.Second}},
			}, func(w *world) {
				job := w.submit("1")
				time.Sleep(time.Minute)
				if got := states(w.get(job.ID)); got != want {
					t.Errorf("got %s; want %s", got, want)
				}
				probes, err := w.client.Probes(t.Context(), onejob.ProbeListParams{AttemptID: w.get(job.ID).Attempts[0].ID, Limit: 1})
				if err != nil || !strings.Contains(probes[0].Detail, "breaks the contract") {
					t.Errorf("the question says %+v, %v", probes, err)
				}
			})
		})
	}
}

func TestTheRequestIsMadeByTheContract(t *testing.T) {
	in(t, setting{
		policy: underContract(onejob.EffectNone, "a"), engine: engine.Options{Contracts: &held{}},
		targets: map[string]behaviour{"a": answers(`1`)},
	}, func(w *world) {
		job := w.until(w.submit("1").ID, onejob.JobSucceeded)
		if got := string(w.calls.all[0].Input); got != `[{"n":1}]` {
			t.Errorf("the provider was sent %s", got)
		}
		if a := w.attempt(job, 1); a.Evidence.DroppedParams != "seed" {
			t.Errorf("its evidence is %+v", a.Evidence)
		}
	})
}

func TestATargetThatCannotCarryTheRequestIsNotAsked(t *testing.T) {
	in(t, setting{
		policy: underContract(onejob.EffectExternal, "a", "b"), engine: engine.Options{Contracts: &held{cannot: "a"}},
		targets: map[string]behaviour{"a": answers(`1`), "b": answers(`2`)},
	}, func(w *world) {
		job := w.until(w.submit("1").ID, onejob.JobSucceeded)
		if got := states(job); got != "succeeded: 1@a=failed 2@b=succeeded" || w.calls.count() != 1 {
			t.Fatalf("got %s after %d calls", got, w.calls.count())
		}
		if a := w.attempt(job, 1); a.Outcome != onejob.OutcomeNotExecuted || a.Error.Code != onejob.GateParamUnsupported || a.Phase != onejob.PhaseNotSent {
			t.Errorf("the attempt is %s (%s) with error %+v", a.Outcome, a.Phase, a.Error)
		}
	})
}

func TestAContractThatCannotBeReadIsNobodysFaultAndIsReadAgain(t *testing.T) {
	h := &held{}
	h.unjudged.Store(3)
	h.unmade.Store(2)
	in(t, setting{
		policy: underContract(onejob.EffectNone, "a"), engine: engine.Options{Contracts: h},
		targets: map[string]behaviour{"a": answers(`1`)},
	}, func(w *world) {
		job := w.until(w.submit("1").ID, onejob.JobSucceeded)
		if got := states(job); got != "succeeded: 1@a=failed 2@a=failed 3@a=succeeded" || w.calls.count() != 1 {
			t.Fatalf("got %s after %d calls", got, w.calls.count())
		}
		if !w.attempt(job, 1).OwnFault {
			t.Error("the target is at fault for what it was never sent")
		}
	})
}

func TestAPersonsResultPassesTheContract(t *testing.T) {
	policy := underContract(onejob.EffectExternal, "a")
	policy.Linger = time.Second
	in(t, setting{policy: policy, engine: engine.Options{Contracts: &held{}}, targets: map[string]behaviour{"a": silent}}, func(w *world) {
		job := w.until(w.submit("1").ID, onejob.JobBlocked)
		rule := onejob.AttemptResolveParams{
			ID: job.Attempts[0].ID, Actor: "olga", Outcome: onejob.OutcomeSucceeded, Evidence: "seen there",
			Result: &onejob.Result{Body: []byte(`"broken"`), ContentType: "application/json"},
		}
		if _, _, err := w.client.Resolve(t.Context(), rule); onejob.CodeOf(err) != onejob.CodeInvalidResolution {
			t.Fatalf("a broken result is answered %v", err)
		}
		rule.Result.Body = []byte(`"good"`)
		if _, _, err := w.client.Resolve(t.Context(), rule); err != nil {
			t.Fatal(err)
		}
		w.until(job.ID, onejob.JobSucceeded)
	})
}

func TestAWorkersResultPassesTheContract(t *testing.T) {
	in(t, setting{policy: underContract(onejob.EffectNone, "a"), engine: engine.Options{Contracts: &held{}}}, func(w *world) {
		job := w.submit("1")
		claimed, err := w.client.ClaimAttempts(t.Context(), onejob.AttemptClaimParams{
			StartParams: onejob.StartParams{Worker: "w", Lease: time.Minute, Targets: map[string]onejob.TargetPins{"a": {}}},
			Max:         1, Kinds: []string{"k"},
		})
		if err != nil || len(claimed) != 1 {
			t.Fatalf("claimed %d, %v", len(claimed), err)
		}
		a := claimed[0].Attempt
		r, err := w.client.FinishAttempt(t.Context(), onejob.FinishParams{
			WorkerParams: onejob.WorkerParams{AttemptID: a.ID, ClaimToken: a.ClaimToken},
			Outcome:      onejob.OutcomeSucceeded, Result: &onejob.Result{Body: []byte(`"broken"`)},
		})
		if err != nil || r.Attempt.State != onejob.AttemptFailed || r.Attempt.Outcome != onejob.OutcomeContractViolation {
			t.Fatalf("the attempt is %s (%s), %v", r.Attempt.State, r.Attempt.Outcome, err)
		}
		w.until(job.ID, onejob.JobFailed)
	})
}

func TestAReportPassesTheContract(t *testing.T) {
	in(t, setting{
		policy: underContract(onejob.EffectNone, "a"), engine: engine.Options{Contracts: &held{}},
		targets: map[string]behaviour{"a": accepts("p1")}, reconcile: map[string]onejob.Reconcile{"a": {Callback: true}},
	}, func(w *world) {
		job := w.submit("1")
		time.Sleep(100 * time.Millisecond)
		a := w.get(job.ID).Attempts[0]
		r, err := w.client.Report(t.Context(), onejob.ReportParams{Target: "a", AttemptID: a.ID, Answer: &onejob.Answer{
			Outcome: onejob.OutcomeSucceeded, Body: []byte(`"broken"`),
		}})
		if err != nil || r.State != onejob.AttemptFailed {
			t.Errorf("a broken report leaves it %s, %v", r.State, err)
		}
	})
}
