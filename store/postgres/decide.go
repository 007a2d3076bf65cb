package postgres

import (
	"context"
	"reflect"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob"
)

// decideAtOnce is how many blocked jobs are read at a time.
const decideAtOnce = 200

// Blocked longest first is created first, near enough; the place to go on from is
// exact.
const sqlJobsBlocked = `
SELECT j.part, j.id, j.created_at FROM job_states s JOIN jobs j ON j.part = s.part AND j.id = s.job_id
 WHERE s.state = 'blocked' AND (j.created_at, j.id) > (coalesce($1::timestamptz, '-infinity'), $2::text)
 ORDER BY j.created_at, j.id LIMIT $3`

// JobDecide implements [onejob.Store].
func (s *Store) JobDecide(ctx context.Context, limit int) (changed []onejob.JobRef, err error) {
	var after onejob.JobCursor
	for len(changed) < limit {
		refs, last, err := s.blockedJobs(ctx, after)
		if err != nil {
			return changed, onejob.Unavailable(err)
		}
		if len(refs) == 0 {
			break
		}
		if err := s.decideAgain(ctx, refs, limit, &changed); err != nil {
			return changed, err
		}
		after = last
	}
	return changed, nil
}

func (s *Store) blockedJobs(ctx context.Context, after onejob.JobCursor) (refs []onejob.JobRef, last onejob.JobCursor, err error) {
	rows, err := s.pool.Query(ctx, sqlJobsBlocked, stamp(after.CreatedAt), after.ID, decideAtOnce)
	if err != nil {
		return nil, last, err
	}
	err = forEach(rows, func(row pgx.Row) error {
		var part int16
		err := row.Scan(&part, &last.ID, &last.CreatedAt)
		refs = append(refs, onejob.JobRef{Part: uint8(part), ID: last.ID})
		return err
	})
	return refs, last, err
}

// decideAgain changes those of refs that no longer stand where they stood. Most
// do, and are read without a lock.
func (s *Store) decideAgain(ctx context.Context, refs []onejob.JobRef, limit int, changed *[]onejob.JobRef) error {
	var l *loaded
	err := s.read(ctx, func(t *txn) error {
		b := t.batch()
		l = load(b, refs, loading{})
		return t.commit(ctx, b)
	})
	if err != nil {
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

// moves reports whether a blocked job would stand elsewhere if decided now.
func moves(job *onejob.Job, l *loaded) bool {
	if job.State != onejob.JobBlocked {
		return false
	}
	now := onejob.StandingOf(job, job.Attempts, nil, l.now)
	return now.State != job.State || !reflect.DeepEqual(now.Blocked, job.Blocked)
}

func decideAll(ctx context.Context, t *txn, refs []onejob.JobRef, rows []int, done []bool) error {
	b := t.batch()
	l := load(b, column(rows, func(row int) onejob.JobRef { return refs[row] }), loading{lock: true})
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
