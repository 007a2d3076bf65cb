package onejob

import (
	"encoding/json"
	"time"
)

// ContractVersion is a contract as a store keeps it, addressed by content. It never
// changes.
type ContractVersion struct {
	Digest    string // v1:…
	Kind      string
	Body      json.RawMessage // what the digest is over, and the terms that are not in it
	CreatedAt time.Time       // set by the store
}

// TargetVersion is a target's configuration as a store keeps it, addressed by
// content, secrets left out. It never changes.
type TargetVersion struct {
	Digest    string
	Name      string
	Body      json.RawMessage
	CreatedAt time.Time // set by the store
}

// VerificationRun is one verification of a target for a contract. Its calls are no
// attempts, and can never win a job.
type VerificationRun struct {
	ID             string // run_…
	ContractDigest string
	TargetDigest   string
	TargetName     string
	Kind           string
	Environment    string
	Trigger        string // who or what asked: a person's name, renewal, shadow
	Tool           string // version of the program that verifies
	StartedAt      time.Time
	FinishedAt     time.Time // zero: under way, or its process died
	State          RunState
	Calls          int
	SpendMicros    int64
	Report         json.RawMessage // what was shown, stage by stage. Nil until finished
}

// RunState is how a verification ended.
type RunState string

// The states of a verification.
const (
	RunUnderWay     RunState = "running"
	RunCertified    RunState = "certified"
	RunRefused      RunState = "refused"
	RunInconclusive RunState = "inconclusive"
)

// VerificationSample is one call of a verification.
type VerificationSample struct {
	RunID      string
	CaseID     string // of a probe: its name
	Repeat     int    // 1 for the first
	Stage      string // S3, S4 …
	Outcome    SampleOutcome
	FaultClass string // of a failure: the class of the first violation
	Detail     string // in words, without values of the output
	LatencyMS  int64
	TokensIn   int
	TokensOut  int
	CostMicros int64
	// ResponseID is the provider's id of the answer. A store refuses one that it has
	// seen: it came from a cache. Empty: the provider told none.
	ResponseID string
	Observed   json.RawMessage // model, fingerprint, upstream, build
	Output     []byte          // the raw content, for later replay of assertions. Nil: not kept
	At         time.Time       // set by the store
}

// SampleOutcome is what one call showed.
type SampleOutcome string

// Outcomes of a sample.
const (
	SamplePassed SampleOutcome = "passed"
	SampleFailed SampleOutcome = "failed"
	SampleInfra  SampleOutcome = "infra" // the call came to nothing, which shows nothing
)

// Certificate is the dated verdict that one target meets one contract, or does not.
// Only one that is certified, active and not expired opens anything.
type Certificate struct {
	ID             string // cert_…
	Kind           string
	ContractDigest string
	TargetDigest   string
	TargetName     string
	Environment    string
	Verdict        RunState // certified, refused or inconclusive
	Status         CertificateStatus
	Sandbox        bool            // shown in a sandbox only
	Reason         string          // of a refusal, or of the last change of status: a slug, as in schema_nonce
	Detail         string          // in words
	Counts         json.RawMessage // cases and failures by gate
	Bounds         json.RawMessage // rates shown by gate
	Observed       Observed        // the baseline of drift
	Dropped        []string        // parameters that the target does not carry
	RunID          string
	IssuedAt       time.Time
	ExpiresAt      time.Time // zero unless certified
	// RenewAt is when it is to be renewed: half of its life. Zero: never.
	RenewAt time.Time
}

// Observed is what a provider says made an answer. Empty members were not told.
type Observed struct {
	Model       string `json:"model,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"`
	Upstream    string `json:"upstream,omitempty"`
	Build       string `json:"build,omitempty"`
}

// CertificateStatus says whether a certificate still stands.
type CertificateStatus string

// The statuses of a certificate.
const (
	CertificateActive     CertificateStatus = "active"
	CertificateSuspended  CertificateStatus = "suspended"
	CertificateRevoked    CertificateStatus = "revoked"
	CertificateSuperseded CertificateStatus = "superseded" // a later verdict took its place
)

// PairResult is how far a fallback agreed with a primary on the same cases.
type PairResult struct {
	ContractDigest string
	PrimaryDigest  string
	FallbackDigest string
	Environment    string
	Agreed, Cases  int
	SelfAgreed     int  // of the primary with itself
	Equivalent     bool // the verdict
	RunID          string
	IssuedAt       time.Time
	ExpiresAt      time.Time
}

// Waiver is a person's word that stands in for a certificate, and for its pair, until
// it ends. It stands in for nothing else: no guard, no effect rule, no budget.
type Waiver struct {
	ID             string // waiv_…
	Kind           string
	ContractDigest string
	TargetDigest   string
	TargetName     string
	Environment    string
	Actor          string
	Reason         string
	GrantedAt      time.Time
	ExpiresAt      time.Time
	RevokedAt      time.Time // zero: it was not
}
