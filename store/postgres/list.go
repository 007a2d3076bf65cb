package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob"
)

// maxPage bounds a page of any list.
const maxPage = 200

func pageOf(limit int) int { return min(max(limit, 1), maxPage) }

// filter gathers the conditions of a list and their arguments.
type filter struct {
	conditions []string
	args       []any
}

// where adds a condition, in which %d stands for each of args in order.
func (f *filter) where(condition string, args ...any) {
	numbers := make([]any, len(args))
	for i, a := range args {
		f.args = append(f.args, a)
		numbers[i] = len(f.args)
	}
	f.conditions = append(f.conditions, fmt.Sprintf(condition, numbers...))
}

func (f *filter) sql() string {
	if len(f.conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(f.conditions, " AND ")
}

const sqlJobList = `SELECT ` + jobColumns + withoutInput + `
  FROM jobs j JOIN job_states s ON s.part = j.part AND s.job_id = j.id`

// JobList implements [onejob.Store]. A job that cannot be read is left out.
func (s *Store) JobList(ctx context.Context, p onejob.JobListParams) (onejob.JobPage, error) {
	page := onejob.JobPage{Jobs: []*onejob.Job{}}
	if !storable(p.Owner, p.Kind, p.Target, p.ErrorCode) {
		return page, nil
	}
	for {
		last, err := s.listPage(ctx, p, &page)
		if err != nil || len(page.Jobs) > 0 || !page.More {
			return page, onejob.Unavailable(err)
		}
		p.Before = last // a page of unreadable jobs only
	}
}

// listPage reads one page, and tells its last job, which may have been left out.
func (s *Store) listPage(ctx context.Context, p onejob.JobListParams, page *onejob.JobPage) (last *onejob.JobCursor, err error) {
	f, limit := jobFilter(p), pageOf(p.Limit)
	sql := fmt.Sprintf("%s%s ORDER BY j.created_at DESC, j.id DESC LIMIT %d", sqlJobList, f.sql(), limit+1)
	l := newLoaded(true)
	var refs []onejob.JobRef
	err = s.read(ctx, func(t *txn) error {
		b := t.batch()
		b.Queue(sql, f.args...).Query(func(rows pgx.Rows) error {
			return forEach(rows, func(row pgx.Row) error {
				if page.More = len(refs) == limit; page.More {
					return nil
				}
				job, err := scanJob(row)
				if job == nil {
					return err
				}
				ref := onejob.JobRef{Part: job.Part, ID: job.ID}
				refs, last = append(refs, ref), &onejob.JobCursor{CreatedAt: job.CreatedAt, ID: job.ID}
				if err != nil {
					return l.forgive(ref, err)
				}
				l.jobs[ref] = job
				return nil
			})
		})
		if err := t.send(ctx, b); err != nil {
			return err
		}
		parts, ids := refColumns(refs)
		b = t.batch()
		b.Queue(sqlAttemptsOfJobs, parts, ids).Query(func(rows pgx.Rows) error { return forEach(rows, l.addAttempt) })
		return t.commit(ctx, b)
	})
	for _, ref := range refs {
		if job := l.job(ref); job != nil {
			page.Jobs = append(page.Jobs, job)
		}
	}
	for ref, err := range l.broken {
		s.log.ErrorContext(ctx, "a job cannot be read; it is left out of a list", "job_id", ref.ID, "error", err)
	}
	return last, err
}

func jobFilter(p onejob.JobListParams) *filter {
	f := &filter{}
	if p.Owner != "" {
		f.where("j.owner = $%d", p.Owner)
	}
	if len(p.States) > 0 {
		f.where(inStates(p.States))
	}
	if p.Kind != "" {
		f.where("j.kind = $%d", p.Kind)
	}
	if p.Target != "" {
		f.where("(j.target = $%d OR EXISTS (SELECT FROM attempts a WHERE a.part = j.part AND a.job_id = j.id AND a.target = $%d))", p.Target, p.Target)
	}
	if len(p.KeyHash) > 0 { // the part is not known without the key: each is asked, by the unique index
		f.where("j.part = ANY($%d) AND j.key_hash = $%d", allParts(), p.KeyHash)
	}
	if p.ErrorCode != "" {
		f.where("s.error_code = $%d", p.ErrorCode)
	}
	if !p.CreatedAfter.IsZero() {
		f.where("j.created_at > $%d", stamp(p.CreatedAfter))
	}
	if !p.CreatedBefore.IsZero() {
		f.where("j.created_at < $%d", stamp(p.CreatedBefore))
	}
	if p.Before != nil {
		f.where("(j.created_at, j.id) < ($%d, $%d)", stamp(p.Before.CreatedAt), p.Before.ID)
	}
	return f
}

// inStates asks for jobs in some states, by what an index is of where there is one.
func inStates(states []onejob.JobState) string {
	waits := func(s onejob.JobState) bool { return s == onejob.JobQueued || s == onejob.JobBlocked }
	if !slices.ContainsFunc(states, func(s onejob.JobState) bool { return !waits(s) }) {
		return "s.waiting IN (" + literals(states, onejob.JobStates()) + ")"
	}
	return "s.state IN (" + literals(states, onejob.JobStates()) + ")"
}

// literals writes states into a statement: only so can its plan use an index of
// some states alone. Those that are not in known are in no row either.
func literals[S ~string](states, known []S) string {
	text := "NULL"
	for _, s := range known {
		if slices.Contains(states, s) {
			text += ", '" + string(s) + "'"
		}
	}
	return text
}

func allParts() []int16 {
	parts := make([]int16, onejob.Parts)
	for i := range parts {
		parts[i] = int16(i)
	}
	return parts
}

// texts are states as the parameters of a statement.
func texts[S ~string](values []S) []string {
	return column(values, func(s S) string { return string(s) })
}
