package onejob_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/onejob-dev/onejob"
)

// rung reports whether a channel has something to receive, without waiting.
func rung(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func TestAChangeWakesWhoWaitsForThatJob(t *testing.T) {
	t.Parallel()
	var s onejob.Signals
	one, stopOne := s.WatchJob("job_1")
	same, stopSame := s.WatchJob("job_1")
	other, stopOther := s.WatchJob("job_2")
	defer stopOther()
	s.JobChanged("job_1")
	s.JobChanged("job_1")
	if !rung(one) || !rung(same) || rung(other) {
		t.Error("a change of job_1 must wake both who wait for it and nobody else")
	}
	if rung(one) {
		t.Error("two changes in quick succession must be one signal")
	}
	stopOne()
	s.JobChanged("job_1")
	if rung(one) || !rung(same) {
		t.Error("after one stopped waiting the other alone must be woken")
	}
	stopSame()
	s.JobChanged("job_1")
	s.JobChanged("nobody waits for this")
}

func TestWorkThatComesWhileNobodyLooksIsNotForgotten(t *testing.T) {
	t.Parallel()
	var s onejob.Signals
	s.WorkReady()
	s.WorkReady()
	if !rung(s.Work()) {
		t.Error("work came before anybody looked, and the signal is lost")
	}
	if rung(s.Work()) {
		t.Error("two signals of work must be one")
	}
}

func TestTheEngineHearsOfWhatMayBeTried(t *testing.T) {
	t.Parallel()
	var s onejob.Signals
	w := newWorld(t, func(_ *world, o *onejob.Options) { o.Signals = &s })
	w.submit(drawing(`1`))
	if !rung(s.Work()) {
		t.Error("a new job rings for no work")
	}
	w.submit(drawing(`1`))
	_, _, _ = w.client.Submit(t.Context(), drawing(`2`))
	if rung(s.Work()) {
		t.Error("a repeat or a conflict rings for work")
	}
}

func TestWhoWaitsIsShownTheJobAndNeedNotReadIt(t *testing.T) {
	t.Parallel()
	var reads atomic.Int32
	var s onejob.Signals
	w := newWorld(t, func(w *world, o *onejob.Options) {
		w.store = &countingReads{Store: w.store, reads: &reads}
		o.Signals = &s
	})
	_, _, watch, err := w.client.SubmitWatched(t.Context(), onejob.SubmitParams{Owner: "alice", Key: "k1", Kind: "draw", Input: []byte("1")})
	w.noError(err)
	defer watch.Stop()
	old := onejob.Job{ID: watchedID(t, w), Revision: 2}
	done := old
	done.Revision, done.State = 3, onejob.JobSucceeded
	s.JobShown(&done)
	s.JobShown(&old) // came later, and is older
	got, err := watch.Until(t.Context(), func(j *onejob.Job) bool { return j.State.Terminal() })
	w.noError(err)
	if got.Revision != 3 || reads.Load() != 0 {
		t.Errorf("the job was seen at revision %d after %d reads; want 3 after none", got.Revision, reads.Load())
	}
}

func TestAChangeThatWasNotShownIsRead(t *testing.T) {
	t.Parallel()
	var s onejob.Signals
	w := newWorld(t, func(_ *world, o *onejob.Options) { o.Signals = &s })
	_, _, watch, err := w.client.SubmitWatched(t.Context(), onejob.SubmitParams{Owner: "alice", Key: "k1", Kind: "draw", Input: []byte("1")})
	w.noError(err)
	defer watch.Stop()
	id := watchedID(t, w)
	if _, err := w.client.Cancel(t.Context(), onejob.JobCancelParams{ID: id}); err != nil {
		t.Fatal(err)
	}
	s.JobShown(&onejob.Job{ID: id, Revision: 2, State: onejob.JobRunning}) // of before the change
	got, err := watch.Until(t.Context(), func(j *onejob.Job) bool { return j.State.Terminal() })
	w.noError(err)
	if got.State != onejob.JobCancelled {
		t.Errorf("the job is seen as %s; want what it was changed to", got.State)
	}
}

func watchedID(t *testing.T, w *world) string {
	t.Helper()
	page, err := w.client.List(t.Context(), onejob.JobListParams{Limit: 1})
	w.noError(err)
	return page.Jobs[0].ID
}

// countingReads counts the jobs that are read.
type countingReads struct {
	onejob.Store
	reads *atomic.Int32
}

func (c *countingReads) JobGet(ctx context.Context, p []onejob.JobGetParams) ([]onejob.JobResult, error) {
	c.reads.Add(1)
	return c.Store.JobGet(ctx, p)
}
