package sqlite

import (
	"cmp"
	"context"
	"reflect"
	"slices"

	"github.com/onejob-dev/onejob"
)

// JobDecide decides again about blocked jobs, those blocked longest first. It
// reads beside the writer and writes only what would change, so that jobs which
// stay blocked cost no writer's time and never keep others from their turn.
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

// freed lists blocked jobs that would not stay as they are, at most limit of them.
func (s *Store) freed(ctx context.Context, limit int) (refs []onejob.JobRef, err error) {
	err = s.read(ctx, func(x *tx) error {
		blocked, err := x.blocked()
		if err != nil {
			return err
		}
		for _, j := range blocked {
			if len(refs) < limit && !stays(x, &j.Job) {
				refs = append(refs, onejob.JobRef{Part: j.Part, ID: j.ID})
			}
		}
		return nil
	})
	return refs, err
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

func stays(x *tx, j *onejob.Job) bool {
	next := onejob.StandingOf(j, j.Attempts, nil, x.now)
	return next.State == onejob.JobBlocked && reflect.DeepEqual(next.Blocked, j.Blocked)
}

func (x *tx) decideAgain(ref onejob.JobRef) (freed bool, err error) {
	j, err := x.job(`WHERE j.part = ? AND j.id = ?`, int(ref.Part), ref.ID)
	if err != nil || j == nil || j.State != onejob.JobBlocked || stays(x, &j.Job) {
		return false, err
	}
	return true, x.stand(&j.Job)
}
