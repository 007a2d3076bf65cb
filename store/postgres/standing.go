package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onejob-dev/onejob"
)

// restand brings an open job to where its attempts put it. It returns the event
// of its becoming blocked for another reason, or nil.
func (l *loaded) restand(job *onejob.Job) *onejob.JobEvent {
	standing := onejob.StandingOf(job, job.Attempts, l.verdicts(job, onejob.Ask{}), l.now)
	was := job.Blocked
	job.Revision++
	job.State, job.Blocked, job.Error = standing.State, standing.Blocked, standing.Error
	job.NextTarget = standing.NextTarget
	if !standing.RunAfter.IsZero() {
		job.RunAfter = micros(standing.RunAfter)
	}
	if standing.Closes() {
		job.Version++
		job.FinishedAt = l.now
	}
	if job.Blocked == nil || (was != nil && was.Reason == job.Blocked.Reason) {
		return nil
	}
	return &onejob.JobEvent{
		Part: job.Part, JobID: job.ID, AttemptID: job.Blocked.AttemptID,
		Kind: onejob.EventBlocked, Detail: string(job.Blocked.Reason),
	}
}

// Every job given was locked and read by this transaction, so a row that is not
// found at the revision before is a fault of the program: the division then ends
// the transaction, with nothing changed.
const sqlJobStand = `
WITH stood AS (
    UPDATE job_states s
       SET state = u.state, version = u.version, revision = u.revision,
           run_after = u.run_after, due = u.run_after <= onejob_now(), next_target = u.next_target,
           blocked = u.blocked, blocked_reason = u.blocked_reason,
           error_code = u.error_code, error = u.error,
           cancel_requested_at = u.cancel_requested_at, finished_at = u.finished_at, unblocked_at = u.unblocked_at,
           held_at = u.held_at
      FROM unnest($1::smallint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::timestamptz[], $7::text[], $8::text[],
                  $9::text[], $10::text[], $11::text[], $12::timestamptz[], $13::timestamptz[], $14::timestamptz[], $15::timestamptz[])
           AS u (part, job_id, state, version, revision, run_after, next_target, blocked,
                 blocked_reason, error_code, error, cancel_requested_at, finished_at, unblocked_at, held_at)
     WHERE s.part = u.part AND s.job_id = u.job_id AND s.revision = u.revision - 1
       AND s.state IN ('queued', 'running', 'blocked')
    RETURNING 1
)
SELECT 1 / (count(*) = cardinality($1))::integer FROM stood`

// stand queues the writing of open jobs that restand moved.
func stand(b *pgx.Batch, jobs []*onejob.Job) {
	if len(jobs) == 0 {
		return
	}
	text := func(field func(j *onejob.Job) pgtype.Text) []pgtype.Text { return column(jobs, field) }
	at := func(field func(j *onejob.Job) time.Time) []pgtype.Timestamptz {
		return column(jobs, func(j *onejob.Job) pgtype.Timestamptz { return stamp(field(j)) })
	}
	b.Queue(sqlJobStand,
		column(jobs, func(j *onejob.Job) int16 { return int16(j.Part) }),
		column(jobs, func(j *onejob.Job) string { return j.ID }),
		column(jobs, func(j *onejob.Job) string { return string(j.State) }),
		column(jobs, func(j *onejob.Job) int64 { return j.Version }),
		column(jobs, func(j *onejob.Job) int64 { return j.Revision }),
		at(func(j *onejob.Job) time.Time { return j.RunAfter }),
		column(jobs, func(j *onejob.Job) string { return j.NextTarget }),
		text(func(j *onejob.Job) pgtype.Text { return blockedColumn(j.Blocked) }),
		text(func(j *onejob.Job) pgtype.Text { return reasonColumn(j.Blocked) }),
		text(func(j *onejob.Job) pgtype.Text { code, _ := failureColumns(j.Error); return code }),
		text(func(j *onejob.Job) pgtype.Text { _, message := failureColumns(j.Error); return message }),
		at(func(j *onejob.Job) time.Time { return j.CancelRequestedAt }),
		at(func(j *onejob.Job) time.Time { return j.FinishedAt }),
		at(func(j *onejob.Job) time.Time { return j.UnblockedAt }),
		at(func(j *onejob.Job) time.Time { return j.HeldAt }),
	)
}

func blockedColumn(b *onejob.Blocked) pgtype.Text {
	if b == nil {
		return pgtype.Text{}
	}
	return present(toJSON(b), true)
}

func reasonColumn(b *onejob.Blocked) pgtype.Text {
	if b == nil {
		return pgtype.Text{}
	}
	return present(string(b.Reason), true)
}

// An attempt of a closed job changed: only the revision tells.
const sqlJobTouch = `
UPDATE job_states s SET revision = s.revision + 1
  FROM unnest($1::smallint[], $2::text[]) AS u (part, job_id)
 WHERE s.part = u.part AND s.job_id = u.job_id AND s.state IN ('succeeded', 'failed', 'cancelled')`

// conclude ends a transaction in which attempts moved: every job of theirs that
// is still open is brought to where they put it, what happened is written down,
// and all of it is committed. b may hold more to write before that.
func (t *txn) conclude(ctx context.Context, b *pgx.Batch, l *loaded, moved []onejob.Attempt, events []onejob.JobEvent) error {
	return t.concludeJobs(ctx, b, l, jobsOf(moved), events)
}

// concludeJobs is conclude for jobs that changed, whether or not attempts of theirs
// moved.
func (t *txn) concludeJobs(ctx context.Context, b *pgx.Batch, l *loaded, changed []onejob.JobRef, events []onejob.JobEvent) error {
	var open []*onejob.Job
	var closed []onejob.JobRef
	for _, ref := range changed {
		job := l.job(ref)
		switch {
		case l.won[ref]: // winning the slot has written it
		case job.State.Terminal():
			job.Revision++
			closed = append(closed, ref)
		default:
			if e := l.restand(job); e != nil {
				events = append(events, *e)
			}
			open = append(open, job)
		}
	}
	stand(b, open)
	if len(closed) > 0 {
		parts, ids := refColumns(closed)
		b.Queue(sqlJobTouch, parts, ids)
	}
	writeEvents(b, events)
	return t.commit(ctx, b)
}

func jobsOf(attempts []onejob.Attempt) []onejob.JobRef {
	return distinct(column(attempts, func(a onejob.Attempt) onejob.JobRef {
		return onejob.JobRef{Part: a.Part, ID: a.JobID}
	}))
}

// merge puts attempts as they are now into their jobs.
func (l *loaded) merge(attempts []onejob.Attempt) {
	for i := range attempts {
		a := attempts[i]
		if in := l.attempt(onejob.AttemptRef{Part: a.Part, JobID: a.JobID, ID: a.ID}); in != nil {
			*in = a
		}
	}
}
