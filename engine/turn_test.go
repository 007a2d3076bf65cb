package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/engine"
)

func (w *world) submitAs(owner, key string) *onejob.Job {
	w.t.Helper()
	job, _, err := w.client.Submit(w.t.Context(), onejob.SubmitParams{Owner: owner, Key: key, Kind: "k", Input: []byte(`{"n":1}`)})
	if err != nil {
		w.t.Fatalf("submit %s of %s: %v", key, owner, err)
	}
	return job
}

// finished waits for the job to end well and returns how long it took since it was
// created.
func (w *world) finished(job *onejob.Job) time.Duration {
	w.t.Helper()
	after, err := w.client.WatchUntil(w.t.Context(), "", job.ID, func(j *onejob.Job) bool { return j.State.Terminal() })
	if err != nil || after.State != onejob.JobSucceeded {
		w.t.Fatalf("the job is %s, %v; want succeeded", after.State, err)
	}
	return after.FinishedAt.Sub(after.CreatedAt)
}

// The time is the bubble's: what is measured here is the order, not the machine.
func TestABacklogDelaysAnotherOwnerByOneTurn(t *testing.T) {
	const slots, backlog, latency = 4, 200, time.Second
	s := setting{
		targets: map[string]behaviour{"a": answersAfter(latency, `1`)}, direct: true,
		engine: engine.Options{Slots: slots, PollInterval: time.Hour}, // a wake-up that is lost is not made up for
	}
	in(t, s, func(w *world) {
		began := time.Now()
		var jobs []*onejob.Job
		for i := range backlog {
			jobs = append(jobs, w.submitAs("big", fmt.Sprint(i)))
		}
		for i := range 10 {
			time.Sleep(latency * 7 / 10)
			small := w.submitAs("small", fmt.Sprint(i))
			jobs = append(jobs, w.submitAs("big", fmt.Sprint("more-", i)), small)
			if took := w.finished(small); took > 2*latency {
				t.Errorf("behind a backlog the small owner's job %d took %s; want at most %s", i, took, 2*latency)
			}
		}
		for _, job := range jobs {
			w.finished(job)
		}
		busy := time.Duration((len(jobs)+slots-1)/slots) * latency
		if took := time.Since(began); took > busy+latency {
			t.Errorf("%d jobs in %d slots took %s; want %s, with no slot idle", len(jobs), slots, took, busy)
		}
		if w.calls.count() != len(jobs) {
			t.Errorf("%d calls for %d jobs", w.calls.count(), len(jobs))
		}
	})
}

// slowClaims is a store whose claims take a while.
type slowClaims struct {
	onejob.Store
	take time.Duration
}

func (s slowClaims) AttemptClaim(ctx context.Context, p onejob.AttemptClaimParams) (onejob.AttemptClaimResult, error) {
	time.Sleep(s.take)
	return s.Store.AttemptClaim(ctx, p)
}

// A slot that comes free while jobs wait is theirs, also when a new job comes
// before the claim that is to find them.
func TestANewJobDoesNotPassThoseThatWait(t *testing.T) {
	s := setting{
		targets: map[string]behaviour{"a": answersAfter(time.Second, `1`)}, direct: true,
		engine: engine.Options{Slots: 2, PollInterval: time.Hour},
		wrap:   func(s onejob.Store) onejob.Store { return slowClaims{s, 100 * time.Millisecond} },
	}
	in(t, s, func(w *world) {
		time.Sleep(time.Second) // the first claim found nothing
		w.submitAs("small", "1")
		time.Sleep(50 * time.Millisecond)
		w.submitAs("small", "2")
		waits, waitsToo := w.submitAs("small", "3"), w.submitAs("small", "4")
		time.Sleep(time.Second + 20*time.Millisecond) // a claim for the first slot is under way, and the second is free
		comes := w.submitAs("small", "5")
		for _, job := range []*onejob.Job{waits, waitsToo, comes} {
			w.finished(job)
		}
		began := func(job *onejob.Job) time.Time {
			after, err := w.client.Get(t.Context(), "", job.ID)
			if err != nil {
				t.Fatal(err)
			}
			return after.Attempts[0].StartedAt
		}
		for _, job := range []*onejob.Job{waits, waitsToo} {
			if late := began(job).Sub(began(comes)); late > 0 {
				t.Errorf("a job that waited began %s after one that came later", late)
			}
		}
	})
}
