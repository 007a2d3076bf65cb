package verification

import (
	"context"
	"fmt"
	"slices"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
)

// ReplayParams say whose outputs are judged, and by what.
type ReplayParams struct {
	// Contract is what they are judged by: with other assertions or thresholds than the
	// one that they were made for.
	Contract *contract.Contract
	// Of is the digest of the contract that they were made for. Empty: Contract's own.
	Of string
	// Target whose outputs they are. Its provider is not called.
	Target      Target
	Environment string // empty: [onejob.DefaultEnvironment]
}

// Replay judges the outputs that earlier runs kept, without a call, and says what a
// verification by them would come to. It issues nothing: what is asked of a target was
// perhaps another prompt, and what it does now is not in what it once did.
//
// Each sample keeps what was wrong with it beside its output: a call that was refused,
// came from a cache or was billed for other tokens than counted failed, whatever the
// assertions. A sample whose output was not kept counts as one that was not made. Cases
// that the contract does not have any more are left out, and those that it did not have
// are missing, so that the result is inconclusive.
func Replay(ctx context.Context, p ReplayParams, recorder Recorder) (Result, error) {
	checker, err := contract.Compile(p.Contract)
	if err != nil {
		return Result{State: onejob.RunInconclusive}, err
	}
	v := &verification{Params: Params{Contract: p.Contract, Target: p.Target, Environment: p.Environment}, checker: checker, budget: newBudget(0, 0), indexOf: map[string]int{}}
	if v.Environment == "" {
		v.Environment = onejob.DefaultEnvironment
	}
	if p.Of == "" {
		p.Of = checker.Digest()
	}
	for i := range p.Contract.CaseList {
		v.indexOf[p.Contract.CaseList[i].ID] = i
	}
	v.lifetime, _ = p.Target.lifetime(p.Contract.Certificate.TTL)
	samples, err := recorder.SampleList(ctx, onejob.SampleListParams{
		ContractDigest: p.Of, TargetDigest: p.Target.Digest, Environment: v.Environment, WithOutput: true,
	})
	if err != nil {
		return Result{State: onejob.RunInconclusive}, err
	}
	v.begin()
	v.gates = v.newGates()
	return v.replay(samples), nil
}

func (v *verification) replay(samples []onejob.VerificationSample) Result {
	judged := 0
	for i := range samples {
		s := &samples[i]
		index, known := v.indexOf[s.CaseID]
		if !known || s.Stage != string(StageStructure) || s.Outcome == onejob.SampleInfra || !v.judgeAnew(s, index) {
			continue
		}
		judged++
		for _, g := range v.gates {
			g.add(s, v.Contract.CaseList[index].Expect != nil)
		}
	}
	var end *ending
	for _, g := range v.gates {
		stage := StageStructure
		if g.name == gateSemantic {
			stage = StageMeaning
		}
		s, verdict := v.judge(g, stage)
		v.report.add(s)
		if end == nil {
			end = verdictEnding(g, s, verdict)
		}
	}
	if end == nil {
		end = &ending{state: onejob.RunCertified, detail: fmt.Sprintf("%d kept outputs meet it; nothing was called and nothing is issued", judged)}
	}
	v.conclude(end)
	v.report.Lifetime = ""
	return Result{State: end.state, Reason: end.reason, Detail: end.detail, Report: v.report}
}

// judgeAnew judges the output of a sample. It reports false for one without.
func (v *verification) judgeAnew(s *onejob.VerificationSample, index int) bool {
	if s.Outcome == onejob.SampleFailed && beside(s.FaultClass) {
		return true
	}
	if s.Output == nil {
		return false
	}
	c := &v.Contract.CaseList[index]
	found := fault{}
	if violations := v.checker.ValidateAnswer(contract.Answer{Raw: s.Output, InputTokens: s.TokensIn, OutputTokens: s.TokensOut}, c.Input); len(violations) > 0 {
		found = faultOfViolation(violations[0])
	} else if semantic, _ := v.checker.Expect(s.Output, c); len(semantic) > 0 {
		found = fault{class: string(contract.ClassExpectation), detail: semantic[0].String()}
	}
	s.Outcome, s.FaultClass, s.Detail = onejob.SamplePassed, found.class, found.detail
	if found.found() {
		s.Outcome = onejob.SampleFailed
	}
	return true
}

// beside reports whether a class is about what came beside the output, or instead of
// it, so that no assertion can judge it anew.
func beside(class string) bool {
	switch c := contract.Class(class); c {
	case contract.ClassCut, contract.ClassRefusal, contract.ClassFinish, contract.ClassUnexpectedCall, contract.ClassContextCut:
		return true
	default:
		return !slices.Contains(contract.Classes(), c)
	}
}
