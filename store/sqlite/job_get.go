package sqlite

import (
	"context"

	"github.com/onejob-dev/onejob"
)

// JobGet reads jobs.
func (s *Store) JobGet(ctx context.Context, params []onejob.JobGetParams) ([]onejob.JobResult, error) {
	results := make([]onejob.JobResult, len(params))
	err := s.read(ctx, func(x *tx) error {
		for i := range params {
			job, err := x.get(&params[i])
			if err != nil && !concernsRow(err) {
				return err
			}
			results[i] = onejob.JobResult{Job: job, Err: asRowError(err)}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

func (x *tx) get(p *onejob.JobGetParams) (*onejob.Job, error) {
	j, err := x.jobByID(p.ID, p.Owner)
	if err != nil {
		return nil, err
	}
	if p.WithInput {
		if err := x.withInput(&j.Job); err != nil {
			return nil, err
		}
	}
	return &j.Job, x.withResult(&j.Job)
}

// JobList reads one page of jobs, newest first.
func (s *Store) JobList(ctx context.Context, p onejob.JobListParams) (page onejob.JobPage, err error) {
	limit := pageOf(p.Limit)
	var jobs []storedJob
	err = s.read(ctx, func(x *tx) (err error) {
		jobs, err = listed(x, list[storedJob]{
			sql:   `SELECT` + jobColumns + ` FROM jobs j JOIN job_states s ON s.seq = j.seq`,
			order: ` ORDER BY j.created_at DESC, j.id DESC`, scan: scanJob,
			complete: func(j *storedJob) (err error) { j.Attempts, err = x.attemptsOf(&j.Job); return err },
			after:    func(last *storedJob, w *where) { w.and(`(j.created_at, j.id) < (?, ?)`, last.CreatedAt, last.ID) },
		}, jobsWanted(&p), limit+1)
		return err
	})
	page.More = len(jobs) > limit
	for i := range jobs[:min(limit, len(jobs))] {
		page.Jobs = append(page.Jobs, &jobs[i].Job)
	}
	return page, err
}

func jobsWanted(p *onejob.JobListParams) (w where) {
	for _, equal := range []struct{ column, value string }{
		{`j.owner`, p.Owner}, {`j.kind`, p.Kind}, {`s.error_code`, p.ErrorCode},
	} {
		if equal.value != "" {
			w.and(equal.column+` = ?`, equal.value)
		}
	}
	if len(p.States) > 0 {
		w.and(`s.state ` + in(known(p.States, onejob.JobStates())))
	}
	if p.Target != "" {
		w.and(`(j.target = ? OR EXISTS (SELECT 1 FROM attempts a WHERE a.seq = j.seq AND a.target = ?))`, p.Target, p.Target)
	}
	if len(p.KeyHash) > 0 {
		w.and(`j.key_hash = ?`, p.KeyHash)
	}
	if !p.CreatedAfter.IsZero() {
		w.and(`j.created_at > ?`, millis(p.CreatedAfter))
	}
	if !p.CreatedBefore.IsZero() {
		w.and(`j.created_at < ?`, later(p.CreatedBefore))
	}
	if b := p.Before; b != nil {
		w.and(`(j.created_at, j.id) < (?, ?)`, millis(b.CreatedAt), b.ID)
	}
	return w
}
