package onejob

import (
	"slices"
	"time"
)

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
