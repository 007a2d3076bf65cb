package onejob

import (
	"context"
	"errors"
	"time"
)

// CertificateStore is an optional ability of a [Store]: contracts, the evidence for
// them, and what the evidence permits. Its clock decides expiry.
type CertificateStore interface {
	// UseGate says what the gate is to go by in this process. It is called once,
	// before jobs are started.
	UseGate(terms GateTerms)

	// ContractPut and TargetPut keep versions. One that is there already stays.
	ContractPut(ctx context.Context, v ContractVersion) error
	TargetPut(ctx context.Context, v TargetVersion) error
	// ContractGet returns one version by digest, or the newest of a kind.
	// [ErrNotFound]: there is none.
	ContractGet(ctx context.Context, params ContractGetParams) (ContractVersion, error)
	// ContractList returns versions, newest first, at most limit.
	ContractList(ctx context.Context, kind string, limit int) ([]ContractVersion, error)
	// TargetGet returns one version by digest.
	TargetGet(ctx context.Context, digest string) (TargetVersion, error)

	// RunStart records that a verification begins.
	RunStart(ctx context.Context, r VerificationRun) (VerificationRun, error)
	// SampleAdd records calls of a run that is under way, and answers each. A sample
	// whose ResponseID was seen before, in any run, is refused with [ErrSampleSeen],
	// one of no such run with [ErrNotFound]; the others stay.
	SampleAdd(ctx context.Context, samples []VerificationSample) ([]error, error)
	// RunFinish ends a run and, in the same transaction, issues its certificate: those
	// of the same contract, target and environment that are active or suspended are
	// superseded. An inconclusive run leaves a verdict that stands as it is: its own
	// certificate is then superseded from the start. It is refused for a run that has
	// ended.
	RunFinish(ctx context.Context, params RunFinishParams) (Certificate, error)
	// RunList returns verifications, newest first, without their reports unless one is
	// named by its ID.
	RunList(ctx context.Context, params RunListParams) ([]VerificationRun, error)
	// SampleList returns the samples of all runs of a contract, target and
	// environment, oldest first.
	SampleList(ctx context.Context, params SampleListParams) ([]VerificationSample, error)

	// CertificateList returns certificates, newest first.
	CertificateList(ctx context.Context, params CertificateListParams) ([]Certificate, error)
	// CertificateEnd suspends or revokes certificates that are active (a revocation
	// takes suspended ones too), in the audit when a person does it. It returns those
	// that changed. After it has returned no attempt starts by them.
	CertificateEnd(ctx context.Context, params CertificateEndParams) ([]Certificate, error)
	// CertificateObserve counts outputs of production under certificates, and suspends
	// one in the same transaction whose violations reach the terms. It returns those
	// that it suspended.
	CertificateObserve(ctx context.Context, params []CertificateObserveParams) ([]Certificate, error)
	// CertificateExtend moves the end of an active certificate that production goes on
	// showing to be right. It never moves it back.
	// One that opens nothing is left as it is. [ErrNotFound]: there is none.
	CertificateExtend(ctx context.Context, id string, until time.Time) (Certificate, error)

	// PairList returns the pairs of a contract and environment.
	PairList(ctx context.Context, contractDigest, environment string) ([]PairResult, error)

	// WaiverGrant records a waiver, in the audit, with the actor, reason and end given.
	WaiverGrant(ctx context.Context, w Waiver) (Waiver, error)
	// WaiverRevoke takes a waiver back, in the audit. After it has returned no attempt
	// starts by it. A repeat keeps the time of the first.
	WaiverRevoke(ctx context.Context, id, actor string) (Waiver, error)
	WaiverList(ctx context.Context, params CertificateListParams) ([]Waiver, error)

	// GateRead returns the verdicts on targets as a decision at this moment would get
	// them, for people and for can-failover.
	GateRead(ctx context.Context, policy Policy, primary string) (Verdicts, error)
}

// ContractGetParams names a version by Digest, or the newest of Kind.
type ContractGetParams struct{ Digest, Kind string }

// RunFinishParams is what a verification came to.
type RunFinishParams struct {
	Run         VerificationRun // ID, State, Calls, SpendMicros, Report
	Certificate Certificate     // all but ID, IssuedAt, ExpiresAt, RenewAt, Status
	TTL         time.Duration   // of a certified one
	Pair        *PairResult     // nil: none was asked for
}

// RunListParams filters. Empty members do not.
type RunListParams struct {
	ID, ContractDigest, TargetDigest, Environment string
	Limit                                         int // 1 to 1000
}

// SampleListParams picks samples. ContractDigest and TargetDigest may be empty with RunID.
type SampleListParams struct {
	RunID, ContractDigest, TargetDigest, Environment string
	WithOutput                                       bool
}

// CertificateListParams filters. Empty members do not.
type CertificateListParams struct {
	ID, Kind, ContractDigest, TargetDigest, TargetName, Environment string
	Live                                                            bool // active, certified (or granted) and not over
	Limit                                                           int  // 1 to 1000
}

// CertificateEndParams says which certificates end, and why.
type CertificateEndParams struct {
	ID string // empty: by what follows
	// ContractDigest, TargetDigest and Environment, all of them, without an ID.
	ContractDigest, TargetDigest, Environment string
	Status                                    CertificateStatus // suspended or revoked
	Reason                                    string            // suspended_drift, suspended_violations or revoked
	Detail                                    string
	Actor                                     string // empty: the machine
}

// CertificateObserveParams is what production showed under one contract and target.
type CertificateObserveParams struct {
	ContractDigest, TargetDigest, Environment string
	Outputs                                   int   // so many more were judged
	Violations                                []int // which of them broke the contract: 1 for the first, at most Outputs
	SuspendAfter                              int   // so many violations …
	Window                                    int   // … in so many outputs
	Detail                                    string
}

// ErrSampleSeen : the provider's id of an answer was seen before.
var ErrSampleSeen = errors.New("an answer with this id was seen before: it came from a cache")
