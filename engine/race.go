package engine

import (
	"context"
	"errors"

	"github.com/onejob-dev/onejob"
)

// race starts the next lane beside an attempt that has not answered, if a slot is
// free and the store agrees: the guard, the gate and the budgets are its to hold.
// Each lane starts the one after it, so that they come one race.after apart. It waits for
// no slot once over is closed.
func (e *Engine) race(t *trial, over <-chan struct{}) {
	start, ok := e.await(over) // who waits here holds up what came of the attempt itself
	if !ok {
		e.opts.Logger.Debug("no race", "job_id", t.Job.ID, "lane", t.Attempt.Lane+1, "reason", "no slot came free")
		return // busy: a race is a luxury
	}
	ctx, cancel := context.WithTimeout(e.hard, e.opts.Lease)
	defer cancel()
	results, err := e.store.AttemptStart(ctx, []onejob.AttemptStartParams{{
		JobID: t.Job.ID, Lane: t.Attempt.Lane + 1, StartParams: start,
	}})
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		e.Release()
		e.noteNoRace(t, err)
		e.opts.Logger.Debug("no race", "job_id", t.Job.ID, "lane", t.Attempt.Lane+1, "reason", err)
		return
	}
	e.opts.Logger.Info("racing", "job_id", t.Job.ID, "lane", t.Attempt.Lane+1, "target", results[0].Claimed.Attempt.Target)
	e.opts.Signals.JobShown(withoutInput(results[0].Claimed.Job))
	e.Dispatch(*results[0].Claimed)
}

// askToCancel asks the providers of a job's other attempts under way here to give
// them up, where they can. What they answer proves nothing: each stays in doubt
// until its own end, and is then discarded with its cost.
func (e *Engine) askToCancel(jobID string, but *trial) {
	for _, t := range e.held.of(jobID) {
		canceller, able := t.target.Provider.(onejob.Canceller)
		if t == but {
			continue
		}
		t.gaveUp.Store(true)
		if !able {
			continue
		}
		e.working.add()
		go func() {
			defer e.working.done()
			ctx, cancel := context.WithTimeout(e.hard, settleTime)
			defer cancel()
			err := canceller.Cancel(ctx, onejob.ProbeRequest{
				JobID: jobID, AttemptID: t.ref.ID, ProviderKey: t.Attempt.ProviderKey, ProviderID: t.Attempt.ProviderID,
			})
			if err != nil && !errors.Is(err, errors.ErrUnsupported) {
				e.opts.Logger.Debug("the provider was not asked to cancel", "attempt_id", t.ref.ID, "err", err)
			}
		}()
	}
}
