package onejob_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/onejob-dev/onejob"
)

// rule is one rule of what a job does next, as a situation and its decision.
type rule struct {
	name     string // a sentence
	job      *onejob.Job
	attempts []onejob.Attempt
	verdicts onejob.Verdicts
	at       time.Time // zero: an hour after noon, past every backoff
	ask      onejob.Ask
	want     onejob.Decision // but for texts
}

// checkRules asks Decide about each situation. Texts for people are compared
// only in that a decision which needs one has one.
func checkRules(t *testing.T, rules []rule) {
	t.Helper()
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			at := r.at
			if at.IsZero() {
				at = noon.Add(time.Hour)
			}
			got := onejob.Decide(r.job, r.attempts, r.verdicts, at, r.ask)
			texts := cmp.Options{
				cmpopts.IgnoreFields(onejob.Decision{}, "Detail"),
				cmpopts.IgnoreFields(onejob.Failure{}, "Message"),
			}
			if diff := cmp.Diff(r.want, got, texts); diff != "" {
				t.Errorf("Decide (-want +got):\n%s", diff)
			}
			if got.Verb == onejob.Block && got.Detail == "" {
				t.Error("the job is blocked and nobody is told why")
			}
			if got.Error != nil && got.Error.Message == "" {
				t.Error("the job failed and nobody is told why")
			}
		})
	}
}

func start(target string) onejob.Decision {
	return onejob.Decision{Verb: onejob.Start, Target: target, Verdict: onejob.Verdict{Allowed: true}}
}

func waitFor(target string, until time.Time) onejob.Decision {
	return onejob.Decision{Verb: onejob.Wait, Target: target, Until: until}
}

func failure(code string) onejob.Decision {
	return onejob.Decision{Verb: onejob.Finish, State: onejob.JobFailed, Error: &onejob.Failure{Code: code}}
}

func block(reason onejob.BlockReason, attemptID string, candidates ...onejob.Candidate) onejob.Decision {
	return onejob.Decision{Verb: onejob.Block, Reason: reason, AttemptID: attemptID, Candidates: candidates}
}

func with(job *onejob.Job, change func(*onejob.Job)) *onejob.Job {
	change(job)
	return job
}

func TestTheFirstAttempt(t *testing.T) {
	t.Parallel()
	checkRules(t, []rule{
		{name: "GoesToTheFirstTarget", job: openJob(t), want: start("a")},
		{
			name: "GoesToTheTargetAskedForAtCreation",
			job:  with(openJob(t), func(j *onejob.Job) { j.Target = "b" }), want: start("b"),
		},
		{
			name: "NeedsNoCertificate",
			job:  openJob(t), verdicts: onejob.Verdicts{"a": {Reason: "expired"}}, want: start("a"),
		},
		{
			name: "WaitsForRunAfter",
			job:  with(openJob(t), func(j *onejob.Job) { j.RunAfter = noon.Add(2 * time.Hour) }),
			want: waitFor("a", noon.Add(2*time.Hour)),
		},
		{
			name: "IsDueAtRunAfterItself",
			job:  with(openJob(t), func(j *onejob.Job) { j.RunAfter = noon }), at: noon, want: start("a"),
		},
		{
			name: "ThatCannotComeBeforeTheDeadlineWaitsForTheDeadline",
			job: with(openJob(t), func(j *onejob.Job) {
				j.RunAfter, j.Deadline = noon.Add(9*time.Hour), noon.Add(2*time.Hour)
			}),
			want: waitFor("a", noon.Add(2*time.Hour)),
		},
	})
}

func TestTheGuard(t *testing.T) {
	t.Parallel()
	unknown := held("a", onejob.AttemptUnknown)
	checkRules(t, []rule{
		{
			name: "AnAttemptThatStartsIsWaitedFor", job: openJob(t),
			attempts: tries(held("a", onejob.AttemptStarting)), want: waitFor("a", time.Time{}),
		},
		{
			name: "AnAttemptThatRunsIsWaitedFor", job: openJob(t),
			attempts: tries(held("a", onejob.AttemptRunning)), want: waitFor("a", time.Time{}),
		},
		{
			name: "AnUnknownAttemptBlocks", job: openJob(t, declared),
			attempts: tries(unknown), want: block(onejob.BlockAttemptUnknown, "att_1"),
		},
		{
			name: "AnUnknownAttemptBlocksThoughALaterOneFailed", job: openJob(t, declared, twoLanes),
			attempts: tries(unknown, failedOn("b", onejob.OutcomeRefused, onejob.NextAgain)),
			want:     block(onejob.BlockAttemptUnknown, "att_1"),
		},
		{
			name: "AnAttemptThatRunsBringsNewsBeforeAPersonIsAsked", job: openJob(t, declared, twoLanes),
			attempts: tries(unknown, held("b", onejob.AttemptRunning)), want: waitFor("b", time.Time{}),
		},
		{
			name: "NobodyCanAskForAnAttemptBesideAnUnknownOne", job: openJob(t, declared),
			attempts: tries(unknown), ask: onejob.Ask{Now: true, Target: "b"},
			want: block(onejob.BlockAttemptUnknown, "att_1"),
		},
		{
			name: "NobodyCanAskForAnAttemptBesideARunningOne", job: openJob(t, declared),
			attempts: tries(held("a", onejob.AttemptRunning)), ask: onejob.Ask{Now: true, Target: "b"},
			want: waitFor("a", time.Time{}),
		},
		{
			name: "AnUnknownAttemptOutlivesTheDeadline",
			job:  with(openJob(t), func(j *onejob.Job) { j.Deadline = noon }), attempts: tries(unknown),
			want: block(onejob.BlockAttemptUnknown, "att_1"),
		},
	})
}

func TestTheEndOfAJob(t *testing.T) {
	t.Parallel()
	cancelled := func(j *onejob.Job) { j.CancelRequestedAt = noon }
	due := func(j *onejob.Job) { j.Deadline = noon.Add(time.Hour) }
	gaveUp := onejob.Decision{Verb: onejob.Finish, State: onejob.JobCancelled}
	rules := []rule{
		{name: "ACancelWithNothingInDoubtEndsIt", job: with(openJob(t), cancelled), want: gaveUp},
		{
			name: "ACancelEndsItInsteadOfAnotherAttempt", job: with(openJob(t), cancelled),
			attempts: tries(failedOn("a", onejob.OutcomeRefused, onejob.NextAgain)), want: gaveUp,
		},
		{
			name: "ACancelEndsWhatNeedsAnOperator",
			job: with(openJob(t), func(j *onejob.Job) {
				cancelled(j)
				j.Blocked = &onejob.Blocked{Reason: onejob.BlockNeedsOperator}
			}),
			want: gaveUp,
		},
		{
			name: "ACancelWaitsForTheAttemptThatRuns", job: with(openJob(t), cancelled),
			attempts: tries(held("a", onejob.AttemptRunning)), want: waitFor("a", time.Time{}),
		},
		{
			name: "ACancelDoesNotSettleAnUnknownAttempt", job: with(openJob(t), cancelled),
			attempts: tries(held("a", onejob.AttemptUnknown)), want: block(onejob.BlockAttemptUnknown, "att_1"),
		},
		{
			name: "TheDeadlineEndsItWhenNothingIsInDoubt", job: with(openJob(t), due),
			want: failure(onejob.FailureDeadlineExceeded),
		},
		{
			name: "ARefusedInputEndsItAtOnce", job: openJob(t, declared),
			attempts: tries(failedOn("a", onejob.OutcomeRefused, onejob.NextNowhere)),
			want:     failure(onejob.FailureRefused),
		},
		{
			name: "AFailureOfTheLastTargetEndsIt", job: openJob(t, func(p *onejob.Policy) { p.Targets = []string{"a"} }),
			attempts: tries(failedOn("a", onejob.OutcomeExecutedFailed, onejob.NextElsewhere)),
			want:     failure(onejob.FailureExecutedFailed),
		},
		{
			name: "ABrokenContractAtTheLastTargetEndsIt", job: openJob(t, func(p *onejob.Policy) { p.Targets = []string{"a"} }),
			attempts: tries(failedOn("a", onejob.OutcomeContractViolation, onejob.NextElsewhere)),
			want:     failure(onejob.FailureExecutedFailed),
		},
		{
			name: "AnExecutedFailureOfAnEffectIsTheEndWhenNobodyCouldTakeOver", job: openJob(t, external, never),
			attempts: tries(failedOn("a", onejob.OutcomeExecutedFailed, onejob.NextAgain)),
			want:     failure(onejob.FailureExecutedFailed),
		},
	}
	for _, s := range onejob.JobStates() {
		if s.Terminal() {
			for _, lane := range []int{0, 1} {
				rules = append(rules, rule{
					name: "ATerminalJobRestsWhoeverAsks/" + string(s), job: with(openJob(t, declared, twoLanes), func(j *onejob.Job) { j.State = s }),
					attempts: tries(failedOn("a", onejob.OutcomeRefused, onejob.NextAgain)),
					ask:      onejob.Ask{Now: true, Target: "b", Lane: lane}, want: onejob.Decision{Verb: onejob.Rest},
				})
			}
		}
	}
	checkRules(t, rules)
}

func TestADecisionTellsWhyAnAttemptIsInDoubt(t *testing.T) {
	t.Parallel()
	a := held("a", onejob.AttemptUnknown)
	a.Evidence.Error = "connection reset after the body"
	got := onejob.Decide(openJob(t), tries(a), nil, noon, onejob.Ask{}).Detail
	const want = "attempt 1 at a may or may not have had its effect: connection reset after the body"
	if got != want {
		t.Errorf("detail %q; want %q", got, want)
	}
}
