package verification_test

import (
	"math"
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
	"github.com/onejob-dev/onejob/sim"
	"github.com/onejob-dev/onejob/verification"
)

// certifiedOf verifies a target with a fault of such a rate once for each seed, and
// returns how often it is certified. The fault is one that no probe can meet, so that the
// plan alone decides.
func certifiedOf(t *testing.T, c *contract.Contract, rate float64, seeds int) int {
	t.Helper()
	checker, err := contract.Compile(c)
	if err != nil {
		t.Fatal(err)
	}
	certified := 0
	for seed := range seeds {
		mind := sim.Mind{Lies: []sim.Lie{{Fault: "enum_drift", Rate: rate}}, Seed: uint64(seed) + 1}
		r := run(t, verification.Params{Contract: c, Checker: checker, Target: indoor(t, mind)}, verification.Repeatable(verification.Options{Parallel: 1}, 1))
		switch r.State {
		case onejob.RunCertified:
			certified++
		case onejob.RunRefused:
		default:
			t.Fatalf("seed %d: %s by %s: %s", seed, r.State, r.Reason, r.Detail)
		}
	}
	return certified
}

func TestABrokenTargetIsCertifiedLessOftenThanThePlansErrorAndAGoodOneAsOftenAsItSays(t *testing.T) {
	t.Parallel()
	const (
		cases = 99 // with none allowed they show 97 %, and so refuse 95 % more often than stated
	)
	seeds := 200
	if testing.Short() {
		seeds = 30
	}
	c := contractOf(t, cases, "0.97")
	stated := 1 - c.Sampling.Confidence
	broken := certifiedOf(t, c, 0.05, seeds)
	good := certifiedOf(t, c, 0.005, seeds)
	power := contract.Power(cases, 0, 0.995)
	t.Logf("of %d seeds: a target that is wrong 5 %% of the time is certified %d times (stated error %.3g %%, expected %.1f), one that is right 99.5 %% of the time %d times (the plan says %.1f)",
		seeds, broken, 100*stated, contract.Power(cases, 0, 0.95)*float64(seeds), good, power*float64(seeds))
	most := stated * float64(seeds)
	if testing.Short() { // few seeds may be unlucky ones
		most += 2 * math.Sqrt(stated*(1-stated)*float64(seeds))
	}
	if float64(broken) >= most {
		t.Errorf("a broken target is certified %d times of %d; the stated error is %.3g", broken, seeds, stated)
	}
	if spread := 2 * math.Sqrt(power*(1-power)*float64(seeds)); float64(good) < power*float64(seeds)-spread {
		t.Errorf("a good target is certified %d times of %d; the plan says %.1f", good, seeds, power*float64(seeds))
	}
}
