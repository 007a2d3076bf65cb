package onejob_test

import (
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
)

// The fallback button goes by the rules of the job itself.
func TestAnAttemptThatSomebodyAsksFor(t *testing.T) {
	t.Parallel()
	again := failedOn("a", onejob.OutcomeRefused, onejob.NextAgain)
	done := failedOn("a", onejob.OutcomeRefused, onejob.NextElsewhere)
	lost := failedOn("a", onejob.OutcomeNotExecuted, onejob.NextAgain, ours)
	twice := func(p *onejob.Policy) { p.PerTarget, p.MaxAttempts = 2, 100 }
	press := onejob.Ask{Now: true}
	at := func(target string) onejob.Ask { return onejob.Ask{Now: true, Target: target} }
	notCertified := func(target, reason string) onejob.Decision {
		return block(onejob.BlockFailoverNotCertified, "", onejob.Candidate{Target: target, Reason: reason})
	}
	checkRules(t, []rule{
		{
			name: "DoesNotWaitForRunAfter", ask: press,
			job: with(openJob(t), func(j *onejob.Job) { j.RunAfter = noon.Add(9 * time.Hour) }), want: start("a"),
		},
		{name: "GoesAgainWhereTheJobWould", job: openJob(t, declared), attempts: tries(again), ask: press, at: noon, want: start("a")},
		{name: "GoesOnWhereTheJobWould", job: openJob(t, declared), attempts: tries(done), ask: press, want: start("b")},
		{name: "NamesTheTarget", job: openJob(t, declared), attempts: tries(done), ask: at("c"), want: start("c")},
		{name: "LeavesATargetThatMightStillDo", job: openJob(t, declared), attempts: tries(again), ask: at("c"), want: start("c")},
		{name: "NamesTheFirstTargetAtTheStart", job: openJob(t), ask: at("a"), want: start("a")},
		{name: "NeedsTheGateAtTheStart", job: openJob(t), ask: at("b"), want: gated("b")},
		{
			name: "NeedsTheGateForTheTargetItNames", job: openJob(t), attempts: tries(done), ask: at("c"),
			verdicts: onejob.Verdicts{"b": {Allowed: true}}, want: gated("c"),
		},
		{name: "IsRefusedWhereFailoverIsOff", job: openJob(t, never), attempts: tries(again), ask: at("b"), want: notCertified("b", onejob.GateFailoverNever)},
		{name: "IsRefusedAtTheStartWhereFailoverIsOff", job: openJob(t, never), ask: at("b"), want: notCertified("b", onejob.GateFailoverNever)},
		{name: "IsRefusedAtATargetThatIsNotTheKinds", job: openJob(t, declared), attempts: tries(done), ask: at("elsewhere"), want: notCertified("elsewhere", onejob.GateUnknownTarget)},
		{name: "IsRefusedAtTheStartAtATargetThatIsNotTheKinds", job: openJob(t, declared), ask: at("elsewhere"), want: notCertified("elsewhere", onejob.GateUnknownTarget)},
		{
			name: "IsRefusedAtATargetWhoseBudgetIsSpent", job: openJob(t, declared, twice), ask: at("a"),
			attempts: tries(again, again, failedOn("b", onejob.OutcomeRefused, onejob.NextAgain)), want: notCertified("a", onejob.GateBudgetSpent),
		},
		{
			name: "MayGoBackToATargetWithBudgetLeft", job: openJob(t, declared, twice), ask: at("a"),
			attempts: tries(again, failedOn("b", onejob.OutcomeRefused, onejob.NextAgain)), want: start("a"),
		},
		{
			name: "IsNotMovedToAnotherTargetThanItNames", job: openJob(t, declared, twice), ask: at("a"),
			attempts: tries(again, again), want: notCertified("a", onejob.GateBudgetSpent),
		},
		{name: "NamesAnotherTargetAfterALossOfOurOwn", job: openJob(t, declared), attempts: tries(lost), ask: at("b"), want: start("b")},
		{
			name: "IsTooLateAfterTheDeadline", job: with(openJob(t, declared), func(j *onejob.Job) { j.Deadline = noon }),
			attempts: tries(again), ask: press, want: failure(onejob.FailureDeadlineExceeded),
		},
	})
}

// gated is the refusal of a target that was asked for and has no certificate.
func gated(target string) onejob.Decision {
	d := block(onejob.BlockFailoverNotCertified, "", onejob.Candidate{Target: target, Reason: onejob.GateNoCertificate})
	d.Verdict = onejob.Verdict{Reason: onejob.GateNoCertificate}
	return d
}
