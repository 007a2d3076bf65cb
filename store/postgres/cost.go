package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob"
)

// sqlMayCostMore is [onejob.Attempt.MayCostMore]; a test holds it to that.
const sqlMayCostMore = `(a.state IN ('running', 'unknown')
    OR (a.currency = '' AND (a.state IN ('succeeded', 'discarded')
        OR (a.state = 'cancelled' AND a.phase <> 'not_sent')
        OR (a.state = 'failed' AND coalesce(a.outcome, '') NOT IN ('not_executed', 'refused', 'cancelled')))))`

// A sum reads every attempt that it is about, which may be all there are: here the
// planner is free, and the statement is bounded.
const sqlSumFreely = `
SELECT set_config('enable_seqscan', 'on', true), set_config('enable_hashjoin', 'on', true),
       set_config('plan_cache_mode', 'force_custom_plan', true), set_config('statement_timeout', '30s', true)`

// sqlCostSum has places for the key, the conditions of attempts, those of rows, and
// the limit. A sum that no bigint holds stays at the largest that one does.
const sqlCostSum = `
WITH sums AS (
    SELECT (%s) COLLATE "C" AS k, a.currency COLLATE "C" AS currency,
           sum(CASE a.currency WHEN '' THEN 0 ELSE a.cost_micros END) AS micros,
           count(*) AS attempts, count(*) FILTER (WHERE ` + sqlMayCostMore + `) AS unpriced
      FROM attempts a JOIN jobs j ON j.part = a.part AND j.id = a.job_id%s
     GROUP BY 1, 2
), told AS (
    SELECT *, max(unpriced) OVER (PARTITION BY k) > 0 AS at_least FROM sums
)
SELECT k, currency, greatest(least(micros, 9223372036854775807), -9223372036854775808)::bigint, at_least, attempts, unpriced
  FROM told%s
 ORDER BY k, currency LIMIT %d`

// costKeys is what rows of money are grouped by.
func costKey(by onejob.CostGroup) string {
	switch by {
	case onejob.CostByKind:
		return "j.kind"
	case onejob.CostByTarget:
		return "a.target"
	case onejob.CostByDay:
		return "to_char(a.started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')"
	case onejob.CostByOwner:
	}
	return "j.owner"
}

// CostSum implements [onejob.CostStore].
func (s *Store) CostSum(ctx context.Context, p onejob.CostSumParams) (page onejob.CostPage, err error) {
	if !storable(p.Owner, p.Kind, p.Target) {
		return page, nil
	}
	limit := pageOf(p.Limit)
	attempts := attemptsSummed(&p)
	rowsWanted := &filter{args: attempts.args}
	rowsWanted.where("(currency <> '' OR unpriced > 0)")
	if p.After != nil {
		rowsWanted.where("(k, currency) > ($%d, $%d)", clean(p.After.Key), clean(p.After.Currency))
	}
	sql := fmt.Sprintf(sqlCostSum, costKey(p.By), attempts.sql(), rowsWanted.sql(), limit+1)
	err = s.read(ctx, func(t *txn) error {
		b := t.batch()
		b.Queue(sqlSumFreely)
		b.Queue(sql, rowsWanted.args...).Query(func(rows pgx.Rows) error {
			return forEach(rows, func(row pgx.Row) error {
				var c onejob.CostRow
				err := row.Scan(&c.Key, &c.Currency, &c.Micros, &c.AtLeast, &c.Attempts, &c.Unpriced)
				page.Rows = append(page.Rows, c)
				return err
			})
		})
		return t.commit(ctx, b)
	})
	if page.More = len(page.Rows) > limit; page.More {
		page.Rows = page.Rows[:limit]
	}
	return page, onejob.Unavailable(err)
}

func attemptsSummed(p *onejob.CostSumParams) *filter {
	f := &filter{}
	if p.Owner != "" {
		f.where("j.owner = $%d", p.Owner)
	}
	if p.Kind != "" {
		f.where("j.kind = $%d", p.Kind)
	}
	if p.Target != "" {
		f.where("a.target = $%d", p.Target)
	}
	if !p.From.IsZero() {
		f.where("a.started_at >= $%d", stamp(p.From))
	}
	if !p.To.IsZero() {
		f.where("a.started_at < $%d", stamp(p.To))
	}
	return f
}
