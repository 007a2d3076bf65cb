package onejob

import "slices"

// AfterWin returns the job as it is after its attempt's success took the slot,
// without its input: what reading it again would answer. It reports false when
// that cannot be told from what is known: the store did not say, or something else
// happened to the job since it was read.
func AfterWin(job *Job, p *AttemptFinishParams, r *AttemptFinishResult) (*Job, bool) {
	plain := p.Outcome == OutcomeSucceeded && p.Failure == nil && p.Next == "" && !p.OwnFault && p.RetryAfter <= 0
	if !plain || r.Err != nil || r.Won == nil || r.Won.Revision != job.Revision+1 {
		return nil, false
	}
	won := *job
	won.Attempts = slices.Clone(job.Attempts)
	a := AttemptOf(&won, p.Ref.ID)
	if a == nil {
		return nil, false
	}
	a.succeed(p)
	a.FinishedAt = r.Won.At
	won.State, won.CompletedBy, won.FinishedAt = JobSucceeded, a.ID, r.Won.At
	won.Blocked, won.Error, won.NextTarget = nil, nil, ""
	won.Version++
	won.Revision = r.Won.Revision
	won.Input, won.Result = nil, p.Result
	if won.Result == nil {
		won.Result = &Result{}
	}
	return &won, true
}

// succeed brings the attempt to what a plain success writes.
func (a *Attempt) succeed(p *AttemptFinishParams) {
	a.State, a.Outcome, a.Evidence = AttemptSucceeded, OutcomeSucceeded, p.Evidence
	if p.Phase != "" {
		a.Phase = p.Phase
	}
	if p.ProviderID != "" {
		a.ProviderID = p.ProviderID
	}
	if p.Currency != "" {
		a.CostMicros, a.Currency = p.CostMicros, p.Currency
	}
	if p.Usage != nil {
		a.Usage = p.Usage
	}
}
