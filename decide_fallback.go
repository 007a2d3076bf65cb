package onejob

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

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

// untried lists the targets not yet tried, in the order of fallback.
func (d *decider) untried() []string {
	return slices.DeleteFunc(slices.Clone(d.job.Policy.Targets), func(t string) bool {
		return slices.ContainsFunc(d.attempts, func(a Attempt) bool { return a.Target == t })
	})
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

func (d *decider) gate(target string) Verdict {
	if v, known := d.verdicts[target]; known {
		return v
	}
	if d.job.Policy.Failover == FailoverDeclared && d.ask.Lane == 0 {
		return Verdict{Allowed: true}
	}
	return Verdict{Reason: GateNoCertificate}
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
