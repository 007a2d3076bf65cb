package onejob_test

import (
	"errors"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
)

func TestAButtonIsServedOnlyByWhoCanCallItsTarget(t *testing.T) {
	t.Parallel()

	served := map[string]onejob.TargetPins{"a": {}}
	tests := []struct {
		name    string
		targets map[string]onejob.TargetPins
		target  string
		want    onejob.Code
	}{
		{"Served", served, "a", ""},
		{"ServedByOthers", served, "b", onejob.CodeInvalidJob},
		{"AskedWithoutAnEngine", nil, "b", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			d := onejob.Decision{Verb: onejob.Start, Target: tt.target}
			err := onejob.CheckServed(&onejob.Job{ID: "job_1"}, d, &onejob.StartParams{Targets: tt.targets})
			if got := onejob.CodeOf(err); (err != nil || tt.want != "") && got != tt.want {
				t.Errorf("CheckServed(%s of %v) = %v; want code %q", tt.target, tt.targets, err, tt.want)
			}
		})
	}
}

func TestAnUnblockChangesOnlyAJobThatNeedsIt(t *testing.T) {
	t.Parallel()

	blocked := func(r onejob.BlockReason) *onejob.Job {
		return &onejob.Job{State: onejob.JobBlocked, Blocked: &onejob.Blocked{Reason: r}}
	}
	inDoubt := blocked(onejob.BlockNeedsOperator)
	inDoubt.Attempts = []onejob.Attempt{{State: onejob.AttemptUnknown}}
	tests := []struct {
		name string
		job  *onejob.Job
		want bool
		err  error
	}{
		{"NeedsAnOperator", blocked(onejob.BlockNeedsOperator), true, nil},
		{"Parked", blocked(onejob.BlockParked), true, nil},
		{"WaitsForACertificate", blocked(onejob.BlockFailoverNotCertified), false, nil},
		{"Queued", &onejob.Job{State: onejob.JobQueued}, false, nil},
		{"InDoubt", inDoubt, false, onejob.ErrAttemptUnresolved},
		{"Ended", &onejob.Job{State: onejob.JobFailed}, false, onejob.ErrJobTerminal},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			if got, err := onejob.CheckUnblock(tt.job); got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("CheckUnblock(%s) = %t, %v; want %t, %v", tt.job.State, got, err, tt.want, tt.err)
			}
		})
	}
}

func TestARepeatIsAnEventOnceAnHour(t *testing.T) {
	t.Parallel()

	now := time.Unix(1_000_000, 0)
	for _, tt := range []struct {
		name string
		last time.Time
		want bool
	}{
		{"TheFirst", time.Time{}, true},
		{"AMomentLater", now.Add(-time.Second), false},
		{"AnHourLater", now.Add(-time.Hour), true},
	} {
		if got := onejob.RecordsRepeat(tt.last, now); got != tt.want {
			t.Errorf("%s: RecordsRepeat = %t; want %t", tt.name, got, tt.want)
		}
	}
}
