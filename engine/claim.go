package engine

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/onejob-dev/onejob"
)

// claimLoop looks for due jobs when woken, when a slot comes free while jobs
// wait, and every poll interval regardless: a wake-up that was lost costs one poll.
func (e *Engine) claimLoop(ctx context.Context) {
	wait := time.NewTimer(0)
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.opts.Signals.Work():
		case <-e.slots.freed:
		case <-wait.C:
		}
		wait.Reset(e.claimAll(ctx))
	}
}

// claimAll claims until there are no slots or no due jobs, and returns when to
// look again.
func (e *Engine) claimAll(ctx context.Context) time.Duration {
	for {
		n := e.slots.takeAll()
		if n == 0 {
			return jitter(e.opts.PollInterval)
		}
		r, err := e.store.AttemptClaim(ctx, onejob.AttemptClaimParams{StartParams: e.start, Max: n})
		if err != nil {
			e.slots.give(n)
			if ctx.Err() == nil {
				e.opts.Logger.Warn("could not claim", "err", err)
			}
			return jitter(e.opts.PollInterval)
		}
		e.slots.claimed(len(r.Claimed) == n)
		e.slots.give(n - len(r.Claimed))
		for _, c := range r.Claimed {
			e.working.add()
			e.opts.Signals.JobChanged(c.Job.ID)
			e.dispatch(c)
		}
		for _, ref := range r.Settled {
			e.opts.Signals.JobChanged(ref.ID)
		}
		if len(r.Claimed) < n {
			return e.untilDue(r.NextDue)
		}
	}
}

// untilDue is when to look again, given when the next job is due by the store's
// clock. Ours only paces: the store decides what is due.
func (e *Engine) untilDue(next time.Time) time.Duration {
	poll := jitter(e.opts.PollInterval)
	if next.IsZero() {
		return poll
	}
	return max(min(time.Until(next), poll), time.Millisecond)
}

// jitter spreads d by a quarter to both sides, so that nodes do not poll in step.
func jitter(d time.Duration) time.Duration {
	return d*3/4 + rand.N(d/2+1)
}

// dispatch tries an attempt in a goroutine of its own. Its slot is taken, and it
// is in the tally.
func (e *Engine) dispatch(c onejob.Claimed) {
	go func() {
		defer e.working.done()
		e.try(c)
	}()
}

// Reserve implements [onejob.Starter].
func (e *Engine) Reserve(target string) (onejob.StartParams, bool) {
	if _, known := e.targets[target]; !known && target != "" {
		return onejob.StartParams{}, false
	}
	if !e.slots.takeOne() {
		return onejob.StartParams{}, false
	}
	e.working.add()
	start := e.start
	start.Since = time.Now()
	return start, true
}

// Dispatch implements [onejob.Starter].
func (e *Engine) Dispatch(c onejob.Claimed) {
	e.opts.Signals.JobChanged(c.Job.ID)
	e.dispatch(c)
}

// Release implements [onejob.Starter].
func (e *Engine) Release() {
	e.slots.give(1)
	e.working.done()
}
