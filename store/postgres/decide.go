package postgres

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob"
)

// decideAtOnce is how many jobs are read at a time.
const decideAtOnce = 200

// What JobDecide looks at. Each walks its own partial index from a place to go on
// from, so that what stays as it is never keeps others from their turn.
const (
	// A job whose targets nobody serves is claimed by nobody, and is late all the same.
	sqlJobsLate = `
SELECT part, job_id, deadline FROM job_states
 WHERE waiting = 'queued' AND deadline IS NOT NULL AND deadline <= onejob_now()
   AND (deadline, part, job_id) > (coalesce($1::timestamptz, '-infinity'), $2::smallint, $3::text)
 ORDER BY deadline, part, job_id LIMIT $4`

	// Those that something other than news of an attempt, or a person, can free.
	// Blocked longest first is due first, near enough.
	sqlJobsToFree = `
SELECT part, job_id, run_after FROM job_states
 WHERE waiting = 'blocked' AND blocked_reason NOT IN ('attempt_unknown', 'parked', 'needs_operator')
   AND (run_after, part, job_id) > (coalesce($1::timestamptz, '-infinity'), $2::smallint, $3::text)
 ORDER BY run_after, part, job_id LIMIT $4`
)

// JobDecide implements [onejob.Store]. It also ends queued jobs past their deadline
// that no claim has ended.
func (s *Store) JobDecide(ctx context.Context, limit int) (changed []onejob.JobRef, err error) {
	for _, sql := range []string{sqlJobsLate, sqlJobsToFree} {
		if err := s.hastily().decide(ctx, sql, limit, &changed); err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// place is where a walk over jobs has come to.
type place struct {
	at  time.Time
	ref onejob.JobRef
}

func (s *Store) decide(ctx context.Context, sql string, limit int, changed *[]onejob.JobRef) error {
	var after place
	for len(*changed) < limit {
		refs, last, err := s.jobsAfter(ctx, sql, after)
		if err != nil {
			return onejob.Unavailable(err)
		}
		if len(refs) == 0 {
			break
		}
		if err := s.decideAgain(ctx, refs, limit, changed); err != nil {
			return err
		}
		after = last
	}
	return nil
}

func (s *Store) jobsAfter(ctx context.Context, sql string, after place) (refs []onejob.JobRef, last place, err error) {
	rows, err := s.pool.Query(ctx, sql, stamp(after.at), int16(after.ref.Part), after.ref.ID, decideAtOnce)
	if err != nil {
		return nil, last, err
	}
	err = forEach(rows, func(row pgx.Row) error {
		var part int16
		err := row.Scan(&part, &last.ref.ID, &last.at)
		last.ref.Part = uint8(part)
		refs = append(refs, last.ref)
		return err
	})
	return refs, last, err
}

// decideAgain changes those of refs that no longer stand where they stood. Most
// do, and are read without a lock. What cannot be read stays as it is.
func (s *Store) decideAgain(ctx context.Context, refs []onejob.JobRef, limit int, changed *[]onejob.JobRef) error {
	var l *loaded
	err := s.read(ctx, func(t *txn) error {
		b := t.batch()
		l = load(b, refs, loading{terms: t.terms, tolerant: true})
		return t.commit(ctx, b)
	})
	switch {
	case err != nil && ofRow(err):
		return s.decideApart(ctx, refs, limit, changed)
	case err != nil:
		return onejob.Unavailable(err)
	}
	var stale []onejob.JobRef
	for _, ref := range refs {
		if job := l.job(ref); job != nil && moves(job, l) && len(*changed)+len(stale) < limit {
			stale = append(stale, ref)
		}
	}
	done := make([]bool, len(stale))
	act := func(ctx context.Context, t *txn, rows []int) error { return decideAll(ctx, t, stale, rows, done) }
	fail := func(row int, _ error) { done[row] = false } // the next sweep finds it again
	if err := s.inWaves(ctx, len(stale), func(row int) string { return stale[row].ID }, act, fail); err != nil {
		return err
	}
	for i, ref := range stale {
		if done[i] {
			*changed = append(*changed, ref)
		}
	}
	return nil
}

// decideApart is decideAgain in pieces, where one of refs cannot even be fetched.
func (s *Store) decideApart(ctx context.Context, refs []onejob.JobRef, limit int, changed *[]onejob.JobRef) error {
	if len(refs) == 1 {
		return nil
	}
	for piece := range slices.Chunk(refs, (len(refs)+pieces-1)/pieces) {
		if err := s.decideAgain(ctx, piece, limit, changed); err != nil {
			return err
		}
	}
	return nil
}

// moves reports whether a job would stand elsewhere if decided now. A queued one
// is the claimers' business unless it is over.
func moves(job *onejob.Job, l *loaded) bool {
	now := onejob.StandingOf(job, job.Attempts, l.verdicts(job, onejob.Ask{}), l.now)
	switch job.State {
	case onejob.JobQueued:
		return now.Closes()
	case onejob.JobBlocked:
		return now.State != job.State || !reflect.DeepEqual(now.Blocked, job.Blocked)
	case onejob.JobRunning, onejob.JobSucceeded, onejob.JobFailed, onejob.JobCancelled:
	}
	return false
}

func decideAll(ctx context.Context, t *txn, refs []onejob.JobRef, rows []int, done []bool) error {
	b := t.batch()
	l := load(b, column(rows, func(row int) onejob.JobRef { return refs[row] }), loading{terms: t.terms, lock: true})
	if err := t.send(ctx, b); err != nil {
		return err
	}
	var jobs []*onejob.Job
	for _, row := range rows {
		job := l.job(refs[row])
		if done[row] = job != nil && moves(job, l); done[row] {
			jobs = append(jobs, job)
		}
	}
	return t.restandAll(ctx, l, jobs, nil)
}
