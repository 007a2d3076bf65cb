package onejob

import (
	"slices"
	"time"
)

// OpenToProbes reports whether questions about the attempt are asked: it is
// unknown, or its provider has accepted the work and is at it.
func (a *Attempt) OpenToProbes() bool {
	return a.State == AttemptUnknown || a.State == AttemptRunning && a.Outcome == OutcomeAccepted
}

// ProbeVerdict is what an answer that resolves something does to an attempt.
type ProbeVerdict struct {
	Event  Event
	Next   Next
	Ruling *Ruling // of an absence; nil: the provider's own word
}

// resolving lists the outcomes of a probe that settle an attempt.
var resolving = []Outcome{
	OutcomeSucceeded, OutcomeExecutedFailed, OutcomeContractViolation, OutcomeRefused, OutcomeNotExecuted, OutcomeCancelled,
}

// JudgeProbe says what an answer does to an attempt at now, the store's clock. It
// reports false for one that resolves nothing: doubt, an absence that quarantine
// does not let count, and an attempt that is not open to it. The store swaps on
// the same conditions.
func JudgeProbe(a *Attempt, p *ProbeRecordParams, now time.Time) (v ProbeVerdict, resolves bool) {
	if !slices.Contains(resolving, p.Outcome) {
		return v, false
	}
	v.Event, _ = p.Outcome.Event()
	v.Next = p.Next
	late := a.Ruling != nil && slices.Contains(ruledSources(v.Event), a.State)
	if !a.OpenToProbes() && !late {
		return v, false
	}
	if !p.RestsOnAbsence() {
		return v, true
	}
	if a.QuarantineUntil.IsZero() || now.Before(a.QuarantineUntil) {
		return v, false
	}
	if v.Next == "" {
		v.Next = NextOfRuling(p.Outcome)
	}
	v.Ruling = &Ruling{By: "probe:" + string(p.Method), Outcome: p.Outcome, Evidence: p.Detail, At: now}
	return v, true
}

func ruledSources(e Event) []AttemptState {
	_, ruled := SourcesOf(e)
	return ruled
}

// CheckSendAgain says whether the attempt's bytes may be sent once more. Only what
// is unknown may be asked about that way, and nothing is sent for a job that has
// ended or is to be cancelled.
func CheckSendAgain(job *Job, a *Attempt) error {
	switch {
	case a.State.Terminal():
		return &Error{Code: CodeAttemptTerminal, JobID: a.JobID, AttemptID: a.ID, Message: "the attempt is already " + string(a.State)}
	case a.State != AttemptUnknown:
		return &Error{Code: CodeAttemptNotUnknown, JobID: a.JobID, AttemptID: a.ID, Message: "the attempt is under way"}
	case job.State.Terminal() || !job.CancelRequestedAt.IsZero():
		return &Error{Code: CodeJobTerminal, JobID: a.JobID, AttemptID: a.ID, Message: "the job has ended or is to be cancelled, so nothing is sent for it"}
	}
	return nil
}

// SentAgain returns when the last byte of a replay that is announced at now is out,
// and when the quarantine of its attempt ends then. Neither ever comes earlier, and
// an attempt without a quarantine gets none.
func (a *Attempt) SentAgain(now time.Time, sendWithin time.Duration) (sendBy, quarantineUntil time.Time) {
	sendBy, quarantineUntil = a.SendBy, a.QuarantineUntil
	later := now.Add(sendWithin)
	if a.SendBy.IsZero() || !later.After(a.SendBy) {
		return sendBy, quarantineUntil
	}
	if !quarantineUntil.IsZero() {
		quarantineUntil = quarantineUntil.Add(later.Sub(a.SendBy))
	}
	return later, quarantineUntil
}

// RestsOnAbsence reports whether the answer is a failure that rests on the
// provider not knowing the attempt. A success never does.
func (p *ProbeRecordParams) RestsOnAbsence() bool {
	return p.Absence && p.Outcome != OutcomeSucceeded
}

// AnnouncesReplay reports whether the same bytes are about to be sent again.
func (p *ProbeRecordParams) AnnouncesReplay() bool {
	return p.Method == ProbeReplay && p.Outcome == ""
}

// ProbeOf returns the row that keeps a question and its answer.
func ProbeOf(p *ProbeRecordParams, number int, now, nextAt time.Time) Probe {
	return Probe{
		Part: p.Ref.Part, JobID: p.Ref.JobID, AttemptID: p.Ref.ID, Number: number,
		Method: p.Method, At: now, Outcome: p.Outcome, Evidence: p.Evidence, Detail: p.Detail, NextAt: nextAt,
	}
}

// CheckProbeNow says whether an attempt can be made due for questions.
func CheckProbeNow(a *Attempt) error {
	switch {
	case a.OpenToProbes():
		return nil
	case a.State.Terminal():
		return &Error{Code: CodeAttemptTerminal, JobID: a.JobID, AttemptID: a.ID, Message: "the attempt is already " + string(a.State)}
	}
	return &Error{Code: CodeAttemptNotUnknown, JobID: a.JobID, AttemptID: a.ID, Message: "the attempt is under way: its own connection will tell"}
}
