package memory

import (
	"bytes"
	"cmp"
	"context"
	"time"

	"github.com/onejob-dev/onejob"
)

// AttemptFinish records what came of attempts.
func (s *Store) AttemptFinish(ctx context.Context, params []onejob.AttemptFinishParams) ([]onejob.AttemptFinishResult, error) {
	return each(ctx, s, params, s.finish)
}

func (s *Store) finish(p *onejob.AttemptFinishParams, now time.Time) onejob.AttemptFinishResult {
	if err := s.mayHold(p.Ref, p.Owner); err != nil {
		return onejob.AttemptFinishResult{Err: err}
	}
	r, a := s.held(p.Ref, p.ClaimToken)
	if a == nil {
		return s.lost(p.Ref)
	}
	event, moves := p.Outcome.Event()
	if !moves {
		return s.accept(r, a, p, now)
	}
	if event == onejob.EventAnswered && !r.slotOpen(a) {
		event = onejob.EventBeaten
	}
	next, err := follow(a, event)
	switch {
	case err == nil:
		see(a, p, now)
		s.land(r, a, next, p.Result, now)
		r.ask(a, now)
		s.changed(r, now)
		if next == onejob.AttemptSucceeded {
			result := r.finished(a)
			result.Won = &onejob.Won{Revision: r.job.Revision, At: now}
			return result
		}
	case a.State == onejob.AttemptUnknown && (event == onejob.EventSilence || event == onejob.EventLost):
		seeMore(a, p) // still in doubt, now with more to go by
		s.changed(r, now)
	case a.Outcome != p.Outcome: // else a repeat, which answers as the first did
		return s.lost(p.Ref)
	}
	return r.finished(a)
}

// accept keeps the provider's own id for work that goes on there.
func (s *Store) accept(r *row, a *onejob.Attempt, p *onejob.AttemptFinishParams, now time.Time) onejob.AttemptFinishResult {
	switch {
	case p.Outcome != onejob.OutcomeAccepted:
		return onejob.AttemptFinishResult{State: a.State, Err: &onejob.Error{
			Code: onejob.CodeInvalidArgument, JobID: r.job.ID, AttemptID: a.ID, Message: "finishing needs an outcome",
		}}
	case a.State != onejob.AttemptRunning && a.State != onejob.AttemptUnknown:
		return s.lost(p.Ref)
	}
	seeMore(a, p)
	acceptedAt(a, now)
	if a.State == onejob.AttemptRunning {
		a.Outcome = onejob.OutcomeAccepted
	}
	r.ask(a, now)
	s.changed(r, now)
	return r.finished(a)
}

// acceptedAt remembers when the provider was first known to be at the work.
func acceptedAt(a *onejob.Attempt, now time.Time) {
	if a.AcceptedAt.IsZero() {
		a.AcceptedAt = now
	}
}

// lost answers a finish that moved nothing.
func (s *Store) lost(ref onejob.AttemptRef) onejob.AttemptFinishResult {
	result := onejob.AttemptFinishResult{Err: onejob.ErrorOfLostClaim(ref)}
	if r, a := s.findAttempt(ref.ID, ""); a != nil && a.JobID == ref.JobID {
		result.State, result.JobState = a.State, r.job.State
	}
	return result
}

// follow asks the table. Only a success proves a ruling wrong.
func follow(a *onejob.Attempt, event onejob.Event) (onejob.AttemptState, error) {
	if a.Ruling != nil {
		return a.State.NextRuled(event)
	}
	return a.State.Next(event)
}

// see keeps on the attempt what was seen of it.
func see(a *onejob.Attempt, p *onejob.AttemptFinishParams, now time.Time) {
	seeMore(a, p)
	a.Outcome, a.Error, a.Next, a.OwnFault = p.Outcome, copyOf(p.Failure), p.Next, p.OwnFault
	if p.RetryAfter > 0 {
		a.RetryAt = now.Add(p.RetryAfter)
	}
}

// seeMore keeps what is known beside what an outcome proves. The worker spoke after all.
func seeMore(a *onejob.Attempt, p *onejob.AttemptFinishParams) {
	a.Phase, a.Evidence, a.LeaseOverAt = cmp.Or(p.Phase, a.Phase), p.Evidence, time.Time{}
	a.ProviderID = cmp.Or(p.ProviderID, a.ProviderID)
	if p.Currency != "" {
		a.CostMicros, a.Currency = p.CostMicros, p.Currency
	}
	if p.Usage != nil {
		a.Usage = bytes.Clone(p.Usage)
	}
}

// slotOpen reports whether the attempt may still win: nobody has, the job has not
// closed, and nothing happened to the slot since the attempt started.
func (r *row) slotOpen(a *onejob.Attempt) bool {
	return r.job.CompletedBy == "" && !r.job.State.Terminal() && r.job.Version == a.JobVersion
}

// land moves the attempt to its next state, into the result slot if that is
// succeeded, and beside it if that is discarded.
func (s *Store) land(r *row, a *onejob.Attempt, next onejob.AttemptState, result *onejob.Result, now time.Time) {
	a.State = next
	if next.Terminal() {
		a.FinishedAt = now
	}
	switch next {
	case onejob.AttemptSucceeded:
		a.Result = copyResult(result)
		r.job.State, r.job.CompletedBy, r.job.Result = onejob.JobSucceeded, a.ID, copyResult(result)
		r.job.Blocked, r.job.NextTarget, r.job.Error = nil, "", nil
		r.job.FinishedAt = now
		r.job.Version++
	case onejob.AttemptDiscarded:
		if !r.job.Purged() {
			a.Result = copyResult(result)
		}
		a.Discarded = &onejob.Discarded{Winner: r.job.CompletedBy, After: now.Sub(r.job.FinishedAt)}
		r.record(now, onejob.EventRaceLost, a.ID, "", r.job.CompletedBy)
		if incident := onejob.IncidentBy(&r.job, a); incident != "" {
			r.record(now, incident, a.ID, "", r.job.CompletedBy)
			s.raise(r, a, incident, now)
		}
	case onejob.AttemptStarting, onejob.AttemptRunning, onejob.AttemptUnknown, onejob.AttemptFailed, onejob.AttemptCancelled:
	}
}

// finished is where the attempt and its job stand now.
func (r *row) finished(a *onejob.Attempt) onejob.AttemptFinishResult {
	result := onejob.AttemptFinishResult{State: a.State, JobState: r.job.State, Discarded: copyOf(a.Discarded)}
	if a.State == onejob.AttemptDiscarded {
		result.Incident = onejob.IncidentBy(&r.job, a)
	}
	if r.job.State == onejob.JobQueued {
		result.Due = r.job.RunAfter
	}
	return result
}
