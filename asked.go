package onejob

import (
	"bytes"
	"fmt"
	"slices"
	"time"
)

// This file is what a store asks about a request by somebody: the button, a
// racing lane, an unblock. Like judge.go it is pure and replaces no constraint.

// AttemptOf returns the job's own attempt of that id, or nil.
func AttemptOf(job *Job, id string) *Attempt {
	i := slices.IndexFunc(job.Attempts, func(a Attempt) bool { return a.ID == id })
	if i < 0 {
		return nil
	}
	return &job.Attempts[i]
}

// AskedWith returns the attempt of the job that a button's key stands for, or nil.
// An empty key stands for none.
func AskedWith(job *Job, keyHash []byte) *Attempt {
	if len(keyHash) == 0 {
		return nil
	}
	i := slices.IndexFunc(job.Attempts, func(a Attempt) bool { return bytes.Equal(a.RequestKeyHash, keyHash) })
	if i < 0 {
		return nil
	}
	return &job.Attempts[i]
}

// JudgeAsked says how an attempt answers a request under its key: nil for a
// repeat, [ErrKeyConflict] for a request of something else.
func JudgeAsked(a *Attempt, p *AttemptStartParams) error {
	if bytes.Equal(a.RequestFingerprint, p.RequestFingerprint) {
		return nil
	}
	return &Error{
		Code: CodeKeyConflict, JobID: a.JobID, AttemptID: a.ID,
		Message: "this idempotency key was used to ask for another attempt; use a new key",
	}
}

// CheckServed returns [CodeInvalidJob] when a decision to start names a target
// that the one who asks cannot call. No Targets at all are those of a caller
// without an engine, who leaves the sending to others.
func CheckServed(job *Job, d Decision, p *StartParams) error {
	if _, served := p.Targets[d.Target]; served || len(p.Targets) == 0 {
		return nil
	}
	return &Error{Code: CodeInvalidJob, JobID: job.ID, Message: fmt.Sprintf("this node cannot call target %q", d.Target)}
}

// CheckUnblock says whether a person may let the job go on, and whether that
// changes anything: a job that needs nobody is left as it is.
func CheckUnblock(job *Job) (needed bool, err error) {
	inDoubt := slices.ContainsFunc(job.Attempts, func(a Attempt) bool { return a.State.InDoubt() })
	if job.State.Terminal() || inDoubt {
		return false, CheckAsked(job, Decision{Verb: Wait})
	}
	return job.Blocked != nil && job.Blocked.Reason.NeedsUnblock(), nil
}

// RecordsRepeat says whether an event that says [EventReplayed] or
// [EventConflicted] is written at now, when the latest of its kind about the job
// is of last (zero: there is none). Every repeat is counted, but only one an hour
// is an event, or callers who repeat would fill the disk.
func RecordsRepeat(last, now time.Time) bool {
	return last.IsZero() || now.Sub(last) >= RepeatEventInterval
}
