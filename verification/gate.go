package verification

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
)

// Names of gates.
const (
	gateStructure   = "structure"
	gateInvariants  = "invariants"
	gateSemantic    = contract.GateSemantic
	gateEquivalence = "equivalence"
)

// gate gathers what runs have shown for one gate of the contract.
type gate struct {
	name    string
	terms   contract.Gate
	planned int                     // cases
	runs    map[string]contract.Run // by run
	failed  map[string]bool         // cases
	classes map[string]int          // of failures, in this run and earlier ones
	first   string                  // the first of the failures, in words
	earlier int                     // failed cases of earlier runs
}

// newGates are those that the contract has, filled with what earlier runs have shown.
func (v *verification) newGates() []*gate {
	cases, expecting := len(v.Contract.CaseList), 0
	for i := range v.Contract.CaseList {
		if v.Contract.CaseList[i].Expect != nil {
			expecting++
		}
	}
	g := v.Contract.Gates
	var gates []*gate
	for _, one := range []struct {
		name    string
		terms   *contract.Gate
		planned int
	}{{gateStructure, g.Structure, cases}, {gateInvariants, g.Invariants, cases}, {gateSemantic, g.Semantic, expecting}} {
		if one.terms != nil {
			gates = append(gates, &gate{
				name: one.name, terms: *one.terms, planned: one.planned,
				runs: map[string]contract.Run{}, failed: map[string]bool{}, classes: map[string]int{},
			})
		}
	}
	for i := range v.earlier {
		s := &v.earlier[i]
		index, known := v.indexOf[s.CaseID]
		if s.Stage != string(StageStructure) || !known {
			continue
		}
		for _, one := range gates {
			one.add(s, v.Contract.CaseList[index].Expect != nil)
		}
	}
	for _, one := range gates {
		one.earlier = len(one.failed)
	}
	return gates
}

// depth is how far an output got before it failed: what breaks the structure is not
// asked about invariants, and holds of none.
func depth(class string) int {
	switch contract.Class(class) {
	case contract.ClassExpectation:
		return 2
	case contract.ClassInvariant, contract.ClassUndecidable:
		return 1
	default:
		return 0
	}
}

// add counts a sample as this gate sees it. expects: its case says what it expects.
func (g *gate) add(s *onejob.VerificationSample, expects bool) {
	if g.name == gateSemantic && !expects {
		return
	}
	level := map[string]int{gateStructure: 0, gateInvariants: 1, gateSemantic: 2}[g.name]
	sample := contract.Sample{CaseID: s.CaseID, Infra: s.Outcome == onejob.SampleInfra}
	sample.Passed = s.Outcome == onejob.SamplePassed || depth(s.FaultClass) > level
	g.runs[s.RunID] = append(g.runs[s.RunID], sample)
	if !sample.Passed && !sample.Infra {
		if g.first == "" {
			g.first = s.CaseID + ": " + s.Detail
		}
		g.failed[s.CaseID] = true
		g.classes[s.FaultClass]++
	}
}

// broken reports whether no further sample can make the gate pass.
func (g *gate) broken() bool { return len(g.failed) > g.terms.MaxFailures }

func (g *gate) tally(repeats int) contract.Tally {
	runs := make([]contract.Run, 0, len(g.runs))
	for _, id := range slices.Sorted(maps.Keys(g.runs)) {
		runs = append(runs, g.runs[id])
	}
	return contract.Pool(repeats, runs...)
}

// why lists the classes of failures, the most frequent first.
func (g *gate) why() string {
	classes := slices.Sorted(maps.Keys(g.classes))
	slices.SortStableFunc(classes, func(a, b string) int { return g.classes[b] - g.classes[a] })
	parts := make([]string, len(classes))
	for i, class := range classes {
		parts[i] = fmt.Sprintf("%d %s", g.classes[class], class)
	}
	return strings.Join(parts, ", ")
}

// GateReport is what was shown for one gate.
type GateReport struct {
	contract.Tally
	MinRate     float64        `json:"min_rate"`
	MaxFailures int            `json:"max_failures"`
	Planned     int            `json:"planned_cases"`
	Confidence  float64        `json:"confidence"`
	Bound       float64        `json:"bound"`  // exact, one-sided
	Wilson      float64        `json:"wilson"` // for comparison; decides nothing
	Classes     map[string]int `json:"classes,omitempty"`
	Earlier     int            `json:"earlier_failures,omitempty"` // of the failures, those that earlier runs saw
}

// judge holds what was shown to the gate.
func (v *verification) judge(g *gate, stage Stage) (StageReport, contract.Verdict) {
	sampling := v.Contract.Sampling
	t := g.tally(sampling.Repeats)
	verdict := sampling.Judge(t, g.terms, g.planned, v.Contract.Gates.Operation.MaxInfraErrorRate)
	report := &GateReport{
		Tally: t, MinRate: g.terms.MinRate, MaxFailures: g.terms.MaxFailures, Planned: g.planned, Confidence: sampling.Confidence,
		Bound: contract.LowerBound(t.Cases, t.Failures, sampling.Confidence), Wilson: max(0, contract.Wilson(t.Cases, t.Failures, sampling.Confidence)),
		Classes: g.classes, Earlier: g.earlier,
	}
	s := StageReport{Stage: stage, Name: g.name, Verdict: verdict, Gate: report, Text: gateText(report, g)}
	return s, verdict
}

func gateText(r *GateReport, g *gate) string {
	if r.Cases == 0 {
		return fmt.Sprintf("0 of %s seen, gate %g %%", many(r.Planned, "case"), 100*r.MinRate)
	}
	text := fmt.Sprintf("%d/%d cases", r.Cases-r.Failures, r.Cases)
	if why := g.why(); why != "" {
		text += " (" + why + ")"
	}
	text += fmt.Sprintf("   >= %.1f %% of cases (%g %% one-sided, exact), gate %g %%", floorPercent(r.Bound), 100*r.Confidence, 100*r.MinRate)
	switch {
	case r.Cases < r.Planned:
		text += fmt.Sprintf("; %d of %d cases seen", r.Cases, r.Planned)
	case r.Failures == r.MaxFailures && r.MaxFailures > 0:
		text += "; at the limit: one more failure refuses"
	}
	if r.Earlier > 0 {
		text += fmt.Sprintf("; %d failed in earlier runs", r.Earlier)
	}
	return text
}

// evidence is what a certificate keeps: counts and bounds by gate.
func (v *verification) evidence() (counts, bounds json.RawMessage) {
	tallies, rates := map[string]contract.Tally{}, map[string]float64{}
	for i := range v.report.Stages {
		if s := &v.report.Stages[i]; s.Gate != nil {
			tallies[s.Name], rates[s.Name] = s.Gate.Tally, s.Gate.Bound
		}
	}
	return marshal(tallies), marshal(rates)
}

func marshal(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil // maps of numbers marshal
	}
	return raw
}
