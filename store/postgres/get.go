package postgres

import (
	"context"

	"github.com/onejob-dev/onejob"
)

// JobGet implements [onejob.Store]: all jobs from one snapshot. If one of them
// cannot be read, each is read alone, and that one answers why.
func (s *Store) JobGet(ctx context.Context, params []onejob.JobGetParams) ([]onejob.JobResult, error) {
	results := make([]onejob.JobResult, len(params))
	if len(params) == 0 {
		return results, nil
	}
	err := s.get(ctx, params, results)
	if err == nil || !ofRow(err) {
		return results, onejob.Unavailable(err)
	}
	for i := range params {
		err := s.get(ctx, params[i:i+1], results[i:i+1])
		switch {
		case err == nil:
		case ofRow(err):
			results[i] = onejob.JobResult{Err: rowError(err)}
		default:
			return nil, onejob.Unavailable(err)
		}
	}
	return results, nil
}

func (s *Store) get(ctx context.Context, params []onejob.JobGetParams, results []onejob.JobResult) error {
	var bare, full []onejob.JobRef
	for _, p := range params {
		ref, ok := refOf(p.ID)
		switch {
		case !ok:
		case p.WithInput:
			full = append(full, ref)
		default:
			bare = append(bare, ref)
		}
	}
	var without, with *loaded
	err := s.read(ctx, func(t *txn) error {
		b := t.batch()
		without = load(b, bare, loading{results: true})
		with = load(b, full, loading{results: true, input: true})
		return t.commit(ctx, b)
	})
	if err != nil {
		return err
	}
	for i, p := range params {
		l := without
		if p.WithInput {
			l = with
		}
		results[i].Job, results[i].Err = l.visible(p.ID, p.Owner)
	}
	return nil
}

// visible returns a job to who may see it: its owner, or everybody if owner is empty.
func (l *loaded) visible(id, owner string) (*onejob.Job, error) {
	ref, _ := refOf(id)
	job := l.job(ref)
	if job == nil || (owner != "" && job.Owner != owner) {
		return nil, onejob.ErrorOfNoJob(id)
	}
	return job, nil
}
