package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob"
)

// What was claimed and not yet marked has not left, and its mark now fails.
const sqlAttemptCancel = `
UPDATE attempts a SET state = 'cancelled', outcome = 'cancelled', finished_at = onejob_now()
  FROM unnest($1::smallint[], $2::text[]) AS u (part, job_id)
 WHERE a.part = u.part AND a.job_id = u.job_id AND a.state = 'starting'
   AND ` + sqlUnrestored + `
RETURNING ` + attemptColumns + withoutResult

// JobCancel implements [onejob.Store].
func (s *Store) JobCancel(ctx context.Context, params []onejob.JobCancelParams) ([]onejob.JobResult, error) {
	results := make([]onejob.JobResult, len(params))
	fail := func(row int, err error) { results[row] = onejob.JobResult{Err: err} }
	act := func(ctx context.Context, t *txn, rows []int) error { return cancelAll(ctx, t, params, rows, results) }
	err := s.inWaves(ctx, len(params), func(row int) string { return params[row].ID }, act, fail)
	if err != nil {
		return nil, err
	}
	return results, nil
}

func cancelAll(ctx context.Context, t *txn, params []onejob.JobCancelParams, rows []int, results []onejob.JobResult) error {
	b := t.batch()
	l := load(b, refsOf(column(rows, func(row int) string { return params[row].ID })), loading{terms: t.terms, lock: true})
	if err := t.send(ctx, b); err != nil {
		return err
	}
	var cancelled []*onejob.Job
	var events []onejob.JobEvent
	var entries []onejob.AuditEntry
	for _, row := range rows {
		p := &params[row]
		job, asked, err := l.toCancel(p)
		results[row] = onejob.JobResult{Job: job, Err: err}
		if err != nil || asked {
			continue
		}
		job.CancelRequestedAt = l.now
		cancelled = append(cancelled, job)
		event := eventOf(job, onejob.EventCancelAsked)
		event.Actor = p.Actor
		events = append(events, *event)
		if entry, told := p.AuditOf(job.Owner); told {
			entries = append(entries, entry)
		}
	}
	if err := t.cancelStarting(ctx, l, cancelled); err != nil {
		return err
	}
	if err := t.audit(ctx, entries); err != nil {
		return err
	}
	return t.restandAll(ctx, l, cancelled, events)
}

// toCancel returns a job that may be cancelled, and whether it was asked before.
func (l *loaded) toCancel(p *onejob.JobCancelParams) (job *onejob.Job, asked bool, err error) {
	if job, err = l.visible(p.ID, p.Owner); err != nil {
		return nil, false, err
	}
	if err := onejob.CheckRevision(job, p.IfRevision); err != nil {
		return nil, false, err
	}
	if job.State.Terminal() && job.State != onejob.JobCancelled {
		return nil, false, onejob.CheckAsked(job, onejob.Decision{Verb: onejob.Rest})
	}
	return job, !job.CancelRequestedAt.IsZero(), nil
}

func (t *txn) cancelStarting(ctx context.Context, l *loaded, jobs []*onejob.Job) error {
	if len(jobs) == 0 {
		return nil
	}
	var moved []onejob.Attempt
	b := t.batch()
	parts, ids := refColumns(refsOfJobs(jobs))
	b.Queue(sqlAttemptCancel, parts, ids).Query(func(rows pgx.Rows) error {
		return forEach(rows, func(row pgx.Row) error {
			a, err := scanAttempt(row)
			moved = append(moved, a)
			return err
		})
	})
	if err := t.send(ctx, b); err != nil {
		return err
	}
	l.merge(moved)
	return nil
}

// restandAll brings open jobs to where they now stand, writes down what happened,
// and commits.
func (t *txn) restandAll(ctx context.Context, l *loaded, jobs []*onejob.Job, events []onejob.JobEvent) error {
	for _, job := range jobs {
		if e := l.restand(job); e != nil {
			events = append(events, *e)
		}
	}
	b := t.batch()
	stand(b, jobs)
	writeEvents(b, events)
	return t.commit(ctx, b)
}

func refsOfJobs(jobs []*onejob.Job) []onejob.JobRef {
	return column(jobs, func(j *onejob.Job) onejob.JobRef { return onejob.JobRef{Part: j.Part, ID: j.ID} })
}
