package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onejob-dev/onejob"
)

// Both compare-and-swaps of a plain success, or neither: of an attempt that is held
// under the token, whose job has its slot free. The slots are taken first, in their
// order; whatever else moves attempts locks the same rows before it does. A missing
// row changed nothing, and is finished the long way.
//
// An attempt that somebody moved after it was seen here, and before its job's slot was
// taken, is left without its swap: the division then ends the statement, with nothing
// changed, and it is tried with fewer rows, down to one.
const sqlAttemptSucceed = `
WITH held AS MATERIALIZED (
    SELECT u.*, a.ctid AS place
      FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bytea[], $8::text[],
                  $9::text[], $10::bigint[], $11::text[], $12::text[], $14::integer[])
           AS u (part, job_id, id, claim_token, phase, evidence, result, result_type, provider_id, cost_micros, currency, usage, number)
      JOIN attempts a ON a.part = u.part AND a.job_id = u.job_id AND a.number = u.number AND a.id = u.id
     WHERE a.claim_token = u.claim_token AND a.state = ANY ($13::text[])
     ORDER BY u.part, u.job_id
), won AS (
    UPDATE job_states s
       SET completed_by = h.id, state = 'succeeded', version = s.version + 1, revision = s.revision + 1,
           finished_at = onejob_now(),
           blocked = NULL, blocked_reason = NULL, error_code = NULL, error = NULL
      FROM held h
     WHERE s.part = h.part AND s.job_id = h.job_id
       AND s.completed_by IS NULL AND s.state NOT IN ('failed', 'cancelled')
    RETURNING h.*, s.revision, s.finished_at
), swapped AS (
    UPDATE attempts a
       SET state = 'succeeded', outcome = 'succeeded', finished_at = w.finished_at,
           next = NULL, own_fault = false, error_code = NULL, error = NULL, lease_over_at = NULL,
           phase = coalesce(w.phase, a.phase), evidence = w.evidence,
           result = w.result, result_type = w.result_type, result_lost = false,
           provider_id = coalesce(w.provider_id, a.provider_id),
           cost_micros = CASE WHEN w.currency IS NULL THEN a.cost_micros ELSE w.cost_micros END,
           currency = coalesce(w.currency, a.currency),
           usage = coalesce(w.usage, a.usage)
      FROM won w
     WHERE a.ctid = w.place AND a.claim_token = w.claim_token AND a.state = ANY ($13::text[])
    RETURNING 1
)
SELECT id, revision, finished_at FROM won
 WHERE 1 / (CASE WHEN (SELECT count(*) FROM swapped) = (SELECT count(*) FROM won) THEN 1 ELSE 0 END) = 1`

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
		if len(rows) == 1 && overtaken(err) {
			return nil // nothing happened: the long way sees the attempt as it is now
		}
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

// overtaken reports whether the statement ended because somebody had moved an attempt
// meanwhile.
func overtaken(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "22012"
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
		column(params, func(p *onejob.AttemptFinishParams) int32 { return numberOf(p.Ref.ID) }),
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
