package memory

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

// waiter is who waits for a job that came without a key.
type waiter struct {
	ref         onejob.JobRef
	owner       string
	route       string
	fingerprint []byte
	token       string    // empty: gone
	until       time.Time // of the lease, or when it left
}

// await writes down that the creator of a job waits for it.
func (s *Store) await(r *row, p *onejob.WaiterCreateParams, now time.Time) {
	if p == nil {
		return
	}
	s.waiters[r.job.ID] = &waiter{
		ref: r.ref(), owner: r.job.Owner, route: p.Route, fingerprint: r.job.Fingerprint,
		token: p.Token, until: now.Add(p.Lease),
	}
}

// WaiterTake takes over the job of whoever has gone the longest.
func (s *Store) WaiterTake(ctx context.Context, p onejob.WaiterTakeParams) (ref onejob.JobRef, taken bool, err error) {
	now, end, err := s.begin(ctx)
	if err != nil {
		return ref, false, err
	}
	defer end()
	free := slices.DeleteFunc(s.waitersGoneFirst(), func(w *waiter) bool { return !w.free(&p, now) })
	if again := slices.IndexFunc(free, func(w *waiter) bool { return w.token == p.Token }); again >= 0 {
		free = free[again:]
	}
	if len(free) == 0 {
		return ref, false, nil
	}
	free[0].token, free[0].until = p.Token, now.Add(p.Lease)
	return free[0].ref, true, nil
}

// free reports whether the call of p may take over from w, or has.
func (w *waiter) free(p *onejob.WaiterTakeParams, now time.Time) bool {
	gone := w.token == "" || !now.Before(w.until)
	alike := w.ref.Part == p.Part && w.owner == p.Owner && w.route == p.Route && bytes.Equal(w.fingerprint, p.Fingerprint)
	return alike && (w.token == p.Token || gone && now.Before(w.until.Add(p.Within)))
}

func (s *Store) waitersGoneFirst() []*waiter {
	all := make([]*waiter, 0, len(s.waiters))
	for _, w := range s.waiters {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b *waiter) int { return cmp.Or(a.until.Compare(b.until), cmp.Compare(a.ref.ID, b.ref.ID)) })
	return all
}

// WaiterRenew extends leases, also one that is over and that nobody took over from.
func (s *Store) WaiterRenew(ctx context.Context, params []onejob.WaiterRenewParams) ([]bool, error) {
	return each(ctx, s, params, func(p *onejob.WaiterRenewParams, now time.Time) bool {
		w := s.waiting(p.Waiter)
		if w != nil {
			w.until = now.Add(p.Lease)
		}
		return w != nil
	})
}

// WaiterEnd ends waitings. Of one whose caller was answered nothing is left.
func (s *Store) WaiterEnd(ctx context.Context, params []onejob.WaiterEndParams) ([]bool, error) {
	return each(ctx, s, params, func(p *onejob.WaiterEndParams, now time.Time) bool {
		w := s.waiting(p.Waiter)
		switch {
		case w == nil:
			return false
		case p.Delivered:
			delete(s.waiters, w.ref.ID)
		default:
			w.token, w.until = "", now
		}
		return true
	})
}

// waiting finds a waiter who waits still, or nil.
func (s *Store) waiting(by onejob.Waiter) *waiter {
	if w := s.waiters[by.ID]; w != nil && by.Token != "" && w.token == by.Token {
		return w
	}
	return nil
}

// forgetWaiters forgets those who have long gone.
func (s *Store) forgetWaiters(p onejob.JobPurgeParams, now time.Time) (forgotten int) {
	if p.WaiterAge <= 0 {
		return 0
	}
	for _, w := range s.waitersGoneFirst() {
		if forgotten >= p.Limit || now.Before(w.until.Add(p.WaiterAge)) {
			break
		}
		delete(s.waiters, w.ref.ID)
		forgotten++
	}
	return forgotten
}
