package onejob_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
)

func TestTheSameTargetAgain(t *testing.T) {
	t.Parallel()
	again := func(o onejob.Outcome, change ...func(*onejob.Attempt)) onejob.Attempt {
		return failedOn("a", o, onejob.NextAgain, change...)
	}
	retryAt := func(at time.Time) func(*onejob.Attempt) {
		return func(a *onejob.Attempt) { a.RetryAt = at }
	}
	certified := func(a *onejob.Attempt) { a.CertificateID = "cert_1" }
	alone := func(p *onejob.Policy) { p.Targets = []string{"a"} }
	rules := []rule{
		{name: "AfterWhatWasNotExecuted", job: openJob(t, external), attempts: tries(again(onejob.OutcomeNotExecuted)), want: start("a")},
		{name: "AfterWhatWasRefusedForNow", job: openJob(t, external), attempts: tries(again(onejob.OutcomeRefused)), want: start("a")},
		{name: "AfterWhatFailedUnderEffectNone", job: openJob(t), attempts: tries(again(onejob.OutcomeExecutedFailed)), want: start("a")},
		{
			name: "NeverAfterWhatFailedUnderAnEffect", job: openJob(t, external),
			attempts: tries(again(onejob.OutcomeExecutedFailed)), want: block(onejob.BlockFailoverUnproven, "att_1"),
		},
		{
			name: "NeverAfterWhatFailedUnderAnIdempotentEffect", job: openJob(t, func(p *onejob.Policy) { p.Effect = onejob.EffectIdempotent }),
			attempts: tries(again(onejob.OutcomeExecutedFailed)), want: block(onejob.BlockFailoverUnproven, "att_1"),
		},
		{
			name: "NotBeforeTheBackoffIsOver", job: openJob(t), at: noon.Add(-time.Nanosecond),
			attempts: tries(again(onejob.OutcomeRefused, retryAt(noon))), want: waitFor("a", noon),
		},
		{
			name: "RetryAfterWinsOverTheBackoff", job: openJob(t),
			attempts: tries(again(onejob.OutcomeRefused, retryAt(noon.Add(3*time.Hour)))), want: waitFor("a", noon.Add(3*time.Hour)),
		},
		{
			name: "ABackoffBeyondTheDeadlineEndsAtTheDeadline", job: with(openJob(t), func(j *onejob.Job) { j.Deadline = noon.Add(2 * time.Hour) }),
			attempts: tries(again(onejob.OutcomeRefused, retryAt(noon.Add(3*time.Hour)))), want: waitFor("a", noon.Add(2*time.Hour)),
		},
		{
			name: "WhoAsksDoesNotWaitOutTheBackoff", job: openJob(t), ask: onejob.Ask{Now: true},
			attempts: tries(again(onejob.OutcomeRefused, retryAt(noon.Add(3*time.Hour)))), want: start("a"),
		},
		{
			name: "NeedsNoCertificateWhereItBegan", job: openJob(t), attempts: tries(again(onejob.OutcomeRefused, certified)),
			want: start("a"),
		},
		{
			name: "UpToItsOwnBudget", job: openJob(t, declared),
			attempts: tries(again(onejob.OutcomeRefused), again(onejob.OutcomeRefused)), want: start("a"),
		},
		{
			name: "ThenTheNextTarget", job: openJob(t, declared),
			attempts: tries(again(onejob.OutcomeRefused), again(onejob.OutcomeRefused), again(onejob.OutcomeRefused)), want: start("b"),
		},
		{
			name: "ThenTheEndWhenThereIsNoOther", job: openJob(t, alone),
			attempts: tries(again(onejob.OutcomeRefused), again(onejob.OutcomeRefused), again(onejob.OutcomeRefused)),
			want:     failure(onejob.FailureAttemptsExhausted),
		},
		{
			name: "DialFailuresCountAsTheTargets", job: openJob(t, alone),
			attempts: tries(again(onejob.OutcomeNotExecuted), again(onejob.OutcomeNotExecuted), again(onejob.OutcomeNotExecuted)),
			want:     failure(onejob.FailureAttemptsExhausted),
		},
		{ // a failure nobody classified
			name: "NotWhenNothingSaysThatItMayHelp", job: openJob(t, declared),
			attempts: tries(failedOn("a", onejob.OutcomeRefused, "")), want: start("b"),
		},
	}
	checkRules(t, rules)
}

// A fallback must not start the count of attempts anew (BerriAI/litellm#19985).
func TestTheBudgetIsTheJobsNotTheTargets(t *testing.T) {
	t.Parallel()
	a := failedOn("a", onejob.OutcomeRefused, onejob.NextAgain)
	b := failedOn("b", onejob.OutcomeRefused, onejob.NextAgain)
	five := tries(a, a, a, b, b)
	checkRules(t, []rule{
		{name: "FourOfFive", job: openJob(t, declared), attempts: five[:4], want: start("b")},
		{name: "FiveOfFive", job: openJob(t, declared), attempts: five, want: failure(onejob.FailureAttemptsExhausted)},
		{
			name: "NobodyCanAskForASixth", job: openJob(t, declared), attempts: five,
			ask: onejob.Ask{Now: true, Target: "c"}, want: failure(onejob.FailureAttemptsExhausted),
		},
	})
}

func TestTheBackoffDoublesUpToItsLimitAndIsSpread(t *testing.T) {
	t.Parallel()
	job := openJob(t, func(p *onejob.Policy) {
		p.PerTarget, p.MaxAttempts = 100, 100
		p.Backoff = onejob.Backoff{Initial: time.Second, Max: 10 * time.Second}
	})
	var attempts []onejob.Attempt
	for n, ceiling := range []time.Duration{1, 2, 4, 8, 10, 10, 10} {
		ceiling *= time.Second
		attempts = append(attempts, failedOn("a", onejob.OutcomeRefused, onejob.NextAgain))
		smallest, largest := ceiling, time.Duration(0)
		for seed := range 500 {
			attempts[n].ID = fmt.Sprintf("att_%d_%d", n, seed)
			delay := backoffOf(t, job, attempts)
			smallest, largest = min(smallest, delay), max(largest, delay)
		}
		if largest >= ceiling || largest < ceiling*9/10 || smallest > ceiling/10 {
			t.Errorf("after %d tries the backoff is between %s and %s; want it spread over 0 to %s", n+1, smallest, largest, ceiling)
		}
	}
}

// backoffOf returns how long after the last failure the job goes on.
func backoffOf(t *testing.T, job *onejob.Job, attempts []onejob.Attempt) time.Duration {
	t.Helper()
	last := attempts[len(attempts)-1].FinishedAt
	d := onejob.Decide(job, attempts, nil, last.Add(-time.Hour), onejob.Ask{})
	if d.Verb != onejob.Wait {
		t.Fatalf("an hour before its last failure the job would %s; want it to wait", d.Verb)
	}
	return d.Until.Sub(last)
}

func TestFaultsOfOurOwn(t *testing.T) {
	t.Parallel()
	lost := failedOn("a", onejob.OutcomeNotExecuted, onejob.NextAgain, ours)
	losses := func(n int) []onejob.Attempt {
		var attempts []onejob.Attempt
		for range n {
			attempts = append(attempts, lost)
		}
		return tries(attempts...)
	}
	freed := func(j *onejob.Job) { j.UnblockedAt = noon }
	later := func(attempts []onejob.Attempt) []onejob.Attempt {
		attempts = append(attempts, lost)
		attempts[len(attempts)-1].StartedAt = noon.Add(time.Second)
		return attempts
	}
	parked := func(j *onejob.Job) {
		j.State, j.Blocked = onejob.JobBlocked, &onejob.Blocked{Reason: onejob.BlockParked, Detail: "it killed the process three times"}
	}
	rules := []rule{
		{name: "AreTriedAgainAtOnce", job: openJob(t, external), attempts: losses(1), at: noon, want: start("a")},
		{name: "CostNoBudgetOfTheTarget", job: openJob(t, func(p *onejob.Policy) { p.MaxAttempts, p.PerTarget = 1, 1 }), attempts: losses(20), want: start("a")},
		{name: "HaveABudgetOfTheirOwn", job: openJob(t), attempts: losses(onejob.MaxOwnFaults + 1), want: block(onejob.BlockNeedsOperator, "")},
		{name: "BeforeAnUnblockNoLongerCount", job: with(openJob(t), freed), attempts: later(losses(onejob.MaxOwnFaults + 1)), want: start("a")},
		{
			name: "AreNoneOnceTheProviderDidTheWork", job: openJob(t, external),
			attempts: tries(failedOn("a", onejob.OutcomeExecutedFailed, onejob.NextAgain, ours)),
			want:     block(onejob.BlockFailoverUnproven, "att_1"),
		},
		{
			name: "ThatTheProviderDidCountInItsBudget", job: openJob(t, func(p *onejob.Policy) { p.MaxAttempts = 1 }),
			attempts: tries(failedOn("a", onejob.OutcomeExecutedFailed, onejob.NextAgain, ours)),
			want:     failure(onejob.FailureExecutedFailed),
		},
		{name: "AParkedJobStaysParked", job: with(openJob(t), parked), want: block(onejob.BlockParked, "")},
		{name: "NobodyCanAskForAnAttemptOfAParkedJob", job: with(openJob(t), parked), ask: onejob.Ask{Now: true}, want: block(onejob.BlockParked, "")},
	}
	checkRules(t, rules)
}

func TestARulingDecidesLikeTheOutcomeItNames(t *testing.T) {
	t.Parallel()
	quiet := ruledAt(noon, false)
	notExecuted := failedOn("a", onejob.OutcomeNotExecuted, onejob.NextOfRuling(onejob.OutcomeNotExecuted), quiet)
	executed := failedOn("a", onejob.OutcomeExecutedFailed, onejob.NextOfRuling(onejob.OutcomeExecutedFailed), quiet)
	cancelled := failedOn("a", onejob.OutcomeCancelled, onejob.NextOfRuling(onejob.OutcomeCancelled), quiet)
	risked := failedOn("a", onejob.OutcomeNotExecuted, onejob.NextOfRuling(onejob.OutcomeNotExecuted), ruledAt(noon, true))
	once := func(p *onejob.Policy) { p.PerTarget, p.Targets = 1, []string{"a"} }
	checkRules(t, []rule{
		{name: "NotExecutedIsTriedAgain", job: openJob(t, external), attempts: tries(notExecuted), want: start("a")},
		{name: "ExecutedFailedGoesElsewhere", job: openJob(t, declared), attempts: tries(executed), want: start("b")},
		{name: "ExecutedFailedUnderAnEffectBlocks", job: openJob(t, declared, external), attempts: tries(executed), want: block(onejob.BlockFailoverUnproven, "att_1")},
		{name: "CancelledThoughNobodyAskedNeedsAnOperator", job: openJob(t, declared), attempts: tries(cancelled), want: block(onejob.BlockNeedsOperator, "")},
		{
			name: "CancelledAfterARequestEndsTheJob", job: with(openJob(t), func(j *onejob.Job) { j.CancelRequestedAt = noon }),
			attempts: tries(cancelled), want: onejob.Decision{Verb: onejob.Finish, State: onejob.JobCancelled},
		},
		{
			name: "CancelledGoesOnOnceUnblocked", job: with(openJob(t), func(j *onejob.Job) { j.UnblockedAt = noon.Add(time.Second) }),
			attempts: tries(cancelled), want: start("a"),
		},
		{
			name: "CancelledGoesOnThoughUnblockedInTheSameInstant", job: with(openJob(t), func(j *onejob.Job) { j.UnblockedAt = noon }),
			attempts: tries(cancelled), want: start("a"),
		},
		{
			name: "CancelledAfterAnEarlierUnblockNeedsAnOperatorAgain", job: with(openJob(t), func(j *onejob.Job) { j.UnblockedAt = noon.Add(-time.Second) }),
			attempts: tries(cancelled), want: block(onejob.BlockNeedsOperator, ""),
		},
		{name: "ARiskTakenLetsItGoOn", job: openJob(t, external), attempts: tries(risked), want: start("a")},
		{name: "ARiskTakenNeverEndsAnEffectAsFailed", job: openJob(t, external, once), attempts: tries(risked), want: block(onejob.BlockTargetsExhaustedUnproven, "att_1")},
		{
			name: "ARiskTakenIsNotForgottenOverALaterRefusal", job: openJob(t, external, func(p *onejob.Policy) { p.PerTarget, p.Targets = 2, []string{"a"} }),
			attempts: tries(risked, failedOn("a", onejob.OutcomeRefused, onejob.NextAgain)),
			want:     block(onejob.BlockTargetsExhaustedUnproven, "att_1"),
		},
		{name: "ARiskTakenOverMoneyAloneEndsAsFailed", job: openJob(t, once), attempts: tries(risked), want: failure(onejob.FailureAttemptsExhausted)},
	})
}
