package onejob

import (
	"fmt"
	"hash/fnv"
	"time"
)

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
	default:
		return "the input was refused"
	}
}

// mayRepeat says whether the same target may be tried again. Under an effect,
// what was executed is never retried.
func (d *decider) mayRepeat(last *Attempt) bool {
	if last.Next != NextAgain || d.spent(last.Target) >= d.job.Policy.PerTarget {
		return false
	}
	return !d.unproven(last)
}

// repeat is the gate's word about a target that was tried already. It is asked for
// anew: what let the last attempt start may have ended since.
func (d *decider) repeat(target string) Verdict {
	if target == d.job.firstTarget() {
		return Verdict{Allowed: true}
	}
	return d.gate(target)
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
