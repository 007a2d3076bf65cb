package onejob_test

import (
	"testing"

	"github.com/onejob-dev/onejob"
)

func TestARacingLane(t *testing.T) {
	t.Parallel()
	running := held("a", onejob.AttemptRunning)
	unknown := held("a", onejob.AttemptUnknown)
	inLane := func(lane int, a onejob.Attempt) onejob.Attempt { a.Lane = lane; return a }
	racing := func(changes ...func(*onejob.Policy)) *onejob.Job {
		return openJob(t, append(changes, twoLanes, declared)...)
	}
	lane := onejob.Ask{Lane: 1}
	startIn := func(lane int, target string) onejob.Decision {
		d := start(target)
		d.Lane = lane
		return d
	}
	certified := onejob.Verdicts{"b": {Allowed: true, CertificateID: "cert_b"}}
	nothing := onejob.Decision{Verb: onejob.Wait}
	uncertified := onejob.Decision{Verb: onejob.Wait, Candidates: []onejob.Candidate{
		{Target: "b", Reason: onejob.GateNoCertificate}, {Target: "c", Reason: onejob.GateNoCertificate},
	}}
	checkRules(t, []rule{
		{
			name: "StartsBesideARunningAttempt", job: openJob(t, twoLanes), attempts: tries(running), ask: lane, verdicts: certified,
			want: onejob.Decision{Verb: onejob.Start, Target: "b", Lane: 1, Verdict: certified["b"]},
		},
		{
			name: "StartsBesideAnUnknownAttempt", job: openJob(t, twoLanes), attempts: tries(unknown), ask: lane, verdicts: certified,
			want: onejob.Decision{Verb: onejob.Start, Target: "b", Lane: 1, Verdict: certified["b"]},
		},
		{name: "NeedsACertificate", job: openJob(t, twoLanes), attempts: tries(running), ask: lane, want: uncertified},
		{name: "NeedsOneThoughFailoverIsDeclared", job: racing(), attempts: tries(running), ask: lane, want: uncertified},
		{
			name: "NeverOpensByItselfWithAutomaticOff", job: racing(manual), attempts: tries(running), ask: onejob.Ask{Lane: 1, Target: "b"}, verdicts: certified,
			want: onejob.Decision{Verb: onejob.Wait, Candidates: []onejob.Candidate{{Target: "b", Reason: onejob.GateAutomaticOff, CertificateID: "cert_b"}}},
		},
		{
			name: "TakesTheFirstTargetThatTheGateLetsThrough", job: openJob(t, twoLanes), attempts: tries(running), ask: lane,
			verdicts: onejob.Verdicts{"b": {Reason: "expired"}, "c": {Allowed: true}}, want: startIn(1, "c"),
		},
		{name: "IsOnlyOneOfThePinnedLanes", job: racing(), attempts: tries(running), ask: onejob.Ask{Lane: 2}, verdicts: certified, want: nothing},
		{
			name: "HoldsOneAttempt", job: racing(), attempts: tries(running, inLane(1, held("b", onejob.AttemptUnknown))), ask: lane,
			verdicts: onejob.Verdicts{"c": {Allowed: true}}, want: onejob.Decision{Verb: onejob.Wait, Target: "b"},
		},
		{
			name: "GoesOnWhenItsAttemptFailed", job: racing(), ask: lane, verdicts: onejob.Verdicts{"c": {Allowed: true}},
			attempts: tries(running, inLane(1, failedOn("b", onejob.OutcomeRefused, onejob.NextElsewhere))), want: startIn(1, "c"),
		},
		{
			name: "NeverGoesWhereTheJobHasBeen", job: racing(), attempts: tries(running), ask: onejob.Ask{Lane: 1, Target: "a"},
			verdicts: onejob.Verdicts{"a": {Allowed: true}}, want: nothing,
		},
		{
			name: "NeverGoesToATargetThatIsNotTheKinds", job: racing(), attempts: tries(running), ask: onejob.Ask{Lane: 1, Target: "elsewhere"},
			verdicts: onejob.Verdicts{"elsewhere": {Allowed: true}}, want: nothing,
		},
		{
			name: "StaysInTheBudgetOfTheJob", job: racing(func(p *onejob.Policy) { p.MaxAttempts = 1 }),
			attempts: tries(running), ask: lane, verdicts: certified, want: nothing,
		},
		{
			name: "StopsAtACancel", job: with(racing(), func(j *onejob.Job) { j.CancelRequestedAt = noon }),
			attempts: tries(running), ask: lane, verdicts: certified, want: nothing,
		},
		{
			name: "StopsAtTheDeadline", job: with(racing(), func(j *onejob.Job) { j.Deadline = noon }),
			attempts: tries(running), ask: lane, verdicts: certified, want: nothing,
		},
		{
			name: "HasNothingToRaceAgainst", job: racing(), ask: lane, verdicts: certified, want: nothing,
		},
		{
			name: "HasNothingToRaceAgainstWhenAllFailed", job: racing(), ask: lane, verdicts: certified,
			attempts: tries(failedOn("a", onejob.OutcomeRefused, onejob.NextAgain)), want: nothing,
		},
	})
}

func TestALaneNeverOpensOnAnEffect(t *testing.T) {
	t.Parallel()
	var rules []rule
	for _, effect := range []onejob.Effect{onejob.EffectIdempotent, onejob.EffectExternal} {
		job := openJob(t)
		job.Policy.Effect, job.Policy.Lanes = effect, 2 // no policy lets this in; a row might
		rules = append(rules, rule{
			name: string(effect), job: job, attempts: tries(held("a", onejob.AttemptRunning)),
			ask: onejob.Ask{Lane: 1}, verdicts: onejob.Verdicts{"b": {Allowed: true}}, want: onejob.Decision{Verb: onejob.Wait},
		})
	}
	checkRules(t, rules)
}

// A lane that was given up says nothing of what follows the one that was shown.
func TestWhatFollowsARaceIsUpToTheLaneThatWasShown(t *testing.T) {
	t.Parallel()
	left := failedOn("b", onejob.OutcomeCancelled, onejob.NextNowhere, func(a *onejob.Attempt) { a.Lane = 1 })
	checkRules(t, []rule{
		{
			name: "ItsFailureIsTheJobs", job: openJob(t, twoLanes),
			attempts: tries(failedOn("a", onejob.OutcomeExecutedFailed, onejob.NextNowhere), left), want: failure(onejob.FailureExecutedFailed),
		},
		{
			name: "AfterARulingAnotherTargetMayTakeOver", job: openJob(t, twoLanes), verdicts: onejob.Verdicts{"c": {Allowed: true}},
			attempts: tries(failedOn("a", onejob.OutcomeExecutedFailed, onejob.NextElsewhere), left), want: start("c"),
		},
	})
}
