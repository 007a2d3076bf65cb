package contract_test

import (
	"fmt"
	"testing"

	"github.com/onejob-dev/onejob/contract"
)

// run makes a run of n cases with repeats, of which some samples fail: the first
// sample of each case named.
func run(n, repeats int, failing ...int) contract.Run {
	var r contract.Run
	for i := range n {
		for k := range repeats {
			fails := k == 0 && contains(failing, i)
			r = append(r, contract.Sample{CaseID: fmt.Sprintf("c-%d", i), Passed: !fails})
		}
	}
	return r
}

func contains(list []int, n int) bool {
	for _, v := range list {
		if v == n {
			return true
		}
	}
	return false
}

func TestACasePassesOnlyIfAllItsRepeatsDo(t *testing.T) {
	t.Parallel()

	got := contract.Pool(3, run(10, 3, 4))
	want := contract.Tally{Cases: 10, Failures: 1, Flaky: 1, Samples: 30}
	if got != want {
		t.Errorf("tally %+v; want %+v", got, want)
	}
}

// A second run that goes well does not undo a first that did not.
func TestALuckySecondRunHelpsNobody(t *testing.T) {
	t.Parallel()

	sampling := contract.Sampling{Repeats: 3, Confidence: .95}
	gate := contract.Gate{MinRate: .95, MaxFailures: 0}
	bad, good := run(60, 3, 7), run(60, 3)
	if got := sampling.Judge(contract.Pool(3, good), gate, 60, .05); got != contract.VerdictPass {
		t.Errorf("60 good cases: %s; want pass", got)
	}
	pooled := contract.Pool(3, bad, good, good)
	if pooled.Cases != 60 || pooled.Failures != 1 {
		t.Errorf("tally %+v; want 60 cases, 1 of them failed: the same case is one case", pooled)
	}
	if got := sampling.Judge(pooled, gate, 60, .05); got != contract.VerdictFail {
		t.Errorf("a failure, then luck: %s; want fail", got)
	}
}

func TestTooLittleSeenOpensNothing(t *testing.T) {
	t.Parallel()

	sampling := contract.Sampling{Repeats: 3, Confidence: .95}
	gate := contract.Gate{MinRate: .95, MaxFailures: 0}
	infra := func(n int) contract.Run {
		r := contract.Run{}
		for range n {
			r = append(r, contract.Sample{CaseID: "c-0", Infra: true})
		}
		return r
	}
	tests := []struct {
		name string
		runs []contract.Run
		plan int
		want contract.Verdict
	}{
		{"Nothing", nil, 0, contract.VerdictInconclusive},
		{"FewerCasesThanPlanned", []contract.Run{run(60, 3)}, 61, contract.VerdictInconclusive},
		{"FewerThanTheRateNeeds", []contract.Run{run(58, 3)}, 58, contract.VerdictInconclusive},
		{"ARepeatShort", []contract.Run{run(60, 3), run(61, 1)[60:]}, 60, contract.VerdictInconclusive},
		{"TooManyInfraErrors", []contract.Run{run(60, 3), infra(10)}, 60, contract.VerdictInconclusive},
		{"AFewInfraErrors", []contract.Run{run(60, 3), infra(9)}, 60, contract.VerdictPass},
		{"AFailureCountsEvenSo", []contract.Run{run(3, 3, 1), infra(90)}, 60, contract.VerdictFail},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			tally := contract.Pool(3, tt.runs...)
			if got := sampling.Judge(tally, gate, tt.plan, .05); got != tt.want {
				t.Errorf("%+v: %s; want %s", tally, got, tt.want)
			}
		})
	}
}
