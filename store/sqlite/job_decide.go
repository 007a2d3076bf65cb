package sqlite

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

// JobDecide decides again about queued jobs whose deadline has passed, whether or
// not anybody serves their targets, and about blocked jobs, those blocked longest
// first. It reads beside the writer and writes only what would change, so that jobs
// which stay as they are cost no writer's time and never keep others from their turn.
func (s *Store) JobDecide(ctx context.Context, limit int) (changed []onejob.JobRef, err error) {
	refs, err := s.freed(ctx, limit)
	if err != nil || len(refs) == 0 {
		return nil, err
	}
	err = s.write(ctx, func(x *tx) error {
		changed = nil
		for _, ref := range refs {
			freed := false
			refused, err := x.row(func() (err error) { freed, err = x.decideAgain(ref); return err })
			if err != nil {
				return err
			}
			if freed && refused == nil {
				changed = append(changed, ref)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return changed, nil
}

// freed lists jobs that would not stay as they are, at most limit of them.
func (s *Store) freed(ctx context.Context, limit int) (refs []onejob.JobRef, err error) {
	err = s.read(ctx, func(x *tx) error {
		if refs, err = x.overdue(limit); err != nil {
			return err
		}
		blocked, err := x.blocked()
		if err != nil {
			return err
		}
		for _, j := range blocked {
			if len(refs) == limit {
				break
			}
			stays, err := x.stays(&j.Job)
			if err != nil {
				return err
			}
			if !stays {
				refs = append(refs, onejob.JobRef{Part: j.Part, ID: j.ID})
			}
		}
		return nil
	})
	return refs, err
}

// overduePage is how many rows overdue looks at in one statement.
const overduePage = 100

// overdue lists queued jobs past their deadline that would not stay queued, at
// most limit of them, longest past first. What cannot be read stays, and is passed.
func (x *tx) overdue(limit int) (refs []onejob.JobRef, err error) {
	var after struct {
		deadline time.Time
		ref      onejob.JobRef
	}
	for read := overduePage; read == overduePage && len(refs) < limit; {
		var page []onejob.JobRef
		err := x.query(`
			SELECT deadline, part, job_id FROM job_states
			WHERE state = 'queued' AND deadline IS NOT NULL AND deadline <= ? AND (deadline, part, job_id) > (?, ?, ?)
			ORDER BY deadline, part, job_id LIMIT ?`, func(r *row) error {
			after.deadline, after.ref = r.Time(), onejob.JobRef{Part: uint8(r.Int64()), ID: r.String()}
			page = append(page, after.ref)
			return nil
		}, x.now, after.deadline.UnixMilli(), int(after.ref.Part), after.ref.ID, overduePage)
		if err != nil {
			return nil, err
		}
		read = len(page)
		for _, ref := range page {
			j, err := x.job(`WHERE j.part = ? AND j.id = ?`, int(ref.Part), ref.ID)
			if err != nil && !concernsRow(err) {
				return nil, err
			}
			if err != nil || j == nil || len(refs) == limit {
				continue
			}
			stays, err := x.stays(&j.Job)
			if err != nil {
				return nil, err
			}
			if !stays {
				refs = append(refs, ref)
			}
		}
	}
	return refs, nil
}

// blocked reads the blocked jobs that something other than news of an attempt, or
// a person, can free, those blocked longest first. What cannot be read stays.
func (x *tx) blocked() (jobs []*storedJob, err error) {
	var refs []onejob.JobRef
	err = x.query(`
		SELECT part, job_id FROM job_states
		WHERE state = 'blocked' AND blocked_reason NOT IN ('attempt_unknown', 'parked', 'needs_operator')`, func(r *row) error {
		refs = append(refs, onejob.JobRef{Part: uint8(r.Int64()), ID: r.String()})
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, ref := range refs {
		j, err := x.job(`WHERE j.part = ? AND j.id = ?`, int(ref.Part), ref.ID)
		if err != nil && !concernsRow(err) {
			return nil, err
		}
		if err == nil && j != nil && j.Blocked != nil {
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, func(a, b *storedJob) int {
		return cmp.Or(a.Blocked.Since.Compare(b.Blocked.Since), a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return jobs, nil
}

// stays reports whether deciding again would leave the job where it is.
func (x *tx) stays(j *onejob.Job) (bool, error) {
	if j.State != onejob.JobBlocked && j.State != onejob.JobQueued {
		return true, nil
	}
	verdicts, err := x.verdicts(j, onejob.Ask{})
	next := onejob.StandingOf(j, j.Attempts, verdicts, x.now)
	return next.State == j.State && reflect.DeepEqual(next.Blocked, j.Blocked), err
}

func (x *tx) decideAgain(ref onejob.JobRef) (freed bool, err error) {
	j, err := x.job(`WHERE j.part = ? AND j.id = ?`, int(ref.Part), ref.ID)
	if err != nil || j == nil {
		return false, err
	}
	if stays, err := x.stays(&j.Job); err != nil || stays {
		return false, err
	}
	return true, x.stand(&j.Job)
}
