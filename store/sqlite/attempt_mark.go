package sqlite

import (
	"context"
	"time"

	"github.com/onejob-dev/onejob"
)

// mark is what the commit before the wire writes of an attempt.
func mark(a *onejob.Attempt, lease, sendWithin time.Duration, pins onejob.TargetPins, now time.Time) {
	a.State, a.MarkedAt, a.LeaseExpiresAt = onejob.AttemptRunning, now, millis(now.Add(lease))
	a.SendBy, a.TargetDigest = millis(now.Add(sendWithin)), pins.Digest
	a.QuarantineUntil = later(onejob.QuarantineEnd(now.Add(sendWithin), sendWithin, pins.MaxExecution))
}

// markAtOnce marks an attempt for a worker out of our sight, who may begin for as
// long as it holds the lease.
func markAtOnce(a *onejob.Attempt, lease time.Duration, pins onejob.TargetPins, now time.Time) {
	mark(a, lease, lease, pins, now)
	a.QuarantineUntil = later(onejob.QuarantineEnd(a.SendBy, 0, pins.MaxExecution))
}

// mayHold refuses another owner's attempt as if there were none.
func (x *tx) mayHold(ref onejob.AttemptRef, who string) error {
	if who == "" {
		return nil
	}
	err := onejob.ErrorOfNoAttempt(ref.ID)
	queryErr := x.query(`
		SELECT 1 FROM attempts a JOIN jobs j ON j.seq = a.seq
		WHERE j.part = ? AND j.id = ? AND a.id = ? AND j.owner = ?`, func(*row) error {
		err = nil
		return nil
	}, int(ref.Part), ref.JobID, ref.ID, who)
	if queryErr != nil {
		return queryErr
	}
	return err
}

// AttemptMark moves attempts to running, before anything is sent. A lease that
// has ended marks nothing, even if no sweep came by yet.
func (s *Store) AttemptMark(ctx context.Context, params []onejob.AttemptMarkParams) ([]onejob.AttemptMarkResult, error) {
	return batch(ctx, s, params, (*tx).mark, func(err error) onejob.AttemptMarkResult {
		return onejob.AttemptMarkResult{Err: err}
	})
}

func (x *tx) mark(p *onejob.AttemptMarkParams) (onejob.AttemptMarkResult, error) {
	var a onejob.Attempt
	mark(&a, p.Lease, p.SendWithin, p.Pins, x.now)
	n, err := x.exec(`
		UPDATE attempts SET state = 'running', marked_at = ?, lease_expires_at = ?, send_by = ?, quarantine_until = ?, target_digest = ?
		WHERE `+thisAttempt+` AND claim_token = ? AND `+sources(onejob.EventMarked)+` AND lease_expires_at > ?
			AND `+jobGoesOn+` AND `+permitted,
		a.MarkedAt, a.LeaseExpiresAt, a.SendBy, a.QuarantineUntil, a.TargetDigest,
		int(p.Ref.Part), p.Ref.JobID, p.Ref.ID, p.ClaimToken, x.now, x.now, x.now)
	if err != nil {
		return onejob.AttemptMarkResult{}, err
	}
	if n == 0 {
		return x.forbid(p)
	}
	j, err := x.changed(p.Ref.Part, p.Ref.JobID)
	if err != nil {
		return onejob.AttemptMarkResult{}, err
	}
	return onejob.AttemptMarkResult{Attempt: *onejob.AttemptOf(&j.Job, p.Ref.ID)}, nil
}

// AttemptRenew extends leases. One that has ended can still be renewed while
// nobody acted on it.
func (s *Store) AttemptRenew(ctx context.Context, params []onejob.AttemptRenewParams) ([]onejob.AttemptRenewResult, error) {
	return batch(ctx, s, params, (*tx).renew, func(err error) onejob.AttemptRenewResult {
		return onejob.AttemptRenewResult{Err: err}
	})
}

func (x *tx) renew(p *onejob.AttemptRenewParams) (result onejob.AttemptRenewResult, err error) {
	if err := x.mayHold(p.Ref, p.Owner); err != nil {
		return result, err
	}
	lease, err := x.leaseUntil(p)
	if err != nil {
		return result, err
	}
	n, err := x.exec(`
		UPDATE attempts SET lease_expires_at = ?,
			quarantine_until = CASE WHEN ? AND send_by < ? THEN quarantine_until + (? - send_by) ELSE quarantine_until END,
			send_by = CASE WHEN ? AND send_by < ? THEN ? ELSE send_by END
		WHERE `+thisAttempt+` AND claim_token = ? AND state IN ('starting', 'running') AND ? > ?`,
		lease, p.MoveSendBy, lease, lease, p.MoveSendBy, lease, lease, int(p.Ref.Part), p.Ref.JobID, p.Ref.ID, p.ClaimToken, lease, x.now)
	if err != nil {
		return result, err
	}
	if n == 0 {
		return result, onejob.ErrorOfLostClaim(p.Ref)
	}
	err = x.query(`SELECT cancel_requested_at IS NOT NULL FROM job_states WHERE seq = `+seqOfJob, func(r *row) error {
		result.CancelRequested = r.Bool()
		return nil
	}, int(p.Ref.Part), p.Ref.JobID)
	return result, err
}

// leaseUntil is when a renewed lease ends: not later than the attempt may last.
func (x *tx) leaseUntil(p *onejob.AttemptRenewParams) (end time.Time, err error) {
	end = millis(x.now.Add(p.Lease))
	if p.Within <= 0 {
		return end, nil
	}
	err = x.query(`SELECT marked_at FROM attempts WHERE `+thisAttempt, func(r *row) error {
		if last := millis(r.Time().Add(p.Within)); last.Before(end) {
			end = last
		}
		return nil
	}, int(p.Ref.Part), p.Ref.JobID, p.Ref.ID)
	return end, err
}
