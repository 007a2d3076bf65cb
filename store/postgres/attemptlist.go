package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob"
)

// AttemptList implements [onejob.Store]. An attempt that cannot be read is left out,
// unless it is the one asked for.
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
	read := 0
	err = forEach(rows, func(row pgx.Row) error {
		if page.More = read == limit; page.More {
			return nil
		}
		read++
		a, err := scanAttempt(row)
		if p.ID == "" && errors.As(err, new(spoiled)) {
			s.log.ErrorContext(ctx, "an attempt cannot be read; it is left out of a list", "attempt_id", a.ID, "error", err)
			return nil
		}
		page.Attempts = append(page.Attempts, a)
		return err
	})
	if err != nil && ofRow(err) {
		return page, rowError(err)
	}
	return page, onejob.Unavailable(err)
}

// attemptFilter reports false for what is in no row.
func attemptFilter(p onejob.AttemptListParams) (*filter, bool) {
	f := &filter{}
	if !storable(p.Owner) {
		return nil, false
	}
	if p.ID != "" {
		n, ok := attemptOf(p.ID)
		if !ok {
			return nil, false
		}
		f.where("a.part = $%d AND a.job_id = $%d AND a.number = $%d AND a.id = $%d", int16(n.Part), n.JobID, n.number, n.ID)
	}
	if p.JobID != "" {
		ref, ok := refOf(p.JobID)
		if !ok {
			return nil, false
		}
		f.where("a.part = $%d AND a.job_id = $%d", int16(ref.Part), ref.ID)
	}
	if len(p.States) > 0 {
		f.where("a.state IN (" + literals(p.States, onejob.AttemptStates()) + ")")
	}
	if p.Owner != "" {
		f.where("EXISTS (SELECT FROM jobs j WHERE j.part = a.part AND j.id = a.job_id AND j.owner = $%d)", p.Owner)
	}
	if p.Before != nil {
		f.where("(a.started_at, a.id) < ($%d, $%d)", stamp(p.Before.CreatedAt), p.Before.ID)
	}
	return f, true
}
