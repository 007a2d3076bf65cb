package onejob_test

import (
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
)

// lostWith is an attempt whose worker's lease ended without word.
func lostWith(worker string) func(*onejob.Attempt) {
	return func(a *onejob.Attempt) { a.Worker, a.LeaseOverAt = worker, noon }
}

func TestAJobWhoseAttemptsKillTheProcessIsParked(t *testing.T) {
	t.Parallel()
	lost := func(worker string, change ...func(*onejob.Attempt)) onejob.Attempt {
		return failedOn("a", onejob.OutcomeNotExecuted, onejob.NextAgain, append(change, lostWith(worker))...)
	}
	ruled := ruledAt(noon, false)
	freed := func(j *onejob.Job) { j.UnblockedAt = noon }
	one := func(p *onejob.Policy) { p.PerTarget, p.MaxAttempts = 1, 1 }
	after := func(attempts []onejob.Attempt) []onejob.Attempt {
		attempts[len(attempts)-1].StartedAt = noon.Add(time.Minute)
		return attempts
	}
	checkRules(t, []rule{
		{name: "AfterThreeThatWereNeverSent", job: openJob(t, external), attempts: tries(lost("v", ours), lost("w", ours), lost("x", ours)), want: block(onejob.BlockParked, "")},
		{name: "AfterThreeThatWereProvenNotExecuted", job: openJob(t, external), attempts: tries(lost("v", ruled), lost("w", ruled), lost("x", ruled)), want: block(onejob.BlockParked, "")},
		{name: "NotAfterTwo", job: openJob(t, external), attempts: tries(lost("v", ours), lost("w", ours)), want: start("a")},
		{name: "NotWhenAWorkerLostTwo", job: openJob(t, external), attempts: tries(lost("v", ours), lost("w", ours), lost("v", ours)), want: start("a")},
		{
			name: "NotWhenOneBetweenThemCameToAnEnd", job: openJob(t, external),
			attempts: tries(lost("u"), lost("v"), failedOn("a", onejob.OutcomeRefused, onejob.NextAgain), lost("w"), lost("x")), want: start("a"),
		},
		{
			name: "NotWhenOneOfThemWasExecuted", job: openJob(t),
			attempts: tries(lost("v"), failedOn("a", onejob.OutcomeExecutedFailed, onejob.NextAgain, lostWith("w")), lost("x")), want: start("a"),
		},
		{name: "NotForThoseBeforeAnUnblock", job: with(openJob(t, external), freed), attempts: after(tries(lost("v"), lost("w"), lost("x"))), want: start("a")},
		{name: "AndHowManyThereAreCostsNoBudgetOfTheTarget", job: openJob(t, all(external, one)), attempts: tries(lost("v", ruled), lost("w", ruled)), want: start("a")},
		{name: "AheadOfTheBudgetOfFaultsOfOurOwn", job: openJob(t), attempts: tries(manyLost()...), want: block(onejob.BlockParked, "")},
		{
			name: "OnlyOnceNothingIsInDoubt", job: openJob(t),
			attempts: tries(lost("v"), lost("w"), onejob.Attempt{Target: "a", State: onejob.AttemptUnknown, Worker: "x", LeaseOverAt: noon}),
			want:     block(onejob.BlockAttemptUnknown, "att_3"),
		},
	})
}

func manyLost() []onejob.Attempt {
	var attempts []onejob.Attempt
	for n := range onejob.MaxOwnFaults + 1 {
		attempts = append(attempts, failedOn("a", onejob.OutcomeNotExecuted, onejob.NextAgain, ours, lostWith(string(rune('A'+n)))))
	}
	return attempts
}

func TestAJobOfARestoredStoreWaitsForAPerson(t *testing.T) {
	t.Parallel()
	restored := func(j *onejob.Job) { j.HeldAt = noon }
	freed := func(at time.Time) func(*onejob.Job) {
		return func(j *onejob.Job) { j.HeldAt, j.UnblockedAt = noon, at }
	}
	late := func(j *onejob.Job) { j.HeldAt, j.Deadline = noon, noon }
	refused := failedOn("a", onejob.OutcomeRefused, onejob.NextAgain)
	checkRules(t, []rule{
		{name: "BeforeItsFirstAttempt", job: with(openJob(t), restored), want: block(onejob.BlockNeedsOperator, "")},
		{name: "BetweenAttempts", job: with(openJob(t), restored), attempts: tries(refused), want: block(onejob.BlockNeedsOperator, "")},
		{name: "AlsoPastItsDeadline", job: with(openJob(t), late), want: block(onejob.BlockNeedsOperator, "")},
		{name: "WhoeverAsksForAnAttempt", job: with(openJob(t), restored), ask: onejob.Ask{Now: true}, want: block(onejob.BlockNeedsOperator, "")},
		{name: "AfterWhatIsInDoubt", job: with(openJob(t), restored), attempts: tries(held("a", onejob.AttemptUnknown)), want: block(onejob.BlockAttemptUnknown, "att_1")},
		{
			name: "AndIsNotRaced", job: with(openJob(t, all(twoLanes, declared)), restored),
			attempts: tries(held("a", onejob.AttemptUnknown)), ask: onejob.Ask{Lane: 1}, want: onejob.Decision{Verb: onejob.Wait},
		},
		{name: "AndGoesOnOnceOneUnblockedIt", job: with(openJob(t), freed(noon.Add(time.Second))), want: start("a")},
		{name: "NotOnAnUnblockBeforeTheRestore", job: with(openJob(t), freed(noon)), want: block(onejob.BlockNeedsOperator, "")},
	})
}
