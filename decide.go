package onejob

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
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

// last is the newest attempt but for lanes that were given up for the one that is shown:
// what follows is up to that.
func (d *decider) last() *Attempt {
	for i := len(d.attempts) - 1; i > 0; i-- {
		if a := &d.attempts[i]; a.Lane == 0 || a.State != AttemptCancelled || a.Next != NextNowhere {
			return a
		}
	}
	return &d.attempts[0]
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

// race decides about a racing lane: free, at a target not yet tried, certified.
func (d *decider) race() Decision {
	if !d.mayRace() {
		return Decision{Verb: Wait}
	}
	for i := range d.attempts {
		if a := &d.attempts[i]; a.Lane == d.ask.Lane && a.State.InDoubt() {
			return Decision{Verb: Wait, Target: a.Target}
		}
	}
	var refused []Candidate
	for _, t := range d.untried() {
		if d.ask.Target != "" && d.ask.Target != t {
			continue
		}
		v := d.takeover(t)
		if v.Allowed {
			return Decision{Verb: Start, Target: t, Lane: d.ask.Lane, Verdict: v}
		}
		refused = append(refused, v.Candidate(t))
	}
	return Decision{Verb: Wait, Candidates: refused}
}

// mayRace says whether the job may be raced at all now: it has the lane, nothing
// but money to lose, budget and time left, no need of an operator, and an attempt
// in doubt to race against.
func (d *decider) mayRace() bool {
	p := &d.job.Policy
	reason, _ := d.ownSide()
	return reason == "" && d.ask.Lane < p.Lanes && p.Effect == EffectNone &&
		d.job.CancelRequestedAt.IsZero() && !d.late() && d.spent("") < p.MaxAttempts &&
		slices.ContainsFunc(d.attempts, func(a Attempt) bool { return a.State.InDoubt() })
}

func (d *decider) late() bool {
	return !d.job.Deadline.IsZero() && !d.now.Before(d.job.Deadline)
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

// ownSide finds what only an operator can mend: a job parked or held, and faults
// of our own beyond their budget.
func (d *decider) ownSide() (reason BlockReason, detail string) {
	if b := d.job.Blocked; b != nil && b.Reason.NeedsUnblock() {
		return b.Reason, b.Detail
	}
	if d.held() {
		return BlockNeedsOperator, "the store was restored from a backup; this job may have gone on after it was made"
	}
	if detail, deadly := d.deadly(); deadly {
		return BlockParked, detail
	}
	faults := 0
	for i := range d.attempts {
		if a := &d.attempts[i]; ours(a) && a.StartedAt.After(d.job.UnblockedAt) {
			faults++
		}
	}
	if faults > MaxOwnFaults {
		return BlockNeedsOperator, fmt.Sprintf("%d attempts were lost on our own side", faults)
	}
	if n := len(d.attempts); n > 0 {
		a := &d.attempts[n-1]
		if a.State == AttemptCancelled && a.Ruling != nil && d.job.UnblockedAt.Before(a.Ruling.At) {
			return BlockNeedsOperator, "the attempt was ruled cancelled, but nobody asked to cancel the job"
		}
	}
	return "", ""
}

// held reports whether the job waits for a person since the store was restored.
func (d *decider) held() bool {
	return !d.job.HeldAt.IsZero() && !d.job.UnblockedAt.After(d.job.HeldAt)
}

// deadly reports whether the last attempts took their workers with them: each was
// lost with its lease, nothing of it was executed, and each had a worker of its
// own. A worker is one process's life, so a name that comes twice has survived.
func (d *decider) deadly() (detail string, deadly bool) {
	if len(d.attempts) < ParkAfter {
		return "", false
	}
	workers, lost := map[string]bool{}, make([]string, 0, ParkAfter)
	for i := range d.attempts[len(d.attempts)-ParkAfter:] {
		a := &d.attempts[len(d.attempts)-ParkAfter+i]
		if a.LeaseOverAt.IsZero() || !a.Outcome.Proven() || workers[a.Worker] || !a.StartedAt.After(d.job.UnblockedAt) {
			return "", false
		}
		workers[a.Worker] = true
		lost = append(lost, fmt.Sprintf("%d with %s", a.Number, a.Worker))
	}
	return "the last attempts were each lost with the process that worked on them: " + strings.Join(lost, ", "), true
}

// ours reports whether an attempt was lost on our own side: it failed there, or
// its worker went away and nothing was executed. What was executed is never ours
// alone.
func ours(a *Attempt) bool {
	lost := !a.LeaseOverAt.IsZero() && a.Outcome == OutcomeNotExecuted
	return lost || (a.OwnFault && a.Outcome.Proven())
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

// after decides what follows the last attempt, which is not in doubt.
func (d *decider) after(last *Attempt) Decision {
	if d.spent("") >= d.job.Policy.MaxAttempts {
		return d.exhausted(last, fmt.Sprintf("%d attempts failed", d.spent("")))
	}
	if last.Next == NextNowhere {
		return d.exhausted(last, whyNowhere(last))
	}
	if d.ask.Target != "" {
		return d.asked(last)
	}
	var refused []Candidate
	if ours(last) || d.mayRepeat(last) {
		v := d.repeat(last.Target)
		if v.Allowed {
			return d.startAt(last.Target, d.notBefore(last), v)
		}
		refused = append(refused, v.Candidate(last.Target))
	}
	return d.fallback(d.untried(), last, refused)
}

// whyNowhere says why nothing follows an attempt.
func whyNowhere(last *Attempt) string {
	switch last.Outcome {
	case OutcomeExecutedFailed, OutcomeContractViolation, OutcomeCancelled:
		return "the answer had begun to be shown, so that no other may follow"
	}
	return "the input was refused"
}

// repeat is the gate's word about a target that was tried already. It is asked for
// anew: what let the last attempt start may have ended since.
func (d *decider) repeat(target string) Verdict {
	if target == d.job.firstTarget() {
		return Verdict{Allowed: true}
	}
	return d.gate(target)
}

// asked starts at the target that somebody named, or says why not. last is nil
// when nothing was tried yet.
func (d *decider) asked(last *Attempt) Decision {
	target, verdict := d.ask.Target, Verdict{Allowed: true}
	switch {
	case !slices.Contains(d.job.Policy.Targets, target):
		return mayNot(Candidate{Target: target, Reason: GateUnknownTarget})
	case d.spent(target) >= d.job.Policy.PerTarget:
		return mayNot(Candidate{Target: target, Reason: GateBudgetSpent})
	case d.unproven(last):
		return d.blockUnproven(last)
	case target == d.job.firstTarget(): // stands in for nobody
	case d.job.Policy.Failover == FailoverNever:
		return mayNot(Candidate{Target: target, Reason: GateFailoverNever})
	default:
		if verdict = d.gate(target); !verdict.Allowed {
			refusal := mayNot(verdict.Candidate(target))
			refusal.Verdict = verdict
			return refusal
		}
	}
	var notBefore time.Time
	switch {
	case last == nil:
		notBefore = d.job.RunAfter
	case last.Target == target:
		notBefore = d.notBefore(last)
	}
	return d.startAt(target, notBefore, verdict)
}

// mayRepeat says whether the same target may be tried again. Under an effect,
// what was executed is never retried.
func (d *decider) mayRepeat(last *Attempt) bool {
	if last.Next != NextAgain || d.spent(last.Target) >= d.job.Policy.PerTarget {
		return false
	}
	return !d.unproven(last)
}

// unproven reports whether the last attempt may have had an effect. Nil has none.
func (d *decider) unproven(last *Attempt) bool {
	return last != nil && d.job.Policy.Effect != EffectNone && !last.Outcome.Proven()
}

// spent counts the attempts that a target (or, for "", any) did something to.
func (d *decider) spent(target string) int {
	n := 0
	for i := range d.attempts {
		if a := &d.attempts[i]; !ours(a) && (target == "" || a.Target == target) {
			n++
		}
	}
	return n
}

// untried lists the targets not yet tried, in the order of fallback.
func (d *decider) untried() []string {
	return slices.DeleteFunc(slices.Clone(d.job.Policy.Targets), func(t string) bool {
		return slices.ContainsFunc(d.attempts, func(a Attempt) bool { return a.Target == t })
	})
}

// fallback starts at the first of targets that the gate lets through. refused are
// those it did not, so far.
func (d *decider) fallback(targets []string, last *Attempt, refused []Candidate) Decision {
	if len(targets)+len(refused) == 0 || d.job.Policy.Failover == FailoverNever {
		return d.exhausted(last, "no other target may take over")
	}
	if d.unproven(last) {
		return d.blockUnproven(last)
	}
	for _, t := range targets {
		v := d.takeover(t)
		if v.Allowed {
			return d.startAt(t, time.Time{}, v)
		}
		refused = append(refused, v.Candidate(t))
	}
	return d.uncertified(refused)
}

// takeover is the gate's word about a target that nobody asked for. What takes over
// by itself also needs the contract to let it.
func (d *decider) takeover(target string) Verdict {
	v := d.gate(target)
	if c := d.job.Policy.Contract; v.Allowed && c != nil && (c.Manual || d.awaitsButton()) {
		v.Allowed, v.Reason, v.WaiverID = false, GateAutomaticOff, ""
	}
	return v
}

// awaitsButton reports whether the job was blocked for want of a certificate, and
// its contract leaves it to a person to let it go on.
func (d *decider) awaitsButton() bool {
	b := d.job.Blocked
	return d.job.Policy.Contract.OnUncertified == UncertifiedManual && b != nil && b.Reason == BlockFailoverNotCertified
}

// uncertified is what the contract says of a job that no target may take over. One
// that a person may start is no want of a certificate.
func (d *decider) uncertified(refused []Candidate) Decision {
	c := d.job.Policy.Contract
	byHand := slices.ContainsFunc(refused, func(r Candidate) bool { return r.Reason == GateAutomaticOff })
	if c == nil || c.OnUncertified != UncertifiedFail || byHand {
		return mayNot(refused...)
	}
	why := make([]string, len(refused))
	for i, r := range refused {
		why[i] = r.Target + ": " + r.Reason
	}
	return failed(FailureNotCertified, "no target is certified to take over: "+strings.Join(why, ", "))
}

func (d *decider) blockUnproven(last *Attempt) Decision {
	return Decision{
		Verb: Block, Reason: BlockFailoverUnproven, AttemptID: last.ID,
		Detail: fmt.Sprintf("attempt %d at %s was executed and failed; a job with effect %s goes on only after proof that nothing happened",
			last.Number, last.Target, d.job.Policy.Effect),
	}
}

func mayNot(candidates ...Candidate) Decision {
	return Decision{
		Verb: Block, Reason: BlockFailoverNotCertified, Candidates: candidates,
		Detail: "no target is proven to be able to take over",
	}
}

// Reasons why a target may not take over, beside those of certificates.
const (
	GateNoCertificate = "no_certificate" // it has none
	GateFailoverNever = "failover_never" // the kind stays at its first target
	GateUnknownTarget = "unknown_target" // the kind has no such target
	GateBudgetSpent   = "budget_spent"   // it was tried per_target times
)

func (d *decider) gate(target string) Verdict {
	if v, known := d.verdicts[target]; known {
		return v
	}
	if d.job.Policy.Failover == FailoverDeclared && d.ask.Lane == 0 {
		return Verdict{Allowed: true}
	}
	return Verdict{Reason: GateNoCertificate}
}

// exhausted ends a job that has no way on, unless all that says of some attempt
// that nothing happened is the word of a person who took the risk.
func (d *decider) exhausted(last *Attempt, why string) Decision {
	for i := range d.attempts {
		a := &d.attempts[i]
		if r := a.Ruling; r != nil && r.RiskAcknowledged && d.job.Policy.Effect != EffectNone {
			return Decision{
				Verb: Block, Reason: BlockTargetsExhaustedUnproven, AttemptID: a.ID,
				Detail: why + ", and only a person's word says that nothing happened",
			}
		}
	}
	code := FailureAttemptsExhausted
	switch {
	case last.Outcome == OutcomeExecutedFailed || last.Outcome == OutcomeContractViolation:
		code = FailureExecutedFailed
	case last.Next == NextNowhere:
		code = FailureRefused
	}
	if last.Error != nil {
		why += "; the last: " + last.Error.Message
	}
	return failed(code, why)
}

func failed(code, message string) Decision {
	return Decision{Verb: Finish, State: JobFailed, Error: &Failure{Code: code, Message: message}}
}

// notBefore is when the target of last may be tried again: at the provider's
// Retry-After, or after a backoff that doubles with every try and is spread by
// full jitter. The jitter comes from the attempt's id, so that asking twice
// gives the same answer.
func (d *decider) notBefore(last *Attempt) time.Time {
	if !last.RetryAt.IsZero() {
		return last.RetryAt
	}
	if ours(last) {
		return time.Time{} // our own fault keeps no provider busy: at once
	}
	b := d.job.Policy.Backoff
	ceiling := b.Initial
	for n := d.spent(last.Target); n > 1 && ceiling < b.Max; n-- {
		ceiling *= 2
	}
	ceiling = min(ceiling, b.Max)
	h := fnv.New64a()
	_, _ = h.Write([]byte(last.ID))
	const steps = 1 << 20
	return last.FinishedAt.Add(time.Duration(float64(ceiling) * float64(h.Sum64()%steps) / steps))
}
