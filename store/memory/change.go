package memory

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

// JobCancel asks jobs to be given up. What has been sent may still happen, and
// wins if it does.
func (s *Store) JobCancel(ctx context.Context, params []onejob.JobCancelParams) ([]onejob.JobResult, error) {
	return each(ctx, s, params, s.cancel)
}

func (s *Store) cancel(p *onejob.JobCancelParams, now time.Time) onejob.JobResult {
	r, err := s.toChange(p.ID, p.Owner, p.IfRevision)
	switch {
	case err != nil:
		return onejob.JobResult{Err: err}
	case r.job.State == onejob.JobCancelled || !r.job.State.Terminal() && !r.job.CancelRequestedAt.IsZero():
		return onejob.JobResult{Job: r.copyJob(false)} // asked before
	case r.job.State.Terminal():
		return onejob.JobResult{Err: onejob.CheckAsked(&r.job, onejob.Decision{Verb: onejob.Rest})}
	}
	r.job.CancelRequestedAt = now
	for i := range r.job.Attempts {
		if a := &r.job.Attempts[i]; a.State == onejob.AttemptStarting && !s.generation.Unconfirmed() { // nothing has left; its mark now fails
			a.State, a.Outcome, a.FinishedAt = onejob.AttemptCancelled, onejob.OutcomeCancelled, now
		}
	}
	r.record(now, onejob.EventCancelAsked, "", p.Actor, "")
	if entry, told := p.AuditOf(r.job.Owner); told {
		s.audit(entry, now)
	}
	s.changed(r, now)
	return onejob.JobResult{Job: r.copyJob(false)}
}

// JobUnblock lets jobs that need an operator go on. It changes nothing about a
// job that does not need one, so that it can be repeated.
func (s *Store) JobUnblock(ctx context.Context, params []onejob.JobUnblockParams) ([]onejob.JobResult, error) {
	return each(ctx, s, params, s.unblock)
}

func (s *Store) unblock(p *onejob.JobUnblockParams, now time.Time) onejob.JobResult {
	r, err := s.toChange(p.ID, p.Owner, p.IfRevision)
	if err != nil {
		return onejob.JobResult{Err: err}
	}
	switch needed, err := onejob.CheckUnblock(&r.job); {
	case err != nil:
		return onejob.JobResult{Err: err}
	case !needed:
		return onejob.JobResult{Job: r.copyJob(false)}
	}
	r.job.UnblockedAt, r.job.Blocked = now, nil
	r.record(now, onejob.EventUnblocked, "", p.Actor, p.Reason)
	s.audit(p.AuditOf(r.job.Owner), now)
	s.changed(r, now)
	return onejob.JobResult{Job: r.copyJob(false)}
}

// toChange finds a job that who may change, at the revision they saw.
func (s *Store) toChange(id, who string, ifRevision *int64) (*row, error) {
	r := s.find(id, who)
	if r == nil {
		return nil, onejob.ErrorOfNoJob(id)
	}
	return r, onejob.CheckRevision(&r.job, ifRevision)
}

// JobDecide decides again about queued jobs whose deadline has passed, whether or
// not anybody serves their targets, and about blocked jobs, those blocked longest
// first.
func (s *Store) JobDecide(ctx context.Context, limit int) (changed []onejob.JobRef, err error) {
	now, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	overdue := s.liveRows(func(j *onejob.Job) bool {
		return j.State == onejob.JobQueued && !j.Deadline.IsZero() && !now.Before(j.Deadline)
	}, func(a, b *onejob.Job) int { return a.Deadline.Compare(b.Deadline) })
	blocked := s.liveRows(func(j *onejob.Job) bool { return j.Blocked != nil }, func(a, b *onejob.Job) int {
		return a.Blocked.Since.Compare(b.Blocked.Since)
	})
	for _, r := range slices.Concat(overdue, blocked) {
		if len(changed) >= limit {
			break
		}
		before := r.standing()
		if s.stand(r, now); !reflect.DeepEqual(before, r.standing()) {
			s.changed(r, now)
			changed = append(changed, r.ref())
		}
	}
	return changed, nil
}

// liveRows lists live jobs in an order that does not depend on chance.
func (s *Store) liveRows(keep func(*onejob.Job) bool, order func(a, b *onejob.Job) int) []*row {
	var rows []*row
	for r := range s.live {
		if keep(&r.job) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b *row) int {
		return cmp.Or(order(&a.job, &b.job), a.job.CreatedAt.Compare(b.job.CreatedAt), cmp.Compare(a.job.ID, b.job.ID))
	})
	return rows
}
