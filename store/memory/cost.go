package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

// CostSum sums over attempts, losers and failures included.
func (s *Store) CostSum(ctx context.Context, p onejob.CostSumParams) (onejob.CostPage, error) {
	_, end, err := s.begin(ctx)
	if err != nil {
		return onejob.CostPage{}, err
	}
	defer end()
	sums, atLeast := map[onejob.CostCursor]*onejob.CostRow{}, map[string]bool{}
	for _, r := range s.jobs {
		if p.Owner != "" && p.Owner != r.job.Owner || p.Kind != "" && p.Kind != r.job.Kind {
			continue
		}
		for i := range r.job.Attempts {
			if a := &r.job.Attempts[i]; picked(a, &p) {
				addAttempt(sums, onejob.CostCursor{Key: costKey(&r.job, a, p.By), Currency: a.Currency}, a)
			}
		}
	}
	for at, row := range sums {
		atLeast[at.Key] = atLeast[at.Key] || row.Unpriced > 0
	}
	rows := slices.SortedFunc(maps.Values(sums), func(a, b *onejob.CostRow) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Currency, b.Currency))
	})
	var answer []onejob.CostRow
	for _, row := range rows {
		row.AtLeast = atLeast[row.Key]
		free := row.Currency == "" && row.Unpriced == 0
		after := p.After == nil || cmp.Or(cmp.Compare(row.Key, p.After.Key), cmp.Compare(row.Currency, p.After.Currency)) > 0
		if !free && after {
			answer = append(answer, *row)
		}
	}
	answer, more := page(answer, p.Limit)
	return onejob.CostPage{Rows: answer, More: more}, nil
}

func picked(a *onejob.Attempt, p *onejob.CostSumParams) bool {
	return (p.Target == "" || p.Target == a.Target) &&
		(p.From.IsZero() || !a.StartedAt.Before(p.From)) && (p.To.IsZero() || a.StartedAt.Before(p.To))
}

func costKey(j *onejob.Job, a *onejob.Attempt, by onejob.CostGroup) string {
	switch by {
	case onejob.CostByKind:
		return j.Kind
	case onejob.CostByTarget:
		return a.Target
	case onejob.CostByDay:
		return a.StartedAt.UTC().Format(time.DateOnly)
	case onejob.CostByOwner:
	}
	return j.Owner
}

func addAttempt(sums map[onejob.CostCursor]*onejob.CostRow, at onejob.CostCursor, a *onejob.Attempt) {
	if sums[at] == nil {
		sums[at] = &onejob.CostRow{Key: at.Key, Currency: at.Currency}
	}
	row := sums[at]
	if at.Currency != "" {
		row.Micros = onejob.AddMicros(row.Micros, a.CostMicros)
	}
	row.Attempts++
	if a.MayCostMore() {
		row.Unpriced++
	}
}
