package onejob

import "slices"

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
