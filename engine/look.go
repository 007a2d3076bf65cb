package engine

import (
	"context"
	"time"

	"github.com/onejob-dev/onejob"
)

const (
	// lookAtMost is the longest pause between two looks for anything to do.
	lookAtMost = 4 * time.Second
	// restAfter is after how many claims in a row that found nothing claiming is left
	// to the looks, and restFor the longest pause then.
	restAfter = 4
	restFor   = time.Minute
)

// wakeups reach the loops that a look has found something for, where the store can be looked at as a whole.
type wakeups struct{ expired, undecided, unasked chan struct{} }

func newWakeups() wakeups {
	return wakeups{make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)}
}

// lookLoop asks the store in one statement whether there is anything to do, and
// wakes whoever has it. Nodes without work then cost their database next to nothing.
func (e *Engine) lookLoop(ctx context.Context) {
	if e.opts.Looker == nil {
		return
	}
	interval := min(max(e.opts.Lease/sweepPerLease, sweepAtLeast), lookAtMost)
	p := onejob.WorkLookParams{Askable: e.askable(), Endpoints: e.opts.Endpoints, Soon: 2 * interval}
	for name := range e.targets {
		p.Targets = append(p.Targets, name)
	}
	every(ctx, interval, func() {
		bounded, cancel := context.WithTimeout(ctx, e.opts.Lease)
		defer cancel()
		p.Held = e.held.unasked()
		there, err := e.opts.Looker.WorkLook(bounded, p)
		if err != nil {
			e.complainUnless(ctx, "could not look for work", err)
			return
		}
		e.pass(there)
	})
}

// pass wakes those who have something to do.
func (e *Engine) pass(there onejob.WorkFound) {
	for ch, is := range map[chan struct{}]bool{
		e.wakeups.expired: there.Expired, e.wakeups.undecided: there.Undecided, e.wakeups.unasked: there.Unasked,
	} {
		if is {
			wake(ch)
		}
	}
	if n := (onejob.News{Work: there.Due, Questions: there.Questions, Outbox: there.Outbox, Cancelled: there.Cancelled}); !n.IsEmpty() {
		e.opts.Signals.Hear(n)
	}
}

func wake(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default: // awake already
	}
}

// whenFound calls do when a look has found something for it, or every interval
// where nobody looks.
func (e *Engine) whenFound(ctx context.Context, something <-chan struct{}, interval time.Duration, do func()) {
	if e.opts.Looker == nil {
		every(ctx, interval, do)
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-something:
			do()
		}
	}
}

// pauseAfter is how long to wait before the next look of one's own, after a number
// of them that found nothing. While others are heard the looks for anything do.
func (e *Engine) pauseAfter(quiet int) time.Duration {
	pause := e.opts.Signals.PauseAfter(quiet, e.opts.PollInterval)
	if e.opts.Looker != nil && quiet >= restAfter && pause > e.opts.PollInterval {
		return restFor
	}
	return pause
}
