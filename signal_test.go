package onejob_test

import (
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
