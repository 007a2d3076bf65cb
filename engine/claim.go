package engine

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/onejob-dev/onejob"
)

// claimLoop looks for due jobs when woken, when a slot comes free while jobs
// wait, and every poll interval regardless: a wake-up that was lost costs one poll.
// While other engines are heard the pause grows as long as nothing is found.
func (e *Engine) claimLoop(ctx context.Context) {
	wait := time.NewTimer(0)
	defer wait.Stop()
	pace := pace{poll: e.opts.PollInterval}
	for quiet := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-e.opts.Signals.Work():
			quiet = 0
		case <-e.slots.freed:
			quiet = 0
		case <-wait.C:
			quiet++
		}
		claimed, due := e.claimAll(ctx)
		if claimed > 0 {
			quiet = 0
		}
		pace.poll = e.pauseAfter(quiet)
		wait.Reset(pace.next(claimed, due))
	}
}

// claimAll claims until there are no slots or no due jobs. It returns how many
// attempts it claimed and when the next job is due, if that is known.
func (e *Engine) claimAll(ctx context.Context) (claimed int, nextDue time.Time) {
	for ctx.Err() == nil {
		n := e.slots.takeAll()
		if n == 0 {
			return claimed, time.Time{}
		}
		r, err := e.claim(ctx, n)
		if err != nil {
			e.slots.unclaimed(n)
			e.complain("could not claim", err)
			return claimed, time.Time{}
		}
		full := len(r.Claimed)+len(r.Settled) >= n
		e.slots.claimed(n, len(r.Claimed), full)
		claimed += len(r.Claimed)
		for _, c := range r.Claimed {
			e.working.add()
			e.opts.Signals.JobShown(withoutInput(c.Job))
			e.dispatch(c)
		}
		for _, ref := range r.Settled {
			e.opts.Signals.JobChanged(ref.ID)
		}
		if !full {
			return claimed, r.NextDue
		}
	}
	return claimed, time.Time{}
}

// claim is not cut short by a shutdown: what it committed would wait for its lease.
func (e *Engine) claim(ctx context.Context, n int) (onejob.AttemptClaimResult, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.opts.Lease)
	defer cancel()
	r, err := e.store.AttemptClaim(ctx, onejob.AttemptClaimParams{StartParams: e.start, Max: n, AfterOwner: e.turn})
	if err == nil {
		e.turn = r.LastOwner
	}
	return r, err
}

// firstTurn is somewhere among the owners, so that of many engines that start at
// once not all serve the same ones first.
func firstTurn() string { return string(rune('0' + rand.N('z'-'0'+1))) }

// pace says how long to wait between claims that nobody asked for.
type pace struct {
	poll  time.Duration
	floor time.Duration
}

// minPace is the least time between two claims that nobody asked for.
const minPace = 20 * time.Millisecond

// next is when to look again. The time of the next due job is the store's and only
// a hint: our clock may run ahead of it, or somebody may hold the job, so claims
// that find nothing slow down, up to the poll interval.
func (p *pace) next(claimed int, due time.Time) time.Duration {
	poll := jitter(p.poll)
	if due.IsZero() {
		p.floor = 0
		return poll
	}
	if claimed > 0 {
		p.floor = 0
	}
	p.floor = min(max(2*p.floor, minPace), p.poll)
	until := time.Until(due)
	if until > p.floor {
		p.floor = 0 // an honest wait, not a claim that found nothing
	}
	return min(max(until, p.floor, minPace), poll)
}

// jitter spreads d by a quarter to both sides, so that nodes do not poll in step.
func jitter(d time.Duration) time.Duration {
	return d*3/4 + rand.N(d/2+1)
}

// dispatch tries an attempt in a goroutine of its own. Its slot is taken, and it
// is in the tally.
func (e *Engine) dispatch(c onejob.Claimed) {
	t := e.newTrial(c)
	go func() {
		defer e.working.done()
		e.try(t)
	}()
}

// Reserve implements [onejob.Starter].
func (e *Engine) Reserve(target string) (onejob.StartParams, bool) {
	if _, known := e.targets[target]; !known && target != "" {
		return onejob.StartParams{}, false
	}
	start, _, ok := e.reserve()
	return start, ok
}

// Await implements [onejob.Starter].
func (e *Engine) Await(ctx context.Context) (onejob.StartParams, bool) { return e.await(ctx.Done()) }

// await takes a slot for one attempt. A claim that has taken every slot brings back what
// it has no jobs for, and is waited for until over is closed.
func (e *Engine) await(over <-chan struct{}) (onejob.StartParams, bool) {
	for {
		start, claim, ok := e.reserve()
		if ok || claim == nil {
			return start, ok
		}
		select {
		case <-claim:
		case <-over:
			return start, false
		}
	}
}

// reserve takes a slot for one attempt. Where it takes none, claim is what may bring one
// back, as [slots.takeOne] says.
func (e *Engine) reserve() (start onejob.StartParams, claim <-chan struct{}, ok bool) {
	taken, claim := e.slots.takeOne()
	if !taken {
		return onejob.StartParams{}, claim, false
	}
	e.working.add()
	start = e.start
	start.Since = time.Now()
	return start, nil, true
}

// Dispatch implements [onejob.Starter]. Nobody is told: whoever created the job, or
// asked for the attempt, is shown it by the commit that started it.
func (e *Engine) Dispatch(c onejob.Claimed) { e.dispatch(c) }

// withoutInput is a job as those who wait for it read it.
func withoutInput(job *onejob.Job) *onejob.Job {
	bare := *job
	bare.Input = nil
	return &bare
}

// Release implements [onejob.Starter].
func (e *Engine) Release() {
	e.slots.give()
	e.working.done()
}
