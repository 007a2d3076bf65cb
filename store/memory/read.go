package memory

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

const maxPage = 200

// JobGet reads jobs.
func (s *Store) JobGet(ctx context.Context, params []onejob.JobGetParams) ([]onejob.JobResult, error) {
	return each(ctx, s, params, func(p *onejob.JobGetParams, _ time.Time) onejob.JobResult {
		r := s.find(p.ID, p.Owner)
		if r == nil {
			return onejob.JobResult{Err: onejob.ErrorOfNoJob(p.ID)}
		}
		return onejob.JobResult{Job: r.copyJob(p.WithInput)}
	})
}

// JobList reads one page of jobs, newest first.
func (s *Store) JobList(ctx context.Context, p onejob.JobListParams) (onejob.JobPage, error) {
	_, end, err := s.begin(ctx)
	if err != nil {
		return onejob.JobPage{}, err
	}
	defer end()
	var rows []*row
	for _, r := range s.jobs {
		if !r.shrunk && listed(&r.job, &p) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b *row) int {
		return newestFirst(a.job.CreatedAt, b.job.CreatedAt, a.job.ID, b.job.ID)
	})
	rows, more := page(rows, p.Limit)
	jobs := make([]*onejob.Job, len(rows))
	for i, r := range rows {
		jobs[i] = r.copyJob(false)
		jobs[i].Result = nil
	}
	return onejob.JobPage{Jobs: jobs, More: more}, nil
}

func listed(j *onejob.Job, p *onejob.JobListParams) bool {
	at := func(a onejob.Attempt) bool { return a.Target == p.Target }
	return (p.Owner == "" || p.Owner == j.Owner) &&
		(len(p.States) == 0 || slices.Contains(p.States, j.State)) &&
		(p.Kind == "" || p.Kind == j.Kind) &&
		(p.Target == "" || p.Target == j.Target || slices.ContainsFunc(j.Attempts, at)) &&
		(len(p.KeyHash) == 0 || bytes.Equal(p.KeyHash, j.KeyHash)) &&
		(p.ErrorCode == "" || (j.Error != nil && j.Error.Code == p.ErrorCode)) &&
		(p.CreatedAfter.IsZero() || j.CreatedAt.After(p.CreatedAfter)) &&
		(p.CreatedBefore.IsZero() || j.CreatedAt.Before(p.CreatedBefore)) &&
		older(j.CreatedAt, j.ID, p.Before)
}

// AttemptList reads attempts: one, a job's oldest first, or a page newest first.
func (s *Store) AttemptList(ctx context.Context, p onejob.AttemptListParams) (onejob.AttemptPage, error) {
	_, end, err := s.begin(ctx)
	if err != nil {
		return onejob.AttemptPage{}, err
	}
	defer end()
	var attempts []onejob.Attempt
	for _, r := range s.lookedAt(&p) {
		for i := range r.job.Attempts {
			if a := &r.job.Attempts[i]; wanted(a, &p) {
				attempts = append(attempts, copyAttempt(a, p.WithResult))
			}
		}
	}
	if p.JobID == "" {
		slices.SortFunc(attempts, func(a, b onejob.Attempt) int { return newestFirst(a.StartedAt, b.StartedAt, a.ID, b.ID) })
	}
	attempts, more := page(attempts, p.Limit)
	return onejob.AttemptPage{Attempts: attempts, More: more}, nil
}

// lookedAt narrows a list down to the jobs whose attempts it can be about.
func (s *Store) lookedAt(p *onejob.AttemptListParams) []*row {
	ids := []string{p.JobID}
	switch {
	case p.ID != "":
		r, _ := s.findAttempt(p.ID, p.Owner)
		if r == nil {
			return nil
		}
		ids[0] = r.job.ID
	case p.JobID == "":
		ids = slices.Collect(maps.Keys(s.jobs))
	}
	var rows []*row
	for _, id := range ids {
		if r := s.find(id, p.Owner); r != nil {
			rows = append(rows, r)
		}
	}
	return rows
}

func wanted(a *onejob.Attempt, p *onejob.AttemptListParams) bool {
	return (p.ID == "" || p.ID == a.ID) && (p.JobID == "" || p.JobID == a.JobID) &&
		(len(p.States) == 0 || slices.Contains(p.States, a.State)) &&
		older(a.StartedAt, a.ID, p.Before)
}

func older(at time.Time, id string, than *onejob.JobCursor) bool {
	return than == nil || newestFirst(than.CreatedAt, at, than.ID, id) < 0
}

func newestFirst(a, b time.Time, idA, idB string) int {
	return cmp.Or(b.Compare(a), cmp.Compare(idB, idA))
}

func page[T any](all []T, limit int) (some []T, more bool) {
	limit = min(max(limit, 1), maxPage)
	return all[:min(limit, len(all))], len(all) > limit
}
