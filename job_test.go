package onejob_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/onejob-dev/onejob"
)

func TestCostsCountEveryAttemptByCurrency(t *testing.T) {
	t.Parallel()
	cost := func(s onejob.AttemptState, micros int64, currency string) onejob.Attempt {
		return onejob.Attempt{State: s, CostMicros: micros, Currency: currency}
	}
	for _, tt := range []struct {
		name     string
		attempts []onejob.Attempt
		want     []onejob.Cost
	}{
		{"NothingWasTried", nil, nil},
		{"NoPriceWasTold", []onejob.Attempt{cost(onejob.AttemptSucceeded, 0, "")}, nil},
		{
			"LosersAndFailuresAreIncluded",
			[]onejob.Attempt{
				cost(onejob.AttemptFailed, 1, "EUR"), cost(onejob.AttemptDiscarded, 10, "EUR"), cost(onejob.AttemptSucceeded, 100, "EUR"),
			},
			[]onejob.Cost{{Currency: "EUR", Micros: 111}},
		},
		{
			"CurrenciesAreNotAdded",
			[]onejob.Attempt{
				cost(onejob.AttemptFailed, 1, "USD"), cost(onejob.AttemptFailed, 2, "EUR"), cost(onejob.AttemptSucceeded, 3, "USD"),
			},
			[]onejob.Cost{{Currency: "USD", Micros: 4}, {Currency: "EUR", Micros: 2}},
		},
		{
			"AnAttemptInDoubtMayStillBeCharged",
			[]onejob.Attempt{cost(onejob.AttemptFailed, 1, "USD"), cost(onejob.AttemptUnknown, 0, "")},
			[]onejob.Cost{{Currency: "USD", Micros: 1, AtLeast: true}},
		},
		{
			"SoMayARunningOne",
			[]onejob.Attempt{cost(onejob.AttemptRunning, 0, ""), cost(onejob.AttemptFailed, 1, "USD")},
			[]onejob.Cost{{Currency: "USD", Micros: 1, AtLeast: true}},
		},
		{
			"AnExecutedOneThatToldNoPriceWasPaidForToo",
			[]onejob.Attempt{
				cost(onejob.AttemptFailed, 5, "USD"), cost(onejob.AttemptSucceeded, 0, ""),
			},
			[]onejob.Cost{{Currency: "USD", Micros: 5, AtLeast: true}},
		},
		{
			"ARefusalCostsNothing",
			[]onejob.Attempt{
				cost(onejob.AttemptSucceeded, 5, "USD"), {State: onejob.AttemptFailed, Outcome: onejob.OutcomeRefused},
			},
			[]onejob.Cost{{Currency: "USD", Micros: 5}},
		},
		{
			"OneThatSentNothingMayNot",
			[]onejob.Attempt{cost(onejob.AttemptFailed, 1, "USD"), cost(onejob.AttemptStarting, 0, "")},
			[]onejob.Cost{{Currency: "USD", Micros: 1}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			job := onejob.Job{Attempts: tt.attempts}
			if diff := cmp.Diff(tt.want, job.Costs()); diff != "" {
				t.Errorf("Costs (-want +got):\n%s", diff)
			}
		})
	}
}
