package onejob

import (
	"context"
	"errors"
	"time"
)

// probes returns the store's questions.
func (c *Client) probes() (ProbeStore, error) {
	if p, ok := c.store.(ProbeStore); ok {
		return p, nil
	}
	return nil, &Error{Code: CodeInternal, Err: errors.New("the store keeps no probes")}
}

// Reconcile makes an attempt in doubt due to be asked about at once, and returns
// it as it is. Whether it can be asked about is its target's to say. It returns
// [ErrNotFound], [CodeAttemptTerminal] for one that has ended and
// [CodeAttemptNotUnknown] for one that is under way.
func (c *Client) Reconcile(ctx context.Context, p ProbeNowParams) (Attempt, error) {
	store, err := c.probes()
	if err != nil {
		return Attempt{}, err
	}
	if err := store.ProbeNow(ctx, p); err != nil {
		return Attempt{}, Unavailable(err)
	}
	c.opts.Signals.QuestionReady()
	return c.Attempt(ctx, p.Owner, p.AttemptID)
}

// Probes returns the newest questions about an attempt with their answers, oldest
// first, or [ErrNotFound].
func (c *Client) Probes(ctx context.Context, p ProbeListParams) ([]Probe, error) {
	store, err := c.probes()
	if err != nil {
		return nil, err
	}
	page, err := c.store.AttemptList(ctx, AttemptListParams{ID: p.AttemptID, Owner: p.Owner, Limit: 1})
	switch {
	case err != nil:
		return nil, Unavailable(err)
	case len(page.Attempts) == 0:
		return nil, ErrorOfNoAttempt(p.AttemptID)
	}
	probes, err := store.ProbeList(ctx, p)
	return probes, Unavailable(err)
}

// ReportParams is what a provider reported of an attempt by itself. Whoever calls
// has made sure that it was the provider, and which attempt it is about.
type ReportParams struct {
	Target    string
	AttemptID string
	// Answer as the provider's code read it. Nil: the report settles nothing.
	Answer *Answer
}

// askAfterReport is when a provider is asked about an attempt that it reported
// without settling it.
const askAfterReport = 5 * time.Second

// ReportResult is what came of a report.
type ReportResult struct {
	// Duplicate says that the attempt had ended before, so that nothing was changed.
	Duplicate bool
	JobID     string
	// State is where the attempt stands now. Discarded and Incident are of a success
	// that lost, and of one that should not have been.
	State     AttemptState
	Discarded *Discarded
	Incident  EventKind
}

// Report writes down what a provider reported and settles the attempt by it.
// It returns [ErrNotFound] for an attempt that is not at the target, and
// [CodeRequestInProgress] while the call that started the work has not been
// recorded yet: the report is to come again.
func (c *Client) Report(ctx context.Context, p ReportParams) (ReportResult, error) {
	store, err := c.probes()
	if err != nil {
		return ReportResult{}, err
	}
	a, err := c.Attempt(ctx, "", p.AttemptID)
	switch {
	case err != nil:
		return ReportResult{}, err
	case a.Target != p.Target:
		return ReportResult{}, ErrorOfNoAttempt(p.AttemptID)
	case reported(&a):
		return ReportResult{Duplicate: true, JobID: a.JobID, State: a.State}, nil
	case a.State == AttemptStarting || a.State == AttemptRunning && a.Outcome != OutcomeAccepted:
		return ReportResult{}, &Error{
			Code: CodeRequestInProgress, JobID: a.JobID, AttemptID: a.ID, RetryAfter: time.Second,
			Message: "the request that the report is about is still under way; report it again",
		}
	}
	probe := probeOfReport(&a, p.Answer)
	violation, job, err := c.violation(ctx, &a, probe.Result)
	if err != nil {
		return ReportResult{}, err
	}
	if violation != nil {
		probe.Violate(job.Policy.Effect, violation)
	}
	results, err := store.ProbeRecord(ctx, []ProbeRecordParams{probe})
	if err != nil {
		return ReportResult{}, Unavailable(err)
	}
	c.opts.Signals.JobChanged(a.JobID)
	if results[0].JobState == JobQueued {
		c.opts.Signals.WorkReady()
	}
	r := results[0]
	return ReportResult{JobID: a.JobID, State: r.State, Discarded: r.Discarded, Incident: r.Incident}, r.Err
}

// reported tells whether a report can no longer change the attempt. One that was
// ruled failed or cancelled can still turn out to have succeeded.
func reported(a *Attempt) bool {
	ruled := a.Ruling != nil && (a.State == AttemptFailed || a.State == AttemptCancelled)
	return a.State.Terminal() && !ruled
}

func probeOfReport(a *Attempt, answer *Answer) ProbeRecordParams {
	p := ProbeRecordParams{
		Ref: AttemptRef{Part: a.Part, JobID: a.JobID, ID: a.ID}, Method: ProbeCallback,
		Detail: "the provider's report settles nothing", After: askAfterReport,
	}
	if answer == nil || answer.ProviderID != "" && a.ProviderID != "" && answer.ProviderID != a.ProviderID {
		return p
	}
	p.Evidence = answer.Evidence
	switch answer.Outcome {
	case OutcomeSucceeded:
		p.Outcome, p.Detail = OutcomeSucceeded, "the provider reported success"
		p.Result = &Result{Body: answer.Body, ContentType: answer.ContentType}
	case OutcomeExecutedFailed:
		p.Outcome, p.Detail = OutcomeExecutedFailed, "the provider reported that the work was done and failed"
		p.Failure, p.Next = answer.Failure, answer.Next
	default:
		return p
	}
	p.CostMicros, p.Currency, p.Usage = answer.CostMicros, answer.Currency, answer.Usage
	return p
}
