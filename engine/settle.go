package engine

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/onejob-dev/onejob"
)

// settle records what a provider said of an attempt.
func (e *Engine) settle(t *trial, s said) {
	p := outcomeOf(s)
	if p.Outcome == onejob.OutcomeAccepted && !e.canFollow(&t.target, p.ProviderID) {
		// Nothing here can ask about it later, so it is not known how it ends.
		p.Outcome = onejob.OutcomeUnknown
		p.Failure = &onejob.Failure{Code: "accepted", Message: "the provider accepted the work, and this target cannot be asked how it ended"}
	}
	p.Evidence.DroppedParams = cmp.Or(t.dropped, p.Evidence.DroppedParams)
	if !e.judge(t, &p) {
		return
	}
	t.feed.Load().amend(&p)
	if p.Outcome == onejob.OutcomeUnknown || p.Outcome == onejob.OutcomeResultLost { // who waits must know that the call is over
		p.Evidence.EndedMS = max(1, p.Evidence.EndedMS, time.Since(t.began).Milliseconds())
	}
	e.opts.Observer.AttemptEnded(t.target.Name, p.Outcome, time.Since(t.began))
	e.finish(t, p)
}

// outcomeOf maps what a provider said to what it proves. Doubt is the default:
// an error proves nothing unless it wraps one that does.
func outcomeOf(s said) onejob.AttemptFinishParams {
	if s.err == nil {
		return outcomeOfAnswer(&s.answer)
	}
	p := onejob.AttemptFinishParams{Outcome: onejob.OutcomeUnknown, Phase: onejob.PhaseSent}
	var call *onejob.CallError
	if errors.As(s.err, &call) {
		p.Phase, p.Evidence, p.Next, p.RetryAfter = call.Phase, call.Evidence, call.Next, call.RetryAfter
		p.CostMicros, p.Currency, p.Usage = call.CostMicros, call.Currency, call.Usage
		p.Failure = &call.Failure
	} else {
		// The text of an error that is not ours may hold anything, an address
		// with a key in it too, so it is not kept.
		p.Evidence.Error = "the provider's code failed without saying what is proven"
		p.Failure = &onejob.Failure{Code: "provider_error", Message: p.Evidence.Error}
	}
	switch {
	case errors.Is(s.err, onejob.ErrNotSent):
		p.Outcome = onejob.OutcomeNotExecuted
		fillNext(&p.Next, onejob.NextAgain)
	case errors.Is(s.err, onejob.ErrRefused):
		p.Outcome = onejob.OutcomeRefused
		fillNext(&p.Next, onejob.NextElsewhere)
	}
	fillPhase(&p.Phase, onejob.PhaseSent)
	return p
}

func outcomeOfAnswer(a *onejob.Answer) onejob.AttemptFinishParams {
	p := onejob.AttemptFinishParams{
		Outcome: a.Outcome, Phase: a.Phase, Evidence: a.Evidence, Failure: a.Failure,
		Next: a.Next, RetryAfter: a.RetryAfter, ProviderID: a.ProviderID,
		CostMicros: a.CostMicros, Currency: a.Currency, Usage: a.Usage,
	}
	if p.Outcome == "" {
		p.Outcome = onejob.OutcomeSucceeded
	}
	if p.Outcome == onejob.OutcomeSucceeded {
		p.Result = &onejob.Result{Body: a.Body, ContentType: a.ContentType}
	}
	if p.Outcome == onejob.OutcomeExecutedFailed {
		fillNext(&p.Next, onejob.NextElsewhere)
	}
	fillPhase(&p.Phase, onejob.PhaseAnswered)
	return p
}

func fillNext(field *onejob.Next, value onejob.Next)    { fill(field, value) }
func fillPhase(field *onejob.Phase, value onejob.Phase) { fill(field, value) }

// Pauses between tries to record an outcome.
const (
	firstPause = 50 * time.Millisecond
	maxPause   = 2 * time.Second
)

// finish records an outcome under the claim token, and tries until the store
// confirms: an answer was paid for, and a repeat is answered as the first was.
// It gives up only when the process is being stopped for good; the attempt is
// then left to its lease, which makes it unknown.
func (e *Engine) finish(t *trial, p onejob.AttemptFinishParams) {
	p.Ref, p.ClaimToken = t.ref, t.token
	giveUp := time.Now().Add(settleTime)
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		ctx, cancel := context.WithTimeout(context.Background(), settleTime) // a hard stop does not end it
		results, err := e.store.AttemptFinish(ctx, []onejob.AttemptFinishParams{p})
		cancel()
		if err == nil {
			err = retryable(results[0].Err)
		}
		if err == nil {
			e.finished(t, p, results[0])
			return
		}
		e.complain("outcome not recorded yet", err, "job_id", t.Job.ID, "attempt_id", t.ref.ID, "outcome", p.Outcome)
		if e.hard.Err() != nil && time.Now().After(giveUp) {
			return
		}
		time.Sleep(pause)
	}
}

// retryable returns a row's error that another try may not meet: its row was
// locked, say. A lost claim is an answer, and everything else a defect that no
// repeat mends.
func retryable(err error) error {
	if onejob.CodeOf(err) == onejob.CodeStoreUnavailable {
		return err
	}
	return nil
}

// finished tells whoever wants to know how an attempt ended.
func (e *Engine) finished(t *trial, p onejob.AttemptFinishParams, r onejob.AttemptFinishResult) {
	e.noteEnd(t, &p, &r)
	if won, known := onejob.AfterWin(t.Job, &p, &r); known {
		e.opts.Signals.JobGiven(won)
	} else {
		e.opts.Signals.JobChanged(t.Job.ID)
	}
	if r.State == onejob.AttemptSucceeded {
		t.feed.Load().forget()
	}
	e.tell(t.Job, t, r)
}

// noteEnd tells the log, and the observer of what is not usual, how an attempt
// ended. What ended as it should is written
// only for who wants to know everything.
func (e *Engine) noteEnd(t *trial, p *onejob.AttemptFinishParams, r *onejob.AttemptFinishResult) {
	usual := r.Err == nil && r.Discarded == nil && r.State != onejob.AttemptUnknown && r.Incident == ""
	if usual && !e.opts.Logger.Enabled(e.hard, slog.LevelDebug) {
		return
	}
	log := e.opts.Logger.With("job_id", t.Job.ID, "attempt_id", t.ref.ID, "target", t.target.Name, "outcome", p.Outcome)
	switch {
	case onejob.CodeOf(r.Err) == onejob.CodeClaimLost && r.Err != nil:
		log.Info("outcome came too late to change anything", "state", r.State)
	case r.Err != nil:
		log.Error("outcome refused by the store; the attempt is left to its lease", "err", r.Err)
	case r.Discarded != nil:
		log.Warn("success discarded", "winner", r.Discarded.Winner, "after", r.Discarded.After, "cost_micros", p.CostMicros, "currency", p.Currency)
		e.opts.Observer.RaceLost(t.target.Name)
	case r.State == onejob.AttemptUnknown:
		log.Warn("attempt is unknown", "evidence", p.Evidence.Error)
	default:
		log.Debug("attempt settled", "state", r.State, "job_state", r.JobState)
	}
	if r.Incident != "" {
		log.Error("incident: the effect may have happened twice", "incident", r.Incident)
		e.opts.Observer.Incident(r.Incident)
	}
}

// tell wakes whoever waits for what a settled attempt changed. t is the attempt's
// own trial, if it is under way here.
func (e *Engine) tell(job *onejob.Job, t *trial, r onejob.AttemptFinishResult) {
	switch {
	case r.JobState == onejob.JobBlocked && job.Policy.Contract != nil && r.State != onejob.AttemptUnknown:
		e.noteRefusal(job.ID)
	case r.JobState == onejob.JobQueued:
		e.opts.Signals.WorkReady()
	case r.State == onejob.AttemptSucceeded && job.Policy.Lanes > 1:
		e.askToCancel(job.ID, t)
	}
}
