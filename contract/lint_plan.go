package contract

import (
	"fmt"
	"slices"
)

// goodTarget is the rate of a target that one would want to pass.
const goodTarget = 0.99

// plans holds every gate to what its plan can show with the cases there are.
func (l *linter) plans() {
	n := l.report.Distinct
	l.plan("structure", l.Gates.Structure, n, len(l.CaseList) > 0)
	l.plan("invariants", l.Gates.Invariants, n, len(l.Invariants) > 0)
	semantic := slices.ContainsFunc(l.Expectations, func(e Expectation) bool { return e.Gate == GateSemantic })
	l.plan("semantic", l.Gates.Semantic, l.report.Expected, semantic)
	l.fewest()
	l.equivalence(n)
	if l.Sampling.Confidence < usualConfidence {
		l.warning("plan-confidence", "sampling.confidence", fmt.Sprintf("a bound that is wrong %s of the time is hardly one; 0.95 is usual", percent(1-l.Sampling.Confidence)))
	}
	if len(l.Expectations) > 0 && l.report.Expected == 0 {
		l.error("case-expect", "cases.files", "no case carries expect, so that no expectation would ever be asked")
	}
	if l.report.Expected > 0 && len(l.Expectations) == 0 {
		l.warning("case-expect", "cases.files", "cases carry expect, and there is no expectation to read it")
	}
}

// usualConfidence is the least that is not remarked on.
const usualConfidence = 0.9

// plan checks one gate over so many cases. used: there is something for it to judge.
func (l *linter) plan(name string, g *Gate, cases int, used bool) {
	path := "gates." + name
	switch {
	case g == nil && used && name != "structure":
		l.error("gate-missing", "gates", fmt.Sprintf("%s is required: there are assertions that it judges", name))
		return
	case g == nil:
		return
	case !used:
		l.error("gate-unused", path, "there is nothing for it to judge; leave it out")
		return
	}
	l.report.Bounds = append(l.report.Bounds, l.bound(name, cases, g.MaxFailures, g.MinRate))
	l.achievable(path, g, cases, fmt.Sprintf("with %s", plural(cases, "case")))
}

func (l *linter) bound(name string, cases, failures int, rate float64) Bound {
	confidence := l.Sampling.Confidence
	return Bound{
		Gate: name, Cases: cases, MaxFailures: failures, Confidence: confidence, MinRate: rate,
		Rate: LowerBound(cases, failures, confidence), Wilson: max(0, Wilson(cases, min(failures, cases), confidence)),
		GoodTargetPasses: Power(cases, failures, goodTarget),
	}
}

// achievable says what would be, when a plan does not show its rate.
func (l *linter) achievable(path string, g *Gate, cases int, with string) {
	confidence := l.Sampling.Confidence
	if shows(cases, g.MaxFailures, g.MinRate, confidence) {
		return
	}
	message := fmt.Sprintf("%s and %s allowed the bound is %s, less than min_rate %s: it takes %s", with, plural(g.MaxFailures, "failure"),
		percentDown(LowerBound(cases, g.MaxFailures, confidence)), percent(g.MinRate), plural(SmallestPlan(g.MinRate, g.MaxFailures, confidence), "case"))
	if most, ok := MostFailures(cases, g.MinRate, confidence); ok {
		message += fmt.Sprintf(", or at most %s", plural(most, "failure"))
	}
	l.error("plan-unachievable", path, message)
}

// fewest: a contract that says how many cases it needs says so for its own gates.
func (l *linter) fewest() {
	fewest := l.Cases.MinDistinct
	if fewest >= l.report.Distinct {
		return
	}
	for _, gate := range []struct {
		path string
		g    *Gate
	}{{"gates.structure", l.Gates.Structure}, {"gates.invariants", l.Gates.Invariants}} {
		if gate.g != nil {
			l.achievable(gate.path, gate.g, fewest, fmt.Sprintf("with the %s of cases.min_distinct", plural(fewest, "case")))
		}
	}
}

// equivalence checks what is compared, and says how many may differ.
func (l *linter) equivalence(n int) {
	e := l.Equivalence
	if e == nil {
		return
	}
	if l.Output.Media == MediaText || l.Output.Media == MediaBinary {
		l.error("equivalence-media", "equivalence", "texts of two targets are never the same; leave it out for media "+l.Output.Media)
		return
	}
	for i, path := range e.Compare {
		if s, ok := l.member(path, outputVariable); !ok {
			l.error("equivalence-unknown", fmt.Sprintf("equivalence.compare[%d]", i),
				fmt.Sprintf("%q is not a member of the output, as in output.severity%s", path, suggest(path, prefixed("output.", s.names()))))
		}
	}
	most, ok := MostFailures(n, e.MinAgreement, l.Sampling.Confidence)
	if !ok {
		l.error("plan-unachievable", "equivalence.min_agreement", fmt.Sprintf("with %s not even full agreement shows %s: it takes %s",
			plural(n, "case"), percent(e.MinAgreement), plural(SmallestPlan(e.MinAgreement, 0, l.Sampling.Confidence), "case")))
		return
	}
	l.report.Bounds = append(l.report.Bounds, l.bound(gateEquivalence, n, most, e.MinAgreement))
}

// consequences holds the effect, the budget and the rest against each other.
func (l *linter) consequences() {
	if l.SideEffects != "none" {
		if l.Verify.Mode == "live" {
			l.error("effect-verify", "verify.mode", "a live verification would have the effect; write sandbox or recorded")
		}
		if l.Shadow != nil {
			l.error("effect-shadow", "shadow", "shadow samples run a job's input again: only with side_effects none")
		}
		if l.Failover.Automatic {
			l.warning("effect-automatic", "failover.automatic", "a fallback has the effect at another target; it is still held until the first is proven not to have had it")
		}
	}
	if need := l.report.Calls; need > l.Verify.MaxCalls {
		l.error("verify-calls", "verify.max_calls", fmt.Sprintf("%s with %s are %d calls, more than max_calls", plural(l.report.Cases, "case"), plural(l.Sampling.Repeats, "repeat"), need))
	}
	if most := int64(l.Gates.Operation.MaxCostUSD) * int64(l.report.Calls); most > int64(l.Verify.MaxSpendUSD) {
		l.warning("verify-spend", "verify.max_spend_usd", fmt.Sprintf("%d calls at max_cost_usd may cost %s dollars, more than max_spend_usd", l.report.Calls, USD(most)))
	}
	if s := l.Runtime.SuspendAfter; s.Violations > s.Window {
		l.error("runtime-window", "runtime.suspend_after", "there are more violations than the window has outputs")
	}
	if l.Sampling.Repeats == 1 {
		l.note("sampling-repeats", "sampling.repeats", "with one repeat a flaky target looks like a sound one")
	}
	switch {
	case l.Shadow != nil:
		l.warning("shadow-idle", "shadow", "nothing takes these samples: production is judged, but never sampled again at another target; leave it out")
	case l.SideEffects == "none":
		l.note("shadow-absent", "shadow", "nothing samples production, so that all evidence is about the chosen cases")
	}
}

// String returns the amount in dollars.
func (u USD) String() string { return fmt.Sprintf("%d.%02d", u/1e6, (u%1e6)/1e4) }
