package sqlite

import (
	"context"

	"github.com/onejob-dev/onejob"
)

// await writes down that the creator of a job waits for it.
func (x *tx) await(j *onejob.Job, p *onejob.WaiterCreateParams) error {
	_, err := x.exec(`
		INSERT OR FAIL INTO waiters (seq, part, job_id, owner, route, fingerprint, token, until)
		SELECT seq, part, id, owner, ?, fingerprint, ?, ? FROM jobs WHERE part = ? AND id = ?`,
		p.Route, p.Token, later(x.now.Add(p.Lease)), int(j.Part), j.ID)
	return err
}

// WaiterTake takes over the job of whoever has gone the longest. While the clock is in
// doubt no lease is over: only from those who left can be taken.
func (s *Store) WaiterTake(ctx context.Context, p onejob.WaiterTakeParams) (ref onejob.JobRef, taken bool, err error) {
	err = s.write(ctx, func(x *tx) error {
		ref, taken = onejob.JobRef{}, false
		wait, _ := s.clock.doubtful()
		return x.query(`
			UPDATE waiters SET token = ?, until = ? WHERE seq = (
				SELECT seq FROM waiters
				WHERE part = ? AND fingerprint = ? AND owner = ? AND route = ?
					AND (token = ? OR until <= ? AND until > ? AND (token = '' OR ?))
				ORDER BY token = ? DESC, until, seq LIMIT 1)
			RETURNING part, job_id`, func(r *row) error {
			ref, taken = onejob.JobRef{Part: uint8(r.Int64()), ID: r.String()}, true
			return nil
		}, p.Token, later(x.now.Add(p.Lease)), int(p.Part), p.Fingerprint, p.Owner, p.Route,
			p.Token, x.now, x.now.Add(-p.Within), wait == 0, p.Token)
	})
	return ref, taken, err
}

// heldWaiter is the condition of a waiter who waits still.
const heldWaiter = `seq = ` + seqOfJob + ` AND token = ? AND token <> ''`

// WaiterRenew extends leases, also one that is over and that nobody took over from.
func (s *Store) WaiterRenew(ctx context.Context, params []onejob.WaiterRenewParams) ([]bool, error) {
	return batch(ctx, s, params, func(x *tx, p *onejob.WaiterRenewParams) (bool, error) {
		n, err := x.exec(`UPDATE waiters SET until = ? WHERE `+heldWaiter, later(x.now.Add(p.Lease)), int(p.Part), p.ID, p.Token)
		return n == 1, err
	}, func(error) bool { return false })
}

// WaiterEnd ends waitings. Of one whose caller was answered nothing is left.
func (s *Store) WaiterEnd(ctx context.Context, params []onejob.WaiterEndParams) ([]bool, error) {
	return batch(ctx, s, params, func(x *tx, p *onejob.WaiterEndParams) (bool, error) {
		var n int
		var err error
		if p.Delivered {
			n, err = x.exec(`DELETE FROM waiters WHERE `+heldWaiter, int(p.Part), p.ID, p.Token)
		} else {
			n, err = x.exec(`UPDATE waiters SET token = '', until = ? WHERE `+heldWaiter, x.now, int(p.Part), p.ID, p.Token)
		}
		return n == 1, err
	}, func(error) bool { return false })
}

// forgetWaiters forgets those who have long gone. While the clock is in doubt nobody has.
func (x *tx) forgetWaiters(p onejob.JobPurgeParams) (forgotten int, err error) {
	if wait, _ := x.clock.doubtful(); wait > 0 || p.WaiterAge <= 0 {
		return 0, nil
	}
	return x.exec(`DELETE FROM waiters WHERE seq IN (SELECT seq FROM waiters WHERE until <= ? ORDER BY until LIMIT ?)`,
		x.now.Add(-p.WaiterAge), max(0, p.Limit))
}
