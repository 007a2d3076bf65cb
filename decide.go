package onejob

import (
	"fmt"
	"time"
)

// Decision is what a job should do next. Exactly one of its verbs is set.
type Decision struct {
	Verb Verb

	// Start: where, and in which lane.
	// Wait: where the next attempt is expected to go, if known.
	Target string
	Lane   int

	Until  time.Time // Wait: when to ask again; zero: an event brings news
	State  JobState  // Finish: JobFailed or JobCancelled
	Error  *Failure  // Finish as failed
	Reason BlockReason

	// Block: what a person should know.
	Detail     string
	AttemptID  string
	Candidates []Candidate

	// Verdict is what let a fallback start, or kept one that was asked for from it.
	Verdict Verdict
}

// Verb is what a [Decision] says.
type Verb string

// The verbs of a decision.
const (
	Start  Verb = "start"
	Wait   Verb = "wait"
	Finish Verb = "finish"
	Block  Verb = "block"
	// Rest: the job is terminal.
	Rest Verb = "rest"
)

// Verdict is the gate's word about one target taking over a job.
type Verdict struct {
	Allowed       bool
	Reason        string // why not
	Detail        string // of the reason, as in schema_nonce. Empty: there is no more to say
	CertificateID string // that allowed it, or that the reason is about
	WaiverID      string // that allowed it
	ExpiredAt     time.Time
	TargetDigest  string // what the target is now. Empty: it was not looked at
}

// Candidate returns target as one that may not take over.
func (v Verdict) Candidate(target string) Candidate {
	return Candidate{Target: target, Reason: v.Reason, Detail: v.Detail, CertificateID: v.CertificateID, ExpiredAt: v.ExpiredAt}
}

// Verdicts are the gate's words by target, read in the transaction that acts on
// them. A target without one has no certificate.
type Verdicts map[string]Verdict

// Ask is what a person wants of a decision beyond what the job would do by
// itself. The zero value asks for nothing.
type Ask struct {
	Now    bool   // do not wait out a backoff
	Target string // this target, not the next in order
	Lane   int    // above 0: a racing attempt in this lane, beside those in doubt
}

// Decide says what job should do at now, given its attempts (oldest first) and
// the gate's verdicts. It is pure: no I/O, no clock, no randomness. The guard
// comes first: nothing starts in a lane with an attempt in doubt.
func Decide(job *Job, attempts []Attempt, verdicts Verdicts, now time.Time, ask Ask) Decision {
	d := decider{job: job, attempts: attempts, verdicts: verdicts, now: now, ask: ask}
	return d.decide()
}

type decider struct {
	job      *Job
	attempts []Attempt
	verdicts Verdicts
	now      time.Time
	ask      Ask
}

func (d *decider) decide() Decision {
	if d.job.State.Terminal() {
		return Decision{Verb: Rest}
	}
	if d.ask.Lane > 0 {
		return d.race()
	}
	if inDoubt, found := d.inDoubt(); found {
		return inDoubt
	}
	if !d.job.CancelRequestedAt.IsZero() {
		return Decision{Verb: Finish, State: JobCancelled}
	}
	if reason, detail := d.ownSide(); reason != "" {
		return Decision{Verb: Block, Reason: reason, Detail: detail}
	}
	if d.late() {
		return failed(FailureDeadlineExceeded, "the deadline passed before an attempt succeeded")
	}
	if len(d.attempts) == 0 {
		return d.first()
	}
	return d.after(d.last())
}

// inDoubt is the guard: with an attempt running there is nothing to do but wait
// for it, with one unknown nothing but ask.
func (d *decider) inDoubt() (Decision, bool) {
	var unknown *Attempt
	for i := range d.attempts {
		switch a := &d.attempts[i]; a.State {
		case AttemptStarting, AttemptRunning:
			return Decision{Verb: Wait, Target: a.Target}, true
		case AttemptUnknown:
			unknown = a
		case AttemptSucceeded, AttemptDiscarded, AttemptFailed, AttemptCancelled:
		}
	}
	if unknown == nil {
		return Decision{}, false
	}
	return Decision{
		Verb: Block, Reason: BlockAttemptUnknown, AttemptID: unknown.ID,
		Detail: fmt.Sprintf("attempt %d at %s may or may not have had its effect: %s", unknown.Number, unknown.Target, doubtOf(unknown)),
	}, true
}

func doubtOf(a *Attempt) string {
	switch {
	case a.Evidence.Error != "":
		return a.Evidence.Error
	case a.Error != nil && a.Error.Message != "":
		return a.Error.Message
	}
	return "no answer came"
}

func (d *decider) late() bool {
	return !d.job.Deadline.IsZero() && !d.now.Before(d.job.Deadline)
}

func (d *decider) first() Decision {
	if d.ask.Target != "" {
		return d.asked(nil)
	}
	return d.startAt(d.job.firstTarget(), d.job.RunAfter, Verdict{Allowed: true})
}

// firstTarget is the one asked for, or the first of the kind.
func (j *Job) firstTarget() string {
	if j.Target != "" {
		return j.Target
	}
	if len(j.Policy.Targets) == 0 {
		return ""
	}
	return j.Policy.Targets[0]
}

// startAt starts at target, unless it is too early and nobody asked for now.
func (d *decider) startAt(target string, notBefore time.Time, v Verdict) Decision {
	if notBefore.After(d.now) && !d.ask.Now {
		if !d.job.Deadline.IsZero() && notBefore.After(d.job.Deadline) {
			notBefore = d.job.Deadline
		}
		return Decision{Verb: Wait, Target: target, Until: notBefore}
	}
	return Decision{Verb: Start, Target: target, Verdict: v}
}

func failed(code, message string) Decision {
	return Decision{Verb: Finish, State: JobFailed, Error: &Failure{Code: code, Message: message}}
}
