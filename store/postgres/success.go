package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onejob-dev/onejob"
)

// Both compare-and-swaps of a plain success, or neither: of an attempt that is held
// under the token, whose job has its slot free. The rows of job_states are locked
// first, in their order, and are read as they are then, so that a slot that is free
// stays so. A missing row changed nothing, and is finished the long way.
const sqlAttemptSucceed = `
WITH free AS MATERIALIZED (
    SELECT u.*
      FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bytea[], $8::text[],
                  $9::text[], $10::bigint[], $11::text[], $12::text[])
           AS u (part, job_id, id, claim_token, phase, evidence, result, result_type, provider_id, cost_micros, currency, usage)
      JOIN job_states s ON s.part = u.part AND s.job_id = u.job_id
     WHERE s.completed_by IS NULL AND s.state NOT IN ('failed', 'cancelled')
     ORDER BY u.part, u.job_id
       FOR NO KEY UPDATE OF s
), swapped AS (
    UPDATE attempts a
       SET state = 'succeeded', outcome = 'succeeded', finished_at = onejob_now(),
           next = NULL, own_fault = false, error_code = NULL, error = NULL, retry_at = NULL, lease_over_at = NULL,
           phase = coalesce(f.phase, a.phase), evidence = f.evidence,
           result = f.result, result_type = f.result_type, result_lost = false,
           provider_id = coalesce(f.provider_id, a.provider_id),
           cost_micros = CASE WHEN f.currency IS NULL THEN a.cost_micros ELSE f.cost_micros END,
           currency = coalesce(f.currency, a.currency),
           usage = coalesce(f.usage, a.usage)
      FROM free f
     WHERE a.part = f.part AND a.job_id = f.job_id AND a.id = f.id
       AND a.claim_token = f.claim_token AND a.state = ANY ($13::text[])
    RETURNING a.part, a.job_id, a.id
)
UPDATE job_states s
   SET completed_by = w.id, state = 'succeeded', version = s.version + 1, revision = s.revision + 1,
       finished_at = onejob_now(),
       blocked = NULL, blocked_reason = NULL, error_code = NULL, error = NULL
  FROM swapped w
 WHERE s.part = w.part AND s.job_id = w.job_id
   AND s.completed_by IS NULL AND s.state NOT IN ('failed', 'cancelled')
RETURNING s.completed_by, s.revision, s.finished_at`

// succeed finishes plain successes in one round trip, and returns the rows that
// are left, in their order: those that are something else, and those whose claim
// or slot was not as a success needs it.
func (s *Store) succeed(ctx context.Context, params []onejob.AttemptFinishParams, results []onejob.AttemptFinishResult) (left []int, err error) {
	var plain []int
	tried := map[onejob.JobRef]bool{}
	for row := range params {
		if ref := jobOf(params[row].Ref); isPlainSuccess(&params[row]) && !tried[ref] {
			tried[ref] = true // a second success of a job waits for what becomes of the first
			plain = append(plain, row)
		}
	}
	done := make([]bool, len(params))
	act := func(ctx context.Context, t *txn, rows []int) error {
		won, err := swapBoth(ctx, t, column(rows, func(row int) *onejob.AttemptFinishParams { return &params[row] }))
		for _, row := range rows {
			if w := won[params[row].Ref.ID]; err == nil && w != nil {
				done[row] = true
				results[row] = onejob.AttemptFinishResult{State: onejob.AttemptSucceeded, JobState: onejob.JobSucceeded, Won: w}
			}
		}
		return err
	}
	fail := func(row int, err error) {
		results[row] = onejob.AttemptFinishResult{Err: err}
		done[row] = true
	}
	if err := s.each(ctx, plain, act, fail); err != nil {
		return nil, err
	}
	for row := range params {
		if !done[row] {
			left = append(left, row)
		}
	}
	return left, nil
}

// isPlainSuccess reports whether p says nothing but what a success needs to say.
func isPlainSuccess(p *onejob.AttemptFinishParams) bool {
	return p.Outcome == onejob.OutcomeSucceeded && p.Owner == "" && p.Failure == nil && p.Next == "" && !p.OwnFault && p.RetryAfter <= 0 &&
		(p.Result == nil || !p.Result.Lost)
}

func swapBoth(ctx context.Context, t *txn, params []*onejob.AttemptFinishParams) (won map[string]*onejob.Won, err error) {
	refs := attemptRefs(column(params, func(p *onejob.AttemptFinishParams) onejob.AttemptRef { return p.Ref }))
	text := func(field func(p *onejob.AttemptFinishParams) pgtype.Text) []pgtype.Text {
		return column(params, field)
	}
	sources, _ := onejob.SourcesOf(onejob.EventAnswered)
	won = make(map[string]*onejob.Won, len(params))
	b := t.batch()
	b.Queue(sqlAttemptSucceed, refs.parts, refs.jobs, refs.ids,
		column(params, func(p *onejob.AttemptFinishParams) string { return clean(p.ClaimToken) }),
		text(func(p *onejob.AttemptFinishParams) pgtype.Text { return optional(p.Phase) }),
		column(params, func(p *onejob.AttemptFinishParams) string { return clean(toJSON(p.Evidence)) }),
		column(params, func(p *onejob.AttemptFinishParams) []byte { return bodyOf(p.Result) }),
		text(func(p *onejob.AttemptFinishParams) pgtype.Text { return typeOf(p.Result) }),
		text(func(p *onejob.AttemptFinishParams) pgtype.Text { return optional(p.ProviderID) }),
		column(params, func(p *onejob.AttemptFinishParams) int64 { return p.CostMicros }),
		text(func(p *onejob.AttemptFinishParams) pgtype.Text { return optional(p.Currency) }),
		text(func(p *onejob.AttemptFinishParams) pgtype.Text { return present(string(p.Usage), p.Usage != nil) }),
		texts(sources),
	).Query(func(rows pgx.Rows) error {
		return forEach(rows, func(row pgx.Row) error {
			var id string
			w := &onejob.Won{}
			err := row.Scan(&id, &w.Revision, &w.At)
			w.At = w.At.UTC()
			won[id] = w
			return err
		})
	})
	return won, t.commit(ctx, b)
}
