package sqlite

import (
	"context"

	"github.com/onejob-dev/onejob"
)

// mayCostMore is [onejob.Attempt.MayCostMore]; a test holds it to that.
const mayCostMore = `(a.state IN ('running', 'unknown')
	OR (a.currency = '' AND (a.state IN ('succeeded', 'discarded')
		OR (a.state = 'cancelled' AND a.phase <> 'not_sent')
		OR (a.state = 'failed' AND coalesce(a.outcome, '') NOT IN ('not_executed', 'refused', 'cancelled')))))`

// costKeys is what rows of money are grouped by.
var costKeys = map[onejob.CostGroup]string{
	onejob.CostByOwner:  `j.owner`,
	onejob.CostByKind:   `j.kind`,
	onejob.CostByTarget: `a.target`,
	onejob.CostByDay:    `strftime('%Y-%m-%d', a.started_at / 1000, 'unixepoch')`,
}

// CostSum sums over attempts, losers and failures included. Units and millionths
// are summed apart: a sum that no integer holds would be an error here.
func (s *Store) CostSum(ctx context.Context, p onejob.CostSumParams) (page onejob.CostPage, err error) {
	key, ok := costKeys[p.By]
	if !ok {
		key = costKeys[onejob.CostByOwner]
	}
	limit := pageOf(p.Limit)
	w := attemptsSummed(&p)
	var after where
	after.and(`(currency <> '' OR unpriced > 0)`)
	if p.After != nil {
		after.and(`(k, currency) > (?, ?)`, p.After.Key, p.After.Currency)
	}
	err = s.read(ctx, func(x *tx) error {
		return x.query(`
			WITH sums AS (
				SELECT `+key+` AS k, a.currency AS currency,
					sum(CASE a.currency WHEN '' THEN 0 ELSE a.cost_micros / 1000000 END) AS units,
					sum(CASE a.currency WHEN '' THEN 0 ELSE a.cost_micros % 1000000 END) AS millionths,
					count(*) AS attempts, sum(`+mayCostMore+`) AS unpriced
				FROM attempts a JOIN jobs j ON j.seq = a.seq`+w.sql()+`
				GROUP BY k, a.currency
			), told AS (
				SELECT *, max(unpriced) OVER (PARTITION BY k) > 0 AS at_least FROM sums
			)
			SELECT k, currency, units, millionths, at_least, attempts, unpriced FROM told`+after.sql()+`
			ORDER BY k, currency LIMIT ?`, func(r *row) error {
			page.Rows = append(page.Rows, scanCost(r))
			return nil
		}, append(append(w.args, after.args...), limit+1)...)
	})
	if page.More = len(page.Rows) > limit; page.More {
		page.Rows = page.Rows[:limit]
	}
	return page, err
}

func scanCost(r *row) onejob.CostRow {
	c := onejob.CostRow{Key: r.String(), Currency: r.String()}
	c.Micros = onejob.MicrosOf(r.Int64(), r.Int64())
	c.AtLeast, c.Attempts, c.Unpriced = r.Bool(), r.Int64(), r.Int64()
	return c
}

func attemptsSummed(p *onejob.CostSumParams) (w where) {
	for _, filter := range []struct{ column, value string }{{`j.owner`, p.Owner}, {`j.kind`, p.Kind}, {`a.target`, p.Target}} {
		if filter.value != "" {
			w.and(filter.column+` = ?`, filter.value)
		}
	}
	if !p.From.IsZero() {
		w.and(`a.started_at >= ?`, later(p.From))
	}
	if !p.To.IsZero() {
		w.and(`a.started_at < ?`, later(p.To))
	}
	return w
}
