package contract_test

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/onejob-dev/onejob/contract"
)

// The bounds that are printed in the documentation, one-sided at 95 %.
func TestBoundsAreThoseOfTheTables(t *testing.T) {
	t.Parallel()

	tests := []struct {
		n, failures   int
		exact, wilson float64
	}{
		{10, 0, .741, .787},
		{20, 0, .861, .881},
		{30, 0, .905, .917},
		{60, 0, .951, .957},
		{100, 0, .971, .974},
		{104, 1, .955, .958},
		{104, 5, .902, .905},
		{300, 0, .990, .991},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%d/%d", tt.n, tt.failures), func(t *testing.T) {
			t.Parallel()

			if got := contract.LowerBound(tt.n, tt.failures, .95); math.Abs(got-tt.exact) > .0006 {
				t.Errorf("LowerBound = %.4f; want %.3f", got, tt.exact)
			}
			if got := contract.Wilson(tt.n, tt.failures, .95); math.Abs(got-tt.wilson) > .0006 {
				t.Errorf("Wilson = %.4f; want %.3f", got, tt.wilson)
			}
		})
	}
}

// With no failure the exact bound has a closed form.
func TestTheBoundWithoutFailuresIsTheRootOfTheError(t *testing.T) {
	t.Parallel()

	for _, n := range []int{1, 2, 59, 299, 2995, 100_000} {
		for _, confidence := range []float64{.5, .9, .95, .99} {
			want := math.Pow(1-confidence, 1/float64(n))
			if got := contract.LowerBound(n, 0, confidence); math.Abs(got-want) > 1e-9 {
				t.Errorf("LowerBound(%d, 0, %v) = %v; want %v", n, confidence, got, want)
			}
		}
	}
}

func TestNothingSeenShowsNothing(t *testing.T) {
	t.Parallel()

	for _, c := range [][2]int{{0, 0}, {-1, 0}, {5, 5}, {5, 9}} {
		if got := contract.LowerBound(c[0], c[1], .95); got != 0 {
			t.Errorf("LowerBound(%d, %d) = %v; want 0", c[0], c[1], got)
		}
	}
	if got := contract.Wilson(0, 0, .95); got != 0 {
		t.Errorf("Wilson(0, 0) = %v; want 0", got)
	}
}

func TestPlansAreThoseOfTheTables(t *testing.T) {
	t.Parallel()

	tests := []struct {
		rate  float64
		plans []int // by failures allowed
	}{
		{.90, []int{29, 46, 61}},
		{.95, []int{59, 93, 124, 153}},
		{.97, []int{99, 157}},
		{.98, []int{149}},
		{.99, []int{299, 473}},
		{.995, []int{598}},
		{.999, []int{2995}},
	}
	for _, tt := range tests {
		for failures, want := range tt.plans {
			if got := contract.SmallestPlan(tt.rate, failures, .95); got != want {
				t.Errorf("SmallestPlan(%v, %d) = %d; want %d", tt.rate, failures, got, want)
			}
		}
	}
	if got := contract.SmallestPlan(1, 0, .95); got != 0 {
		t.Errorf("SmallestPlan(1, 0) = %d; no number of cases shows certainty", got)
	}
	if got := contract.SmallestPlan(1-1e-12, 0, .95); got != 0 {
		t.Errorf("SmallestPlan of nearly 1 = %d; want none", got)
	}
}

// A plan is the smallest: one case less and the rate is not shown any more.
func TestAPlanIsTheSmallest(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(.5, .995).Draw(t, "rate")
		failures := rapid.IntRange(0, 12).Draw(t, "failures")
		confidence := rapid.Float64Range(.6, .99).Draw(t, "confidence")
		n := contract.SmallestPlan(rate, failures, confidence)
		if got := contract.LowerBound(n, failures, confidence); got < rate-1e-9 {
			t.Fatalf("%d/%d shows %v only; want %v", n, failures, got, rate)
		}
		if n-1 > failures && contract.LowerBound(n-1, failures, confidence) >= rate+1e-9 {
			t.Fatalf("%d cases are enough as well", n-1)
		}
		if most, ok := contract.MostFailures(n, rate, confidence); !ok || most < failures {
			t.Fatalf("MostFailures(%d, %v) = %d, %v; want at least %d", n, rate, most, ok, failures)
		}
	})
}

func TestAnExactBoundIsNeverAboveWilsonsWithoutFailures(t *testing.T) {
	t.Parallel()

	for n := 1; n < 500; n++ {
		if exact, wilson := contract.LowerBound(n, 0, .95), contract.Wilson(n, 0, .95); exact > wilson {
			t.Fatalf("%d/0: exact %v is above Wilson's %v", n, exact, wilson)
		}
	}
}

func TestThePowerOfAPlanIsThatOfTheTables(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name        string
		n, failures int
		rate, want  float64
	}{
		{"WilsonsPlanLetsTooManyPass", 52, 0, .95, .069},
		{"TheExactPlanDoesNot", 59, 0, .95, .0485},
		{"AGoodTargetIsRefusedByFewCases", 60, 0, .99, .547},
		{"ADefectOfFivePercentUnseenInFive", 5, 0, .95, .77},
		{"UnseenInTen", 10, 0, .95, .60},
		{"UnseenInTwenty", 20, 0, .95, .36},
		{"UnseenInSixty", 60, 0, .95, .046},
		{"ThreePercentUnseenInAHundred", 100, 0, .97, .048},
		{"OnePercentUnseenInThreeHundred", 300, 0, .99, .049},
		{"AGoodTargetPassesALongPlan", 200, 4, .99, .948},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			if got := contract.Power(tt.n, tt.failures, tt.rate); math.Abs(got-tt.want) > .005 {
				t.Errorf("Power(%d, %d, %v) = %.4f; want %.3f", tt.n, tt.failures, tt.rate, got, tt.want)
			}
		})
	}
	for _, edge := range []struct {
		n, failures int
		rate, want  float64
	}{{5, 5, .1, 1}, {5, 0, 1, 1}, {5, 4, 0, 0}, {5, -1, .9, 0}} {
		if got := contract.Power(edge.n, edge.failures, edge.rate); got != edge.want {
			t.Errorf("Power(%d, %d, %v) = %v; want %v", edge.n, edge.failures, edge.rate, got, edge.want)
		}
	}
}

func TestMostFailuresSaysWhenNotEvenNoneMayFail(t *testing.T) {
	t.Parallel()

	if most, ok := contract.MostFailures(104, .90, .95); !ok || most != 5 {
		t.Errorf("MostFailures(104, 90 %%) = %d, %v; want 5", most, ok)
	}
	if _, ok := contract.MostFailures(58, .95, .95); ok {
		t.Error("58 cases show 95 %; want 59")
	}
}

func TestRepeatsThatGoTogetherAreWorthLittle(t *testing.T) {
	t.Parallel()

	if got := contract.WorthOfRepeats(20, 10, .5); math.Abs(got-36) > .5 {
		t.Errorf("20 cases with 10 repeats are worth %v; want 36", got)
	}
	if got := contract.WorthOfRepeats(20, 10, 1); got != 20 {
		t.Errorf("repeats that are always the same are worth %v; want 20", got)
	}
	if got := contract.WorthOfRepeats(0, 3, 0); got != 0 {
		t.Errorf("no cases are worth %v", got)
	}
}
