package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

// AttemptMark moves attempts to running, before anything is sent. A lease that
// has ended marks nothing, even if no sweep came by yet.
func (s *Store) AttemptMark(ctx context.Context, params []onejob.AttemptMarkParams) ([]onejob.AttemptMarkResult, error) {
	return each(ctx, s, params, func(p *onejob.AttemptMarkParams, now time.Time) onejob.AttemptMarkResult {
		r, a := s.held(p.Ref, p.ClaimToken)
		if a == nil || a.State != onejob.AttemptStarting || leaseOver(a, now) {
			return onejob.AttemptMarkResult{Err: onejob.ErrorOfLostClaim(p.Ref)}
		}
		if s.generation.Unconfirmed() {
			return onejob.AttemptMarkResult{Err: onejob.ErrorOfRestore()}
		}
		if !s.permitted(a, now) {
			a.Forbid(now)
			s.changed(r, now)
			return onejob.AttemptMarkResult{Err: onejob.ErrorOfForbidden(p.Ref)}
		}
		mark(a, p.Lease, p.SendWithin, p.Pins, now)
		s.changed(r, now)
		return onejob.AttemptMarkResult{Attempt: copyAttempt(a, false)}
	})
}

func mark(a *onejob.Attempt, lease, sendWithin time.Duration, pins onejob.TargetPins, now time.Time) {
	a.State, a.MarkedAt, a.LeaseExpiresAt = onejob.AttemptRunning, now, now.Add(lease)
	a.SendBy, a.TargetDigest = now.Add(sendWithin), pins.Digest
	a.QuarantineUntil = onejob.QuarantineEnd(a.SendBy, sendWithin, pins.MaxExecution)
}

// markAtOnce marks an attempt for a worker out of our sight, who may begin for as
// long as it holds the lease.
func markAtOnce(a *onejob.Attempt, lease time.Duration, pins onejob.TargetPins, now time.Time) {
	mark(a, lease, lease, pins, now)
	a.QuarantineUntil = onejob.QuarantineEnd(a.SendBy, 0, pins.MaxExecution)
}

// AttemptRenew extends leases. One that has ended can still be renewed while
// nobody acted on it.
func (s *Store) AttemptRenew(ctx context.Context, params []onejob.AttemptRenewParams) ([]onejob.AttemptRenewResult, error) {
	return each(ctx, s, params, func(p *onejob.AttemptRenewParams, now time.Time) onejob.AttemptRenewResult {
		if err := s.mayHold(p.Ref, p.Owner); err != nil {
			return onejob.AttemptRenewResult{Err: err}
		}
		r, a := s.held(p.Ref, p.ClaimToken)
		if a == nil || !leased(a) {
			return onejob.AttemptRenewResult{Err: onejob.ErrorOfLostClaim(p.Ref)}
		}
		end := now.Add(p.Lease)
		if last := a.MarkedAt.Add(p.Within); p.Within > 0 && last.Before(end) {
			end = last
		}
		if !end.After(now) {
			return onejob.AttemptRenewResult{Err: onejob.ErrorOfLostClaim(p.Ref)}
		}
		a.LeaseExpiresAt = end
		if later := a.LeaseExpiresAt.Sub(a.SendBy); p.MoveSendBy && !a.SendBy.IsZero() && later > 0 {
			a.SendBy = a.LeaseExpiresAt
			if !a.QuarantineUntil.IsZero() {
				a.QuarantineUntil = a.QuarantineUntil.Add(later)
			}
		}
		return onejob.AttemptRenewResult{CancelRequested: !r.job.CancelRequestedAt.IsZero()}
	})
}

// AttemptExpired lists attempts whose lease has ended, longest first.
func (s *Store) AttemptExpired(ctx context.Context, limit int) ([]onejob.AttemptRef, error) {
	now, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	var over []*onejob.Attempt
	for r := range s.live {
		for i := range r.job.Attempts {
			if a := &r.job.Attempts[i]; s.sweepable(a) && leaseOver(a, now) {
				over = append(over, a)
			}
		}
	}
	slices.SortFunc(over, func(a, b *onejob.Attempt) int {
		return cmp.Or(a.LeaseExpiresAt.Compare(b.LeaseExpiresAt), cmp.Compare(a.ID, b.ID))
	})
	var refs []onejob.AttemptRef
	for _, a := range over[:min(max(limit, 0), len(over))] {
		refs = append(refs, onejob.AttemptRef{Part: a.Part, JobID: a.JobID, ID: a.ID})
	}
	return refs, nil
}

// AttemptExpire ends attempts whose lease has ended. The list it is given may be
// old: state and lease are looked at again.
func (s *Store) AttemptExpire(ctx context.Context, refs []onejob.AttemptRef) ([]onejob.AttemptRef, error) {
	now, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	var expired []onejob.AttemptRef
	for _, ref := range refs {
		r, a := s.findAttempt(ref.ID, "")
		if a == nil || !s.sweepable(a) || !leaseOver(a, now) {
			continue
		}
		expire(a, now)
		r.ask(a, now)
		s.changed(r, now)
		expired = append(expired, ref)
	}
	return expired, nil
}

// expire says what a lost worker proves. The mark is committed before the wire:
// what was never marked was never sent, and what was marked is in doubt.
func expire(a *onejob.Attempt, now time.Time) {
	a.LeaseOverAt = now
	if a.State == onejob.AttemptStarting {
		a.State, a.Outcome, a.FinishedAt = onejob.AttemptFailed, onejob.OutcomeNotExecuted, now
		a.Next, a.OwnFault = onejob.NextAgain, true
		a.Evidence.Error = fmt.Sprintf("the lease of worker %s ended before anything was sent", a.Worker)
		a.Error = &onejob.Failure{Code: onejob.FailureLeaseOver, Message: a.Evidence.Error}
		return
	}
	a.State, a.Outcome = onejob.AttemptUnknown, onejob.OutcomeUnknown
	a.Evidence.Error = fmt.Sprintf("the lease of worker %s ended without word", a.Worker)
	a.Error = &onejob.Failure{Code: onejob.FailureLeaseOver, Message: a.Evidence.Error}
}

// mayHold refuses another owner's attempt as if there were none.
func (s *Store) mayHold(ref onejob.AttemptRef, who string) error {
	if who == "" {
		return nil
	}
	if _, a := s.findAttempt(ref.ID, who); a == nil || a.JobID != ref.JobID {
		return onejob.ErrorOfNoAttempt(ref.ID)
	}
	return nil
}

// held returns the attempt that token holds, and its job, or nils.
func (s *Store) held(ref onejob.AttemptRef, token string) (*row, *onejob.Attempt) {
	r, a := s.findAttempt(ref.ID, "")
	if a == nil || a.JobID != ref.JobID || a.ClaimToken != token {
		return nil, nil
	}
	return r, a
}

// leased reports whether a worker answers for the attempt.
func leased(a *onejob.Attempt) bool {
	return a.State == onejob.AttemptStarting || a.State == onejob.AttemptRunning
}

// sweepable reports whether the end of its lease ends the attempt. One that its
// provider has accepted needs no worker, and in a restored copy a lease says nothing.
func (s *Store) sweepable(a *onejob.Attempt) bool {
	return leased(a) && !a.OpenToProbes() && !s.generation.Unconfirmed()
}

func leaseOver(a *onejob.Attempt, now time.Time) bool { return !now.Before(a.LeaseExpiresAt) }
