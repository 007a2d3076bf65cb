package engine

import (
	"sync"
	"time"
)

// vigil is what happens beside a provider's call for as long as it does not return:
// another lane may start, and at the timeout the attempt becomes unknown. The call
// has the attempt's own goroutine, and what is beside it only a timer each, since
// nearly every call returns before they ring.
type vigil struct {
	engine *Engine
	trial  *trial
	hangUp func()

	race     alarm
	raceOver chan struct{} // closed when no lane is to start any more; nil: none ever is
	silence  alarm

	// What silence leaves behind.
	linger *time.Timer
	left   func()
}

// keepVigil begins a vigil over a call that hangUp ends, and that feeds f.
func (e *Engine) keepVigil(t *trial, f *feed, hangUp func()) *vigil {
	v := &vigil{engine: e, trial: t, hangUp: hangUp}
	if f != nil {
		f.vigil = v
		t.feed.Store(f) // from here on the other lanes see it
	}
	p := &t.Job.Policy
	if p.RaceAfter > 0 && t.Attempt.Lane+1 < p.Lanes { // never in the last lane
		v.raceOver = make(chan struct{})
		v.race.set(p.RaceAfter, func() {
			if !e.shows(t.ref.JobID) { // a race is over once an answer is shown
				e.race(t, v.raceOver)
			}
		})
	}
	v.silence.set(p.Timeout, v.silent)
	return v
}

// silent settles the attempt as unknown, gives its slot back, and keeps the call
// open for the linger.
func (v *vigil) silent() {
	e, t := v.engine, v.trial
	v.endRace()
	e.finish(t, t.silent())
	t.slot.give()
	e.held.drop(t)
	v.left = e.linger.enter(v.hangUp)
	v.linger = time.AfterFunc(t.Job.Policy.Linger, v.hangUp)
}

// heard says that something of the answer came: silence begins anew. It is called by
// the goroutine of the call.
func (v *vigil) heard() { v.silence.postpone(v.trial.Job.Policy.Timeout) }

// end ends the vigil once the call has returned. What it began has ended then, too.
func (v *vigil) end() {
	if !v.silence.stop() {
		v.endRace()
		return
	}
	v.linger.Stop()
	v.left()
}

// endRace has no other lane start any more. It is called once.
func (v *vigil) endRace() {
	if v.raceOver != nil {
		close(v.raceOver)
	}
	v.race.stop()
}

// alarm calls a function once, later, unless it is stopped before.
type alarm struct {
	timer   *time.Timer // nil: never
	ringing sync.WaitGroup
}

func (a *alarm) set(after time.Duration, ring func()) {
	a.ringing.Add(1)
	a.timer = time.AfterFunc(after, func() {
		defer a.ringing.Done()
		ring()
	})
}

// stop reports whether the alarm rang; what it called has returned by then. It is
// called once.
func (a *alarm) stop() (rang bool) {
	if a.timer == nil || a.timer.Stop() {
		return false
	}
	a.ringing.Wait()
	return true
}

// postpone has the alarm ring so much later, unless it rang.
func (a *alarm) postpone(after time.Duration) {
	if a.timer.Stop() {
		a.timer.Reset(after)
	}
}
