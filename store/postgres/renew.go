package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob"
)

// A missing row: the attempt is no longer held under this token. One whose lease
// is over but that nobody has ended is held still.
const sqlAttemptRenew = `
UPDATE attempts a
   SET lease_expires_at = onejob_now() + u.lease * interval '1 microsecond'
  FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::bigint[]) AS u (part, job_id, id, claim_token, lease)
  JOIN job_states s ON s.part = u.part AND s.job_id = u.job_id
 WHERE a.part = u.part AND a.job_id = u.job_id AND a.id = u.id AND a.claim_token = u.claim_token
   AND a.state IN ('starting', 'running')
RETURNING a.id, s.cancel_requested_at IS NOT NULL`

// AttemptRenew implements [onejob.Store], in one round trip.
func (s *Store) AttemptRenew(ctx context.Context, params []onejob.AttemptRenewParams) ([]onejob.AttemptRenewResult, error) {
	results := make([]onejob.AttemptRenewResult, len(params))
	fail := func(row int, err error) { results[row] = onejob.AttemptRenewResult{Err: err} }
	act := func(ctx context.Context, t *txn, rows []int) error {
		renewed := map[string]bool{}
		if err := renew(ctx, t, column(rows, func(row int) onejob.AttemptRenewParams { return params[row] }), renewed); err != nil {
			return err
		}
		for _, row := range rows {
			cancel, held := renewed[params[row].Ref.ID]
			if !held {
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
// be cancelled.
func renew(ctx context.Context, t *txn, params []onejob.AttemptRenewParams, renewed map[string]bool) error {
	refs := attemptRefs(column(params, func(p onejob.AttemptRenewParams) onejob.AttemptRef { return p.Ref }))
	b := t.batch()
	b.Queue(sqlJobLock, refs.parts, refs.jobs)
	b.Queue(sqlAttemptRenew, refs.parts, refs.jobs, refs.ids,
		column(params, func(p onejob.AttemptRenewParams) string { return clean(p.ClaimToken) }),
		column(params, func(p onejob.AttemptRenewParams) int64 { return p.Lease.Microseconds() }),
	).Query(func(rows pgx.Rows) error {
		return forEach(rows, func(row pgx.Row) error {
			var id string
			var cancel bool
			err := row.Scan(&id, &cancel)
			renewed[id] = cancel
			return err
		})
	})
	return t.commit(ctx, b)
}
