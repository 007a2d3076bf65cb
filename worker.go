package onejob

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// This file is what a pull worker does: a program out of our sight that takes
// attempts, works on them and says what came of them, under its claim token.

// storeWithin bounds what is asked of the store though the caller may have left.
const storeWithin = 10 * time.Second

// ClaimAttempts starts attempts of due jobs for a worker, at most p.Max of them,
// and marks them at once: whoever holds one may begin at any moment until its
// SendBy. Owners take turns over the claims of this client: see [TakeTurns].
// p.Kinds and p.Targets say what it can take; no lease is longer than the
// shortest timeout of the kinds, which bounds the whole work. Without due jobs it
// returns none.
//
// When ctx is cancelled before the claim is committed, what was claimed is
// released: nobody was told of it. After [ErrStoreUnavailable] attempts may have
// been claimed that nobody holds; they become unknown when their lease ends.
func (c *Client) ClaimAttempts(ctx context.Context, p AttemptClaimParams) ([]Claimed, error) {
	claimed, _, err := c.claim(ctx, p)
	return claimed, err
}

// AwaitAttempts is [Client.ClaimAttempts] that waits until there is something to
// claim, or ctx ends; then it returns none, without an error. Work that comes up
// in other processes is seen as it is heard of, and otherwise within
// Options.PollInterval.
func (c *Client) AwaitAttempts(ctx context.Context, p AttemptClaimParams) ([]Claimed, error) {
	ready, stop := c.opts.Signals.watchWork()
	defer stop()
	for quiet := 0; ctx.Err() == nil; {
		claimed, due, err := c.claim(ctx, p)
		if err != nil || len(claimed) > 0 {
			return claimed, err
		}
		pause := time.NewTimer(c.untilDue(due, quiet))
		select {
		case <-ready:
			quiet = 0
		case <-pause.C:
			quiet++
		case <-ctx.Done():
		}
		pause.Stop()
	}
	return nil, nil
}

// minClaimPause is the least time between two claims that nobody asked for.
const minClaimPause = 20 * time.Millisecond

// untilDue is when to look again after quiet looks that found nothing: the store's
// word on the next due job is a hint.
func (c *Client) untilDue(due time.Time, quiet int) time.Duration {
	poll := c.opts.Signals.PauseAfter(quiet, c.opts.PollInterval)
	if due.IsZero() {
		return poll
	}
	return min(max(due.Sub(c.opts.NowFunc()), minClaimPause), poll)
}

// claim is not cut short when the caller leaves: what it commits it must know.
func (c *Client) claim(ctx context.Context, p AttemptClaimParams) (claimed []Claimed, due time.Time, err error) {
	if ctx.Err() != nil {
		return nil, time.Time{}, Unavailable(ctx.Err())
	}
	if err := c.checkClaim(&p); err != nil {
		return nil, time.Time{}, err
	}
	p.Mark = true
	p.Lease = min(p.Lease, c.shortestTimeout(p.Kinds))
	queue := queueOf(&p)
	p.AfterOwner = c.turns.after(queue)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeWithin)
	defer cancel()
	r, err := c.store.AttemptClaim(bounded, p)
	if err != nil {
		return nil, time.Time{}, Unavailable(err)
	}
	if p.Owner == "" {
		c.turns.next(queue, r.LastOwner)
	}
	for _, ref := range r.Settled {
		c.opts.Signals.JobChanged(ref.ID)
	}
	for i := range r.Claimed {
		c.opts.Signals.JobChanged(r.Claimed[i].Job.ID)
	}
	if errors.Is(ctx.Err(), context.Canceled) { // past a deadline the caller is still there
		c.releaseAll(bounded, r.Claimed)
		return nil, time.Time{}, nil
	}
	return r.Claimed, r.NextDue, nil
}

func (c *Client) checkClaim(p *AttemptClaimParams) error {
	switch {
	case p.Max < 1 || p.Lease <= 0:
		return &Error{Code: CodeInvalidArgument, Message: "a claim needs a Max and a Lease above zero"}
	case len(p.Kinds) == 0:
		return &Error{Code: CodeInvalidArgument, Message: "a claim needs kinds"}
	}
	for _, name := range p.Kinds {
		if _, known := c.opts.Kinds[name]; !known {
			return &Error{Code: CodeInvalidRequest, Message: fmt.Sprintf("there is no kind %q; %s", name, c.kindNames())}
		}
	}
	return nil
}

func (c *Client) shortestTimeout(kinds []string) time.Duration {
	shortest := c.opts.Kinds[kinds[0]].Policy.Timeout
	for _, name := range kinds {
		shortest = min(shortest, c.opts.Kinds[name].Policy.Timeout)
	}
	return shortest
}

// releaseAll gives back what nobody was told of. What cannot be given back is left
// to its lease.
func (c *Client) releaseAll(ctx context.Context, claimed []Claimed) {
	for i := range claimed {
		a := &claimed[i].Attempt
		_, _ = c.finish(ctx, released(WorkerParams{AttemptID: a.ID, ClaimToken: a.ClaimToken}), a)
	}
}

// WorkerParams names an attempt and proves that the caller holds it.
type WorkerParams struct {
	AttemptID  string
	Owner      string // empty: any; another's attempt is [ErrNotFound]
	ClaimToken string
}

// RenewResult is how a claim stands after a heartbeat.
type RenewResult struct {
	Attempt Attempt
	// CancelRequested says that the result is no longer wanted. The worker may go
	// on or stop; it still says what came of it.
	CancelRequested bool
}

// RenewAttempt extends a worker's lease by lease from now, but not beyond the
// timeout of the job, which counts from the claim: heartbeats do not make work
// endless. It returns [ErrClaimLost] when that is over, or the attempt is no
// longer held. A late answer still counts: see [Client.FinishAttempt].
func (c *Client) RenewAttempt(ctx context.Context, p WorkerParams, lease time.Duration) (RenewResult, error) {
	a, err := c.Attempt(ctx, p.Owner, p.AttemptID)
	if err != nil {
		return RenewResult{}, err
	}
	job, err := c.Get(ctx, p.Owner, a.JobID)
	if err != nil {
		return RenewResult{}, err
	}
	results, err := c.store.AttemptRenew(ctx, []AttemptRenewParams{{
		Ref: refOf(&a), Owner: p.Owner, ClaimToken: p.ClaimToken, Lease: lease, Within: job.Policy.Timeout, MoveSendBy: true,
	}})
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		return RenewResult{}, Unavailable(err)
	}
	renewed, err := c.Attempt(ctx, p.Owner, p.AttemptID)
	return RenewResult{Attempt: renewed, CancelRequested: results[0].CancelRequested}, err
}

// ReleaseAttempt gives an attempt back that its worker has not begun, for another
// worker to take. Only the holder can know that nothing was begun.
func (c *Client) ReleaseAttempt(ctx context.Context, p WorkerParams) (FinishResult, error) {
	return c.FinishAttempt(ctx, released(p))
}

func released(p WorkerParams) FinishParams {
	return FinishParams{
		WorkerParams: p, Outcome: OutcomeNotExecuted, ownFault: true,
		Failure: &Failure{Code: "released", Message: "the worker gave the attempt back before it began"},
	}
}

// FinishParams is what a worker says of an attempt.
type FinishParams struct {
	WorkerParams

	// Outcome is succeeded, executed_failed, refused, not_executed or unknown.
	Outcome    Outcome
	Result     *Result  // with OutcomeSucceeded
	Failure    *Failure // with any other
	ProviderID string
	CostMicros int64
	Currency   string // empty: no price was told
	Usage      []byte // JSON, or nil

	ownFault bool
}

// FinishResult is where an attempt stands after what its worker said.
type FinishResult struct {
	Attempt  Attempt
	Incident EventKind // empty: none
	// Repeated says that the same had been recorded before.
	Repeated bool
}

// FinishAttempt records what came of an attempt, under its claim token. It may come
// after the lease: a success still wins if nothing replaced the attempt meanwhile,
// and is discarded, without an error, if something did. A repeat answers as the
// first did. It returns [ErrClaimLost] when what is said can move nothing.
//
// After [ErrStoreUnavailable] it may or may not have been recorded; repeat the call
// to find out.
func (c *Client) FinishAttempt(ctx context.Context, p FinishParams) (FinishResult, error) {
	before, err := c.Attempt(ctx, p.Owner, p.AttemptID)
	if err != nil {
		return FinishResult{}, err
	}
	r, err := c.finish(ctx, p, &before)
	if err != nil {
		return FinishResult{}, err
	}
	after, err := c.Attempt(ctx, p.Owner, p.AttemptID)
	return FinishResult{
		Attempt: after, Incident: r.Incident,
		Repeated: before.State == after.State && before.Outcome == after.Outcome,
	}, err
}

func (c *Client) finish(ctx context.Context, p FinishParams, a *Attempt) (AttemptFinishResult, error) {
	params := AttemptFinishParams{
		Ref: refOf(a), Owner: p.Owner, ClaimToken: p.ClaimToken,
		Outcome: p.Outcome, Phase: PhaseAnswered, Failure: p.Failure, OwnFault: p.ownFault,
		Result: p.Result, ProviderID: p.ProviderID,
		CostMicros: p.CostMicros, Currency: p.Currency, Usage: p.Usage,
	}
	switch p.Outcome {
	case OutcomeNotExecuted:
		params.Phase, params.Next = PhaseNotSent, NextAgain
	case OutcomeRefused, OutcomeExecutedFailed:
		params.Next = NextElsewhere
	case OutcomeUnknown:
		params.Phase = PhaseSent
	case OutcomeSucceeded:
	default: // accepted needs somebody who asks later; the rest is for others to say
		return AttemptFinishResult{}, &Error{Code: CodeInvalidArgument, Message: fmt.Sprintf("a worker cannot finish an attempt as %q", p.Outcome)}
	}
	if (p.Outcome == OutcomeSucceeded) != (p.Result != nil) {
		return AttemptFinishResult{}, &Error{Code: CodeInvalidArgument, Message: "a result goes with succeeded, and only with it"}
	}
	violation, job, err := c.violation(ctx, a, p.Result)
	if err != nil {
		return AttemptFinishResult{}, err
	}
	if violation != nil {
		params.Violate(job.Policy.Effect, violation)
	}
	results, err := c.store.AttemptFinish(ctx, []AttemptFinishParams{params})
	if err != nil {
		return AttemptFinishResult{}, Unavailable(err)
	}
	c.opts.Signals.JobChanged(a.JobID)
	if results[0].JobState == JobQueued {
		c.opts.Signals.WorkReady()
	}
	return results[0], results[0].Err
}

func refOf(a *Attempt) AttemptRef { return AttemptRef{Part: a.Part, JobID: a.JobID, ID: a.ID} }
