package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onejob-dev/onejob"
)

// A missing row: the attempt is no longer held under this token. One whose lease
// is over but that nobody has ended is held still.
const (
	sqlAttemptRenew = `
UPDATE attempts a
   SET lease_expires_at = ` + sqlLeaseUntil + `,
       send_by = CASE WHEN u.move_send_by AND a.send_by < ` + sqlLeaseUntil + `
                      THEN ` + sqlLeaseUntil + ` ELSE a.send_by END,
       quarantine_until = CASE WHEN u.move_send_by AND a.send_by < ` + sqlLeaseUntil + `
                      THEN a.quarantine_until + (` + sqlLeaseUntil + ` - a.send_by) ELSE a.quarantine_until END
  FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::boolean[], $8::bigint[])
       AS u (part, job_id, id, claim_token, lease, owner, move_send_by, within)
  JOIN job_states s ON s.part = u.part AND s.job_id = u.job_id
 WHERE a.part = u.part AND a.job_id = u.job_id AND a.id = u.id AND a.claim_token = u.claim_token
   AND a.state IN ('starting', 'running') AND ` + sqlLeaseUntil + ` > onejob_now()
   AND (u.owner = '' OR EXISTS (SELECT FROM jobs j WHERE j.part = u.part AND j.id = u.job_id AND j.owner = u.owner))
RETURNING a.id, s.cancel_requested_at IS NOT NULL`

	// Not later than the attempt may last; NULL is no bound.
	sqlLeaseUntil = `least(onejob_now() + u.lease * interval '1 microsecond', a.marked_at + u.within * interval '1 microsecond')`
)

// The attempts that are of who asks about them.
const sqlAttemptsOwned = `
SELECT a.id FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[]) AS u (part, job_id, id, owner)
  JOIN attempts a ON a.part = u.part AND a.job_id = u.job_id AND a.id = u.id
  JOIN jobs j ON j.part = u.part AND j.id = u.job_id AND j.owner = u.owner`

// AttemptRenew implements [onejob.Store], in one round trip.
func (s *Store) AttemptRenew(ctx context.Context, params []onejob.AttemptRenewParams) ([]onejob.AttemptRenewResult, error) {
	results := make([]onejob.AttemptRenewResult, len(params))
	fail := func(row int, err error) { results[row] = onejob.AttemptRenewResult{Err: err} }
	act := func(ctx context.Context, t *txn, rows []int) error {
		renewed, owned := map[string]bool{}, map[string]bool{}
		if err := renew(ctx, t, column(rows, func(row int) onejob.AttemptRenewParams { return params[row] }), renewed, owned); err != nil {
			return err
		}
		for _, row := range rows {
			cancel, held := renewed[params[row].Ref.ID]
			switch {
			case !held && params[row].Owner != "" && !owned[params[row].Ref.ID]:
				fail(row, onejob.ErrorOfNoAttempt(params[row].Ref.ID))
				continue
			case !held:
				fail(row, claimLost(params[row].Ref))
				continue
			}
			results[row] = onejob.AttemptRenewResult{CancelRequested: cancel}
		}
		return nil
	}
	err := s.inWaves(ctx, len(params), func(row int) string { return params[row].Ref.ID }, act, fail)
	if err != nil {
		return nil, err
	}
	return results, nil
}

// renew fills renewed with the attempts still held, and whether their job is to
// be cancelled, and owned with those of an owner who asked.
func renew(ctx context.Context, t *txn, params []onejob.AttemptRenewParams, renewed, owned map[string]bool) error {
	refs := attemptRefs(column(params, func(p onejob.AttemptRenewParams) onejob.AttemptRef { return p.Ref }))
	owners := column(params, func(p onejob.AttemptRenewParams) string { return clean(p.Owner) })
	b := t.batch()
	b.Queue(sqlJobLock, refs.parts, refs.jobs)
	b.Queue(sqlAttemptRenew, refs.parts, refs.jobs, refs.ids,
		column(params, func(p onejob.AttemptRenewParams) string { return clean(p.ClaimToken) }),
		column(params, func(p onejob.AttemptRenewParams) int64 { return p.Lease.Microseconds() }),
		owners,
		column(params, func(p onejob.AttemptRenewParams) bool { return p.MoveSendBy }),
		column(params, func(p onejob.AttemptRenewParams) pgtype.Int8 { return span(p.Within) }),
	).Query(func(rows pgx.Rows) error {
		return forEach(rows, func(row pgx.Row) error {
			var id string
			var cancel bool
			err := row.Scan(&id, &cancel)
			renewed[id] = cancel
			return err
		})
	})
	if slices.ContainsFunc(owners, func(owner string) bool { return owner != "" }) {
		b.Queue(sqlAttemptsOwned, refs.parts, refs.jobs, refs.ids, owners).Query(func(rows pgx.Rows) error {
			return forEach(rows, func(row pgx.Row) error {
				var id string
				err := row.Scan(&id)
				owned[id] = true
				return err
			})
		})
	}
	return t.commit(ctx, b)
}
