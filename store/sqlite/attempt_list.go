package sqlite

import (
	"context"

	"github.com/onejob-dev/onejob"
)

// AttemptList reads attempts: one, a job's oldest first, or a page newest first.
func (s *Store) AttemptList(ctx context.Context, p onejob.AttemptListParams) (page onejob.AttemptPage, err error) {
	where, ok := attemptsWanted(&p)
	if !ok {
		return page, nil
	}
	limit := pageOf(p.Limit)
	err = s.read(ctx, func(x *tx) (err error) {
		page.Attempts, err = listed(x, attemptsInOrder(&p), where, limit+1)
		return err
	})
	if page.More = len(page.Attempts) > limit; page.More {
		page.Attempts = page.Attempts[:limit]
	}
	return page, err
}

func attemptsInOrder(p *onejob.AttemptListParams) list[onejob.Attempt] {
	l := list[onejob.Attempt]{
		sql: `SELECT` + attemptColumns + ` FROM attempts a`, order: ` ORDER BY a.started_at DESC, a.id DESC`, scan: scanAttempt,
		after: func(last *onejob.Attempt, w *where) { w.and(`(a.started_at, a.id) < (?, ?)`, last.StartedAt, last.ID) },
	}
	if p.JobID != "" {
		l.order = ` ORDER BY a.number`
		l.after = func(last *onejob.Attempt, w *where) { w.and(`a.number > ?`, last.Number) }
	}
	if p.WithResult {
		l.sql = `SELECT` + attemptColumns + `, ` + resultColumns + ` FROM attempts a`
		l.scan = func(r *row, a *onejob.Attempt) error {
			err := scanAttempt(r, a)
			a.Result = scanResult(r)
			return err
		}
	}
	return l
}

// attemptsWanted reports false when no attempt can be meant.
func attemptsWanted(p *onejob.AttemptListParams) (w where, ok bool) {
	jobs := []string{p.JobID}
	if p.ID != "" {
		jobID, _, isID := onejob.JobOfAttemptID(p.ID)
		if !isID {
			return w, false
		}
		w.and(`a.id = ?`, p.ID)
		jobs = append(jobs, jobID)
	}
	for _, id := range jobs {
		if id == "" {
			continue
		}
		part, isID := onejob.PartOfID(id)
		if !isID {
			return w, false
		}
		w.and(`a.seq = `+seqOfJob, int(part), id)
	}
	if p.Owner != "" {
		w.and(`EXISTS (SELECT 1 FROM jobs j WHERE j.seq = a.seq AND j.owner = ?)`, p.Owner)
	}
	if len(p.States) > 0 {
		w.and(`a.state ` + in(known(p.States, onejob.AttemptStates())))
	}
	if b := p.Before; b != nil {
		w.and(`(a.started_at, a.id) < (?, ?)`, millis(b.CreatedAt), b.ID)
	}
	return w, true
}
