package engine

import (
	"context"
	"time"

	"github.com/onejob-dev/onejob"
)

const (
	sweepBatch    = 500
	decideBatch   = 200
	purgeBatch    = 100
	decideEvery   = 5 * time.Second
	purgeEvery    = time.Minute
	sweepAtLeast  = 100 * time.Millisecond
	sweepAtMost   = 5 * time.Second
	sweepPerLease = 3

	// purgeRest is how long purging rests after a batch, in times of what that took: a
	// million jobs that are old at once are no hurry, and others need the store, which on
	// SQLite is one writer.
	purgeRest = 2
)

// sweepLoop ends the claims of workers that went away: what they had not marked
// is proven not sent and tried again, what they had marked is unknown. It asks
// first and acts in a second step, which checks state and lease again.
func (e *Engine) sweepLoop(ctx context.Context) {
	interval := min(max(e.opts.Lease/sweepPerLease, sweepAtLeast), sweepAtMost)
	e.whenFound(ctx, e.wakeups.expired, interval, func() {
		for ctx.Err() == nil && e.sweepOnce(ctx) {
		}
	})
}

// sweepOnce reports whether there may be more to sweep: a full batch, of which
// some could be ended.
func (e *Engine) sweepOnce(ctx context.Context) (more bool) {
	bounded, cancel := context.WithTimeout(ctx, e.opts.Lease)
	defer cancel()
	refs, err := e.store.AttemptExpired(bounded, sweepBatch)
	if err != nil || len(refs) == 0 {
		e.complainUnless(ctx, "could not sweep", err)
		return false
	}
	changed, err := e.store.AttemptExpire(bounded, refs)
	e.swept(changed)
	e.complainUnless(ctx, "could not sweep", err)
	return err == nil && len(changed) > 0 && len(refs) == sweepBatch
}

// complainUnless complains of a failure that is not the end of ctx.
func (e *Engine) complainUnless(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		e.complain(what, err)
	}
}

func (e *Engine) swept(changed []onejob.AttemptRef) {
	if len(changed) == 0 {
		return
	}
	for _, ref := range changed {
		e.opts.Logger.Warn("a lease ended without word", "job_id", ref.JobID, "attempt_id", ref.ID)
		e.opts.Signals.JobChanged(ref.JobID)
	}
	e.opts.Observer.Swept(len(changed))
	e.opts.Signals.WorkReady()
}

// decideLoop decides again about jobs that nothing else would move: blocked ones
// that a changed certificate may free, and queued ones past their deadline.
func (e *Engine) decideLoop(ctx context.Context) {
	e.whenFound(ctx, e.wakeups.undecided, decideEvery, func() {
		bounded, cancel := context.WithTimeout(ctx, e.opts.Lease)
		defer cancel()
		changed, err := e.store.JobDecide(bounded, decideBatch)
		e.complainUnless(ctx, "could not decide again about waiting jobs", err)
		for _, ref := range changed {
			e.opts.Signals.JobChanged(ref.ID)
		}
		if len(changed) > 0 {
			e.opts.Signals.WorkReady()
		}
	})
}

// purgeLoop empties payloads that are old enough, and forgets waiters that have long
// gone, in small batches with pauses.
func (e *Engine) purgeLoop(ctx context.Context) {
	every(ctx, purgeEvery, func() {
		for began := time.Now(); ctx.Err() == nil && e.purgeOnce(ctx); began = time.Now() {
			rest(ctx, purgeRest*time.Since(began))
		}
	})
}

// purgeOnce reports whether there may be more to purge.
func (e *Engine) purgeOnce(ctx context.Context) (more bool) {
	bounded, cancel := context.WithTimeout(ctx, e.opts.Lease)
	defer cancel()
	purged, err := e.store.JobPurge(bounded, onejob.JobPurgeParams{
		PayloadAge: e.opts.KeepPayloads, KeyAge: e.opts.KeepKeys, WaiterAge: onejob.MaxTakeOverWithin, Limit: purgeBatch,
	})
	e.complainUnless(ctx, "could not purge", err)
	return err == nil && purged == purgeBatch
}

// rest pauses, unless ctx ends.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
