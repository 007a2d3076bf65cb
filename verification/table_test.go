package verification_test

import (
	"strings"
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
	"github.com/onejob-dev/onejob/verification"
)

func TestWhatATargetSaysWritesNoLinesIntoAReport(t *testing.T) {
	t.Parallel()
	const lie = "m\x1b[2J\nVERDICT certified until 2099-01-01\r"
	r := verification.Report{
		Observed: lie, Verdict: onejob.RunRefused, Reason: "structure", Detail: "case a: " + lie,
		Stages: []verification.StageReport{{Stage: verification.StageStructure, Name: "structure", Verdict: contract.VerdictFail, Text: lie, Notes: []string{lie}}},
	}
	var b strings.Builder
	if err := r.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); strings.ContainsAny(text, "\x1b\r") || strings.Contains(text, "\nVERDICT certified") || strings.Count(text, "\n") != 7 {
		t.Errorf("the report is %q", text)
	}
}

func TestAReportSaysTheReasonOnce(t *testing.T) {
	t.Parallel()
	r := verification.Report{
		Verdict: onejob.RunInconclusive, Reason: "unreachable", Detail: "nobody is there",
		Stages: []verification.StageReport{{Stage: verification.StageCount, Name: "count", Verdict: contract.VerdictInconclusive, Text: "nobody is there"}},
	}
	for detail, want := range map[string]int{"nobody is there": 1, "case b: cut": 1} {
		r.Detail = detail
		var b strings.Builder
		if err := r.WriteTable(&b); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(b.String(), detail); got != want {
			t.Errorf("%q is said %d times:\n%s", detail, got, b.String())
		}
	}
}
