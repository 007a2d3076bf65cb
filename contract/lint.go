package contract

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Severity is what a finding means.
type Severity string

// The severities.
const (
	// SeverityError : the contract cannot be used.
	SeverityError Severity = "error"
	// SeverityWarning : it can, and may not do what was meant.
	SeverityWarning Severity = "warning"
	// SeverityNote : it is worth knowing.
	SeverityNote Severity = "note"
)

// Finding is one thing that lint has to say.
type Finding struct {
	Severity Severity `json:"severity"`
	// Rule is a stable name of what was looked for, as in schema-open.
	Rule string `json:"rule"`
	Fault
}

// String returns the finding as one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s [%s, %s]", f.Fault.String(), f.Severity, f.Rule)
}

// Bound is what the plan of one gate shows when it is passed at its limit.
type Bound struct {
	Gate        string  `json:"gate"`
	Cases       int     `json:"cases"`
	MaxFailures int     `json:"max_failures"`
	Confidence  float64 `json:"confidence"`
	Rate        float64 `json:"rate"`     // the exact bound
	MinRate     float64 `json:"min_rate"` // what the gate asks for
	// Wilson is the approximate bound, for show.
	Wilson float64 `json:"wilson"`
	// GoodTargetPasses is the chance that a target passes that is right 99 times in
	// 100: what the plan costs in false refusals.
	GoodTargetPasses float64 `json:"good_target_passes"`
}

// String returns the bound as one line, to a tenth of a percent.
func (b Bound) String() string {
	what := "failure"
	if b.Gate == gateEquivalence {
		what = "disagreement"
	}
	return fmt.Sprintf("%s, %s allowed: ≥ %.1f %% (%s one-sided, exact), gate %s", plural(b.Cases, "case"), plural(b.MaxFailures, what),
		b.Rate*100, percent(b.Confidence), percent(b.MinRate))
}

// gateEquivalence is the one bound that is about two targets.
const gateEquivalence = "equivalence"

// plural counts things.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// percent writes a rate without digits that it does not need.
func percent(rate float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", rate*100), "0"), ".") + " %"
}

// percentDown writes a bound that falls short, never more than it is.
func percentDown(rate float64) string {
	return fmt.Sprintf("%.2f %%", math.Floor(rate*1e4)/100)
}

// Report is what lint says of a contract. Nothing was called or spent for it.
type Report struct {
	File     string    `json:"file"`
	Kind     string    `json:"kind"`
	Digest   string    `json:"digest"`
	Cases    int       `json:"cases"`
	Distinct int       `json:"distinct_cases"`
	Hostile  int       `json:"hostile_cases"`
	Expected int       `json:"cases_with_expect"`
	Repeats  int       `json:"repeats"`
	Calls    int       `json:"calls"` // cases times repeats, probes apart
	Bounds   []Bound   `json:"bounds"`
	Findings []Finding `json:"findings"` // errors first, then warnings, then notes
}

// OK reports whether the contract can be used: nothing found is an error.
func (r *Report) OK() bool {
	return !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity == SeverityError })
}

// Lint checks everything about a contract that can be checked without a target.
func Lint(c *Contract) *Report { return lint(c).done() }

// linter looks through one contract.
type linter struct {
	*Contract
	report  Report
	checker *Checker
	// read is what expectations read of expect, by their id.
	read map[string][]string
}

func lint(c *Contract) *linter {
	l := &linter{Contract: c, read: map[string][]string{}, report: Report{
		File: c.Name, Kind: c.Kind, Cases: len(c.CaseList), Repeats: c.Sampling.Repeats,
		Calls: len(c.CaseList) * c.Sampling.Repeats, Bounds: []Bound{}, Findings: []Finding{},
	}}
	l.checker = &Checker{output: c.Output, cap: l.outputCap(), gates: map[string]string{}, terms: c.Render}
	digest, err := Digest(c)
	if err != nil {
		l.error("digest", "", "it has no digest: "+err.Error())
	}
	l.report.Digest, l.checker.digest = digest, digest
	l.schemas()
	l.assertions()
	l.prompt()
	l.params()
	l.cases()
	l.rendered()
	l.plans()
	l.consequences()
	return l
}

func (l *linter) done() *Report {
	rank := map[Severity]int{SeverityError: 0, SeverityWarning: 1, SeverityNote: 2}
	order := byPlace(map[string]int{l.Name: -1})
	slices.SortStableFunc(l.report.Findings, func(a, b Finding) int {
		if a.Severity != b.Severity {
			return rank[a.Severity] - rank[b.Severity]
		}
		return order(a.Fault, b.Fault)
	})
	return &l.report
}

func (l *linter) errors() []Fault {
	var faults []Fault
	for _, f := range l.done().Findings {
		if f.Severity == SeverityError {
			faults = append(faults, f.Fault)
		}
	}
	return faults
}

func (l *linter) find(severity Severity, rule, path, message string) {
	p := l.at(path)
	l.add(Finding{severity, rule, Fault{File: l.Name, Line: p.line, Column: p.column, Path: path, Message: message}})
}

func (l *linter) add(f Finding) {
	if !slices.Contains(l.report.Findings, f) {
		l.report.Findings = append(l.report.Findings, f)
	}
}

func (l *linter) error(rule, path, message string)   { l.find(SeverityError, rule, path, message) }
func (l *linter) warning(rule, path, message string) { l.find(SeverityWarning, rule, path, message) }
func (l *linter) note(rule, path, message string)    { l.find(SeverityNote, rule, path, message) }

func (l *linter) caseError(rule string, c *Case, path, message string) {
	l.add(Finding{SeverityError, rule, Fault{File: c.File, Line: c.Line, Column: 1, Path: path, Message: message}})
}
