package onejob

import (
	"errors"
	"fmt"
	"time"
)

// Code is a stable, machine-readable reason. Codes are part of the API: they
// appear in HTTP answers and metrics and are never renamed.
type Code string

// Every code that a caller can meet.
const (
	CodeKeyMissing           Code = "idempotency-key-missing"
	CodeKeyInvalid           Code = "idempotency-key-invalid"
	CodeKeyConflict          Code = "idempotency-key-conflict"
	CodeKeyExpired           Code = "idempotency-key-expired"
	CodeInvalidRequest       Code = "invalid-request"
	CodePayloadNotCanonical  Code = "payload-not-canonical"
	CodeUnauthenticated      Code = "unauthenticated"
	CodeForbidden            Code = "forbidden"
	CodeNotFound             Code = "not-found"
	CodeAttemptUnresolved    Code = "attempt-unresolved"
	CodeOutcomeUnknown       Code = "outcome-unknown"
	CodeRequestInProgress    Code = "request-in-progress"
	CodeJobNotFinished       Code = "job-not-finished"
	CodeFailoverNotCertified Code = "failover-not-certified"
	CodeJobTerminal          Code = "job-terminal"
	CodeAttemptTerminal      Code = "attempt-terminal"
	CodeAttemptNotUnknown    Code = "attempt-not-unknown"
	CodeQuarantined          Code = "quarantined"
	CodeClaimLost            Code = "claim-lost"
	CodeResultExpired        Code = "result-expired"
	CodeVersionMismatch      Code = "version-mismatch"
	CodePayloadTooLarge      Code = "payload-too-large"
	CodeUnsupportedMedia     Code = "unsupported-media-type"
	CodeInvalidJob           Code = "invalid-job"
	CodeInvalidResolution    Code = "invalid-resolution"
	CodeQuotaExceeded        Code = "quota-exceeded"
	CodeOverloaded           Code = "overloaded"
	CodeProviderFailed       Code = "provider-failed"
	CodeStoreUnavailable     Code = "store-unavailable"
	CodeDraining             Code = "draining"
	CodeRestoreUnconfirmed   Code = "restore-unconfirmed"
	CodeInternal             Code = "internal"
	CodeInvalidTransition    Code = "invalid-transition"
	CodeInvalidArgument      Code = "invalid-argument"
)

// Codes lists every code, so that a door can be held to know them all.
func Codes() []Code {
	return []Code{
		CodeKeyMissing, CodeKeyInvalid, CodeKeyConflict, CodeKeyExpired, CodeInvalidRequest,
		CodePayloadNotCanonical, CodeUnauthenticated, CodeForbidden, CodeNotFound,
		CodeAttemptUnresolved, CodeOutcomeUnknown, CodeRequestInProgress, CodeJobNotFinished,
		CodeFailoverNotCertified, CodeJobTerminal, CodeAttemptTerminal, CodeAttemptNotUnknown,
		CodeQuarantined, CodeClaimLost, CodeResultExpired, CodeVersionMismatch,
		CodePayloadTooLarge, CodeUnsupportedMedia, CodeInvalidJob, CodeInvalidResolution,
		CodeQuotaExceeded, CodeOverloaded, CodeProviderFailed, CodeStoreUnavailable,
		CodeDraining, CodeRestoreUnconfirmed, CodeInternal, CodeInvalidTransition, CodeInvalidArgument,
	}
}

// Sentinels for [errors.Is]. They match any [*Error] with the same code.
var (
	ErrKeyConflict       = &Error{Code: CodeKeyConflict}
	ErrKeyExpired        = &Error{Code: CodeKeyExpired}
	ErrNotFound          = &Error{Code: CodeNotFound}
	ErrAttemptUnresolved = &Error{Code: CodeAttemptUnresolved}
	ErrClaimLost         = &Error{Code: CodeClaimLost}
	ErrJobTerminal       = &Error{Code: CodeJobTerminal}
	ErrStoreUnavailable  = &Error{Code: CodeStoreUnavailable}
)

// Error is the only error type this module returns for conditions a caller can
// act on. Message is safe to show to the caller; Err is for operators only.
type Error struct {
	Code      Code
	Message   string
	JobID     string // empty when no job is concerned
	AttemptID string // empty when no attempt is concerned

	// RetryAfter says when asking again can help. Zero: no such time is known.
	RetryAfter time.Duration

	// Reason and Candidates say why a fallback was refused; see
	// [CodeFailoverNotCertified]. With [CodeStoreUnavailable], Reason may be
	// [ReasonRowLocked].
	Reason     string
	Candidates []Candidate
	// Kind of the job, with Candidates. It is for counting, and is not sent.
	Kind string
	// Contract and TargetDigest are what a refused fallback was judged by. Empty: no
	// contract says anything about it.
	Contract, TargetDigest string

	Err error // cause; never sent over the wire
}

// ReasonRowLocked says, with [CodeStoreUnavailable], that somebody else's open
// transaction holds this one row: nothing was changed, and the same call for that
// row alone may wait for the transaction to end.
const ReasonRowLocked = "row_locked"

// Error returns code, message and cause, for logs.
func (e *Error) Error() string {
	switch {
	case e.Message != "" && e.Err != nil:
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.Err)
	case e.Message != "":
		return string(e.Code) + ": " + e.Message
	case e.Err != nil:
		return fmt.Sprintf("%s: %v", e.Code, e.Err)
	}
	return string(e.Code)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is an [*Error] with the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// CodeOf returns the code of the first [*Error] in err's chain, and
// [CodeInternal] when there is none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// Unavailable wraps a store's failure to do anything. What the statement did is
// not known: the caller repeats with the same key or token to find out.
func Unavailable(err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	return &Error{
		Code:       CodeStoreUnavailable,
		Message:    "the store did not confirm; repeat with the same idempotency key",
		RetryAfter: time.Second,
		Err:        err,
	}
}
