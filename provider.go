package onejob

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// Errors of a [Provider] that prove something. Every other error is doubt.
var (
	// ErrNotSent : nothing that the provider could act on left this machine.
	ErrNotSent = errors.New("not sent")
	// ErrRefused : the provider said that it did nothing.
	ErrRefused = errors.New("refused")
)

// Provider tries work at one target. It is safe for concurrent use.
type Provider interface {
	// Call sends req once, as one request on the wire, and waits for the
	// complete answer. It never retries, never follows a redirect, and must not
	// let a byte leave after req.SendBy.
	//
	// The error says what is proven. Nil: the answer is complete, and its
	// Outcome says how it ended. [ErrNotSent] or [ErrRefused]: the work was not
	// done, so another attempt is safe. Any other error, ctx's included, leaves
	// the attempt unknown. An error may be a [*CallError], which carries the
	// evidence beside the proof.
	Call(ctx context.Context, req Request) (Answer, error)
}

// Request is one attempt's work, as a provider gets it.
type Request struct {
	JobID     string
	AttemptID string
	Number    int // of the attempt, 1 for the first
	Kind      string
	Target    string

	// Effect is what a duplicate of this work would cost: what some answers
	// prove depends on it. Empty counts as [EffectExternal].
	Effect Effect

	Input []byte // the caller's own bytes
	// Rendered says that Input was made for this target by its [Prompter], so that it
	// is sent as it is: only a caller's own bytes are fitted to what a target takes.
	Rendered bool
	Metadata []byte // a JSON object, or nil

	// ProviderKey is stable per job and target, and changes only after the
	// provider executed and failed.
	ProviderKey string

	// SendBy is when the last byte must be out, by the sender's clocks (it
	// carries a monotonic reading). Zero: no bound.
	SendBy time.Time
	// SendWithin bounds how late the kernel may deliver what was written.
	SendWithin time.Duration

	// Sent is called once when the whole request has been handed to the kernel.
	// It may be nil and must not block.
	Sent func()

	// Dropped is told, before anything is sent, which of the caller's parameters are left
	// out, as [Evidence.DroppedParams] says it with the answer: who is shown the answer as
	// it comes knows then. It is called at most once, by the goroutine of Call, and may be nil.
	Dropped func(names string)

	// Chunk is given an answer that arrives in pieces as far as it can be shown: in
	// order, without gaps, from its first byte on, and without what says that it is
	// whole. What Call returns has it all once more. An error says that nobody wants the
	// answer any more: hang up. It may be nil, must not block, and copies what it keeps.
	Chunk func(piece []byte) error
}

// Answer is what a provider said, completely.
type Answer struct {
	// Outcome is succeeded, executed_failed, result_lost or accepted. Empty
	// means succeeded.
	Outcome Outcome

	Body        []byte // byte for byte
	ContentType string
	ProviderID  string // with OutcomeAccepted: the provider's own id for the work

	Failure *Failure // with OutcomeExecutedFailed and OutcomeResultLost
	Next    Next     // with OutcomeExecutedFailed; empty means elsewhere
	// RetryAfter is how long the provider asks us to wait. Zero: unsaid.
	RetryAfter time.Duration

	Evidence Evidence
	Phase    Phase // empty means answered

	CostMicros int64
	Currency   string // empty: no price was told
	Usage      json.RawMessage
}

// CallError is a provider's error with what was seen. It wraps [ErrNotSent] or
// [ErrRefused] when that is proven, and neither when nothing is.
type CallError struct {
	Proof      error // ErrNotSent, ErrRefused or nil
	Failure    Failure
	Next       Next
	RetryAfter time.Duration
	Phase      Phase
	Evidence   Evidence

	CostMicros int64
	Currency   string // empty: no price was told
	Usage      json.RawMessage
}

// Error returns what was seen, free of secrets and URLs.
func (e *CallError) Error() string { return e.Failure.Code + ": " + e.Failure.Message }

// Unwrap returns the proof.
func (e *CallError) Unwrap() error { return e.Proof }

// Target is one concrete place a job can be tried, as the engine knows it.
type Target struct {
	Name     string
	Provider Provider
	// Digest addresses the target's configuration by content, secrets left out.
	Digest string
	// MaxExecution is the longest it can still be working after its send_by.
	// Zero: not declared, so that absence never rules an attempt failed.
	MaxExecution time.Duration
	// Pulled targets are taken by workers over HTTP; the engine never calls them.
	Pulled bool
	// Reconcile says how an attempt in doubt can be asked about. Zero: it cannot.
	Reconcile Reconcile
}

// Reconcile says how the machine may find out what became of an attempt.
type Reconcile struct {
	// Lookup says that the provider, a [Prober], can be asked by its own id.
	Lookup bool
	// Search says that it can be asked by something of ours that the request
	// carried, without its id.
	Search bool
	// ByAttempt says that a search names this very attempt. Without it what is
	// found may be an earlier attempt's: a success is adopted, a failure is not.
	ByAttempt bool
	// Authoritative says that not knowing an attempt proves that nothing happened,
	// once it cannot be under way any more.
	Authoritative bool
	// Callback says that the provider reports by itself.
	Callback bool

	// Every is the pause after the first question; later ones are further apart.
	// Zero: 2 s.
	Every time.Duration

	// ReplaySafe says that the same bytes under the same provider key have one
	// effect, for ReplayFor after they were first sent. Zero: never.
	ReplaySafe bool
	ReplayFor  time.Duration
}

// Replays reports whether an attempt can be replayed at all.
func (r Reconcile) Replays() bool { return r.ReplaySafe && r.ReplayFor > 0 }

// Hears reports whether anything may be heard of an attempt whose call has ended: its
// provider can be asked, or reports, or is sent it once more.
func (r Reconcile) Hears(a *Attempt) bool {
	return r.Search || r.Callback || r.Replays() || r.Lookup && a.ProviderID != ""
}

// Optional abilities of a provider, found by type assertion. A provider without
// one is asked nothing of the kind.
type (
	// Prober looks an attempt up at its provider.
	Prober interface {
		// Probe asks about one attempt and changes nothing there. Its own
		// failure resolves nothing; its text is kept for people, so that it must be
		// free of secrets and URLs.
		Probe(ctx context.Context, req ProbeRequest) (ProbeAnswer, error)
	}
	// Canceller asks a provider to give an attempt up. An acknowledgement is
	// not an end: the attempt stays in doubt.
	Canceller interface {
		Cancel(ctx context.Context, req ProbeRequest) error
	}
)

// ProbeRequest names an attempt as its provider may know it.
type ProbeRequest struct {
	JobID, AttemptID, ProviderID, ProviderKey string
}

// ProbeAnswer is what a provider says about an attempt.
type ProbeAnswer struct {
	Found bool
	// Answer with an Outcome when Found and terminal, OutcomeCancelled for work that
	// was given up included; OutcomeAccepted while it works.
	Answer Answer
}
