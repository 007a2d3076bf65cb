package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob"
)

// AttemptList implements [onejob.Store].
func (s *Store) AttemptList(ctx context.Context, p onejob.AttemptListParams) (onejob.AttemptPage, error) {
	page := onejob.AttemptPage{Attempts: []onejob.Attempt{}}
	f, ok := attemptFilter(p)
	if !ok {
		return page, nil
	}
	columns, order, limit := withoutResult, "a.started_at DESC, a.id DESC", pageOf(p.Limit)
	if p.WithResult {
		columns = withResult
	}
	if p.JobID != "" {
		order = "a.number"
	}
	rows, err := s.pool.Query(ctx, fmt.Sprintf("SELECT %s%s FROM attempts a%s ORDER BY %s LIMIT %d",
		attemptColumns, columns, f.sql(), order, limit+1), f.args...)
	if err != nil {
		return page, onejob.Unavailable(err)
	}
	err = forEach(rows, func(row pgx.Row) error {
		a, err := scanAttempt(row)
		page.Attempts = append(page.Attempts, a)
		return err
	})
	if page.More = len(page.Attempts) > limit; page.More {
		page.Attempts = page.Attempts[:limit]
	}
	return page, onejob.Unavailable(err)
}

// attemptFilter reports false for an id that can be nobody's.
func attemptFilter(p onejob.AttemptListParams) (*filter, bool) {
	f := &filter{}
	if p.ID != "" {
		ref, ok := refOf(p.ID)
		if !ok {
			return nil, false
		}
		f.where("a.part = $%d AND a.id = $%d", int16(ref.Part), ref.ID)
	}
	if p.JobID != "" {
		ref, ok := refOf(p.JobID)
		if !ok {
			return nil, false
		}
		f.where("a.part = $%d AND a.job_id = $%d", int16(ref.Part), ref.ID)
	}
	if len(p.States) > 0 {
		f.where("a.state = ANY($%d)", texts(p.States))
	}
	if p.Owner != "" {
		f.where("EXISTS (SELECT FROM jobs j WHERE j.part = a.part AND j.id = a.job_id AND j.owner = $%d)", p.Owner)
	}
	if p.Before != nil {
		f.where("(a.started_at, a.id) < ($%d, $%d)", stamp(p.Before.CreatedAt), p.Before.ID)
	}
	return f, true
}
