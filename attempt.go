package onejob

import (
	"encoding/json"
	"time"
)

// Attempt is one try of one job at one target.
type Attempt struct {
	Part   uint8
	ID     string
	JobID  string
	Number int // 1 for the first
	Lane   int // 0 for ordinary attempts

	Target       string
	TargetDigest string // of the target's configuration when the attempt was marked

	State      AttemptState
	ClaimToken string // fencing token of the one claim; set once, never changed
	Worker     string // who claimed it; for people

	LeaseExpiresAt time.Time
	// LeaseOverAt is when the lease was found to have ended without word. Zero: it
	// was not, or the worker spoke after all. No ruling takes it away.
	LeaseOverAt time.Time
	// SendBy is when the last byte must be out. Zero until marked.
	SendBy time.Time
	// QuarantineUntil is before when no absence and no person rules. Zero when
	// the target declares no max_execution: absence then never rules.
	QuarantineUntil time.Time

	JobVersion  int64 // the job's, when the attempt started
	ProviderKey string
	ProviderID  string // the provider's own id for the work

	// RequestKeyHash and RequestFingerprint belong to an attempt that was asked
	// for: the key of the button and what it was bound to.
	RequestKeyHash     []byte
	RequestFingerprint []byte

	CertificateID string
	WaiverID      string

	Phase    Phase
	Outcome  Outcome // empty until something is known
	Next     Next    // what a failure means for the job
	OwnFault bool    // the failure was ours, not the target's
	Evidence Evidence
	Error    *Failure

	// RetryAt is the earliest time the provider wants to hear from us. Zero: unsaid.
	RetryAt time.Time

	Ruling    *Ruling
	Result    *Result    // its answer, whether or not it won
	Discarded *Discarded // with AttemptDiscarded

	CostMicros int64
	Currency   string          // empty: no price was told
	Usage      json.RawMessage // as the provider counted it

	StartedAt  time.Time // claimed
	MarkedAt   time.Time
	AcceptedAt time.Time // the provider took the work under an id of its own. Zero: not known to have
	AskedAt    time.Time // a person was asked about it. Zero: nobody was
	FinishedAt time.Time // terminal; of a late success, when it came

	// NextProbeAt is when the next question about it is due, at the latest. Zero:
	// none is, by itself.
	NextProbeAt time.Time
}

// Phase is how far a request got on the wire.
type Phase string

// The phases of an attempt.
const (
	PhaseNotSent    Phase = "not_sent"
	PhasePartlySent Phase = "partly_sent"
	PhaseSent       Phase = "sent"
	PhaseAnswered   Phase = "answered"
)

// Phases lists every phase in the order of a request's life.
func Phases() []Phase { return []Phase{PhaseNotSent, PhasePartlySent, PhaseSent, PhaseAnswered} }

// Outcome is what an answer, or its absence, proves.
type Outcome string

const (
	// OutcomeNotExecuted : nothing happened; another attempt is safe.
	OutcomeNotExecuted Outcome = "not_executed"
	// OutcomeRefused : the provider said that it did nothing.
	OutcomeRefused Outcome = "refused"
	// OutcomeExecutedFailed : the provider did the work and it failed; it may have cost.
	OutcomeExecutedFailed Outcome = "executed_failed"
	// OutcomeContractViolation : executed, and the output breaks the contract.
	OutcomeContractViolation Outcome = "contract_violation"
	// OutcomeSucceeded : a complete answer.
	OutcomeSucceeded Outcome = "succeeded"
	// OutcomeAccepted : the provider works on it under an id of its own.
	OutcomeAccepted Outcome = "accepted"
	// OutcomeUnknown : nothing is proven.
	OutcomeUnknown Outcome = "unknown"
	// OutcomeResultLost : executed, its result unusable.
	OutcomeResultLost Outcome = "result_lost"
	// OutcomeCancelled : proven to have been given up.
	OutcomeCancelled Outcome = "cancelled"
)

// Outcomes lists every outcome.
func Outcomes() []Outcome {
	return []Outcome{
		OutcomeNotExecuted, OutcomeRefused, OutcomeExecutedFailed, OutcomeContractViolation, OutcomeSucceeded,
		OutcomeAccepted, OutcomeUnknown, OutcomeResultLost, OutcomeCancelled,
	}
}

// Event returns the event that an outcome is to an attempt in doubt. It reports
// false for [OutcomeAccepted], which moves nothing, and for no outcome at all.
func (o Outcome) Event() (Event, bool) {
	switch o {
	case OutcomeNotExecuted:
		return EventNotSent, true
	case OutcomeRefused:
		return EventRefused, true
	case OutcomeExecutedFailed, OutcomeContractViolation:
		return EventFailed, true
	case OutcomeSucceeded:
		return EventAnswered, true
	case OutcomeCancelled:
		return EventCancelled, true
	case OutcomeResultLost:
		return EventLost, true
	case OutcomeAccepted, "":
		return "", false
	case OutcomeUnknown:
		return EventSilence, true
	}
	return EventSilence, true // doubt is the default branch
}

// Proven reports whether the outcome proves that nothing was executed, or that
// it was given up before it had an effect.
func (o Outcome) Proven() bool {
	return o == OutcomeNotExecuted || o == OutcomeRefused || o == OutcomeCancelled
}

// Next says what a failed attempt means for its job.
type Next string

const (
	// NextAgain : the same target may be tried again, after backoff. The zero
	// value of a failed attempt's Next counts as [NextElsewhere].
	NextAgain Next = "again"
	// NextElsewhere : this target is done with; another may take over.
	NextElsewhere Next = "elsewhere"
	// NextNowhere : the input is at fault; no target will do.
	NextNowhere Next = "nowhere"
)

// Evidence is what was seen of one try, for whoever has to decide about it.
type Evidence struct {
	Status            int    `json:"status,omitempty"` // HTTP status; zero: none came
	Error             string `json:"error,omitempty"`  // free of secrets and URLs
	BytesWritten      int64  `json:"bytes_written,omitempty"`
	BytesRead         int64  `json:"bytes_read,omitempty"`
	ProviderRequestID string `json:"provider_request_id,omitempty"`
	Model             string `json:"model,omitempty"` // as the provider named it in the answer
	ReusedConnection  bool   `json:"reused_connection,omitempty"`

	// Milliseconds from the start of the call; zero: did not happen.
	ConnectedMS int64 `json:"connected_ms,omitempty"`
	SentMS      int64 `json:"sent_ms,omitempty"`
	FirstByteMS int64 `json:"first_byte_ms,omitempty"`
	EndedMS     int64 `json:"ended_ms,omitempty"`

	// Excerpt is the start of a body that was no success, at most 2 KiB of text.
	Excerpt string `json:"excerpt,omitempty"`
	// DroppedParams are the parameters of the contract, or of the caller's own request,
	// that were left out because the target does not carry them: their names, sorted, with
	// commas between. Empty: none.
	DroppedParams string `json:"dropped_params,omitempty"`
	// Rule is the configured outcome rule that decided. Empty: the table did.
	Rule string `json:"rule,omitempty"`
}

// Ruling is a decision about an attempt that is not the provider's own answer.
type Ruling struct {
	By       string    `json:"by"`
	Outcome  Outcome   `json:"outcome"` // succeeded, not_executed, executed_failed, cancelled or result_lost
	Evidence string    `json:"evidence"`
	At       time.Time `json:"at"`
	// RiskAcknowledged says that nothing proved the ruling and a person took the risk.
	RiskAcknowledged bool `json:"risk_acknowledged,omitempty"`
}

// Discarded says whom a success lost to. Winner is empty when the job had closed
// without one. After counts from the winner's finish.
type Discarded struct {
	Winner string        `json:"winner,omitempty"`
	After  time.Duration `json:"after"`
}
