package postgres

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onejob-dev/onejob"
)

// The priorities that are queued, highest first, one look into the index each: so
// neither those that are not due nor lower ones are walked over.
const sqlLevels = `
WITH RECURSIVE level AS (
    (SELECT priority FROM job_states WHERE state = 'queued' ORDER BY priority DESC LIMIT 1)
    UNION ALL
    SELECT (SELECT s.priority FROM job_states s WHERE s.state = 'queued' AND s.priority < l.priority ORDER BY s.priority DESC LIMIT 1)
      FROM level l WHERE l.priority IS NOT NULL
)`

// Rows that another claimer holds are passed over. The CTE is materialised so
// that the limit is applied once; as a subquery it is run again, and claims more.
const (
	sqlJobsDue       = sqlLevels + sqlJobsDueHead + sqlJobsDueTail
	sqlJobsDueWanted = sqlLevels + sqlJobsDueHead + sqlWanted + sqlJobsDueTail

	sqlJobsDueHead = `, c AS MATERIALIZED (
    SELECT due.part, due.job_id
      FROM level l CROSS JOIN LATERAL (
           SELECT s.part, s.job_id FROM job_states s
            WHERE s.state = 'queued' AND s.priority = l.priority
              AND s.run_after <= onejob_now() AND s.next_target = ANY($1::text[])`
	sqlJobsDueTail = `
            ORDER BY s.run_after
            LIMIT $2
              FOR UPDATE SKIP LOCKED
      ) due
     LIMIT $2
)
SELECT part, job_id FROM c`
)

// What a pull worker may be given, beside its targets. Rows of others are walked
// over, which a claimer who takes them all need not do.
const sqlWanted = `
              AND EXISTS (SELECT FROM jobs j WHERE j.part = s.part AND j.id = s.job_id
                             AND $3::text IN ('', j.owner) AND ($4::text[] = '{}' OR j.kind = ANY ($4::text[])))`

// NULL: nothing is to become due for these targets. What is due and was passed
// over, because another claimer holds it, is that one's.
const (
	sqlNextDue       = sqlNextDueHead + sqlNextDueTail
	sqlNextDueWanted = sqlNextDueHead + sqlWanted + `
          AND $2::integer IS NOT NULL` + sqlNextDueTail  // $2 is the limit of those that are due

	sqlNextDueHead = sqlLevels + `
SELECT min(next.run_after)
  FROM level l CROSS JOIN LATERAL (
       SELECT s.run_after FROM job_states s
        WHERE s.state = 'queued' AND s.priority = l.priority
          AND s.run_after > onejob_now() AND s.next_target = ANY($1::text[])`
	sqlNextDueTail = `
        ORDER BY s.run_after LIMIT 1
  ) next`
)

// AttemptClaim implements [onejob.Store].
func (s *Store) AttemptClaim(ctx context.Context, p onejob.AttemptClaimParams) (onejob.AttemptClaimResult, error) {
	var r onejob.AttemptClaimResult
	if len(p.Targets) == 0 {
		return r, nil
	}
	var due []onejob.JobRef
	err := s.inTx(ctx, sqlBegin, func(t *txn) (err error) {
		r = onejob.AttemptClaimResult{}
		if p.Max > 0 {
			due, err = dueJobs(ctx, t, p)
		}
		if err != nil {
			return err
		}
		return s.claim(ctx, t, due, p, &r)
	})
	if refusedByRestore(err) {
		return onejob.AttemptClaimResult{}, onejob.ErrorOfRestore()
	}
	if err == nil || !ofRow(err) {
		return r, onejob.Unavailable(err)
	}
	return r, s.claimSingly(ctx, due, p, &r)
}

func dueJobs(ctx context.Context, t *txn, p onejob.AttemptClaimParams) (due []onejob.JobRef, err error) {
	b := t.batch()
	sql, args := sqlJobsDue, []any{targetsOf(p.StartParams), p.Max}
	if wants(&p) {
		sql, args = sqlJobsDueWanted, append(args, clean(p.Owner), texts(p.Kinds))
	}
	b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		return forEach(rows, func(row pgx.Row) error {
			var part int16
			var ref onejob.JobRef
			err := row.Scan(&part, &ref.ID)
			ref.Part = uint8(part)
			due = append(due, ref)
			return err
		})
	})
	return due, t.send(ctx, b)
}

// wants reports whether a claimer takes some owner's jobs only, or some kinds.
func wants(p *onejob.AttemptClaimParams) bool { return p.Owner != "" || len(p.Kinds) > 0 }

func targetsOf(p onejob.StartParams) []string { return slices.Sorted(maps.Keys(p.Targets)) }

// nextDue queues the reading of when the next job is due, after all that this
// transaction does.
func nextDue(b *pgx.Batch, p onejob.AttemptClaimParams, r *onejob.AttemptClaimResult) {
	sql, args := sqlNextDue, []any{targetsOf(p.StartParams)}
	if wants(&p) {
		sql, args = sqlNextDueWanted, append(args, p.Max, clean(p.Owner), texts(p.Kinds))
	}
	b.Queue(sql, args...).QueryRow(func(row pgx.Row) error {
		var at pgtype.Timestamptz
		err := row.Scan(&at)
		r.NextDue = timeOf(at)
		return err
	})
}

// claim starts the attempts that Decide asks for, writes down whatever else it
// says, and commits.
func (s *Store) claim(ctx context.Context, t *txn, due []onejob.JobRef, p onejob.AttemptClaimParams, r *onejob.AttemptClaimResult) error {
	b := t.batch()
	if len(due) == 0 {
		nextDue(b, p, r)
		return t.commit(ctx, b)
	}
	l := load(b, due, loading{lock: true, input: true, tolerant: true})
	if err := t.send(ctx, b); err != nil {
		return err
	}
	var starts []onejob.Attempt
	var settled []*onejob.Job
	var events []onejob.JobEvent
	for _, ref := range due {
		job := l.job(ref)
		if job == nil || job.State != onejob.JobQueued {
			continue // unreadable; or, after a spoiled batch, somebody else has dealt with it
		}
		d := onejob.Decide(job, job.Attempts, nil, l.now, onejob.Ask{})
		if _, callable := p.Targets[d.Target]; d.Verb == onejob.Start && callable {
			a := newAttempt(job, d, p.StartParams, l.now)
			if p.Mark {
				markAtOnce(&a, p.Targets[d.Target], l.now)
			}
			starts = append(starts, a)
			continue
		}
		if e := restand(job, l.now); e != nil {
			events = append(events, *e)
		}
		settled = append(settled, job)
	}
	if err := t.start(ctx, l, starts); err != nil {
		return err
	}
	b = t.batch()
	setAside(b, slices.Collect(maps.Keys(l.broken)))
	stand(b, settled)
	writeEvents(b, events)
	nextDue(b, p, r)
	if err := t.commit(ctx, b); err != nil {
		return err
	}
	for ref, err := range l.broken {
		s.log.ErrorContext(ctx, "a due job cannot be read; it is set aside for a while", "job_id", ref.ID, "error", err)
	}
	for _, a := range starts {
		r.Claimed = append(r.Claimed, onejob.Claimed{Job: l.job(onejob.JobRef{Part: a.Part, ID: a.JobID}), Attempt: a})
	}
	for _, job := range settled {
		r.Settled = append(r.Settled, onejob.JobRef{Part: job.Part, ID: job.ID})
	}
	return nil
}

// At the head of the queue a job that cannot be claimed would keep all others from
// their turn.
const sqlSetAside = `
UPDATE job_states s SET run_after = onejob_now() + interval '1 minute'
  FROM unnest($1::smallint[], $2::text[]) AS u (part, job_id)
 WHERE s.part = u.part AND s.job_id = u.job_id AND s.state = 'queued'`

// setAside queues the putting off of jobs whose rows cannot be read, or are
// refused when written.
func setAside(b *pgx.Batch, refs []onejob.JobRef) {
	if len(refs) == 0 {
		return
	}
	parts, ids := refColumns(distinct(refs))
	b.Queue(sqlSetAside, parts, ids)
}

// claimSingly claims the jobs of a batch that one of them spoiled. That one is set
// aside and told of in the log; the others do not wait for it.
func (s *Store) claimSingly(ctx context.Context, due []onejob.JobRef, p onejob.AttemptClaimParams, r *onejob.AttemptClaimResult) error {
	r.Claimed, r.Settled = nil, nil
	for _, ref := range due {
		err := s.inTx(ctx, sqlBegin, func(t *txn) error { return s.claim(ctx, t, []onejob.JobRef{ref}, p, r) })
		if err == nil {
			continue
		}
		if refusedByRestore(err) {
			return onejob.ErrorOfRestore()
		}
		if !ofRow(err) {
			return onejob.Unavailable(err)
		}
		s.log.ErrorContext(ctx, "a due job cannot be claimed; it is set aside for a while", "job_id", ref.ID, "error", err)
		err = s.inTx(ctx, sqlBegin, func(t *txn) error {
			b := t.batch()
			setAside(b, []onejob.JobRef{ref})
			return t.commit(ctx, b)
		})
		if err != nil && !ofRow(err) {
			return onejob.Unavailable(err)
		}
	}
	return nil
}
