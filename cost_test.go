package onejob_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/onejob-dev/onejob"
)

func clamped(n *big.Int) int64 {
	switch {
	case n.Cmp(big.NewInt(math.MaxInt64)) > 0:
		return math.MaxInt64
	case n.Cmp(big.NewInt(math.MinInt64)) < 0:
		return math.MinInt64
	}
	return n.Int64()
}

func TestMoneyIsAddedExactlyOrStaysAtTheLargestAmount(t *testing.T) {
	t.Parallel()

	edges := []int64{0, 1, -1, 999_999, 1_000_000, -1_000_001, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1, math.MaxInt64 / 1_000_000, math.MinInt64 / 1_000_000, math.MaxInt64/1_000_000 + 1, math.MinInt64/1_000_000 - 1, -999_999}
	for range 200 {
		edges = append(edges, int64(rand.Uint64()>>rand.IntN(64)))
	}
	for _, a := range edges {
		for _, b := range edges {
			if got, want := onejob.AddMicros(a, b), clamped(new(big.Int).Add(big.NewInt(a), big.NewInt(b))); got != want {
				t.Fatalf("%d + %d = %d; want %d", a, b, got, want)
			}
			units := new(big.Int).Mul(big.NewInt(a), big.NewInt(1_000_000))
			if got, want := onejob.MicrosOf(a, b), clamped(units.Add(units, big.NewInt(b))); got != want {
				t.Fatalf("%d units and %d millionths are %d; want %d", a, b, got, want)
			}
		}
	}
}

func TestAnAttemptMayCostMoreWhileInDoubtOrWhenItToldNoPrice(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		state    onejob.AttemptState
		phase    onejob.Phase
		outcome  onejob.Outcome
		unpriced bool // may cost more when it told no price
		priced   bool // may cost more when it did
	}{
		{onejob.AttemptStarting, onejob.PhaseNotSent, "", false, false},
		{onejob.AttemptRunning, onejob.PhaseSent, "", true, true},
		{onejob.AttemptUnknown, onejob.PhaseSent, onejob.OutcomeUnknown, true, true},
		{onejob.AttemptSucceeded, onejob.PhaseAnswered, onejob.OutcomeSucceeded, true, false},
		{onejob.AttemptDiscarded, onejob.PhaseAnswered, onejob.OutcomeSucceeded, true, false},
		{onejob.AttemptFailed, onejob.PhaseAnswered, onejob.OutcomeRefused, false, false},
		{onejob.AttemptFailed, onejob.PhaseAnswered, onejob.OutcomeNotExecuted, false, false},
		{onejob.AttemptFailed, onejob.PhaseAnswered, onejob.OutcomeExecutedFailed, true, false},
		{onejob.AttemptFailed, onejob.PhaseAnswered, onejob.OutcomeContractViolation, true, false},
		{onejob.AttemptCancelled, onejob.PhaseNotSent, onejob.OutcomeCancelled, false, false},
		{onejob.AttemptCancelled, onejob.PhaseSent, onejob.OutcomeCancelled, true, false},
	} {
		a := onejob.Attempt{State: c.state, Phase: c.phase, Outcome: c.outcome}
		if got := a.MayCostMore(); got != c.unpriced {
			t.Errorf("%s, %s, no price: %v; want %v", c.state, c.outcome, got, c.unpriced)
		}
		a.Currency = "EUR"
		if got := a.MayCostMore(); got != c.priced {
			t.Errorf("%s, %s, with a price: %v; want %v", c.state, c.outcome, got, c.priced)
		}
	}
}
