package engine_test

import (
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/engine"
)

// claimAndVanish claims every due job as a worker that then dies.
func claimAndVanish(w *world, mark bool) {
	w.t.Helper()
	start := onejob.StartParams{Worker: "gone", Lease: 10 * time.Second, Targets: map[string]onejob.TargetPins{"a": {}}}
	r, err := w.store.AttemptClaim(w.t.Context(), onejob.AttemptClaimParams{StartParams: start, Max: 10})
	if err != nil || len(r.Claimed) != 1 {
		w.t.Fatalf("claimed %d, %v; want 1", len(r.Claimed), err)
	}
	if !mark {
		return
	}
	a := r.Claimed[0].Attempt
	marked, err := w.store.AttemptMark(w.t.Context(), []onejob.AttemptMarkParams{{
		Ref: onejob.AttemptRef{Part: a.Part, JobID: a.JobID, ID: a.ID}, ClaimToken: a.ClaimToken, Lease: 10 * time.Second, SendWithin: time.Second,
	}})
	if err != nil || marked[0].Err != nil {
		w.t.Fatal(err, marked[0].Err)
	}
}

// Work whose lease had gone was never found again (hibiken/asynq#1144), or stayed
// pending for ever after a crash (dbos-inc/dbos-transact-py#716).
func TestWhatAVanishedWorkerHadNotMarkedIsTriedAgain(t *testing.T) {
	in(t, setting{targets: map[string]behaviour{"a": answers(`1`)}, policy: onejob.Policy{Effect: onejob.EffectExternal}}, func(w *world) {
		w.stop()
		id := w.submit("1").ID
		claimAndVanish(w, false)
		defer runEngine(w.newEngine(w.store, setting{targets: map[string]behaviour{"a": answers(`1`)}}))()
		job := w.until(id, onejob.JobSucceeded)
		if got, want := states(job), "succeeded: 1@a=failed 2@a=succeeded"; got != want {
			t.Errorf("%s; want %s", got, want)
		}
	})
}

// Queues that run such a job again execute it twice (hexpm/hexpm#1825,
// timgit/pg-boss#581); here a person or the provider says what happened.
func TestWhatAVanishedWorkerHadMarkedIsUnknownAndNeverRunAgain(t *testing.T) {
	in(t, setting{targets: map[string]behaviour{"a": answers(`1`)}}, func(w *world) {
		w.stop()
		id := w.submit("1").ID
		claimAndVanish(w, true)
		defer runEngine(w.newEngine(w.store, setting{targets: map[string]behaviour{"a": answers(`1`)}}))()
		w.until(id, onejob.JobBlocked)
		time.Sleep(time.Hour)
		job := w.get(id)
		if states(job) != "blocked: 1@a=unknown" || w.calls.count() != 0 {
			t.Errorf("%s after %d calls; want unknown after none", states(job), w.calls.count())
		}
		if a := w.attempt(job, 1); a.Evidence.Error == "" {
			t.Error("the attempt has no evidence of why it is unknown")
		}
	})
}

func TestTheOneThatLingersLongestHangsUpForANewOne(t *testing.T) {
	policy := onejob.Policy{Timeout: time.Second, Linger: time.Hour}
	in(t, setting{policy: policy, targets: map[string]behaviour{"a": answersAfter(2*time.Hour, `1`)}, engine: engine.Options{Slots: 1, Lingering: 2}}, func(w *world) {
		for _, key := range []string{"1", "2", "3", "4"} {
			w.until(w.submit(key).ID, onejob.JobBlocked)
		}
		time.Sleep(time.Second)
		w.calls.mu.Lock()
		defer w.calls.mu.Unlock()
		if w.calls.busy != 2 {
			t.Errorf("%d calls are open; want 2", w.calls.busy)
		}
	})
}

func TestAnEngineWithoutAWakeUpFindsWorkByPolling(t *testing.T) {
	in(t, setting{targets: map[string]behaviour{"a": answers(`1`)}, engine: engine.Options{PollInterval: time.Second}}, func(w *world) {
		silent, err := onejob.New(w.store, onejob.Options{
			Secret: []byte("a secret of sixteen"), Kinds: map[string]onejob.Kind{"k": {Policy: onejob.Policy{Effect: onejob.EffectNone, Targets: []string{"a"}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		job, _, err := silent.Submit(w.t.Context(), onejob.SubmitParams{Owner: "o", Key: "1", Kind: "k", Input: []byte(`1`)})
		if err != nil {
			t.Fatal(err)
		}
		w.until(job.ID, onejob.JobSucceeded)
		if took := time.Since(began); took > 2500*time.Millisecond {
			t.Errorf("found after %s; want about a poll interval", took)
		}
	})
}
