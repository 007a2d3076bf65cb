package postgres

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob"
)

// AttemptClaim implements [onejob.Store].
func (s *Store) AttemptClaim(ctx context.Context, p onejob.AttemptClaimParams) (onejob.AttemptClaimResult, error) {
	r := onejob.AttemptClaimResult{LastOwner: p.AfterOwner}
	if len(p.Targets) == 0 {
		return r, nil
	}
	var due []onejob.JobRef
	err := s.inTx(ctx, sqlBegin, func(t *txn) (err error) {
		r = onejob.AttemptClaimResult{LastOwner: p.AfterOwner}
		if p.Max > 0 {
			due, r.LastOwner, err = dueJobs(ctx, t, p)
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

// claim starts the attempts that Decide asks for, writes down whatever else it
// says, and commits.
func (s *Store) claim(ctx context.Context, t *txn, due []onejob.JobRef, p onejob.AttemptClaimParams, r *onejob.AttemptClaimResult) error {
	b := t.batch()
	if len(due) == 0 {
		nextDue(b, p, r)
		return t.commit(ctx, b)
	}
	l := load(b, due, loading{terms: t.terms, lock: true, input: true, tolerant: true})
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
		d := onejob.Decide(job, job.Attempts, l.verdicts(job, onejob.Ask{}), l.now, onejob.Ask{})
		if _, callable := p.Targets[d.Target]; d.Verb == onejob.Start && callable {
			a := newAttempt(job, d, p.StartParams, l.now)
			if p.Mark {
				markAtOnce(&a, p.Targets[d.Target], l.now)
			}
			starts = append(starts, a)
			continue
		}
		if e := l.restand(job); e != nil {
			events = append(events, *e)
		}
		settled = append(settled, job)
	}
	if err := t.start(ctx, l, starts); err != nil {
		return err
	}
	b = t.batch()
	setAside(b, slices.Collect(maps.Keys(l.broken)), asideFor)
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

// How long a job that could not be claimed makes room for others. Other people's
// transactions are short; what spoils a row stays until a person mends it.
const (
	asideFor     = time.Minute
	asideForHeld = time.Second
)

// At the head of the queue a job that cannot be claimed would keep all others from
// their turn.
const sqlSetAside = `
UPDATE job_states s SET run_after = onejob_now() + $3::interval, due = false
  FROM unnest($1::smallint[], $2::text[]) AS u (part, job_id)
 WHERE s.part = u.part AND s.job_id = u.job_id AND s.state = 'queued'`

// setAside queues the putting off of jobs whose rows cannot be read, are refused when
// written, or need what somebody else holds.
func setAside(b *pgx.Batch, refs []onejob.JobRef, wait time.Duration) {
	if len(refs) == 0 {
		return
	}
	parts, ids := refColumns(distinct(refs))
	b.Queue(sqlSetAside, parts, ids, wait)
}

// claimSingly claims the jobs of a batch that one of them spoiled. That one is set
// aside and told of in the log; the others do not wait for it.
func (s *Store) claimSingly(ctx context.Context, due []onejob.JobRef, p onejob.AttemptClaimParams, r *onejob.AttemptClaimResult) error {
	r.Claimed, r.Settled = nil, nil
	for _, ref := range due {
		alone := func(t *txn) error { return s.claim(ctx, t, []onejob.JobRef{ref}, p, r) }
		err := s.inTx(ctx, sqlBegin, alone)
		if errors.As(err, new(spoiled)) {
			err = s.inTx(ctx, sqlBegin, alone) // what it went by was taken back meanwhile, and is read anew
		}
		if err == nil {
			continue
		}
		if refusedByRestore(err) {
			return onejob.ErrorOfRestore()
		}
		if !ofRow(err) {
			return onejob.Unavailable(err)
		}
		wait := asideFor
		if inTheWay(err) {
			wait = asideForHeld
			s.log.WarnContext(ctx, "another transaction holds what a due job needs to start; it is tried again soon", "job_id", ref.ID, "error", err)
		} else {
			s.log.ErrorContext(ctx, "a due job cannot be claimed; it is set aside for a while", "job_id", ref.ID, "error", err)
		}
		err = s.inTx(ctx, sqlBegin, func(t *txn) error {
			b := t.batch()
			setAside(b, []onejob.JobRef{ref}, wait)
			return t.commit(ctx, b)
		})
		if err != nil && !ofRow(err) {
			return onejob.Unavailable(err)
		}
	}
	return nil
}
