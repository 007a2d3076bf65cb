package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob"
)

// A job that was not inserted gets no waiter: its id is nobody's. One whose creation is
// repeated, since nothing was heard of it, has its own.
const sqlWaiterCreate = `
INSERT INTO waiters (part, job_id, owner, route, fingerprint, token, until)
SELECT j.part, j.id, j.owner, u.route, j.fingerprint, u.token, onejob_now() + u.lease * interval '1 microsecond'
  FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::bigint[]) AS u (part, job_id, route, token, lease)
  JOIN jobs j ON j.part = u.part AND j.id = u.job_id
ON CONFLICT DO NOTHING`

// queueWaiters writes down who waits for new jobs. Without any there is nothing to send.
func (c *creating) queueWaiters(b *pgx.Batch, rows []int) {
	var ins []*intent
	for _, row := range rows {
		if in := &c.intents[row]; in.Waiter != nil {
			ins = append(ins, in)
		}
	}
	if len(ins) == 0 {
		return
	}
	b.Queue(sqlWaiterCreate,
		column(ins, func(in *intent) int16 { return int16(in.Part) }),
		column(ins, func(in *intent) string { return in.ID }),
		column(ins, func(in *intent) string { return in.Waiter.Route }),
		column(ins, func(in *intent) string { return in.Waiter.Token }),
		column(ins, func(in *intent) int64 { return in.Waiter.Lease.Microseconds() }),
	)
}

// A row that another takes now is passed over: it is theirs.
const sqlWaiterTake = `
WITH free AS MATERIALIZED (
    SELECT part, job_id FROM waiters
     WHERE part = $1 AND fingerprint = $2 AND owner = $3 AND route = $4
       AND (token = $5 OR until <= onejob_now() AND until > onejob_now() - $6::bigint * interval '1 microsecond')
     ORDER BY token = $5 DESC, until, job_id LIMIT 1
       FOR UPDATE SKIP LOCKED
)
UPDATE waiters w SET token = $5, until = onejob_now() + $7::bigint * interval '1 microsecond'
  FROM free WHERE w.part = free.part AND w.job_id = free.job_id
RETURNING w.job_id`

// WaiterTake implements [onejob.WaiterStore], in one statement.
func (s *Store) WaiterTake(ctx context.Context, p onejob.WaiterTakeParams) (onejob.JobRef, bool, error) {
	ref := onejob.JobRef{Part: p.Part}
	if !storable(p.Owner, p.Route, p.Token) {
		return onejob.JobRef{}, false, nil
	}
	err := s.pool.QueryRow(ctx, sqlWaiterTake, int16(p.Part), p.Fingerprint, p.Owner, p.Route, p.Token,
		p.Within.Microseconds(), p.Lease.Microseconds()).Scan(&ref.ID)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return onejob.JobRef{}, false, nil
	case err != nil:
		return onejob.JobRef{}, false, onejob.Unavailable(err)
	}
	return ref, true, nil
}

// All of these are about those who wait still.
const (
	sqlWaiterHeld = `unnest($1::smallint[], $2::text[], $3::text[]) AS u (part, job_id, token)
 WHERE w.part = u.part AND w.job_id = u.job_id AND w.token = u.token AND w.token <> ''
RETURNING w.job_id`
	sqlWaiterRenew = `
UPDATE waiters w SET until = onejob_now() + u.lease * interval '1 microsecond'
  FROM unnest($1::smallint[], $2::text[], $3::text[], $4::bigint[]) AS u (part, job_id, token, lease)
 WHERE w.part = u.part AND w.job_id = u.job_id AND w.token = u.token AND w.token <> ''
RETURNING w.job_id`
	sqlWaiterLeave   = `UPDATE waiters w SET token = '', until = onejob_now() FROM ` + sqlWaiterHeld
	sqlWaiterDeliver = `DELETE FROM waiters w USING ` + sqlWaiterHeld
)

// WaiterRenew implements [onejob.WaiterStore], in one round trip.
func (s *Store) WaiterRenew(ctx context.Context, params []onejob.WaiterRenewParams) ([]bool, error) {
	return eachWaiter(ctx, s, params, func(p *onejob.WaiterRenewParams) onejob.Waiter { return p.Waiter },
		func(b *pgx.Batch, some []*onejob.WaiterRenewParams, w waiters) []*pgx.QueuedQuery {
			leases := column(some, func(p *onejob.WaiterRenewParams) int64 { return p.Lease.Microseconds() })
			return []*pgx.QueuedQuery{b.Queue(sqlWaiterRenew, w.parts, w.jobs, w.tokens, leases)}
		})
}

// WaiterEnd implements [onejob.WaiterStore], in one round trip.
func (s *Store) WaiterEnd(ctx context.Context, params []onejob.WaiterEndParams) ([]bool, error) {
	return eachWaiter(ctx, s, params, func(p *onejob.WaiterEndParams) onejob.Waiter { return p.Waiter },
		func(b *pgx.Batch, some []*onejob.WaiterEndParams, _ waiters) (queries []*pgx.QueuedQuery) {
			var left, answered []onejob.Waiter
			for _, p := range some {
				if p.Delivered {
					answered = append(answered, p.Waiter)
				} else {
					left = append(left, p.Waiter)
				}
			}
			if w := waitersOf(left); len(left) > 0 {
				queries = append(queries, b.Queue(sqlWaiterLeave, w.parts, w.jobs, w.tokens))
			}
			if w := waitersOf(answered); len(answered) > 0 {
				queries = append(queries, b.Queue(sqlWaiterDeliver, w.parts, w.jobs, w.tokens))
			}
			return queries
		})
}

// waiters are some of them as the parameters of an unnest.
type waiters struct {
	parts        []int16
	jobs, tokens []string
}

func waitersOf(some []onejob.Waiter) waiters {
	return waiters{
		parts:  column(some, func(w onejob.Waiter) int16 { return int16(w.Part) }),
		jobs:   column(some, func(w onejob.Waiter) string { return clean(w.ID) }),
		tokens: column(some, func(w onejob.Waiter) string { return clean(w.Token) }),
	}
}

// eachWaiter does something about waiters, in the order of locking, and reports about
// which of them it was done.
func eachWaiter[P any](ctx context.Context, s *Store, params []P, waiterOf func(*P) onejob.Waiter,
	queue func(*pgx.Batch, []*P, waiters) []*pgx.QueuedQuery,
) ([]bool, error) {
	done := make([]bool, len(params))
	act := func(ctx context.Context, t *txn, rows []int) error {
		rows = slices.SortedFunc(slices.Values(rows), func(a, b int) int {
			return compareRefs(waiterOf(&params[a]).JobRef, waiterOf(&params[b]).JobRef)
		})
		some := column(rows, func(row int) *P { return &params[row] })
		jobs := map[string]bool{}
		b := t.batch()
		for _, q := range queue(b, some, waitersOf(column(some, waiterOf))) {
			q.Query(idsInto(jobs))
		}
		if err := t.commit(ctx, b); err != nil {
			return err
		}
		for _, row := range rows {
			done[row] = jobs[waiterOf(&params[row]).ID]
		}
		return nil
	}
	var refused error
	err := s.inWaves(ctx, len(params), func(row int) string { return waiterOf(&params[row]).ID }, act, func(_ int, err error) { refused = err })
	if err = cmp.Or(err, refused); err != nil {
		return nil, err
	}
	return done, nil
}

// Those that somebody holds are left for the next time.
const sqlWaitersForget = `
WITH gone AS MATERIALIZED (
    SELECT part, job_id FROM waiters
     WHERE until <= onejob_now() - $1::bigint * interval '1 microsecond'
     ORDER BY until LIMIT $2
       FOR UPDATE SKIP LOCKED
)
DELETE FROM waiters w USING gone WHERE w.part = gone.part AND w.job_id = gone.job_id`

// forgetWaiters forgets those who have long gone.
func (s *Store) forgetWaiters(ctx context.Context, p onejob.JobPurgeParams) (int, error) {
	tag, err := s.pool.Exec(ctx, sqlWaitersForget, p.WaiterAge.Microseconds(), p.Limit)
	return int(tag.RowsAffected()), err
}
