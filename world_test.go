package onejob_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/memory"
)

// world is a client over a store in memory, with a clock that a test moves.
type world struct {
	*testing.T
	store  onejob.Store
	client *onejob.Client

	mu  sync.Mutex
	now time.Time
}

// newWorld opens a store and a client on it. change may put another store in
// front, or other options.
func newWorld(t *testing.T, change ...func(*world, *onejob.Options)) *world {
	t.Helper()
	w := &world{T: t, now: noon}
	w.store = memory.Open(memory.Options{NowFunc: w.clock})
	opts := onejob.Options{Secret: instanceSecret, Kinds: kinds(), NowFunc: w.clock}
	for _, c := range change {
		c(w, &opts)
	}
	client, err := onejob.New(w.store, opts)
	if err != nil {
		t.Fatal(err)
	}
	w.client = client
	return w
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *world) noError(err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("got %v; want no error", err)
	}
}

// submit records an intent that must be answered, and says whether it existed.
func (w *world) submit(p onejob.SubmitParams) (*onejob.Job, bool) {
	w.Helper()
	job, existed, err := w.client.Submit(w.Context(), p)
	w.noError(err)
	return job, existed
}

func (w *world) get(id string) *onejob.Job {
	w.Helper()
	job, err := w.client.Get(w.Context(), "", id)
	w.noError(err)
	return job
}

var pins = map[string]onejob.TargetPins{"a": {Digest: "v1:a", MaxExecution: time.Hour}, "b": {Digest: "v1:b"}}

// claim starts the first attempt that is due, and marks it.
func (w *world) claim() onejob.Attempt {
	w.Helper()
	claim, err := w.store.AttemptClaim(w.Context(), onejob.AttemptClaimParams{
		StartParams: onejob.StartParams{Worker: "w1", Lease: time.Minute, Targets: pins}, Max: 1,
	})
	w.noError(err)
	if len(claim.Claimed) != 1 {
		w.Fatalf("%d attempts were claimed; want 1", len(claim.Claimed))
	}
	a := claim.Claimed[0].Attempt
	marked, err := w.store.AttemptMark(w.Context(), []onejob.AttemptMarkParams{{
		Ref: refOf(a), ClaimToken: a.ClaimToken, Lease: time.Minute, SendWithin: time.Second, Pins: pins[a.Target],
	}})
	w.noError(err)
	w.noError(marked[0].Err)
	return marked[0].Attempt
}

func refOf(a onejob.Attempt) onejob.AttemptRef {
	return onejob.AttemptRef{Part: a.Part, JobID: a.JobID, ID: a.ID}
}

// finish records what came of a claimed attempt.
func (w *world) finish(a onejob.Attempt, o onejob.Outcome, n onejob.Next) {
	w.Helper()
	p := onejob.AttemptFinishParams{Ref: refOf(a), ClaimToken: a.ClaimToken, Outcome: o, Next: n}
	if o == onejob.OutcomeSucceeded {
		p.Result = &onejob.Result{Body: []byte(`"done"`)}
	}
	finished, err := w.store.AttemptFinish(w.Context(), []onejob.AttemptFinishParams{p})
	w.noError(err)
	w.noError(finished[0].Err)
}

// leadTo brings a new job of key into a state, by way of real attempts.
func (w *world) leadTo(s onejob.JobState, key string) *onejob.Job {
	w.Helper()
	p := drawing(`{"prompt":"a cat"}`)
	p.Key = key
	job, _ := w.submit(p)
	switch s {
	case onejob.JobQueued:
	case onejob.JobRunning:
		w.claim()
	case onejob.JobBlocked:
		w.finish(w.claim(), onejob.OutcomeUnknown, "")
	case onejob.JobSucceeded:
		w.finish(w.claim(), onejob.OutcomeSucceeded, "")
	case onejob.JobFailed:
		w.finish(w.claim(), onejob.OutcomeRefused, onejob.NextNowhere)
	case onejob.JobCancelled:
		_, err := w.client.Cancel(w.Context(), onejob.JobCancelParams{ID: job.ID})
		w.noError(err)
	}
	if job = w.get(job.ID); job.State != s {
		w.Fatalf("the job is %s; want it %s", job.State, s)
	}
	return job
}

// between is a store with something in front of its creations.
type between struct {
	onejob.Store
	create func(ctx context.Context, params []onejob.JobCreateParams) ([]onejob.JobCreateResult, error)
}

func (b *between) JobCreate(ctx context.Context, params []onejob.JobCreateParams) ([]onejob.JobCreateResult, error) {
	return b.create(ctx, params)
}
