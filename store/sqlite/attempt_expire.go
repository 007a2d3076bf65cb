package sqlite

import (
	"context"

	"github.com/onejob-dev/onejob"
)

// needsWorker is the condition that the end of its lease ends an attempt. One that
// its provider has accepted needs no worker. In a restored copy a lease says nothing.
const needsWorker = `outcome IS NOT 'accepted'`

// AttemptExpired lists attempts whose lease has ended, longest first. While the
// clock is in doubt there are none.
func (s *Store) AttemptExpired(ctx context.Context, limit int) (refs []onejob.AttemptRef, err error) {
	if wait, _ := s.clock.doubtful(); wait > 0 {
		return nil, nil
	}
	err = s.read(ctx, func(x *tx) error {
		return x.query(`
			SELECT part, job_id, id FROM attempts
			WHERE state IN ('starting', 'running') AND lease_expires_at <= ? AND `+needsWorker+` AND `+unrestored+`
			ORDER BY lease_expires_at LIMIT ?`, func(r *row) error {
			refs = append(refs, onejob.AttemptRef{Part: uint8(r.Int64()), JobID: r.String(), ID: r.String()})
			return nil
		}, x.now, max(0, limit))
	})
	return refs, err
}

// AttemptExpire ends attempts whose lease has ended. The list it is given may be
// old: state and lease are looked at again. While the clock is in doubt it changes
// nothing.
func (s *Store) AttemptExpire(ctx context.Context, refs []onejob.AttemptRef) (expired []onejob.AttemptRef, err error) {
	err = s.write(ctx, func(x *tx) error {
		expired = nil
		if wait, _ := s.clock.doubtful(); wait > 0 {
			return nil
		}
		for _, ref := range refs {
			over := false
			refused, err := x.row(func() (err error) { over, err = x.expire(ref); return err })
			if err != nil {
				return err
			}
			if over && refused == nil {
				expired = append(expired, ref)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return expired, nil
}

// howLost is what the end of its lease means for an attempt, in words.
const howLost = `CASE state WHEN 'starting' THEN ' ended before anything was sent' ELSE ' ended without word' END`

// expire says what a lost worker proves. The mark is committed before the wire:
// what was never marked was never sent, and what was marked is in doubt.
// Zero rows: somebody finished or renewed it.
func (x *tx) expire(ref onejob.AttemptRef) (over bool, err error) {
	n, err := x.exec(`
		UPDATE attempts SET
			state       = CASE state WHEN 'starting' THEN 'failed'       ELSE 'unknown' END,
			outcome     = CASE state WHEN 'starting' THEN 'not_executed' ELSE 'unknown' END,
			next        = CASE state WHEN 'starting' THEN 'again'        ELSE next      END,
			own_fault   = CASE state WHEN 'starting' THEN 1              ELSE own_fault END,
			finished_at = CASE state WHEN 'starting' THEN ?                             END,
			unknown_at  = CASE state WHEN 'running'  THEN ?              ELSE unknown_at END,
			lease_over_at = ?, error_code = ?, error = 'the lease of worker ' || worker || `+howLost+`,
			evidence    = json_set(CASE WHEN json_valid(evidence) THEN evidence ELSE '{}' END, '$.error', 'the lease of worker ' || worker || `+howLost+`)
		WHERE `+thisAttempt+` AND lease_expires_at <= ? AND `+needsWorker+` AND `+sources(onejob.EventLeaseOver)+` AND `+unrestored,
		x.now, x.now, x.now, onejob.FailureLeaseOver, int(ref.Part), ref.JobID, ref.ID, x.now)
	if err != nil || n == 0 {
		return false, err
	}
	if err := x.ask(ref); err != nil {
		return false, err
	}
	_, err = x.changed(ref.Part, ref.JobID)
	return true, err
}
