package memory

import (
	"context"
	"time"

	"github.com/onejob-dev/onejob"
)

// AttemptResolve settles unknown attempts by a ruling.
func (s *Store) AttemptResolve(ctx context.Context, params []onejob.AttemptResolveParams) ([]onejob.AttemptResolveResult, error) {
	return each(ctx, s, params, s.resolve)
}

func (s *Store) resolve(p *onejob.AttemptResolveParams, now time.Time) onejob.AttemptResolveResult {
	r, a := s.findAttempt(p.ID, p.Owner)
	if a == nil {
		return onejob.AttemptResolveResult{Err: onejob.ErrorOfNoAttempt(p.ID)}
	}
	if err := onejob.CheckRevision(&r.job, p.IfRevision); err != nil {
		return onejob.AttemptResolveResult{Err: err}
	}
	if err := onejob.CheckResolve(&r.job, a, p, now); err != nil {
		return onejob.AttemptResolveResult{Err: err}
	}
	event, result := onejob.EventOfRuling(p.Outcome), p.Result
	if p.Outcome == onejob.OutcomeResultLost {
		result = &onejob.Result{Lost: true}
	}
	if event == onejob.EventAnswered && !r.slotOpen(a) {
		event = onejob.EventBeaten
	}
	next, err := a.State.Next(event)
	if err != nil {
		return onejob.AttemptResolveResult{Err: err}
	}
	a.Outcome, a.Next, a.OwnFault, a.Ruling = p.Outcome, onejob.NextOfRuling(p.Outcome), false, rulingOf(a, p, now)
	r.record(now, onejob.EventRuled, a.ID, p.Actor, string(p.Outcome)+": "+p.Evidence)
	s.audit(p.AuditOf(r.job.Owner), now)
	s.land(r, a, next, result, now)
	s.changed(r, now)
	ruled := copyAttempt(a, true)
	return onejob.AttemptResolveResult{Attempt: &ruled, Job: r.copyJob(false)}
}

func rulingOf(a *onejob.Attempt, p *onejob.AttemptResolveParams, now time.Time) *onejob.Ruling {
	success := onejob.EventOfRuling(p.Outcome) == onejob.EventAnswered
	return &onejob.Ruling{
		By: p.Actor, Outcome: p.Outcome, Evidence: p.Evidence, At: now,
		RiskAcknowledged: p.AcknowledgeRisk && !success && a.QuarantineUntil.IsZero(),
	}
}
