package contract

import (
	"maps"
	"slices"
)

// Verdict is what evidence says of a gate.
type Verdict string

// Verdicts.
const (
	VerdictPass Verdict = "pass"
	VerdictFail Verdict = "fail"
	// VerdictInconclusive : too little was seen. It opens nothing.
	VerdictInconclusive Verdict = "inconclusive"
)

// Sample is one call of one case, as one gate judges it.
type Sample struct {
	CaseID string
	// Passed is true when nothing was violated.
	Passed bool
	// Infra is true when the call itself came to nothing: too many requests, a server
	// error, no connection. It says nothing about the target's outputs.
	Infra bool
}

// Run is one verification's samples for one gate.
type Run []Sample

// Tally is what runs of the same contract and target have shown together.
type Tally struct {
	Cases    int `json:"cases"`    // with at least one sample that says something
	Failures int `json:"failures"` // cases of which any sample failed
	Flaky    int `json:"flaky"`    // of the failures, those of which others passed
	Samples  int `json:"samples"`
	Infra    int `json:"infra"` // not among Samples
	// Short are cases with fewer good samples than one run has repeats. They are no
	// failures, and count neither way.
	Short int `json:"short"`
}

// Pool counts runs of the same contract digest and target digest together. A case
// passes only if every sample of it in every run passed, so that a lucky repeat of
// a failed run helps nobody; a case seen in two runs is one case.
func Pool(repeats int, runs ...Run) Tally {
	type seen struct{ passed, failed int }
	var t Tally
	cases := map[string]*seen{}
	for _, run := range runs {
		for _, s := range run {
			if s.Infra {
				t.Infra++
				continue
			}
			c := cases[s.CaseID]
			if c == nil {
				c = &seen{}
				cases[s.CaseID] = c
			}
			t.Samples++
			if s.Passed {
				c.passed++
			} else {
				c.failed++
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(cases)) {
		switch c := cases[id]; {
		case c.failed > 0:
			t.Cases, t.Failures = t.Cases+1, t.Failures+1
			if c.passed > 0 {
				t.Flaky++
			}
		case c.passed < repeats:
			t.Short++
		default:
			t.Cases++
		}
	}
	return t
}

// Judge holds a tally to a gate. Failures beyond what the gate allows fail it,
// whatever else was seen. It passes only with at least as many whole cases as planned
// and a bound that reaches the gate's rate; with less, or with a greater share of
// infrastructure errors than allowed, nothing is shown.
func (s Sampling) Judge(t Tally, g Gate, planned int, maxInfraRate float64) Verdict {
	calls := t.Samples + t.Infra
	switch {
	case t.Failures > g.MaxFailures:
		return VerdictFail
	case calls == 0 || float64(t.Infra) > maxInfraRate*float64(calls):
		return VerdictInconclusive
	case t.Short > 0 || t.Cases < planned || t.Cases == 0:
		return VerdictInconclusive
	case !shows(t.Cases, t.Failures, g.MinRate, s.Confidence):
		return VerdictInconclusive
	}
	return VerdictPass
}
