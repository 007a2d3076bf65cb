package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/engine"
)

// accepts takes the work under an id of the provider's own.
func accepts(id string) behaviour {
	return func(context.Context, onejob.Request) (onejob.Answer, error) {
		return onejob.Answer{Outcome: onejob.OutcomeAccepted, ProviderID: id}, nil
	}
}

// silent never answers.
func silent(ctx context.Context, r onejob.Request) (onejob.Answer, error) {
	r.Sent()
	<-ctx.Done()
	return onejob.Answer{}, ctx.Err()
}

// says answers questions with these, one after another, the last for good.
func says(answers ...any) probing {
	var n atomic.Int32
	return func(context.Context, onejob.ProbeRequest) (onejob.ProbeAnswer, error) {
		switch a := answers[min(int(n.Add(1))-1, len(answers)-1)].(type) {
		case error:
			return onejob.ProbeAnswer{}, a
		case onejob.Answer:
			return onejob.ProbeAnswer{Found: true, Answer: a}, nil
		default:
			return onejob.ProbeAnswer{}, nil
		}
	}
}

var (
	notFound   any = "not found"
	processing     = onejob.Answer{Outcome: onejob.OutcomeAccepted, ProviderID: "p1"}
	done           = onejob.Answer{Outcome: onejob.OutcomeSucceeded, ProviderID: "p1", Body: []byte(`"found"`), ContentType: "application/json"}
	broken         = onejob.Answer{Outcome: onejob.OutcomeExecutedFailed, Failure: &onejob.Failure{Code: "broken", Message: "it broke"}}
)

// stalls is a charge whose provider never answers.
var stalls = onejob.Policy{
	Effect: onejob.EffectExternal, Timeout: time.Second, SendWithin: time.Second, Linger: time.Second, AskAfter: time.Hour,
	Backoff: onejob.Backoff{Initial: time.Millisecond, Max: time.Millisecond},
}

// patient looks rarely, for tests of long times.
var patient = engine.Options{PollInterval: 30 * time.Second, Lease: 2 * time.Minute}

// probes reads what was asked about an attempt.
func (w *world) probes(attemptID string) []onejob.Probe {
	w.t.Helper()
	probes, err := w.store.(onejob.ProbeStore).ProbeList(w.t.Context(), onejob.ProbeListParams{AttemptID: attemptID, Limit: 200})
	if err != nil {
		w.t.Fatal(err)
	}
	return probes
}

func details(probes []onejob.Probe) string {
	var all []string
	for _, p := range probes {
		all = append(all, string(p.Method)+": "+p.Detail)
	}
	return strings.Join(all, "\n")
}

func one[V any](v V) map[string]V { return map[string]V{"a": v} }

func TestAnAcceptedAttemptIsPolledUntilItSucceeds(t *testing.T) {
	in(t, setting{
		policy: stalls, targets: one[behaviour](accepts("p1")), probe: one(says(processing, processing, done)),
		reconcile: one(onejob.Reconcile{Lookup: true, Every: 2 * time.Second}),
	}, func(w *world) {
		job := w.until(w.submit("1").ID, onejob.JobSucceeded)
		a := w.attempt(job, 1)
		if states(job) != "succeeded: 1@a=succeeded" || string(job.Result.Body) != `"found"` || w.calls.count() != 1 || a.ProviderID != "p1" {
			t.Errorf("%s, result %s after %d calls, id %q; want the found result after 1 call, id p1", states(job), job.Result.Body, w.calls.count(), a.ProviderID)
		}
		if probes := w.probes(a.ID); len(probes) != 3 || probes[0].Method != onejob.ProbeLookup {
			t.Errorf("asked:\n%s\nwant 3 look-ups", details(probes))
		}
	})
}

func TestAnAcceptedAttemptOutlivesItsLeaseAndItsEngine(t *testing.T) {
	s := setting{
		policy: stalls, targets: one[behaviour](accepts("p1")), probe: one(says(processing, processing, processing, processing, processing, done)),
		reconcile: one(onejob.Reconcile{Lookup: true, Every: time.Minute}),
	}
	in(t, s, func(w *world) {
		id := w.submit("1").ID
		time.Sleep(3 * time.Minute)
		if job := w.get(id); states(job) != "running: 1@a=running" {
			t.Fatalf("after the lease: %s; want it running", states(job))
		}
		w.stop()
		defer runEngine(w.newEngine(w.store, s))()
		if job := w.until(id, onejob.JobSucceeded); w.calls.count() != 1 {
			t.Errorf("%s after %d calls; want 1", states(job), w.calls.count())
		}
	})
}

// An accepted attempt that nobody could ask about would run for ever.
func TestAnAcceptedAttemptThatCannotBeAskedAboutIsUnknown(t *testing.T) {
	in(t, setting{policy: stalls, targets: one[behaviour](accepts("p1"))}, func(w *world) {
		if job := w.until(w.submit("1").ID, onejob.JobBlocked); states(job) != "blocked: 1@a=unknown" {
			t.Errorf("%s; want unknown", states(job))
		}
	})
}

func TestAStalledAttemptIsFoundByASearchAndNotRunAgain(t *testing.T) {
	in(t, setting{
		policy: stalls, targets: one[behaviour](silent), probe: one(says(notFound, done)),
		reconcile: one(onejob.Reconcile{Search: true, ByAttempt: true, Authoritative: true}),
	}, func(w *world) {
		job := w.until(w.submit("1").ID, onejob.JobSucceeded)
		if states(job) != "succeeded: 1@a=succeeded" || w.calls.count() != 1 {
			t.Errorf("%s after %d calls; want the one attempt succeeded after 1", states(job), w.calls.count())
		}
	})
}

// A charge was sent again because a look-up came too early (killbill/killbill#341).
func TestNotFoundProvesNothingBeforeTheEndOfQuarantine(t *testing.T) {
	in(t, setting{
		policy: stalls, targets: one(inOrder(silent, answers(`2`))), probe: one(says(notFound)),
		reconcile: one(onejob.Reconcile{Search: true, ByAttempt: true, Authoritative: true}),
	}, func(w *world) {
		began := time.Now()
		id := w.submit("1").ID
		time.Sleep(55 * time.Second) // send_by is 1 s, the kernel has 1 s, max_execution is 1 min
		job := w.get(id)
		if probes := w.probes(job.Attempts[0].ID); states(job) != "blocked: 1@a=unknown" || len(probes) < 2 {
			t.Errorf("in quarantine: %s, asked\n%s\nwant unknown, asked more than once", states(job), details(probes))
		}
		job = w.until(id, onejob.JobSucceeded)
		if took := time.Since(began); states(job) != "succeeded: 1@a=failed 2@a=succeeded" || took < 62*time.Second {
			t.Errorf("%s after %s; want a second attempt, not before 1m2s", states(job), took)
		}
		if a := w.attempt(job, 1); a.Ruling == nil || a.Outcome != onejob.OutcomeNotExecuted {
			t.Errorf("attempt 1 ended %s, ruling %+v; want not_executed by a ruling", a.Outcome, a.Ruling)
		}
	})
}

func TestWhatProvesNothingIsRecordedAndResolvesNothing(t *testing.T) {
	authoritative := onejob.Reconcile{Search: true, ByAttempt: true, Authoritative: true}
	byKey := onejob.Reconcile{Search: true, Authoritative: true}
	for _, tt := range []struct {
		name      string
		reconcile onejob.Reconcile
		says      []any
		want      string
	}{
		{"ATransportError", authoritative, []any{errors.New("connection refused")}, "connection refused"},
		{"HTML", authoritative, []any{errors.New("the provider answered 200, which settles nothing")}, "answered 200"},
		{"NotFoundWithoutAuthority", onejob.Reconcile{Search: true, ByAttempt: true}, []any{notFound}, "proves nothing at this target"},
		{"NotFoundByKey", byKey, []any{notFound}, "proves nothing at this target"},
		{"AFailureByKey", byKey, []any{broken}, "an earlier attempt's"},
		{"AnothersID", onejob.Reconcile{Search: true, Lookup: true}, []any{processing, onejob.Answer{Outcome: onejob.OutcomeSucceeded, ProviderID: "p2"}}, "about other work"},
		{"AChangedMind", authoritative, []any{processing, notFound}, "changed its mind"},
		{"ALostResult", authoritative, []any{onejob.Answer{Outcome: onejob.OutcomeResultLost}}, "its result is not"},
		{"NoOutcomeThatIsKnown", authoritative, []any{onejob.Answer{Outcome: onejob.OutcomeRefused}}, "settles nothing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in(t, setting{policy: stalls, targets: one[behaviour](silent), probe: one(says(tt.says...)), reconcile: one(tt.reconcile), engine: patient}, func(w *world) {
				id := w.submit("1").ID
				w.until(id, onejob.JobBlocked)
				time.Sleep(24 * time.Hour)
				job := w.get(id)
				probes := w.probes(job.Attempts[0].ID)
				if states(job) != "blocked: 1@a=unknown" || w.calls.count() != 1 {
					t.Errorf("a day later: %s after %d calls; want nothing changed", states(job), w.calls.count())
				}
				if n := len(probes); n < 100 || !strings.Contains(probes[n-1].Detail, tt.want) {
					t.Errorf("%d questions, the last %q; want them to go on, saying %q", n, probes[max(0, n-1)].Detail, tt.want)
				}
			})
		})
	}
}

func TestQuestionsAreFurtherAndFurtherApart(t *testing.T) {
	in(t, setting{
		policy: stalls, targets: one[behaviour](silent), probe: one(says(errors.New("down"))),
		reconcile: one(onejob.Reconcile{Search: true, Every: 2 * time.Second}),
	}, func(w *world) {
		id := w.submit("1").ID
		time.Sleep(time.Hour)
		probes := w.probes(w.get(id).Attempts[0].ID)
		if n := len(probes); n < 15 || n > 30 {
			t.Fatalf("%d questions in an hour; want about 7 doublings and then one in 5 minutes", n)
		}
		last := probes[len(probes)-1]
		if pause := last.NextAt.Sub(last.At); pause < 3*time.Minute || pause > 7*time.Minute {
			t.Errorf("the last pause is %s; want about 5m", pause)
		}
	})
}

func TestAFailureUnderTheAttemptsOwnNameLetsTheJobGoOn(t *testing.T) {
	policy := stalls
	policy.Effect = onejob.EffectNone
	policy.Targets, policy.Failover, policy.FailoverWhy = []string{"a", "b"}, onejob.FailoverDeclared, "test"
	in(t, setting{
		policy: policy, targets: map[string]behaviour{"a": silent, "b": answers(`2`)}, probe: one(says(broken)),
		reconcile: one(onejob.Reconcile{Search: true, ByAttempt: true}),
	}, func(w *world) {
		if job := w.until(w.submit("1").ID, onejob.JobSucceeded); states(job) != "succeeded: 1@a=failed 2@b=succeeded" {
			t.Errorf("%s; want the fallback after a failure", states(job))
		}
	})
}

func TestAReplayUnderTheSameKeySettlesTheSameAttempt(t *testing.T) {
	in(t, setting{
		policy: stalls, targets: one(inOrder(silent, answers(`"once"`))),
		reconcile: one(onejob.Reconcile{ReplaySafe: true, ReplayFor: time.Hour}),
	}, func(w *world) {
		job := w.until(w.submit("1").ID, onejob.JobSucceeded)
		if states(job) != "succeeded: 1@a=succeeded" || w.calls.count() != 2 {
			t.Fatalf("%s after %d calls; want one attempt after 2", states(job), w.calls.count())
		}
		first, second := w.calls.all[0], w.calls.all[1]
		if first.ProviderKey != second.ProviderKey || first.AttemptID != second.AttemptID || string(first.Input) != string(second.Input) {
			t.Errorf("sent %+v, then %+v; want the same key, attempt and input", first, second)
		}
		if !second.SendBy.After(first.SendBy) {
			t.Errorf("the replay must be sent by %s, as the first; want a time of its own", second.SendBy)
		}
		probes := w.probes(first.AttemptID)
		if len(probes) != 2 || !strings.Contains(probes[0].Detail, "sending") || probes[1].Outcome != onejob.OutcomeSucceeded {
			t.Errorf("asked:\n%s\nwant the replay announced, then answered", details(probes))
		}
	})
}

// cancel asks for the job to be cancelled.
func (w *world) cancel(id string) {
	w.t.Helper()
	if _, err := w.client.Cancel(w.t.Context(), onejob.JobCancelParams{Owner: "o", ID: id}); err != nil {
		w.t.Fatal(err)
	}
}

var givenUp = onejob.Answer{Outcome: onejob.OutcomeCancelled, ProviderID: "p1"}

// A job that was refunded when its cancel was acknowledged went on and was billed.
func TestAnAcknowledgedCancelIsNoEnd(t *testing.T) {
	for _, tt := range []struct {
		name string
		says []any
		want string
	}{
		{"TheProviderGaveItUp", []any{processing, processing, givenUp}, "cancelled: 1@a=cancelled"},
		{"TheProviderFinishedAllTheSame", []any{processing, processing, done}, "succeeded: 1@a=succeeded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in(t, setting{
				policy: stalls, targets: one[behaviour](accepts("p1")), probe: one(says(tt.says...)),
				reconcile: one(onejob.Reconcile{Lookup: true, Every: time.Minute}),
			}, func(w *world) {
				id := w.submit("1").ID
				time.Sleep(10 * time.Second)
				w.cancel(id)
				if job := w.get(id); states(job) != "running: 1@a=running" {
					t.Errorf("after the request to cancel: %s; want it running until the provider says more", states(job))
				}
				time.Sleep(30 * time.Minute)
				if job := w.get(id); states(job) != tt.want || w.calls.cancelled.Load() == 0 || w.calls.count() != 1 {
					t.Errorf("%s, asked to cancel %d times, %d calls; want %s after 1 call", states(job), w.calls.cancelled.Load(), w.calls.count(), tt.want)
				}
			})
		})
	}
}

func TestWorkThatWasGivenUpUnaskedIsNoProofThatNothingHappened(t *testing.T) {
	in(t, setting{
		policy: stalls, targets: one[behaviour](accepts("p1")), probe: one(says(givenUp)),
		reconcile: one(onejob.Reconcile{Lookup: true}),
	}, func(w *world) {
		id := w.submit("1").ID
		time.Sleep(time.Minute)
		job := w.get(id)
		if a := w.attempt(job, 1); a.State != onejob.AttemptFailed || a.Outcome != onejob.OutcomeExecutedFailed || a.Error.Code != "cancelled_there" || w.calls.count() != 1 {
			t.Errorf("%s, outcome %s, %+v; want it executed and failed, and tried once", states(job), a.Outcome, a.Error)
		}
	})
}

// A person who rules right after a replay rules about bytes that may still arrive.
func TestAPersonsRulingRightAfterAReplayIsQuarantined(t *testing.T) {
	in(t, setting{
		policy: stalls, targets: one[behaviour](silent), reconcile: one(onejob.Reconcile{ReplaySafe: true, ReplayFor: 4 * time.Minute}), engine: patient,
	}, func(w *world) {
		id := w.submit("1").ID
		w.until(id, onejob.JobBlocked)
		time.Sleep(2 * time.Minute) // the first request's quarantine was over a minute ago
		ruling := onejob.AttemptResolveParams{
			ID: w.get(id).Attempts[0].ID, Actor: "olga", Outcome: onejob.OutcomeNotExecuted, Evidence: "nothing on the statement",
		}
		if n := w.calls.count(); n < 2 {
			t.Fatalf("%d calls; want a replay", n)
		}
		_, _, err := w.client.Resolve(t.Context(), ruling)
		if onejob.CodeOf(err) != onejob.CodeQuarantined {
			t.Errorf("the ruling is answered %v; want %s", err, onejob.CodeQuarantined)
		}
		time.Sleep(10 * time.Minute)
		if _, _, err := w.client.Resolve(t.Context(), ruling); err != nil {
			t.Errorf("ten minutes later the ruling is answered %v", err)
		}
	})
}

func TestAReplayThatWasNotExecutedSaysNothingAboutTheOriginal(t *testing.T) {
	for name, end := range map[string]behaviour{
		"Refused": fails(onejob.ErrRefused, onejob.NextElsewhere), "NotSent": fails(onejob.ErrNotSent, onejob.NextAgain), "Silent": silent,
	} {
		t.Run(name, func(t *testing.T) {
			in(t, setting{
				policy: stalls, targets: one(inOrder(silent, end)), reconcile: one(onejob.Reconcile{ReplaySafe: true, ReplayFor: time.Hour}), engine: patient,
			}, func(w *world) {
				id := w.submit("1").ID
				w.until(id, onejob.JobBlocked)
				time.Sleep(24 * time.Hour)
				if job := w.get(id); states(job) != "blocked: 1@a=unknown" {
					t.Errorf("%s; want unknown", states(job))
				}
				for _, r := range w.calls.all {
					if late := r.SendBy.Sub(w.calls.all[0].SendBy); late > time.Hour {
						t.Errorf("a replay could be sent %s after the first; its key lived for an hour", late)
					}
				}
				if n := w.calls.count(); n < 3 {
					t.Errorf("%d calls; want replays within the key's life", n)
				}
			})
		})
	}
}

func TestNothingIsReplayedWhereThatIsNotDeclaredSafe(t *testing.T) {
	for name, r := range map[string]onejob.Reconcile{
		"NotSafe": {Search: true, ReplayFor: time.Hour}, "NoLife": {Search: true, ReplaySafe: true}, "TooShort": {Search: true, ReplaySafe: true, ReplayFor: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, setting{policy: stalls, targets: one[behaviour](silent), probe: one(says(notFound)), reconcile: one(r), engine: patient}, func(w *world) {
				id := w.submit("1").ID
				time.Sleep(24 * time.Hour)
				if job := w.get(id); states(job) != "blocked: 1@a=unknown" || w.calls.count() != 1 {
					t.Errorf("%s after %d calls; want unknown after 1", states(job), w.calls.count())
				}
			})
		})
	}
}

func TestACancelledJobIsNotReplayed(t *testing.T) {
	in(t, setting{
		policy: stalls, targets: one[behaviour](silent), probe: one(says(notFound)),
		reconcile: one(onejob.Reconcile{Search: true, ReplaySafe: true, ReplayFor: time.Hour}),
	}, func(w *world) {
		id := w.submit("1").ID
		if _, err := w.client.Cancel(w.t.Context(), onejob.JobCancelParams{Owner: "o", ID: id}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if w.calls.count() > 1 {
			t.Errorf("%d calls; want no replay", w.calls.count())
		}
	})
}

func TestTwoEnginesAskAndOneAnswerSettles(t *testing.T) {
	s := setting{
		policy: stalls, targets: one[behaviour](silent), probe: one(says(errors.New("down"), processing, done)),
		reconcile: one(onejob.Reconcile{Search: true, ByAttempt: true, Authoritative: true}),
	}
	in(t, s, func(w *world) {
		defer runEngine(w.newEngine(w.store, s))()
		job := w.until(w.submit("1").ID, onejob.JobSucceeded)
		version := job.Version
		time.Sleep(time.Hour)
		settled := 0
		for _, p := range w.probes(job.Attempts[0].ID) {
			if p.Outcome == onejob.OutcomeSucceeded {
				settled++
			}
		}
		if job = w.get(job.ID); states(job) != "succeeded: 1@a=succeeded" || job.Version != version || settled != 1 {
			t.Errorf("%s at version %d, settled %d times; want once", states(job), job.Version, settled)
		}
	})
}

func TestAPersonIsAskedAboutWhatStaysInDoubt(t *testing.T) {
	in(t, setting{
		policy: stalls, targets: one[behaviour](accepts("p1")), probe: one(says(processing)),
		reconcile: one(onejob.Reconcile{Lookup: true}),
	}, func(w *world) {
		id := w.submit("1").ID
		time.Sleep(2 * time.Hour)
		job := w.get(id)
		if a := w.attempt(job, 1); states(job) != "blocked: 1@a=unknown" || a.ProviderID != "p1" {
			t.Errorf("%s, id %q; want it unknown after an hour, its id kept", states(job), a.ProviderID)
		}
		before := len(w.probes(job.Attempts[0].ID))
		time.Sleep(time.Hour)
		if after := len(w.probes(job.Attempts[0].ID)); after <= before {
			t.Errorf("%d questions, an hour later %d; want polling to go on", before, after)
		}
	})
}

// watched counts what an engine tells of questions.
type watched struct {
	nobodyElse
	mu     sync.Mutex
	probes map[string]int
	people int
}

type nobodyElse struct{}

func (nobodyElse) AttemptStarted(string)                              {}
func (nobodyElse) AttemptEnded(string, onejob.Outcome, time.Duration) {}
func (nobodyElse) RaceLost(string)                                    {}
func (nobodyElse) Incident(onejob.EventKind)                          {}
func (nobodyElse) Swept(int)                                          {}

func (o *watched) ProbeAnswered(target string, method onejob.ProbeMethod, outcome onejob.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.probes[target+" "+string(method)+" "+string(outcome)]++
}

func (o *watched) GateDecided(string, string, bool, string) {}

func (o *watched) PeopleAsked(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.people += n
}

func TestQuestionsAndThePeopleAskedAreToldOf(t *testing.T) {
	o := &watched{probes: map[string]int{}}
	policy := stalls
	policy.AskAfter = time.Minute
	in(t, setting{
		policy: policy, targets: one[behaviour](silent), engine: engine.Options{Observer: o},
		probe:     one(says(errors.New("down"), errors.New("down"), errors.New("down"), errors.New("down"), errors.New("down"), errors.New("down"), done)),
		reconcile: one(onejob.Reconcile{Search: true}),
	}, func(w *world) {
		id := w.submit("1").ID
		w.until(id, onejob.JobSucceeded)
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.probes["a search "] != 6 || o.probes["a search succeeded"] != 1 || o.people != 1 {
			t.Errorf("told of %v, and of %d people asked; want 6 questions without an answer, one that succeeded, and 1", o.probes, o.people)
		}
	})
}
