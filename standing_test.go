package onejob_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/onejob-dev/onejob"
)

func TestWhereAJobStands(t *testing.T) {
	t.Parallel()
	again := failedOn("a", onejob.OutcomeRefused, onejob.NextAgain, func(a *onejob.Attempt) { a.RetryAt = noon.Add(time.Minute) })
	for _, tt := range []struct {
		name     string
		job      *onejob.Job
		attempts []onejob.Attempt
		want     onejob.Standing
	}{
		{"ANewOneIsQueuedNow", openJob(t), nil, onejob.Standing{State: onejob.JobQueued, RunAfter: noon, NextTarget: "a"}},
		{
			"ALaterOneIsQueuedForThen", with(openJob(t), func(j *onejob.Job) { j.RunAfter = noon.Add(time.Hour) }), nil,
			onejob.Standing{State: onejob.JobQueued, RunAfter: noon.Add(time.Hour), NextTarget: "a"},
		},
		{"ABackoffIsQueued", openJob(t), tries(again), onejob.Standing{State: onejob.JobQueued, RunAfter: noon.Add(time.Minute), NextTarget: "a"}},
		{"AClaimedOneRuns", openJob(t), tries(held("a", onejob.AttemptStarting)), onejob.Standing{State: onejob.JobRunning, NextTarget: "a"}},
		{"AnUnknownOneIsBlocked", openJob(t), tries(held("a", onejob.AttemptUnknown)), onejob.Standing{
			State:   onejob.JobBlocked,
			Blocked: &onejob.Blocked{Reason: onejob.BlockAttemptUnknown, Since: noon, AttemptID: "att_1"},
		}},
		{
			"ACancelledOneIsOver", with(openJob(t), func(j *onejob.Job) { j.CancelRequestedAt = noon }), nil,
			onejob.Standing{State: onejob.JobCancelled},
		},
		{
			"ALateOneIsOver", with(openJob(t), func(j *onejob.Job) { j.Deadline = noon }), nil,
			onejob.Standing{State: onejob.JobFailed, Error: &onejob.Failure{Code: onejob.FailureDeadlineExceeded}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := onejob.StandingOf(tt.job, tt.attempts, nil, noon)
			texts := cmp.Options{cmpopts.IgnoreFields(onejob.Blocked{}, "Detail"), cmpopts.IgnoreFields(onejob.Failure{}, "Message")}
			if diff := cmp.Diff(tt.want, got, texts); diff != "" {
				t.Errorf("StandingOf (-want +got):\n%s", diff)
			}
			if ends := got.State == onejob.JobFailed || got.State == onejob.JobCancelled; got.Closes() != ends {
				t.Errorf("%s closes: %t; want %t", got.State, got.Closes(), ends)
			}
		})
	}
}

func TestABlockKeepsItsTimeWhileItsReasonStays(t *testing.T) {
	t.Parallel()
	since := func(reason onejob.BlockReason, attempt string) time.Time {
		job := openJob(t)
		job.State, job.Blocked = onejob.JobBlocked, &onejob.Blocked{Reason: reason, AttemptID: attempt, Since: noon.Add(-time.Hour)}
		return onejob.StandingOf(job, tries(held("a", onejob.AttemptUnknown)), nil, noon).Blocked.Since
	}
	if got := since(onejob.BlockAttemptUnknown, "att_1"); !got.Equal(noon.Add(-time.Hour)) {
		t.Errorf("for the same attempt it is blocked since %s; want an hour ago", got)
	}
	if got := since(onejob.BlockAttemptUnknown, "att_0"); !got.Equal(noon) {
		t.Errorf("for another attempt it is blocked since %s; want now", got)
	}
	if got := since(onejob.BlockFailoverNotCertified, "att_1"); !got.Equal(noon) {
		t.Errorf("for another reason it is blocked since %s; want now", got)
	}
}

func TestATerminalJobStandsWhereItStood(t *testing.T) {
	t.Parallel()
	job := openJob(t)
	job.State, job.Error, job.NextTarget = onejob.JobFailed, &onejob.Failure{Code: onejob.FailureRefused, Message: "the input was refused"}, ""
	want := onejob.Standing{State: job.State, RunAfter: job.RunAfter, Error: job.Error}
	got := onejob.StandingOf(job, tries(held("a", onejob.AttemptRunning)), nil, noon)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("StandingOf (-want +got):\n%s", diff)
	}
}
