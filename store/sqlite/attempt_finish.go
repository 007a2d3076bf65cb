package sqlite

import (
	"context"
	"time"

	"github.com/onejob-dev/onejob"
)

// AttemptFinish records what came of attempts.
func (s *Store) AttemptFinish(ctx context.Context, params []onejob.AttemptFinishParams) ([]onejob.AttemptFinishResult, error) {
	return batch(ctx, s, params, (*tx).finish, func(err error) onejob.AttemptFinishResult {
		return onejob.AttemptFinishResult{Err: err}
	})
}

func (x *tx) finish(p *onejob.AttemptFinishParams) (onejob.AttemptFinishResult, error) {
	if err := x.mayHold(p.Ref, p.Owner); err != nil {
		return onejob.AttemptFinishResult{}, err
	}
	event, moves := p.Outcome.Event()
	if !moves {
		return x.accept(p)
	}
	state, err := onejob.AttemptRunning.Next(event)
	if err != nil {
		return onejob.AttemptFinishResult{}, err
	}
	moved, err := x.settle(p, event, state)
	if err != nil {
		return onejob.AttemptFinishResult{}, err
	}
	if moved && state == onejob.AttemptUnknown {
		return x.landUnless(x.ask(p.Ref), p.Ref, state)
	}
	if moved {
		return x.land(p.Ref, state)
	}
	if state == onejob.AttemptUnknown {
		if seen, err := x.see(p, `state = 'unknown'`); err != nil || seen {
			return x.landUnless(err, p.Ref, state)
		}
	}
	return x.unmoved(p)
}

// settle moves the attempt by an event. Zero rows: the claim is not this one's, or
// the attempt is not where the event can find it.
func (x *tx) settle(p *onejob.AttemptFinishParams, event onejob.Event, state onejob.AttemptState) (moved bool, err error) {
	outcome := p.Outcome
	if state == onejob.AttemptUnknown && outcome != onejob.OutcomeResultLost {
		outcome = onejob.OutcomeUnknown // also what this program does not know
	}
	ended := `finished_at = ?`
	if state == onejob.AttemptUnknown {
		ended = `unknown_at = ?`
	}
	var retryAt time.Time
	if p.RetryAfter > 0 {
		retryAt = later(x.now.Add(p.RetryAfter))
	}
	code, message := failureColumns(p.Failure)
	body, contentType, lost := resultOf(p.Result, state)
	_, number, _ := onejob.JobOfAttemptID(p.Ref.ID) // of no such id: of no attempt either
	n, err := x.exec(`
		UPDATE OR FAIL attempts SET state = ?, outcome = ?, phase = coalesce(?, phase), evidence = ?, error_code = ?, error = ?,
			next = ?, own_fault = ?, provider_id = coalesce(?, provider_id), retry_at = coalesce(?, retry_at),
			result = ?, result_type = ?, result_lost = ?,
			cost_micros = CASE ? WHEN '' THEN cost_micros ELSE ? END, currency = CASE ? WHEN '' THEN currency ELSE ? END,
			usage = coalesce(?, usage), lease_over_at = NULL, `+ended+`
		WHERE `+thisAttempt+` AND number = ? AND claim_token = ? AND `+sources(event),
		string(state), string(outcome), orNull(p.Phase), encode(p.Evidence), code, message,
		orNull(p.Next), p.OwnFault, orNull(p.ProviderID), retryAt,
		body, contentType, lost,
		p.Currency, p.CostMicros, p.Currency, p.Currency,
		orNull(string(p.Usage)), x.now,
		int(p.Ref.Part), p.Ref.JobID, p.Ref.ID, number, p.ClaimToken)
	return n == 1, err
}

// resultOf is what a success answered. Nothing else has a result.
func resultOf(r *onejob.Result, state onejob.AttemptState) (body, contentType any, lost bool) {
	if r == nil || state != onejob.AttemptSucceeded {
		return nil, nil, false
	}
	return blobOrNull(r.Body), r.ContentType, r.Lost
}

// see keeps what more is known of an attempt that stays where it is.
func (x *tx) see(p *onejob.AttemptFinishParams, where string) (seen bool, err error) {
	n, err := x.exec(`
		UPDATE attempts SET phase = coalesce(?, phase), evidence = ?, provider_id = coalesce(?, provider_id), lease_over_at = NULL,
			cost_micros = CASE ? WHEN '' THEN cost_micros ELSE ? END, currency = CASE ? WHEN '' THEN currency ELSE ? END,
			usage = coalesce(?, usage)
		WHERE `+thisAttempt+` AND claim_token = ? AND `+where,
		orNull(p.Phase), encode(p.Evidence), orNull(p.ProviderID),
		p.Currency, p.CostMicros, p.Currency, p.Currency, orNull(string(p.Usage)),
		int(p.Ref.Part), p.Ref.JobID, p.Ref.ID, p.ClaimToken)
	return n == 1, err
}

// accept keeps the provider's own id for work that goes on there.
func (x *tx) accept(p *onejob.AttemptFinishParams) (onejob.AttemptFinishResult, error) {
	if p.Outcome != onejob.OutcomeAccepted {
		return onejob.AttemptFinishResult{}, &onejob.Error{
			Code: onejob.CodeInvalidArgument, JobID: p.Ref.JobID, AttemptID: p.Ref.ID, Message: "finishing needs an outcome",
		}
	}
	seen, err := x.see(p, `state IN ('running', 'unknown')`)
	if err != nil {
		return onejob.AttemptFinishResult{}, err
	}
	if !seen {
		return x.unmoved(p)
	}
	_, err = x.exec(`
		UPDATE attempts SET outcome = CASE state WHEN 'running' THEN 'accepted' ELSE outcome END, accepted_at = coalesce(accepted_at, ?)
		WHERE `+thisAttempt, x.now, int(p.Ref.Part), p.Ref.JobID, p.Ref.ID)
	if err == nil {
		err = x.ask(p.Ref)
	}
	return x.landUnless(err, p.Ref, onejob.AttemptRunning)
}

func (x *tx) landUnless(err error, ref onejob.AttemptRef, state onejob.AttemptState) (onejob.AttemptFinishResult, error) {
	if err != nil {
		return onejob.AttemptFinishResult{}, err
	}
	return x.land(ref, state)
}

// land ends the change of an attempt: a success tries for the slot, anything else
// puts the job where its attempts now put it.
func (x *tx) land(ref onejob.AttemptRef, state onejob.AttemptState) (onejob.AttemptFinishResult, error) {
	if state == onejob.AttemptSucceeded {
		won, err := x.takeSlot(ref)
		if err != nil {
			return onejob.AttemptFinishResult{}, err
		}
		if won == nil {
			return x.discard(ref)
		}
		return onejob.AttemptFinishResult{State: state, JobState: onejob.JobSucceeded, Won: won}, nil
	}
	j, err := x.changed(ref.Part, ref.JobID)
	if err != nil {
		return onejob.AttemptFinishResult{}, err
	}
	return standsAt(&j.Job, onejob.AttemptOf(&j.Job, ref.ID)), nil
}

// standsAt is where the attempt and its job stand now.
func standsAt(j *onejob.Job, a *onejob.Attempt) onejob.AttemptFinishResult {
	result := onejob.AttemptFinishResult{State: a.State, JobState: j.State, Discarded: a.Discarded}
	if a.State == onejob.AttemptDiscarded {
		result.Incident = onejob.IncidentBy(j, a)
	}
	if j.State == onejob.JobQueued {
		result.Due = j.RunAfter
	}
	return result
}

// unmoved answers a finish that changed nothing: a repeat as the first did, and
// anything else with what the attempt is.
func (x *tx) unmoved(p *onejob.AttemptFinishParams) (onejob.AttemptFinishResult, error) {
	lost := onejob.AttemptFinishResult{Err: onejob.ErrorOfLostClaim(p.Ref)}
	j, err := x.job(`WHERE j.part = ? AND j.id = ?`, int(p.Ref.Part), p.Ref.JobID)
	if err != nil || j == nil {
		return lost, err
	}
	a := onejob.AttemptOf(&j.Job, p.Ref.ID)
	if a == nil {
		return lost, nil
	}
	if a.ClaimToken == p.ClaimToken && a.State.Terminal() && a.Outcome == p.Outcome {
		return standsAt(&j.Job, a), nil
	}
	lost.State, lost.JobState = a.State, j.State
	return lost, nil
}
