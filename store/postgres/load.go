package postgres

import (
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onejob-dev/onejob"
)

// loading says what to read of jobs beside themselves and their attempts.
type loading struct {
	// What the gate goes by: with them, what it says of each job is read too. Nil:
	// nothing is certified.
	terms *onejob.GateTerms

	lock    bool // their states, in order, until the transaction ends
	input   bool
	results bool // the winners' answers

	// Who may read each job. One without a reader, or with an empty one, is
	// everybody's; another owner's is not found, and nothing of it is fetched.
	readers map[onejob.JobRef]string
	// Jobs that cannot be read are left out and told of in broken, rather than
	// spoil the reading of the others.
	tolerant bool
}

// loaded is what a transaction knows of some jobs.
type loaded struct {
	now  time.Time // the database's
	jobs map[onejob.JobRef]*onejob.Job
	won  map[onejob.JobRef]bool // whose slot this transaction took

	terms *onejob.GateTerms
	gate  map[onejob.JobRef]onejob.GateRows // of jobs with a contract

	tolerant bool
	broken   map[onejob.JobRef]error
}

// job returns a job with its attempts, or nil.
func (l *loaded) job(ref onejob.JobRef) *onejob.Job { return l.jobs[ref] }

// attempt returns a job's attempt, or nil.
func (l *loaded) attempt(ref onejob.AttemptRef) *onejob.Attempt {
	job := l.job(onejob.JobRef{Part: ref.Part, ID: ref.JobID})
	if job == nil {
		return nil
	}
	for i := range job.Attempts {
		if job.Attempts[i].ID == ref.ID {
			return &job.Attempts[i]
		}
	}
	return nil
}

const sqlNow = `SELECT onejob_now()`

// A missing row: there is no such job, or it is a tombstone shrunk to its key.
const (
	sqlJobsFrom = `
  FROM unnest($1::smallint[], $2::text[], $3::text[]) AS u (part, job_id, reader)
  JOIN job_states s ON s.part = u.part AND s.job_id = u.job_id
  JOIN jobs j ON j.part = u.part AND j.id = u.job_id AND u.reader IN ('', j.owner)
 ORDER BY s.part, s.job_id`
	// Keys never change: whoever only refers to a job, a caller's open transaction that
	// repeated its key for one, is not in the way.
	sqlLock           = ` FOR NO KEY UPDATE OF s`
	sqlJobs           = `SELECT ` + jobColumns + withoutInput + sqlJobsFrom
	sqlJobsWithInput  = `SELECT ` + jobColumns + withInput + sqlJobsFrom
	sqlJobsLock       = sqlJobs + sqlLock
	sqlJobsInputLock  = sqlJobsWithInput + sqlLock
	sqlAttemptsOfJobs = `
SELECT ` + attemptColumns + withoutResult + `
  FROM unnest($1::smallint[], $2::text[]) AS u (part, job_id)
  JOIN attempts a ON a.part = u.part AND a.job_id = u.job_id
 ORDER BY a.part, a.job_id, a.number`
	sqlResultsOfJobs = `
SELECT s.part, s.job_id, a.result, a.result_type, a.result_lost
  FROM unnest($1::smallint[], $2::text[], $3::text[]) AS u (part, job_id, reader)
  JOIN jobs j ON j.part = u.part AND j.id = u.job_id AND u.reader IN ('', j.owner)
  JOIN job_states s ON s.part = u.part AND s.job_id = u.job_id
 CROSS JOIN LATERAL (
       SELECT result, result_type, result_lost FROM attempts WHERE part = s.part AND job_id = s.job_id AND id = s.completed_by
  ) a`
)

func (l loading) sql() string {
	switch {
	case l.terms != nil && l.lock && l.input:
		return sqlJobsInputLockGate
	case l.terms != nil && l.lock:
		return sqlJobsLockGate
	case l.terms != nil:
		return sqlJobsGate
	case l.lock && l.input:
		return sqlJobsInputLock
	case l.lock:
		return sqlJobsLock
	case l.input:
		return sqlJobsWithInput
	}
	return sqlJobs
}

// load queues the reading of the jobs of refs. What it returns is filled in when
// b is sent. The attempts are read after the lock is held, so they are as they
// stay until the transaction ends.
func load(b *pgx.Batch, refs []onejob.JobRef, what loading) *loaded {
	refs = distinct(refs)
	l := newLoaded(what.tolerant)
	parts, ids := refColumns(refs)
	readers := column(refs, func(r onejob.JobRef) string { return what.readers[r] })
	args, add := []any{parts, ids, readers}, l.addJob
	if l.terms = what.terms; l.terms != nil {
		args, add = append(args, onejob.EnvironmentOr(l.terms.Environment)), l.addGatedJob
	}
	b.Queue(what.sql(), args...).Query(func(rows pgx.Rows) error {
		return forEach(rows, add)
	})
	b.Queue(sqlNow).QueryRow(func(row pgx.Row) error {
		if err := row.Scan(&l.now); err != nil {
			return err
		}
		l.now = l.now.UTC()
		return nil
	})
	b.Queue(sqlAttemptsOfJobs, parts, ids).Query(func(rows pgx.Rows) error {
		return forEach(rows, l.addAttempt)
	})
	if what.results {
		b.Queue(sqlResultsOfJobs, parts, ids, readers).Query(func(rows pgx.Rows) error {
			return forEach(rows, l.addResult)
		})
	}
	return l
}

func newLoaded(tolerant bool) *loaded {
	return &loaded{
		jobs: map[onejob.JobRef]*onejob.Job{}, won: map[onejob.JobRef]bool{}, gate: map[onejob.JobRef]onejob.GateRows{},
		tolerant: tolerant, broken: map[onejob.JobRef]error{},
	}
}

// forgive leaves a job out that cannot be read, if that is tolerated.
func (l *loaded) forgive(ref onejob.JobRef, err error) error {
	if !l.tolerant || !errors.As(err, new(spoiled)) {
		return err
	}
	l.broken[ref] = err
	delete(l.jobs, ref)
	return nil
}

func (l *loaded) addJob(row pgx.Row) error {
	job, err := scanJob(row)
	if job == nil {
		return err
	}
	ref := onejob.JobRef{Part: job.Part, ID: job.ID}
	if err != nil {
		return l.forgive(ref, err)
	}
	l.jobs[ref] = job
	return nil
}

func (l *loaded) addAttempt(row pgx.Row) error {
	a, err := scanAttempt(row)
	if err != nil {
		return l.forgive(onejob.JobRef{Part: a.Part, ID: a.JobID}, err)
	}
	if job := l.job(onejob.JobRef{Part: a.Part, ID: a.JobID}); job != nil {
		job.Attempts = append(job.Attempts, a)
	}
	return nil
}

func (l *loaded) addResult(row pgx.Row) error {
	var (
		part        int16
		id          string
		body        []byte
		contentType pgtype.Text
		lost        bool
	)
	if err := row.Scan(&part, &id, &body, &contentType, &lost); err != nil {
		return err
	}
	job := l.job(onejob.JobRef{Part: uint8(part), ID: id})
	if job == nil || job.Purged() {
		return nil
	}
	if job.Result = resultOf(body, contentType, lost); job.Result == nil {
		job.Result = &onejob.Result{} // a success whose answer is empty
	}
	return nil
}

// forEach scans every row by scan.
func forEach(rows pgx.Rows, scan func(row pgx.Row) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func refColumns(refs []onejob.JobRef) (parts []int16, ids []string) {
	return column(refs, func(r onejob.JobRef) int16 { return int16(r.Part) }),
		column(refs, func(r onejob.JobRef) string { return r.ID })
}
