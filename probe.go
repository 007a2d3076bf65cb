package onejob

import (
	"context"
	"time"
)

// Probe is one question about an attempt, and what was answered. Probes are kept
// beside their attempt: a person who has to decide reads them.
type Probe struct {
	Part      uint8
	JobID     string
	AttemptID string
	Number    int // 1 for the first of its attempt
	Method    ProbeMethod
	At        time.Time
	// Outcome is what the answer proves. Empty: nothing, the question stays open.
	Outcome  Outcome
	Evidence Evidence
	// Detail says in words what was asked and answered. Safe to show.
	Detail string
	// NextAt is when the next question is due. Zero: none is.
	NextAt time.Time
}

// ProbeMethod is a way of finding out.
type ProbeMethod string

// The ways of finding out, in the order in which they are tried.
const (
	ProbeCallback ProbeMethod = "callback" // the provider told by itself
	ProbeLookup   ProbeMethod = "lookup"   // asked by the provider's own id
	ProbeSearch   ProbeMethod = "search"   // asked by something of ours that the request carried
	ProbeReplay   ProbeMethod = "replay"   // the same bytes under the same provider key
)

// ProbeMethods lists the ways of finding out, in the order in which they are tried.
func ProbeMethods() []ProbeMethod {
	return []ProbeMethod{ProbeCallback, ProbeLookup, ProbeSearch, ProbeReplay}
}

// ProbeStore keeps the questions about attempts in doubt. Every store implements it.
//
// An attempt is open to questions while it is unknown, or running with its
// provider's own id committed (accepted). It becomes due at once when it enters
// either, and again at the NextAt of its last probe.
type ProbeStore interface {
	// ProbeClaim takes attempts that are due to be asked about, longest due first,
	// each with its job, input included. Nobody else is given them before Lease has
	// passed, so that nodes do not ask twice; nothing rests on that.
	ProbeClaim(ctx context.Context, params ProbeClaimParams) ([]Claimed, error)
	// ProbeRecord writes questions and answers down and settles attempts by them, by
	// compare-and-swap on the attempt still being open to questions. An answer that
	// resolves nothing only sets when to ask again. A row whose attempt has ended is
	// written down all the same, and answers with the attempt's state.
	ProbeRecord(ctx context.Context, params []ProbeRecordParams) ([]AttemptFinishResult, error)
	// ProbeList reads the probes of one attempt, oldest first.
	ProbeList(ctx context.Context, params ProbeListParams) ([]Probe, error)
	// ProbeNow makes an attempt due at once. It returns [ErrNotFound], or
	// [CodeAttemptTerminal] for one that has ended.
	ProbeNow(ctx context.Context, params ProbeNowParams) error
	// AttemptAsk finds attempts in doubt for longer than their policy's AskAfter and
	// not asked about yet, at most limit of them: a person is asked now, once. An
	// accepted attempt becomes unknown, its provider's id kept. It returns those that
	// changed, with an event [EventAsked] each.
	AttemptAsk(ctx context.Context, limit int) ([]AttemptRef, error)
}

// ProbeClaimParams says what a claimer can ask about.
type ProbeClaimParams struct {
	Targets []string // whose attempts it can ask about
	Lease   time.Duration
	Max     int // at most so many; zero or less claims nothing
}

// ProbeRecordParams is one question with its answer.
type ProbeRecordParams struct {
	Ref    AttemptRef
	Method ProbeMethod

	// Outcome is what the answer proves. Empty, unknown and accepted resolve
	// nothing: the attempt stays in doubt, and accepted commits ProviderID.
	Outcome Outcome
	// Absence says that a failure rests on the provider not knowing the attempt, not
	// on its own word: it is a ruling, and settles nothing before QuarantineUntil or
	// where that is not set. The store then records it as resolving nothing.
	Absence bool

	Detail   string
	Evidence Evidence
	Failure  *Failure
	Next     Next

	Result     *Result // with OutcomeSucceeded
	ProviderID string
	CostMicros int64
	Currency   string
	Usage      []byte

	// After is when to ask again, from now, if nothing is resolved. Zero: never by
	// itself.
	After time.Duration

	// SendWithin says that the attempt's bytes are about to be sent once more, and
	// may leave for so long from now: its send_by, and the quarantine that begins
	// there, are moved as far. It is for the announcement of a replay, before
	// anything is sent. One that [CheckSendAgain] refuses is not written down, and
	// its row says why: nothing may be sent then. Zero: nothing is sent.
	SendWithin time.Duration
}

// ProbeListParams names an attempt and who asks.
type ProbeListParams struct {
	AttemptID string
	Owner     string // empty: any
	Limit     int    // 1 to 200; the newest
}

// ProbeNowParams names an attempt and who asks.
type ProbeNowParams struct {
	AttemptID string
	Owner     string // empty: any
	Actor     string
}
