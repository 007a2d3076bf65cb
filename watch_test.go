package onejob_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/memory"
)

// watched is a client with its own signals, and one whose changes it hears of
// only by looking: another process.
func watched(t *testing.T) (here, elsewhere *onejob.Client, signals *onejob.Signals) {
	t.Helper()
	store := memory.Open(memory.Options{})
	signals = &onejob.Signals{}
	open := func(s *onejob.Signals) *onejob.Client {
		client, err := onejob.New(store, onejob.Options{Secret: instanceSecret, Kinds: kinds(), Signals: s, PollInterval: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	return open(signals), open(nil), signals
}

func submitted(t *testing.T, c *onejob.Client) *onejob.Job {
	t.Helper()
	job, _, err := c.Submit(t.Context(), drawing(`1`))
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// watchWhile watches a job from its present revision while change happens a
// little later, and returns how long that took, and what was seen.
func watchWhile(t *testing.T, ctx context.Context, c *onejob.Client, job *onejob.Job, change func()) (time.Duration, *onejob.Job) {
	t.Helper()
	go func() {
		time.Sleep(100 * time.Millisecond) // of the bubble's time: it takes none
		change()
	}()
	began := time.Now()
	seen, err := c.Watch(ctx, "alice", job.ID, job.Revision)
	if err != nil {
		t.Fatalf("Watch: %v", err)
	}
	return time.Since(began), seen
}

func cancelJob(t *testing.T, c *onejob.Client, id string) {
	t.Helper()
	if _, err := c.Cancel(context.Background(), onejob.JobCancelParams{ID: id}); err != nil {
		t.Errorf("Cancel: %v", err)
	}
}

func TestWatchIsWokenByAChangeInTheSameProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		here, _, _ := watched(t)
		job := submitted(t, here)
		took, seen := watchWhile(t, t.Context(), here, job, func() { cancelJob(t, here, job.ID) })
		if took != 100*time.Millisecond || seen.State != onejob.JobCancelled {
			t.Errorf("after %s the job is %s; want cancelled, at once", took, seen.State)
		}
	})
}

func TestWatchSeesAChangeOfAnotherProcessByLooking(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		here, elsewhere, _ := watched(t)
		job := submitted(t, here)
		took, seen := watchWhile(t, t.Context(), here, job, func() { cancelJob(t, elsewhere, job.ID) })
		if took != time.Second || seen.State != onejob.JobCancelled {
			t.Errorf("after %s the job is %s; want cancelled, after one poll", took, seen.State)
		}
	})
}

func TestWatchReturnsTheJobAsItIsWhenTimeIsUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		here, _, _ := watched(t)
		job := submitted(t, here)
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		took, seen := watchWhile(t, ctx, here, job, func() {})
		if took != 10*time.Second || seen.State != onejob.JobQueued || seen.Revision != job.Revision {
			t.Errorf("after %s the job is %s at %d; want it unchanged after 10s", took, seen.State, seen.Revision)
		}
	})
}

func TestWatchIsNotFooledByASignalWithoutAChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		here, _, signals := watched(t)
		job := submitted(t, here)
		ctx, stop := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer stop()
		if took, _ := watchWhile(t, ctx, here, job, func() { signals.JobChanged(job.ID) }); took != 500*time.Millisecond {
			t.Errorf("the wait ended after %s; want the whole 500ms", took)
		}
	})
}

func TestWatchAnswersAtOnceWhenTheChangeIsOldNews(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		here, _, _ := watched(t)
		job := submitted(t, here)
		began := time.Now()
		if seen, err := here.Watch(t.Context(), "alice", job.ID, job.Revision-1); err != nil || seen.ID != job.ID || time.Since(began) != 0 {
			t.Errorf("Watch = %v, %v after %s; want the job at once", seen, err, time.Since(began))
		}
		if _, err := here.Watch(t.Context(), "bob", job.ID, 0); onejob.CodeOf(err) != onejob.CodeNotFound {
			t.Errorf("somebody else's watch is answered with %v; want not-found", err)
		}
	})
}
