package contract

import "math"

// Statistics of n independent cases of which some fail. All bounds are one-sided
// and, but for Wilson's, exact. Nothing here knows of repeats: a case is one
// sample, however often it was run.

// LowerBound returns the Clopper–Pearson lower bound of the rate at which cases
// pass, seen failures of n: the rate under which so few failures would be seen with
// a chance of at most 1 − confidence. It is zero when n is, or when all fail.
// confidence lies between 0 and 1, both excluded.
func LowerBound(n, failures int, confidence float64) float64 {
	if n <= 0 || failures >= n {
		return 0
	}
	failures = max(failures, 0)
	low, high := 0.0, 1.0
	for range bisections {
		middle := (low + high) / 2
		if Power(n, failures, middle) > 1-confidence {
			high = middle
		} else {
			low = middle
		}
	}
	return low
}

// bisections are enough to use up a float64.
const bisections = 60

// Power returns the chance that a target whose true rate is such passes the plan of
// n cases with at most so many failures allowed. With the rate of a bad target it is
// the plan's error; with rate 1 − d and none allowed, the chance to see nothing of a
// defect that shows with chance d.
func Power(n, maxFailures int, rate float64) float64 {
	switch {
	case maxFailures >= n || rate >= 1:
		return 1
	case maxFailures < 0 || rate <= 0:
		return 0
	}
	pass, fail := math.Log(rate), math.Log1p(-rate)
	chance := 0.0
	for i := range maxFailures + 1 {
		chance += math.Exp(logChoose(n, i) + float64(i)*fail + float64(n-i)*pass)
	}
	return min(chance, 1)
}

func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

// MaxPlan bounds the plans that [SmallestPlan] looks for.
const MaxPlan = 10_000_000

// SmallestPlan returns the least number of cases with which so many failures still
// show the rate. Zero: none up to [MaxPlan] does.
func SmallestPlan(rate float64, maxFailures int, confidence float64) int {
	if rate >= 1 || maxFailures < 0 {
		return 0
	}
	high := maxFailures + 1
	for !shows(high, maxFailures, rate, confidence) {
		if high *= 2; high > MaxPlan {
			return 0
		}
	}
	low := high / 2 // does not show it, or is less than any plan
	for high-low > 1 {
		if middle := (low + high) / 2; shows(middle, maxFailures, rate, confidence) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// shows reports whether n cases with so many failures show the rate: whether a
// target of exactly that rate would pass by chance at most 1 − confidence.
func shows(n, failures int, rate, confidence float64) bool {
	return n > failures && Power(n, failures, rate) <= 1-confidence
}

// MostFailures returns how many of n cases may fail and the rate still be shown.
// ok is false when not even none may.
func MostFailures(n int, rate, confidence float64) (failures int, ok bool) {
	if !shows(n, 0, rate, confidence) {
		return 0, false
	}
	low, high := 0, n // low shows it, high does not
	for high-low > 1 {
		if middle := (low + high) / 2; shows(n, middle, rate, confidence) {
			low = middle
		} else {
			high = middle
		}
	}
	return low, true
}

// Wilson returns Wilson's lower bound. It is an approximation that lets too many
// pass: to be shown beside [LowerBound], never to decide.
func Wilson(n, failures int, confidence float64) float64 {
	if n <= 0 {
		return 0
	}
	z := math.Sqrt2 * math.Erfinv(2*confidence-1)
	size, rate := float64(n), float64(n-failures)/float64(n)
	middle := rate + z*z/(2*size)
	spread := z * math.Sqrt(rate*(1-rate)/size+z*z/(4*size*size))
	return max(0, (middle-spread)/(1+z*z/size))
}

// WorthOfRepeats returns how many independent samples so many cases with so many
// repeats are worth when repeats of one case go together with such a correlation,
// from 0 (independent) to 1 (the same every time).
func WorthOfRepeats(cases, repeats int, correlation float64) float64 {
	if cases <= 0 || repeats <= 0 {
		return 0
	}
	return float64(cases*repeats) / (1 + float64(repeats-1)*correlation)
}
