package engine

import (
	"context"
	"time"

	"github.com/onejob-dev/onejob"
)

const (
	sweepBatch    = 500
	decideBatch   = 200
	purgeBatch    = 500
	decideEvery   = 5 * time.Second
	purgeEvery    = time.Minute
	sweepAtLeast  = 100 * time.Millisecond
	sweepAtMost   = 5 * time.Second
	sweepPerLease = 3
)

// sweepLoop ends the claims of workers that went away: what they had not marked
// is proven not sent and tried again, what they had marked is unknown. It asks
// first and acts in a second step, which checks state and lease again.
func (e *Engine) sweepLoop(ctx context.Context) {
	interval := min(max(e.opts.Lease/sweepPerLease, sweepAtLeast), sweepAtMost)
	every(ctx, interval, func() {
		for ctx.Err() == nil && e.sweepOnce(ctx) == sweepBatch {
		}
	})
}

// sweepOnce returns how many expired attempts it found.
func (e *Engine) sweepOnce(ctx context.Context) int {
	refs, err := e.store.AttemptExpired(ctx, sweepBatch)
	if err == nil && len(refs) > 0 {
		var changed []onejob.AttemptRef
		changed, err = e.store.AttemptExpire(ctx, refs)
		e.swept(changed)
	}
	if err != nil {
		if ctx.Err() == nil {
			e.opts.Logger.Warn("could not sweep", "err", err)
		}
		return 0
	}
	return len(refs)
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

// decideLoop decides again about blocked jobs, which a changed certificate may free.
func (e *Engine) decideLoop(ctx context.Context) {
	every(ctx, decideEvery, func() {
		changed, err := e.store.JobDecide(ctx, decideBatch)
		if err != nil && ctx.Err() == nil {
			e.opts.Logger.Warn("could not decide again about blocked jobs", "err", err)
		}
		for _, ref := range changed {
			e.opts.Signals.JobChanged(ref.ID)
		}
		if len(changed) > 0 {
			e.opts.Signals.WorkReady()
		}
	})
}

// purgeLoop empties payloads that are old enough.
func (e *Engine) purgeLoop(ctx context.Context) {
	if e.opts.KeepPayloads == 0 && e.opts.KeepKeys == 0 {
		return
	}
	every(ctx, purgeEvery, func() {
		for ctx.Err() == nil {
			purged, err := e.store.JobPurge(ctx, onejob.JobPurgeParams{
				PayloadAge: e.opts.KeepPayloads, KeyAge: e.opts.KeepKeys, Limit: purgeBatch,
			})
			if err != nil && ctx.Err() == nil {
				e.opts.Logger.Warn("could not purge", "err", err)
			}
			if err != nil || purged < purgeBatch {
				return
			}
		}
	})
}
