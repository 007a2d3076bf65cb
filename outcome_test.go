package onejob_test

import (
	"slices"
	"testing"

	"github.com/onejob-dev/onejob"
)

func TestAnOutcomeNobodyKnowsIsDoubt(t *testing.T) {
	t.Parallel()
	for _, o := range []onejob.Outcome{onejob.OutcomeUnknown, "timeout", "failed", "SUCCEEDED"} {
		if e, moves := o.Event(); e != onejob.EventSilence || !moves {
			t.Errorf("outcome %q is event %q, %t; want %q, true", o, e, moves, onejob.EventSilence)
		}
		if o.Proven() {
			t.Errorf("outcome %q counts as proof that nothing happened", o)
		}
	}
}

func TestAcceptedAndNoOutcomeMoveNothing(t *testing.T) {
	t.Parallel()
	for _, o := range []onejob.Outcome{onejob.OutcomeAccepted, ""} {
		if e, moves := o.Event(); moves {
			t.Errorf("outcome %q moves an attempt by %q; want nothing", o, e)
		}
	}
}

func TestOnlyThreeOutcomesProveThatNothingHappened(t *testing.T) {
	t.Parallel()
	proof := []onejob.Outcome{onejob.OutcomeNotExecuted, onejob.OutcomeRefused, onejob.OutcomeCancelled}
	for _, o := range onejob.Outcomes() {
		if want := slices.Contains(proof, o); o.Proven() != want {
			t.Errorf("%q.Proven() = %t; want %t", o, o.Proven(), want)
		}
	}
}

func TestWhatAnOutcomeDoesToARunningAttempt(t *testing.T) {
	t.Parallel()
	want := map[onejob.Outcome]onejob.AttemptState{
		onejob.OutcomeNotExecuted:       onejob.AttemptFailed,
		onejob.OutcomeRefused:           onejob.AttemptFailed,
		onejob.OutcomeExecutedFailed:    onejob.AttemptFailed,
		onejob.OutcomeContractViolation: onejob.AttemptFailed,
		onejob.OutcomeSucceeded:         onejob.AttemptSucceeded,
		onejob.OutcomeAccepted:          onejob.AttemptRunning,
		onejob.OutcomeUnknown:           onejob.AttemptUnknown,
		onejob.OutcomeResultLost:        onejob.AttemptUnknown,
		onejob.OutcomeCancelled:         onejob.AttemptCancelled,
	}
	for _, o := range onejob.Outcomes() {
		got := onejob.AttemptRunning
		if e, moves := o.Event(); moves {
			var err error
			if got, err = got.Next(e); err != nil {
				t.Errorf("outcome %q: %v", o, err)
			}
		}
		if got != want[o] {
			t.Errorf("a running attempt with outcome %q is %s; want %s", o, got, want[o])
		}
	}
}
