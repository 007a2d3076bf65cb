package sqlite

import (
	"context"

	"github.com/onejob-dev/onejob"
)

// maxPage bounds every page.
const maxPage = 200

func pageOf(limit int) int { return min(max(limit, 1), maxPage) }

// AttemptList reads attempts: one, a job's oldest first, or a page newest first.
func (s *Store) AttemptList(ctx context.Context, p onejob.AttemptListParams) (page onejob.AttemptPage, err error) {
	where, ok := attemptsWanted(&p)
	if !ok {
		return page, nil
	}
	order := ` ORDER BY a.started_at DESC, a.id DESC`
	if p.JobID != "" {
		order = ` ORDER BY a.number`
	}
	columns := attemptColumns
	if p.WithResult {
		columns += `, ` + resultColumns
	}
	limit := pageOf(p.Limit)
	err = s.read(ctx, func(x *tx) error {
		return x.query(`SELECT`+columns+` FROM attempts a`+where.sql()+order+` LIMIT ?`, func(r *row) error {
			if len(page.Attempts) == limit {
				page.More = true
				return nil
			}
			var a onejob.Attempt
			if err := scanAttempt(r, &a); err != nil {
				return err
			}
			if p.WithResult {
				a.Result = scanResult(r)
			}
			page.Attempts = append(page.Attempts, a)
			return nil
		}, append(where.args, limit+1)...)
	})
	return page, err
}

// attemptsWanted reports false when no attempt can be meant.
func attemptsWanted(p *onejob.AttemptListParams) (w where, ok bool) {
	for _, id := range []struct{ column, value string }{{`a.id`, p.ID}, {`a.job_id`, p.JobID}} {
		if id.value == "" {
			continue
		}
		part, isID := onejob.PartOfID(id.value)
		if !isID {
			return w, false
		}
		w.and(`a.part = ?`, int(part))
		w.and(id.column+` = ?`, id.value)
	}
	if p.Owner != "" {
		w.and(`EXISTS (SELECT 1 FROM jobs j WHERE j.part = a.part AND j.id = a.job_id AND j.owner = ?)`, p.Owner)
	}
	if len(p.States) > 0 {
		w.and(`a.state ` + in(known(p.States, onejob.AttemptStates())))
	}
	if b := p.Before; b != nil {
		w.and(`(a.started_at, a.id) < (?, ?)`, millis(b.CreatedAt), b.ID)
	}
	return w, true
}
