package postgres

import (
	"context"
	"slices"

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
	readers := make(map[onejob.JobRef]string, len(params))
	for _, p := range params {
		ref, ok := refOf(p.ID)
		if !ok || !storable(p.Owner) {
			continue
		}
		if other, asked := readers[ref]; asked && other != p.Owner {
			readers[ref] = "" // read for all of them; each is judged below
		} else {
			readers[ref] = p.Owner
		}
		if p.WithInput {
			full = append(full, ref)
		} else {
			bare = append(bare, ref)
		}
	}
	var without, with *loaded
	err := s.read(ctx, func(t *txn) error {
		b := t.batch()
		without = load(b, bare, loading{results: true, readers: readers})
		with = load(b, full, loading{results: true, input: true, readers: readers})
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
		job, err := l.visible(p.ID, p.Owner)
		if results[i].Err = err; err == nil {
			own := *job // each caller's own: they may share this reading
			own.Attempts = slices.Clone(job.Attempts)
			results[i].Job = &own
		}
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
