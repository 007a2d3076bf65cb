package onejob

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// This file is what a store asks about one row before it writes: pure functions,
// shared by every store, so that the stores differ in SQL and in nothing else.
// None of them replaces a constraint: each write repeats its condition.

// JudgeRepeat says how an existing job answers an intent under its key: nil for
// a replay, [ErrKeyConflict] for another intent, [ErrKeyExpired] once the
// payload is gone. The conflict comes first and never tells what differs.
func JudgeRepeat(existing *Job, p *JobCreateParams) error {
	fingerprint := p.Fingerprint
	if existing.FingerprintVersion != p.FingerprintVersion && p.FingerprintFunc != nil {
		var err error
		if fingerprint, err = p.FingerprintFunc(existing.FingerprintVersion); err != nil {
			return err
		}
	}
	if !hmac.Equal(existing.Fingerprint, fingerprint) {
		return &Error{
			Code: CodeKeyConflict, JobID: existing.ID,
			Message: "this idempotency key was used with another request; use a new key for a new intent",
		}
	}
	if existing.Purged() {
		return &Error{
			Code: CodeKeyExpired, JobID: existing.ID,
			Message: "this idempotency key belongs to a job whose payload has been removed; the job is not run again",
		}
	}
	return nil
}

// ErrorOfNoJob is the one answer for a job that does not exist and for another
// owner's.
func ErrorOfNoJob(id string) error {
	return &Error{Code: CodeNotFound, Message: fmt.Sprintf("there is no job %q", id)}
}

// ErrorOfNoAttempt is the one answer for an attempt that does not exist and for
// another owner's.
func ErrorOfNoAttempt(id string) error {
	return &Error{Code: CodeNotFound, Message: fmt.Sprintf("there is no attempt %q", id)}
}

// ErrorOfLostClaim is the answer to who no longer holds an attempt.
func ErrorOfLostClaim(ref AttemptRef) error {
	return &Error{
		Code: CodeClaimLost, JobID: ref.JobID, AttemptID: ref.ID,
		Message: "the attempt is no longer held under this claim",
	}
}

// CheckRevision returns [CodeVersionMismatch] unless want is nil or the job's revision.
func CheckRevision(job *Job, want *int64) error {
	if want == nil || *want == job.Revision {
		return nil
	}
	return &Error{Code: CodeVersionMismatch, JobID: job.ID, Message: fmt.Sprintf("the job is at revision %d", job.Revision)}
}

// CheckSuperseded says whether a job may be superseded: terminal, nothing in
// doubt, and not superseded yet.
func CheckSuperseded(old *Job) error {
	for i := range old.Attempts {
		if a := &old.Attempts[i]; a.State.InDoubt() {
			return errorUnresolved(old, a)
		}
	}
	switch {
	case !old.State.Terminal():
		return &Error{Code: CodeAttemptUnresolved, JobID: old.ID, Message: "the job to supersede is not finished"}
	case old.SupersededBy != "":
		return &Error{Code: CodeInvalidJob, JobID: old.ID, Message: "the job is already superseded by " + old.SupersededBy}
	}
	return nil
}

func errorUnresolved(job *Job, a *Attempt) *Error {
	since := a.StartedAt
	if a.State == AttemptUnknown && job.Blocked != nil && job.Blocked.AttemptID == a.ID {
		since = job.Blocked.Since
	}
	return &Error{
		Code: CodeAttemptUnresolved, JobID: job.ID, AttemptID: a.ID,
		Message: fmt.Sprintf("attempt %d at %s is %s since %s; a second one could have its effect twice",
			a.Number, a.Target, a.State, since.UTC().Format(time.RFC3339)),
	}
}

// CheckAsked turns a decision about an attempt that somebody asked for into the
// refusal to answer with. It returns nil exactly when the decision is to start.
func CheckAsked(job *Job, d Decision) error {
	switch {
	case job.State.Terminal() || d.Verb == Rest:
		return &Error{Code: CodeJobTerminal, JobID: job.ID, Message: fmt.Sprintf("the job is %s", job.State)}
	case d.Verb == Finish: // nobody has written it down yet
		return &Error{Code: CodeJobTerminal, JobID: job.ID, Message: fmt.Sprintf("the job is over: it is to be %s", d.State)}
	case d.Verb == Start:
		return nil
	}
	for i := range job.Attempts {
		if a := &job.Attempts[i]; a.State.InDoubt() {
			e := errorUnresolved(job, a)
			if e.Candidates = d.Candidates; len(d.Candidates) > 0 { // a race that the gate refused
				e.Reason, e.Kind = d.Candidates[0].Reason, job.Kind
			}
			return e
		}
	}
	e := &Error{
		Code: CodeFailoverNotCertified, JobID: job.ID, AttemptID: d.AttemptID,
		Message: d.Detail, Reason: string(d.Reason), Candidates: d.Candidates, Kind: job.Kind,
	}
	if len(d.Candidates) > 0 {
		e.Reason = d.Candidates[0].Reason
	}
	if c := job.Policy.Contract; c != nil && d.Reason == BlockFailoverNotCertified {
		e.Contract, e.TargetDigest = c.Digest, d.Verdict.TargetDigest
		e.Message = notCertified(job, d.Candidates)
	}
	if e.Reason == GateUnknownTarget {
		e.Code, e.Message = CodeInvalidJob, fmt.Sprintf("the job has no target %q; it has %s", d.Candidates[0].Target, list(job.Policy.Targets))
	}
	return e
}

// notCertified says for people why none of candidates may take over.
func notCertified(job *Job, candidates []Candidate) string {
	why := make([]string, len(candidates))
	for i, c := range candidates {
		why[i] = fmt.Sprintf("%s is not certified for %s: %s", c.Target, job.Kind, c.Reason)
		if c.Detail != "" {
			why[i] += " (" + c.Detail + ")"
		}
	}
	return strings.Join(why, "; ")
}

// NewAttempt returns the attempt that a decision to start asks for, in starting,
// under a fresh id and claim token. The store sets its times.
func NewAttempt(job *Job, attempts []Attempt, d Decision, p StartParams, now time.Time) Attempt {
	return Attempt{
		Part: job.Part, ID: NewAttemptID(job.ID, job.AttemptsMade+1), JobID: job.ID,
		Number: job.AttemptsMade + 1, Lane: d.Lane,
		Target: d.Target, TargetDigest: p.Targets[d.Target].Digest,
		State: AttemptStarting, ClaimToken: NewToken(), Worker: p.Worker,
		LeaseExpiresAt: now.Add(p.Lease), StartedAt: now,
		JobVersion:    job.Version,
		ProviderKey:   providerKey(job.ID, d.Target, attempts),
		CertificateID: d.Verdict.CertificateID, WaiverID: d.Verdict.WaiverID,
		Phase: PhaseNotSent,
	}
}

// Forbid ends an attempt in starting whose certificate or waiver ended before it was
// marked: nothing was sent, and the job is to be decided again.
func (a *Attempt) Forbid(now time.Time) {
	a.State, a.Outcome, a.Next, a.OwnFault, a.FinishedAt = AttemptFailed, OutcomeNotExecuted, NextAgain, true, now
	a.Evidence.Error = ForbiddenMessage
	a.Error = &Failure{Code: FailureCertificateRevoked, Message: ForbiddenMessage}
}

// ForbiddenMessage says what became of an attempt that [Attempt.Forbid] ended.
const ForbiddenMessage = "what let this target take over ended before anything was sent"

// ErrorOfForbidden is the answer to who would mark such an attempt.
func ErrorOfForbidden(ref AttemptRef) error {
	return &Error{
		Code: CodeFailoverNotCertified, JobID: ref.JobID, AttemptID: ref.ID,
		Reason: GateNoCertificate, Message: ForbiddenMessage,
	}
}

// providerKey is stable per job and target, and changes only after the provider
// executed and failed: it is the last guard against a sender that wakes up late.
func providerKey(jobID, target string, attempts []Attempt) string {
	generation := 0
	for i := range attempts {
		a := &attempts[i]
		if a.Target == target && (a.Outcome == OutcomeExecutedFailed || a.Outcome == OutcomeContractViolation) {
			generation++
		}
	}
	text := append(make([]byte, 0, 128), jobID...)
	text = append(append(append(text, 0), target...), 0)
	sum := sha256.Sum256(strconv.AppendInt(text, int64(generation), 10))
	return string(idEncoding.AppendEncode([]byte("pk_"), sum[:20]))
}

// QuarantineEnd is before when neither an absence nor a person rules an attempt:
// its send_by, what the kernel may still deliver, and the longest the target can
// work. Zero when the target declares no such length.
func QuarantineEnd(sendBy time.Time, sendWithin, maxExecution time.Duration) time.Time {
	if maxExecution <= 0 {
		return time.Time{}
	}
	return sendBy.Add(sendWithin).Add(maxExecution)
}

// SourcesOf lists the states that an event moves an attempt out of, by the
// transition table. ruled lists the further exits of one that was ruled.
func SourcesOf(e Event) (states, ruled []AttemptState) {
	for _, t := range attemptTransitions {
		switch {
		case t.on != e:
		case t.ruled:
			ruled = append(ruled, t.from)
		default:
			states = append(states, t.from)
		}
	}
	return states, ruled
}

// CheckResolve says whether a ruling may settle an attempt at now. The store
// swaps on the attempt still being unknown.
func CheckResolve(job *Job, a *Attempt, p *AttemptResolveParams, now time.Time) error {
	switch {
	case a.State.Terminal():
		return &Error{Code: CodeAttemptTerminal, JobID: job.ID, AttemptID: a.ID, Message: fmt.Sprintf("the attempt is already %s", a.State)}
	case a.State != AttemptUnknown:
		return &Error{Code: CodeAttemptNotUnknown, JobID: job.ID, AttemptID: a.ID, Message: fmt.Sprintf("the attempt is %s; only an unknown one can be resolved", a.State)}
	}
	if err := checkRuling(job, p); err != nil {
		return err
	}
	if p.Outcome == OutcomeSucceeded || p.Outcome == OutcomeResultLost {
		return nil
	}
	return checkQuarantine(job, a, p, now)
}

func checkRuling(job *Job, p *AttemptResolveParams) error {
	invalid := func(message string) error {
		return &Error{Code: CodeInvalidResolution, JobID: job.ID, AttemptID: p.ID, Message: message}
	}
	allowed := []Outcome{OutcomeSucceeded, OutcomeNotExecuted, OutcomeExecutedFailed, OutcomeCancelled, OutcomeResultLost}
	switch {
	case !slices.Contains(allowed, p.Outcome):
		return invalid("outcome is succeeded, failed or cancelled")
	case p.Evidence == "":
		return invalid("evidence is required: say what shows it")
	case p.Outcome == OutcomeSucceeded && p.Result == nil:
		return invalid("result is required with succeeded; null must be said")
	case p.Outcome == OutcomeResultLost && job.Policy.Effect == EffectNone:
		return invalid("result_lost is for kinds with an effect; rule this one failed with proves executed_failed")
	}
	return nil
}

func checkQuarantine(job *Job, a *Attempt, p *AttemptResolveParams, now time.Time) error {
	end := a.QuarantineUntil
	if end.IsZero() {
		end = a.SendBy
	}
	if now.Before(end) {
		return &Error{
			Code: CodeQuarantined, JobID: job.ID, AttemptID: a.ID, RetryAfter: end.Sub(now),
			Message: "the provider may still be working; no ruling but success before " + end.UTC().Format(time.RFC3339),
		}
	}
	if a.QuarantineUntil.IsZero() && !p.AcknowledgeRisk {
		return &Error{
			Code: CodeInvalidResolution, JobID: job.ID, AttemptID: a.ID,
			Message: "the target declares no max_execution, so nothing proves that it stopped; say acknowledge_risk: true to rule anyway",
		}
	}
	return nil
}

// EventOfRuling returns the event that a ruling is. A success whose result is
// lost is a success.
func EventOfRuling(o Outcome) Event {
	if o == OutcomeResultLost {
		return EventAnswered
	}
	e, _ := o.Event()
	return e
}

// NextOfRuling is what a ruling means for the job.
func NextOfRuling(o Outcome) Next {
	if o.Proven() {
		return NextAgain
	}
	return NextElsewhere
}

// IncidentOf says whether a success that found the slot taken, or the job closed,
// may have had its effect twice. ruled says that one of the two, the loser or the
// winner, had been ruled failed or cancelled: a ruling that was wrong let the other
// start. winner is empty when the job had closed without one. Losers of a declared
// race are no incident.
func IncidentOf(ruled bool, winner string) EventKind {
	switch {
	case winner == "":
		return EventLateEffect
	case ruled:
		return EventDuplicateEffect
	}
	return ""
}

// IncidentBy is [IncidentOf] for an attempt of the job that succeeded too late.
func IncidentBy(job *Job, loser *Attempt) EventKind {
	return IncidentOf(overruled(loser) || overruled(AttemptOf(job, job.CompletedBy)), job.CompletedBy)
}

// overruled reports whether a success came of an attempt that a ruling had
// declared failed or cancelled.
func overruled(a *Attempt) bool {
	return a != nil && a.Ruling != nil && EventOfRuling(a.Ruling.Outcome) != EventAnswered
}
