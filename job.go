package onejob

import "time"

// Job is the durable record of one intent. Its first half never changes after
// creation; a database trigger sees to it.
type Job struct {
	Part  uint8
	ID    string
	Owner string

	KeyHash            []byte // SHA-256 of the idempotency key
	KeyPrefix          string // at most eight characters, for people
	Fingerprint        []byte
	FingerprintVersion int

	Kind       string
	Input      []byte // the caller's own bytes; nil once purged
	Target     string // the target asked for; empty: the kind's first
	Policy     Policy
	Metadata   []byte // a JSON object, or nil
	Priority   int    // higher first among its owner's; zero is normal
	Supersedes string // id of the job this one replaces
	Trace      string // the creator's traceparent
	// Webhooks are the endpoints that are told about the job.
	Webhooks []Subscription

	CreatedAt time.Time
	Deadline  time.Time // no attempt starts after it; zero: none

	State    JobState
	Blocked  *Blocked // with JobBlocked
	RunAfter time.Time
	// NextTarget is where the next attempt of a queued job goes.
	NextTarget string

	// Version counts what happened to the result slot: completion, final
	// cancellation or failure, supersession. It is what finishing compares.
	Version int64
	// Revision counts every visible change. It is the ETag.
	Revision int64

	AttemptsMade int
	CompletedBy  string  // id of the attempt that won the slot
	Result       *Result // the winner's; nil until then, and once purged
	Error        *Failure

	CancelRequestedAt time.Time
	SupersededBy      string
	FinishedAt        time.Time
	PurgedAt          time.Time
	// UnblockedAt is when a person last let a job that needed an operator go on:
	// our own faults before it no longer count.
	UnblockedAt time.Time
	// HeldAt is when the store was found to have been restored from a backup that
	// has this job: it goes on only once a person unblocks it after that. Zero: never.
	HeldAt time.Time

	// Attempts are the job's tries, oldest first, without their results.
	Attempts []Attempt
}

// Result is what a provider answered, byte for byte.
type Result struct {
	Body        []byte
	ContentType string
	// Lost says that the effect happened and its result cannot be had; Body is nil.
	Lost bool
}

// Failure says why a job or an attempt failed. Message is safe to show.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Codes of a [Failure] of an attempt that the store itself gives.
const (
	FailureLeaseOver = "lease_over" // its worker's lease ended without word
	// What let it take over ended before it was marked.
	FailureCertificateRevoked = "certificate_revoked"
	FailureRestored           = "restored" // it was under way in a copy that was restored
)

// Codes of a [Failure] of a job.
const (
	FailureDeadlineExceeded  = "deadline_exceeded"
	FailureAttemptsExhausted = "attempts_exhausted"
	FailureRefused           = "refused"
	FailureExecutedFailed    = "executed_failed"
	FailureNotCertified      = "failover_not_certified" // and its contract does not let it wait
)

// Blocked says what a blocked job waits for.
type Blocked struct {
	Reason     BlockReason `json:"reason"`
	Since      time.Time   `json:"since"`
	Detail     string      `json:"detail,omitempty"`
	AttemptID  string      `json:"attempt_id,omitempty"`
	Candidates []Candidate `json:"candidates,omitempty"`
}

// Candidate is a target that might have taken over, and why it may not.
type Candidate struct {
	Target string `json:"target"`
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"`
	// CertificateID is the one that the reason is about. Empty: there is none.
	CertificateID string    `json:"certificate,omitempty"`
	ExpiredAt     time.Time `json:"expired_at,omitzero"` // with the reason expired
}

// Cost is a sum of money in one currency. AtLeast says that an attempt in doubt
// may still be charged, or that one told no price.
type Cost struct {
	Currency string
	Micros   int64
	AtLeast  bool
}

// Costs sums what the job's attempts cost, losers and failures included, one
// entry a currency in order of first appearance.
func (j *Job) Costs() []Cost {
	var costs []Cost
	atLeast := false
	for i := range j.Attempts {
		a := &j.Attempts[i]
		if a.Currency != "" {
			costs = addCost(costs, a.Currency, a.CostMicros)
		}
		atLeast = atLeast || a.MayCostMore()
	}
	for i := range costs {
		costs[i].AtLeast = atLeast
	}
	return costs
}

func addCost(costs []Cost, currency string, micros int64) []Cost {
	for i := range costs {
		if costs[i].Currency == currency {
			costs[i].Micros = AddMicros(costs[i].Micros, micros)
			return costs
		}
	}
	return append(costs, Cost{Currency: currency, Micros: micros})
}

// Purged reports whether the job's payload has been emptied. Its key still answers.
func (j *Job) Purged() bool { return !j.PurgedAt.IsZero() }
