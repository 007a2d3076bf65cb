package sqlite

import (
	"context"

	"github.com/onejob-dev/onejob"
)

// AttemptResolve settles unknown attempts by a ruling. While the clock is in
// doubt no ruling may rest on time having passed.
func (s *Store) AttemptResolve(ctx context.Context, params []onejob.AttemptResolveParams) ([]onejob.AttemptResolveResult, error) {
	return batch(ctx, s, params, (*tx).resolve, func(err error) onejob.AttemptResolveResult {
		return onejob.AttemptResolveResult{Err: err}
	})
}

func (x *tx) resolve(p *onejob.AttemptResolveParams) (onejob.AttemptResolveResult, error) {
	j, a, err := x.attemptToRule(p.ID, p.Owner)
	if err != nil {
		return onejob.AttemptResolveResult{}, err
	}
	if err := onejob.CheckRevision(&j.Job, p.IfRevision); err != nil {
		return onejob.AttemptResolveResult{}, err
	}
	if err := onejob.CheckResolve(&j.Job, a, p, x.now); err != nil {
		return onejob.AttemptResolveResult{}, err
	}
	event := onejob.EventOfRuling(p.Outcome)
	if err := x.clockAllows(event, a); err != nil {
		return onejob.AttemptResolveResult{}, err
	}
	state, err := a.State.Next(event)
	if err != nil {
		return onejob.AttemptResolveResult{}, err
	}
	if err := x.rule(p, a, state); err != nil {
		return onejob.AttemptResolveResult{}, err
	}
	if err := x.audit(p.AuditOf(j.Owner)); err != nil {
		return onejob.AttemptResolveResult{}, err
	}
	if _, err := x.land(onejob.AttemptRef{Part: a.Part, JobID: a.JobID, ID: a.ID}, state); err != nil {
		return onejob.AttemptResolveResult{}, err
	}
	return x.ruled(a)
}

// attemptToRule returns an attempt in its job, if who may see it.
func (x *tx) attemptToRule(id, who string) (*storedJob, *onejob.Attempt, error) {
	jobID, _, ok := onejob.JobOfAttemptID(id)
	if !ok {
		return nil, nil, onejob.ErrorOfNoAttempt(id)
	}
	j, err := x.jobByID(jobID, who)
	if err != nil && onejob.CodeOf(err) != onejob.CodeNotFound {
		return nil, nil, err
	}
	if err == nil {
		if a := onejob.AttemptOf(&j.Job, id); a != nil {
			return j, a, nil
		}
	}
	return nil, nil, onejob.ErrorOfNoAttempt(id)
}

// clockAllows refuses what rests on a quarantine while the clock is in doubt.
func (x *tx) clockAllows(event onejob.Event, a *onejob.Attempt) error {
	if event == onejob.EventAnswered {
		return nil
	}
	wait, _ := x.clock.doubtful()
	if wait == 0 {
		return nil
	}
	return &onejob.Error{
		Code: onejob.CodeQuarantined, JobID: a.JobID, AttemptID: a.ID, RetryAfter: wait,
		Message: "the store's clock stepped, so nobody knows that the quarantine is over; no ruling but success until it settles",
	}
}

// rule writes the ruling. Zero rows: somebody else settled the attempt.
func (x *tx) rule(p *onejob.AttemptResolveParams, a *onejob.Attempt, state onejob.AttemptState) error {
	success := state == onejob.AttemptSucceeded
	result := p.Result
	if p.Outcome == onejob.OutcomeResultLost {
		result = &onejob.Result{Lost: true}
	}
	body, contentType, lost := resultOf(result, state)
	n, err := x.exec(`
		UPDATE attempts SET state = ?, outcome = ?, next = ?, own_fault = 0, ruling = ?, result = ?, result_type = ?, result_lost = ?, finished_at = ?
		WHERE `+thisAttempt+` AND state = 'unknown'`,
		string(state), string(p.Outcome), string(onejob.NextOfRuling(p.Outcome)), encode(onejob.Ruling{
			By: p.Actor, Outcome: p.Outcome, Evidence: p.Evidence, At: x.now,
			RiskAcknowledged: p.AcknowledgeRisk && !success && a.QuarantineUntil.IsZero(),
		}), body, contentType, lost, x.now,
		int(a.Part), a.JobID, a.ID)
	if err != nil {
		return err
	}
	if n == 0 {
		return &onejob.Error{Code: onejob.CodeAttemptNotUnknown, JobID: a.JobID, AttemptID: a.ID, Message: "the attempt was settled meanwhile"}
	}
	return x.record(onejob.JobEvent{
		Part: a.Part, JobID: a.JobID, AttemptID: a.ID, Kind: onejob.EventRuled,
		Actor: p.Actor, Detail: string(p.Outcome) + ": " + p.Evidence,
	})
}

// ruled reads the attempt and its job as they are after the ruling.
func (x *tx) ruled(was *onejob.Attempt) (onejob.AttemptResolveResult, error) {
	j, err := x.answer(was.JobID)
	if err != nil {
		return onejob.AttemptResolveResult{}, err
	}
	a := *onejob.AttemptOf(j, was.ID)
	err = x.query(`SELECT `+resultColumns+` FROM attempts a WHERE `+thisAttempt, func(r *row) error {
		a.Result = scanResult(r)
		return nil
	}, int(a.Part), a.JobID, a.ID)
	return onejob.AttemptResolveResult{Attempt: &a, Job: j}, err
}
