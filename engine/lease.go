package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/onejob-dev/onejob"
)

// held are the attempts whose leases this engine renews.
type held struct {
	mu     sync.Mutex
	trials map[*trial]struct{}
}

func (h *held) add(t *trial) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.trials == nil {
		h.trials = map[*trial]struct{}{}
	}
	h.trials[t] = struct{}{}
}

func (h *held) drop(t *trial) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.trials, t)
}

// of returns the attempts of one job.
func (h *held) of(jobID string) (trials []*trial) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for t := range h.trials {
		if t.ref.JobID == jobID {
			trials = append(trials, t)
		}
	}
	return trials
}

// Holds reports whether a call of the job's is under way here, those that linger left
// out. It may be though its lease has ended meanwhile. What came of a call is recorded
// before it is let go of: who is told that none is and reads the job then sees it.
func (e *Engine) Holds(jobID string) bool { return len(e.held.of(jobID)) > 0 }

// unasked are the jobs of those whose providers have not been asked to give up.
func (h *held) unasked() (jobs []onejob.JobRef) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for t := range h.trials {
		if !t.gaveUp.Load() {
			jobs = append(jobs, onejob.JobRef{Part: t.ref.Part, ID: t.ref.JobID})
		}
	}
	return jobs
}

func (h *held) renewals(lease time.Duration) []onejob.AttemptRenewParams {
	h.mu.Lock()
	defer h.mu.Unlock()
	params := make([]onejob.AttemptRenewParams, 0, len(h.trials))
	for t := range h.trials {
		// The token is set once; everything else of the attempt belongs to its goroutine.
		params = append(params, onejob.AttemptRenewParams{Ref: t.ref, ClaimToken: t.token, Lease: lease})
	}
	return params
}

// renewLoop renews every lease at a third of its length. A renewal that fails
// changes nothing here: if the lease ends meanwhile the attempt becomes unknown,
// and its answer, when it comes, settles it under the same token.
func (e *Engine) renewLoop(ctx context.Context) {
	every(ctx, e.opts.Lease/3, func() { e.renew(ctx, e.held.renewals(e.opts.Lease)) })
}

// renew renews leases, and asks the providers of jobs that are to be cancelled to
// give up.
func (e *Engine) renew(ctx context.Context, params []onejob.AttemptRenewParams) {
	if len(params) == 0 {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, e.opts.Lease/3)
	defer cancel()
	renewed, err := e.store.AttemptRenew(bounded, params)
	e.complainUnless(ctx, "leases not renewed", err)
	asked := map[string]bool{} // a job's lanes are asked together
	for i := range renewed {
		if id := params[i].Ref.JobID; renewed[i].CancelRequested && !asked[id] {
			asked[id] = true
			e.askToCancel(id, nil)
		}
	}
}

// cancelLoop hears of jobs that are to be given up. What it hears is a hint: the
// store says so, when the leases of their attempts are renewed ahead of time.
func (e *Engine) cancelLoop(ctx context.Context) {
	asked := e.opts.Signals.Cancels()
	for {
		select {
		case <-ctx.Done():
			return
		case <-asked:
		}
		ids, all := e.opts.Signals.TakeCancels()
		params := e.held.renewals(e.opts.Lease)
		if !all {
			params = slices.DeleteFunc(params, func(p onejob.AttemptRenewParams) bool {
				_, meant := ids[p.Ref.JobID]
				return !meant
			})
		}
		e.renew(ctx, params)
	}
}

// every calls do at about the given interval until ctx ends.
func every(ctx context.Context, interval time.Duration, do func()) {
	timer := time.NewTimer(jitter(interval))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		do()
		timer.Reset(jitter(interval))
	}
}

// lingering are the calls that are kept open for a late answer, bounded: the one
// that lingers longest hangs up for a new one.
type lingering struct {
	mu    sync.Mutex
	most  int
	calls []*lingerer // in the order they came
}

type lingerer struct{ hangUp func() }

// enter adds a call; leave must be called once, when it ended.
func (l *lingering) enter(hangUp func()) (leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.calls) >= l.most {
		l.calls[0].hangUp()
		l.calls = l.calls[1:]
	}
	call := &lingerer{hangUp}
	l.calls = append(l.calls, call)
	return func() { l.leave(call) }
}

func (l *lingering) leave(call *lingerer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, c := range l.calls {
		if c == call {
			l.calls = append(l.calls[:i], l.calls[i+1:]...)
			return
		}
	}
}
