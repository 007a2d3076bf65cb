package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/engine"
)

func TestAnAnswerSettlesTheJob(t *testing.T) {
	in(t, setting{targets: map[string]behaviour{"a": answers(`"done"`)}}, func(w *world) {
		job := w.until(w.submit("1").ID, onejob.JobSucceeded)
		if string(job.Result.Body) != `"done"` || job.CompletedBy != job.Attempts[0].ID || w.calls.count() != 1 {
			t.Errorf("result %s by %s after %d calls; want \"done\" by the only attempt after 1", job.Result.Body, job.CompletedBy, w.calls.count())
		}
	})
}

func TestTheMarkIsCommittedBeforeTheProviderIsCalled(t *testing.T) {
	for _, direct := range []bool{false, true} {
		t.Run(fmt.Sprintf("StartedWithItsJob=%t", direct), func(t *testing.T) {
			var w *world
			var seen onejob.AttemptState
			look := func(ctx context.Context, r onejob.Request) (onejob.Answer, error) {
				page, err := w.store.AttemptList(ctx, onejob.AttemptListParams{ID: r.AttemptID, Limit: 1})
				if err == nil && len(page.Attempts) == 1 {
					seen = page.Attempts[0].State
				}
				return onejob.Answer{}, nil
			}
			in(t, setting{targets: map[string]behaviour{"a": look}, direct: direct}, func(opened *world) {
				w = opened
				w.until(w.submit("1").ID, onejob.JobSucceeded)
				if seen != onejob.AttemptRunning {
					t.Errorf("when the provider was called the attempt was %q; want running", seen)
				}
			})
		})
	}
}

func TestAMarkThatIsNotConfirmedSendsNothing(t *testing.T) {
	for _, committed := range []bool{false, true} {
		t.Run(fmt.Sprintf("Committed=%t", committed), func(t *testing.T) {
			var marks atomic.Int32
			wrap := func(s onejob.Store) onejob.Store {
				return &faulty{Store: s, mark: func(commit func()) error {
					if marks.Add(1) > 1 {
						commit()
						return nil
					}
					if committed {
						commit()
					}
					return onejob.Unavailable(errNoAnswer)
				}}
			}
			in(t, setting{targets: map[string]behaviour{"a": answers(`1`)}, wrap: wrap, policy: onejob.Policy{Effect: onejob.EffectExternal}}, func(w *world) {
				job := w.until(w.submit("1").ID, onejob.JobSucceeded)
				if got, want := states(job), "succeeded: 1@a=failed 2@a=succeeded"; got != want || w.calls.count() != 1 {
					t.Errorf("%s with %d calls; want %s with 1", got, w.calls.count(), want)
				}
				if first := w.attempt(job, 1); first.Outcome != onejob.OutcomeNotExecuted || !first.OwnFault {
					t.Errorf("attempt 1 ended %s, own fault %t; want not_executed by our own fault", first.Outcome, first.OwnFault)
				}
			})
		})
	}
}

// A lease that ended told a worker to start anew, and two of them wrote to the
// customer: keeping stale updates from the database does not keep them from the
// wire (Tracer-Cloud/opensre#6082). An answer that never came is not a failure
// (killbill/killbill#341).
func TestSilenceIsUnknownNotFailedAndBlocksTheJob(t *testing.T) {
	policy := onejob.Policy{Effect: onejob.EffectExternal, Targets: []string{"a", "b"}, Timeout: time.Second, Linger: time.Minute, Failover: onejob.FailoverDeclared, FailoverWhy: "test"}
	in(t, setting{policy: policy, targets: map[string]behaviour{"a": answersAfter(time.Hour, `1`), "b": answers(`2`)}}, func(w *world) {
		job := w.until(w.submit("1").ID, onejob.JobBlocked)
		if job.Blocked.Reason != onejob.BlockAttemptUnknown || states(job) != "blocked: 1@a=unknown" {
			t.Errorf("%s for %s; want the one attempt unknown and the job blocked for it", states(job), job.Blocked.Reason)
		}
		_, _, err := w.client.StartAttempt(w.t.Context(), onejob.StartAttemptParams{JobID: job.ID, Owner: "o", Key: "press", Target: "b"})
		if onejob.CodeOf(err) != onejob.CodeAttemptUnresolved {
			t.Errorf("the fallback button answered %v; want attempt-unresolved", err)
		}
		time.Sleep(24 * time.Hour) // the bubble's time: nothing starts by itself, ever
		if job = w.get(job.ID); states(job) != "blocked: 1@a=unknown" || w.calls.count() != 1 {
			t.Errorf("a day later: %s after %d calls; want nothing changed", states(job), w.calls.count())
		}
	})
}

// A time-out was recorded as a failure while the money moved
// (GetBindu/Bindu#589, firecrawl/firecrawl#4582).
func TestALateAnswerDuringTheLingerSettlesTheAttempt(t *testing.T) {
	policy := onejob.Policy{Effect: onejob.EffectExternal, Timeout: time.Second, Linger: time.Minute}
	in(t, setting{policy: policy, targets: map[string]behaviour{"a": answersAfter(30*time.Second, `"late"`)}}, func(w *world) {
		id := w.submit("1").ID
		w.until(id, onejob.JobBlocked)
		job := w.until(id, onejob.JobSucceeded)
		if string(job.Result.Body) != `"late"` || w.calls.count() != 1 {
			t.Errorf("result %s after %d calls; want \"late\" after 1", job.Result.Body, w.calls.count())
		}
	})
}

func TestALateProofOfNothingSentLetsTheJobGoOn(t *testing.T) {
	policy := onejob.Policy{Effect: onejob.EffectExternal, Timeout: time.Second, Linger: time.Minute, Backoff: onejob.Backoff{Initial: time.Millisecond, Max: time.Millisecond}}
	slowRefusal := func(ctx context.Context, r onejob.Request) (onejob.Answer, error) {
		<-time.After(5 * time.Second)
		return fails(onejob.ErrNotSent, onejob.NextAgain)(ctx, r)
	}
	in(t, setting{policy: policy, targets: map[string]behaviour{"a": inOrder(slowRefusal, answers(`1`))}}, func(w *world) {
		id := w.submit("1").ID
		w.until(id, onejob.JobBlocked)
		job := w.until(id, onejob.JobSucceeded)
		if got, want := states(job), "succeeded: 1@a=failed 2@a=succeeded"; got != want {
			t.Errorf("%s; want %s", got, want)
		}
	})
}

func TestWhatHangsUpAfterTheLingerStaysUnknown(t *testing.T) {
	policy := onejob.Policy{Timeout: time.Second, Linger: 10 * time.Second}
	in(t, setting{policy: policy, targets: map[string]behaviour{"a": answersAfter(time.Hour, `1`)}}, func(w *world) {
		id := w.submit("1").ID
		if a := w.attempt(w.until(id, onejob.JobBlocked), 1); a.Evidence.EndedMS != 0 {
			t.Errorf("the call is said to have ended after %d ms; it lingers", a.Evidence.EndedMS)
		}
		time.Sleep(time.Minute)
		job := w.get(id)
		if a := w.attempt(job, 1); a.State != onejob.AttemptUnknown || a.Phase != onejob.PhaseSent || a.Evidence.EndedMS != 11_000 {
			t.Errorf("attempt is %s, phase %s, ended after %d ms; want unknown, sent, 11 s", a.State, a.Phase, a.Evidence.EndedMS)
		}
		if w.calls.busy != 0 {
			t.Error("the call is still open a minute after its linger ended")
		}
	})
}

func TestAnErrorThatProvesNothingIsUnknown(t *testing.T) {
	panics := func(context.Context, onejob.Request) (onejob.Answer, error) { panic("oops") }
	plain := func(context.Context, onejob.Request) (onejob.Answer, error) {
		return onejob.Answer{}, errNoAnswer
	}
	unproven := fails(nil, "")
	for name, do := range map[string]behaviour{"Panic": panics, "PlainError": plain, "UnprovenCallError": unproven} {
		t.Run(name, func(t *testing.T) {
			in(t, setting{targets: map[string]behaviour{"a": do}}, func(w *world) {
				job := w.until(w.submit("1").ID, onejob.JobBlocked)
				if got, want := states(job), "blocked: 1@a=unknown"; got != want {
					t.Errorf("%s; want %s", got, want)
				}
			})
		})
	}
}

// A 503 that did nothing must not stay with its key (LabsCrypt/remitlend#1329), and
// retries stacked on retries made 12 and 33 calls of one
// (HKUDS/nanobot#2760, vectorize-io/hindsight#1042).
func TestATargetIsTriedAgainOnlyAfterProofAndWithinItsBudget(t *testing.T) {
	policy := onejob.Policy{Effect: onejob.EffectExternal, PerTarget: 3}
	in(t, setting{policy: policy, targets: map[string]behaviour{"a": fails(onejob.ErrNotSent, onejob.NextAgain)}}, func(w *world) {
		job := w.until(w.submit("1").ID, onejob.JobFailed)
		if got, want := states(job), "failed: 1@a=failed 2@a=failed 3@a=failed"; got != want || job.Error.Code != onejob.FailureAttemptsExhausted {
			t.Errorf("%s, error %+v; want %s, attempts_exhausted", got, job.Error, want)
		}
	})
}

func TestAFallbackStartsOnlyAfterProvenFailureAndWherePermitted(t *testing.T) {
	for _, c := range []struct {
		name     string
		failover onejob.FailoverMode
		effect   onejob.Effect
		proof    error
		want     string
		state    onejob.JobState
	}{
		{"DeclaredAndRefused", onejob.FailoverDeclared, onejob.EffectExternal, onejob.ErrRefused, "succeeded: 1@a=failed 2@b=succeeded", onejob.JobSucceeded},
		{"NotCertified", onejob.FailoverCertified, onejob.EffectNone, onejob.ErrRefused, "blocked: 1@a=failed", onejob.JobBlocked},
		{"Never", onejob.FailoverNever, onejob.EffectNone, onejob.ErrRefused, "failed: 1@a=failed", onejob.JobFailed},
		{"InDoubt", onejob.FailoverDeclared, onejob.EffectNone, nil, "blocked: 1@a=unknown", onejob.JobBlocked},
	} {
		t.Run(c.name, func(t *testing.T) {
			policy := onejob.Policy{Effect: c.effect, Targets: []string{"a", "b"}, Failover: c.failover}
			if c.failover == onejob.FailoverDeclared {
				policy.FailoverWhy = "test"
			}
			targets := map[string]behaviour{"a": fails(c.proof, onejob.NextElsewhere), "b": answers(`2`)}
			in(t, setting{policy: policy, targets: targets}, func(w *world) {
				if got := states(w.until(w.submit("1").ID, c.state)); got != c.want {
					t.Errorf("%s; want %s", got, c.want)
				}
			})
		})
	}
}

func TestRetryAfterIsRespected(t *testing.T) {
	busy := func(context.Context, onejob.Request) (onejob.Answer, error) {
		return onejob.Answer{}, &onejob.CallError{Proof: onejob.ErrRefused, Next: onejob.NextAgain, RetryAfter: 40 * time.Second, Failure: onejob.Failure{Code: "rate_limited", Message: "429"}, Phase: onejob.PhaseAnswered}
	}
	in(t, setting{targets: map[string]behaviour{"a": inOrder(busy, answers(`1`))}}, func(w *world) {
		began := time.Now()
		w.until(w.submit("1").ID, onejob.JobSucceeded)
		if took := time.Since(began); took < 40*time.Second || took > 42*time.Second {
			t.Errorf("the second attempt came after %s; want 40 s and at most a poll more", took)
		}
	})
}

func TestNoMoreAttemptsAreUnderWayThanSlots(t *testing.T) {
	in(t, setting{targets: map[string]behaviour{"a": answersAfter(time.Second, `1`)}, engine: engine.Options{Slots: 3}}, func(w *world) {
		var ids []string
		for i := range 10 {
			ids = append(ids, w.submit(fmt.Sprint(i)).ID)
		}
		for _, id := range ids {
			w.until(id, onejob.JobSucceeded)
		}
		if w.calls.peak != 3 || w.calls.count() != 10 {
			t.Errorf("%d calls, %d at once; want 10, 3 at once", w.calls.count(), w.calls.peak)
		}
	})
}

// One job was run by two nodes (oban-bg/oban#1141).
func TestManyEnginesOnOneStoreCallOnceAJob(t *testing.T) {
	in(t, setting{targets: map[string]behaviour{"a": answersAfter(50*time.Millisecond, `1`)}, engine: engine.Options{Slots: 4}}, func(w *world) {
		for range 3 {
			s := setting{targets: map[string]behaviour{"a": answersAfter(50*time.Millisecond, `1`)}, engine: engine.Options{Slots: 4}}
			defer runEngine(w.newEngine(w.store, s))()
		}
		var ids []string
		for i := range 100 {
			ids = append(ids, w.submit(fmt.Sprint(i)).ID)
		}
		for _, id := range ids {
			if job := w.until(id, onejob.JobSucceeded); len(job.Attempts) != 1 {
				t.Errorf("job has %d attempts; want 1", len(job.Attempts))
			}
		}
		if w.calls.count() != 100 {
			t.Errorf("%d calls for 100 jobs", w.calls.count())
		}
	})
}

// Work longer than the time after which it was handed out again was started four
// times (celery/celery#5935), or could not be longer (riverqueue/river#682).
func TestALongAttemptKeepsItsLease(t *testing.T) {
	policy := onejob.Policy{Timeout: 3 * time.Hour, Effect: onejob.EffectExternal}
	in(t, setting{policy: policy, targets: map[string]behaviour{"a": answersAfter(2*time.Hour, `1`)}, engine: engine.Options{Lease: 10 * time.Second}}, func(w *world) {
		id := w.submit("1").ID
		time.Sleep(2*time.Hour + time.Minute)
		if job := w.get(id); states(job) != "succeeded: 1@a=succeeded" || w.calls.count() != 1 {
			t.Errorf("%s after %d calls; want one attempt of two hours", states(job), w.calls.count())
		}
	})
}

// "Could not renew lock": the work was done twice (taskforcesh/bullmq#3183).
func TestAnEngineThatCannotRenewLosesItsLeaseButNotItsAnswer(t *testing.T) {
	wrap := func(s onejob.Store) onejob.Store {
		return &faulty{Store: s, renew: func() error { return onejob.Unavailable(errNoAnswer) }}
	}
	policy := onejob.Policy{Timeout: time.Hour, Effect: onejob.EffectExternal}
	in(t, setting{policy: policy, targets: map[string]behaviour{"a": answersAfter(time.Minute, `1`)}, engine: engine.Options{Lease: 3 * time.Second}, wrap: wrap}, func(w *world) {
		id := w.submit("1").ID
		if job := w.until(id, onejob.JobBlocked); states(job) != "blocked: 1@a=unknown" {
			t.Errorf("%s; want the attempt unknown when its lease ended", states(job))
		}
		if job := w.until(id, onejob.JobSucceeded); states(job) != "succeeded: 1@a=succeeded" || w.calls.count() != 1 {
			t.Errorf("%s after %d calls; want its own late answer to settle it", states(job), w.calls.count())
		}
	})
}

// A step whose body ran was not in the journal, and ran again: three mails a day
// (recoupable/app#1918).
func TestAnOutcomeIsRecordedWhenTheStoreComesBack(t *testing.T) {
	var failures atomic.Int32
	wrap := func(s onejob.Store) onejob.Store {
		return &faulty{Store: s, finish: func() error {
			if failures.Add(1) <= 5 {
				return onejob.Unavailable(errNoAnswer)
			}
			return nil
		}}
	}
	in(t, setting{targets: map[string]behaviour{"a": answers(`1`)}, wrap: wrap}, func(w *world) {
		job := w.until(w.submit("1").ID, onejob.JobSucceeded)
		if failures.Load() != 6 || len(job.Attempts) != 1 || w.calls.count() != 1 {
			t.Errorf("%d tries to record, %d attempts, %d calls; want 6, 1, 1", failures.Load(), len(job.Attempts), w.calls.count())
		}
	})
}

func TestADrainWaitsForAttemptsUnderWay(t *testing.T) {
	in(t, setting{targets: map[string]behaviour{"a": answersAfter(20*time.Second, `1`)}, engine: engine.Options{Drain: time.Minute}}, func(w *world) {
		first := w.submit("1").ID
		w.until(first, onejob.JobRunning)
		began := time.Now()
		w.stop()
		if job := w.get(first); job.State != onejob.JobSucceeded || time.Since(began) > 21*time.Second {
			t.Errorf("after a drain of %s the job is %s; want succeeded after 20 s", time.Since(began), job.State)
		}
		second := w.submit("2").ID
		time.Sleep(time.Minute)
		if job := w.get(second); job.State != onejob.JobQueued {
			t.Errorf("a job after the drain is %s; want queued", job.State)
		}
	})
}

func TestWhatADrainCutsOffIsUnknown(t *testing.T) {
	in(t, setting{targets: map[string]behaviour{"a": answersAfter(time.Hour, `1`)}, policy: onejob.Policy{Timeout: 2 * time.Hour}, engine: engine.Options{Drain: 5 * time.Second}}, func(w *world) {
		id := w.submit("1").ID
		w.until(id, onejob.JobRunning)
		synctest.Wait()
		w.stop()
		if job := w.get(id); states(job) != "blocked: 1@a=unknown" {
			t.Errorf("%s; want the attempt unknown", states(job))
		}
	})
}

func TestAJobIsStartedInTheCommitThatCreatesIt(t *testing.T) {
	claims := &claimCounter{}
	wrap := func(s onejob.Store) onejob.Store { claims.Store = s; return claims }
	in(t, setting{targets: map[string]behaviour{"a": answersAfter(time.Second, `1`)}, direct: true, wrap: wrap, engine: engine.Options{PollInterval: time.Hour}}, func(w *world) {
		synctest.Wait()
		before := claims.n.Load()
		job := w.submit("1")
		if job.State != onejob.JobRunning || len(job.Attempts) != 1 || job.Attempts[0].State != onejob.AttemptRunning {
			t.Errorf("the answer is %s; want it running already", states(job))
		}
		w.until(job.ID, onejob.JobSucceeded)
		if n := claims.n.Load() - before; n != 0 {
			t.Errorf("%d claims; want none", n)
		}
	})
}

type claimCounter struct {
	onejob.Store
	n atomic.Int32
}

func (c *claimCounter) AttemptClaim(ctx context.Context, p onejob.AttemptClaimParams) (onejob.AttemptClaimResult, error) {
	c.n.Add(1)
	return c.Store.AttemptClaim(ctx, p)
}
