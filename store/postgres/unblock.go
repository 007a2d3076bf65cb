package postgres

import (
	"context"
	"slices"

	"github.com/onejob-dev/onejob"
)

// JobUnblock implements [onejob.Store]. A job that does not need an operator is
// answered as it is, so that asking again is safe.
func (s *Store) JobUnblock(ctx context.Context, params []onejob.JobUnblockParams) ([]onejob.JobResult, error) {
	results := make([]onejob.JobResult, len(params))
	fail := func(row int, err error) { results[row] = onejob.JobResult{Err: err} }
	act := func(ctx context.Context, t *txn, rows []int) error { return unblockAll(ctx, t, params, rows, results) }
	err := s.inWaves(ctx, len(params), func(row int) string { return params[row].ID }, act, fail)
	if err != nil {
		return nil, err
	}
	return results, nil
}

func unblockAll(ctx context.Context, t *txn, params []onejob.JobUnblockParams, rows []int, results []onejob.JobResult) error {
	b := t.batch()
	l := load(b, refsOf(column(rows, func(row int) string { return params[row].ID })), loading{terms: t.terms, lock: true})
	if err := t.send(ctx, b); err != nil {
		return err
	}
	var jobs []*onejob.Job
	var events []onejob.JobEvent
	var entries []onejob.AuditEntry
	for _, row := range rows {
		p := &params[row]
		job, err := l.toUnblock(p)
		results[row] = onejob.JobResult{Job: job, Err: err}
		if err != nil || job.Blocked == nil || !job.Blocked.Reason.NeedsUnblock() {
			continue
		}
		job.UnblockedAt, job.Blocked, job.State = l.now, nil, onejob.JobQueued
		jobs = append(jobs, job)
		event := eventOf(job, onejob.EventUnblocked)
		event.Actor, event.Detail = p.Actor, p.Reason
		events = append(events, *event)
		entries = append(entries, p.AuditOf(job.Owner))
	}
	if err := t.audit(ctx, entries); err != nil {
		return err
	}
	return t.restandAll(ctx, l, jobs, events)
}

func (l *loaded) toUnblock(p *onejob.JobUnblockParams) (*onejob.Job, error) {
	job, err := l.visible(p.ID, p.Owner)
	if err != nil {
		return nil, err
	}
	if err := onejob.CheckRevision(job, p.IfRevision); err != nil {
		return nil, err
	}
	inDoubt := slices.ContainsFunc(job.Attempts, func(a onejob.Attempt) bool { return a.State.InDoubt() })
	if job.State.Terminal() || inDoubt {
		return nil, onejob.CheckAsked(job, onejob.Decision{Verb: onejob.Wait})
	}
	return job, nil
}
