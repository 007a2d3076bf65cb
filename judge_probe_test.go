package onejob_test

import (
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
)

func TestAnAbsenceRulesOnlyAfterADeclaredQuarantine(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	absence := onejob.ProbeRecordParams{Method: onejob.ProbeSearch, Outcome: onejob.OutcomeNotExecuted, Absence: true, Detail: "not found"}
	for name, tt := range map[string]struct {
		until time.Time
		want  bool
	}{
		"it never ends":      {time.Time{}, false},
		"it is not over":     {now.Add(time.Microsecond), false},
		"it ends now":        {now, true},
		"it ended long ago ": {now.Add(-time.Hour), true},
	} {
		a := onejob.Attempt{State: onejob.AttemptUnknown, QuarantineUntil: tt.until}
		v, resolves := onejob.JudgeProbe(&a, &absence, now)
		if resolves != tt.want {
			t.Errorf("%s: resolves is %t; want %t", name, resolves, tt.want)
		}
		if resolves && (v.Ruling == nil || v.Ruling.By != "probe:search" || v.Ruling.Evidence != "not found" || v.Next != onejob.NextAgain) {
			t.Errorf("%s: the verdict is %+v; want a ruling like a person's", name, v)
		}
	}
}

func TestWhatAProbeMaySettle(t *testing.T) {
	t.Parallel()
	ruled := &onejob.Ruling{Outcome: onejob.OutcomeNotExecuted}
	settles := func(a onejob.Attempt, o onejob.Outcome) bool {
		_, resolves := onejob.JudgeProbe(&a, &onejob.ProbeRecordParams{Outcome: o, Method: onejob.ProbeLookup}, time.Time{})
		return resolves
	}
	proving := map[onejob.Outcome]bool{
		onejob.OutcomeSucceeded: true, onejob.OutcomeExecutedFailed: true, onejob.OutcomeContractViolation: true,
		onejob.OutcomeRefused: true, onejob.OutcomeNotExecuted: true, onejob.OutcomeCancelled: true,
	}
	for _, outcome := range append(onejob.Outcomes(), "", "of a later version") {
		for _, state := range onejob.AttemptStates() {
			want := state == onejob.AttemptUnknown && proving[outcome]
			if got := settles(onejob.Attempt{State: state}, outcome); got != want {
				t.Errorf("%q settles an attempt that is %s: %t; want %t", outcome, state, got, want)
			}
			late := (state == onejob.AttemptFailed || state == onejob.AttemptCancelled) && outcome == onejob.OutcomeSucceeded
			if got := settles(onejob.Attempt{State: state, Ruling: ruled}, outcome); got != (want || late) {
				t.Errorf("%q settles an attempt that was ruled %s: %t; want %t", outcome, state, got, want || late)
			}
		}
		accepted := onejob.Attempt{State: onejob.AttemptRunning, Outcome: onejob.OutcomeAccepted}
		if got := settles(accepted, outcome); got != proving[outcome] {
			t.Errorf("%q settles an accepted attempt: %t; want %t", outcome, got, proving[outcome])
		}
	}
}
