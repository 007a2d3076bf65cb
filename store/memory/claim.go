package memory

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

// AttemptClaim starts attempts of due jobs at targets that the claimer knows,
// owners taking turns.
func (s *Store) AttemptClaim(ctx context.Context, p onejob.AttemptClaimParams) (onejob.AttemptClaimResult, error) {
	var result onejob.AttemptClaimResult
	now, end, err := s.begin(ctx)
	if err != nil {
		return result, err
	}
	defer end()
	due, last, err := s.due(&p, now)
	if err != nil {
		return result, err
	}
	result.LastOwner = last
	for _, ref := range due {
		r := s.jobs[ref.ID]
		d := onejob.Decide(&r.job, r.job.Attempts, s.verdicts(r, onejob.Ask{}, now), now, onejob.Ask{})
		if _, known := p.Targets[d.Target]; d.Verb != onejob.Start || !known {
			s.changed(r, now) // it waits, ends, blocks, or goes to somebody else's target
			result.Settled = append(result.Settled, r.ref())
			continue
		}
		if s.generation.Unconfirmed() {
			return onejob.AttemptClaimResult{}, onejob.ErrorOfRestore()
		}
		a := s.start(r, d, p.StartParams, now)
		if p.Mark {
			markAtOnce(a, p.Lease, p.Targets[d.Target], now)
		}
		result.Claimed = append(result.Claimed, onejob.Claimed{Job: r.copyJob(true), Attempt: copyAttempt(a, false)})
	}
	for _, r := range s.queuedFor(&p) {
		if r.job.RunAfter.After(now) { // what is due already was left for a reason that waiting does not change
			result.NextDue = earliest(result.NextDue, r.job.RunAfter)
		}
	}
	return result, nil
}

// due lists jobs that a claim may take, at most Max, owners taking turns.
func (s *Store) due(p *onejob.AttemptClaimParams, now time.Time) (due []onejob.JobRef, last string, err error) {
	jobs := map[string][]onejob.TurnJob{}
	for _, r := range s.queuedFor(p) {
		if !r.job.RunAfter.After(now) {
			jobs[r.job.Owner] = append(jobs[r.job.Owner], onejob.TurnJob{Owner: r.job.Owner, Ref: r.ref()})
		}
	}
	owners := slices.Sorted(maps.Keys(jobs))
	return onejob.TakeTurns(p, func(l onejob.TurnLook) (onejob.Turn, error) {
		first, found := slices.BinarySearch(owners, l.After)
		if found {
			first++
		}
		turn := onejob.Turn{Owners: owners[first:min(first+l.Owners+1, len(owners))]}
		looked := min(len(turn.Owners), l.Owners)
		share := l.Share(looked)
		for _, owner := range turn.Owners[:looked] {
			n := min(share, len(jobs[owner]), l.Max-len(turn.Jobs))
			turn.Jobs = append(turn.Jobs, jobs[owner][:n]...)
			jobs[owner] = jobs[owner][n:] // what a look has found is not found again
		}
		return turn, nil
	})
}

func (s *Store) queuedFor(p *onejob.AttemptClaimParams) []*row {
	return s.liveRows(func(j *onejob.Job) bool {
		_, known := p.Targets[j.NextTarget]
		return known && j.State == onejob.JobQueued &&
			(p.Owner == "" || p.Owner == j.Owner) && (len(p.Kinds) == 0 || slices.Contains(p.Kinds, j.Kind))
	}, func(a, b *onejob.Job) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.RunAfter.Compare(b.RunAfter))
	})
}

// start makes the attempt that a decision asks for. Nobody else can have made one
// since: the decision was taken in this transaction.
func (s *Store) start(r *row, d onejob.Decision, p onejob.StartParams, now time.Time) *onejob.Attempt {
	r.job.Attempts = append(r.job.Attempts, onejob.NewAttempt(&r.job, r.job.Attempts, d, p, now))
	r.job.AttemptsMade++
	a := &r.job.Attempts[len(r.job.Attempts)-1]
	s.byTry[a.ID] = r
	s.changed(r, now)
	return a
}

// AttemptStart starts one more attempt of a job because somebody asked.
func (s *Store) AttemptStart(ctx context.Context, params []onejob.AttemptStartParams) ([]onejob.AttemptStartResult, error) {
	return each(ctx, s, params, s.startAsked)
}

func (s *Store) startAsked(p *onejob.AttemptStartParams, now time.Time) onejob.AttemptStartResult {
	r := s.find(p.JobID, p.Owner)
	if r == nil {
		return onejob.AttemptStartResult{Err: onejob.ErrorOfNoJob(p.JobID)}
	}
	if a := onejob.AskedWith(&r.job, p.RequestKeyHash); a != nil {
		return r.answerAsked(a, p)
	}
	if err := onejob.CheckRevision(&r.job, p.IfRevision); err != nil {
		return onejob.AttemptStartResult{Err: err}
	}
	asked := onejob.Ask{Now: true, Target: p.Target, Lane: p.Lane}
	d := onejob.Decide(&r.job, r.job.Attempts, s.verdicts(r, asked, now), now, asked)
	if err := onejob.CheckAsked(&r.job, d); err != nil {
		return onejob.AttemptStartResult{Err: err} // a refused request takes no key
	}
	if err := onejob.CheckServed(&r.job, d, &p.StartParams); err != nil {
		return onejob.AttemptStartResult{Err: err}
	}
	if s.generation.Unconfirmed() {
		return onejob.AttemptStartResult{Err: onejob.ErrorOfRestore()}
	}
	a := s.start(r, d, p.StartParams, now)
	a.RequestKeyHash, a.RequestFingerprint = bytes.Clone(p.RequestKeyHash), bytes.Clone(p.RequestFingerprint)
	if entry, told := p.AuditOf(r.job.Owner, a); told {
		s.audit(entry, now)
	}
	return onejob.AttemptStartResult{Claimed: &onejob.Claimed{Job: r.copyJob(true), Attempt: copyAttempt(a, false)}}
}

func (r *row) answerAsked(a *onejob.Attempt, p *onejob.AttemptStartParams) onejob.AttemptStartResult {
	if err := onejob.JudgeAsked(a, p); err != nil {
		return onejob.AttemptStartResult{Existed: true, Err: err}
	}
	return onejob.AttemptStartResult{
		Existed: true,
		Claimed: &onejob.Claimed{Job: r.copyJob(true), Attempt: copyAttempt(a, false)},
	}
}
