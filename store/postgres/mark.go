package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onejob-dev/onejob"
)

// The rows of job_states first, in order: whatever changes attempts holds them.
const sqlJobLock = `
SELECT s.part FROM unnest($1::smallint[], $2::text[]) AS u (part, job_id)
  JOIN job_states s ON s.part = u.part AND s.job_id = u.job_id
 ORDER BY s.part, s.job_id
   FOR NO KEY UPDATE OF s`

// A missing row: the claim is lost. It was cancelled, its lease is over, another
// holds it, or its job has closed.
var sqlAttemptMark = `
WITH marked AS (
    UPDATE attempts a
       SET state = 'running', marked_at = onejob_now(),
           lease_expires_at = onejob_now() + u.lease * interval '1 microsecond',
           send_by = onejob_now() + u.send_within * interval '1 microsecond',
           quarantine_until = onejob_now() + u.quarantine * interval '1 microsecond',
           target_digest = u.digest
      FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[])
           AS u (part, job_id, id, claim_token, lease, send_within, quarantine, digest)
      JOIN job_states s ON s.part = u.part AND s.job_id = u.job_id
     WHERE a.part = u.part AND a.job_id = u.job_id AND a.id = u.id AND a.claim_token = u.claim_token
       AND a.state = 'starting' AND a.lease_expires_at > onejob_now()
       AND s.state IN ('queued', 'running', 'blocked') AND s.cancel_requested_at IS NULL
       AND (a.certificate_id IS NULL AND a.waiver_id IS NULL OR ` + sqlPermittedOfAttempt + `)
    RETURNING a.*
), seen AS (
    UPDATE job_states s SET revision = s.revision + 1
      FROM marked m WHERE s.part = m.part AND s.job_id = m.job_id
)
SELECT ` + attemptColumns + withoutResult + ` FROM marked a`

// AttemptMark implements [onejob.Store], in one round trip.
func (s *Store) AttemptMark(ctx context.Context, params []onejob.AttemptMarkParams) ([]onejob.AttemptMarkResult, error) {
	results := make([]onejob.AttemptMarkResult, len(params))
	fail := func(row int, err error) { results[row] = onejob.AttemptMarkResult{Err: err} }
	act := func(ctx context.Context, t *txn, rows []int) error {
		marked := map[string]onejob.Attempt{}
		if err := mark(ctx, t, column(rows, func(row int) onejob.AttemptMarkParams { return params[row] }), marked); err != nil {
			return err
		}
		for _, row := range rows {
			if a, ok := marked[params[row].Ref.ID]; ok {
				results[row] = onejob.AttemptMarkResult{Attempt: a}
				continue
			}
			fail(row, claimLost(params[row].Ref))
		}
		return nil
	}
	err := s.inWaves(ctx, len(params), func(row int) string { return params[row].Ref.ID }, act, fail)
	if err == nil {
		err = s.forbid(ctx, params, results)
	}
	if err != nil {
		return nil, err
	}
	return results, nil
}

func mark(ctx context.Context, t *txn, params []onejob.AttemptMarkParams, marked map[string]onejob.Attempt) error {
	refs := attemptRefs(column(params, func(p onejob.AttemptMarkParams) onejob.AttemptRef { return p.Ref }))
	lengths := column(params, func(p onejob.AttemptMarkParams) spans { return spansOf(p.Lease, p.SendWithin, p.Pins.MaxExecution) })
	b := t.batch()
	b.Queue(sqlJobLock, refs.parts, refs.jobs)
	b.Queue(sqlAttemptMark, refs.parts, refs.jobs, refs.ids,
		column(params, func(p onejob.AttemptMarkParams) string { return clean(p.ClaimToken) }),
		column(lengths, func(s spans) int64 { return s.lease.Microseconds() }),
		column(lengths, func(s spans) int64 { return s.sendWithin.Microseconds() }),
		column(lengths, func(s spans) pgtype.Int8 { return span(s.quarantine) }),
		column(params, func(p onejob.AttemptMarkParams) string { return p.Pins.Digest }),
	).Query(func(rows pgx.Rows) error {
		return forEach(rows, func(row pgx.Row) error {
			a, err := scanAttempt(row)
			if errors.As(err, new(spoiled)) {
				return nil // committed with the rest, but not to be sent by who cannot read it
			}
			marked[a.ID] = a
			return err
		})
	})
	return t.commit(ctx, b)
}

// refs are attempts as the parameters of an unnest.
type refs struct {
	parts     []int16
	jobs, ids []string
}

func attemptRefs(all []onejob.AttemptRef) refs {
	return refs{
		parts: column(all, func(r onejob.AttemptRef) int16 { return int16(r.Part) }),
		jobs:  column(all, func(r onejob.AttemptRef) string { return clean(r.JobID) }),
		ids:   column(all, func(r onejob.AttemptRef) string { return clean(r.ID) }),
	}
}
