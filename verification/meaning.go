package verification

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
)

// meaning is S5: what the cases expect, and whether the target agrees with the primary.
func (v *verification) meaning(ctx context.Context) *ending {
	if g, s, verdict := v.reportSemantic(); g != nil {
		if end := verdictEnding(g, s, verdict); end != nil {
			return end
		}
	}
	if v.primary == nil {
		return nil
	}
	return v.equivalence(ctx)
}

func (v *verification) reportSemantic() (*gate, StageReport, contract.Verdict) {
	for _, g := range v.gates {
		if g.name == gateSemantic {
			s, verdict := v.judge(g, StageMeaning)
			v.report.add(s)
			return g, s, verdict
		}
	}
	return nil, StageReport{}, ""
}

// EquivalenceReport is how far two targets agree on the same cases.
type EquivalenceReport struct {
	Primary      string  `json:"primary"`
	Cases        int     `json:"cases"`
	Agreed       int     `json:"agreed"`
	SelfAgreed   int     `json:"self_agreed"` // of the primary with itself
	Bound        float64 `json:"bound"`       // exact, one-sided
	MinAgreement float64 `json:"min_agreement"`
}

// equivalence compares with the primary. That it cannot be asked takes nothing from what
// the target has shown by itself: there is no pair then.
func (v *verification) equivalence(ctx context.Context) *ending {
	ours, theirs, err := v.kept(ctx)
	if err != nil {
		return broken("store", err)
	}
	end := v.callPrimary(ctx, theirs)
	if end != nil && end.err != nil && ctx.Err() != nil || end != nil && end.reason == "store" {
		return end
	}
	s := StageReport{Stage: StageMeaning, Name: gateEquivalence, Verdict: contract.VerdictInconclusive}
	if end != nil {
		s.Text = fmt.Sprintf("%s could not be asked about every case: %s", v.Primary.Name, end.detail)
		v.report.add(s)
		return nil
	}
	v.compare(s, ours, theirs)
	return nil
}

// answers are the first good outputs of each case ever kept, so that another run does
// not make another pair of them.
type answers [][][]byte

func (a answers) add(index int, output []byte, most int) {
	if output != nil && len(a[index]) < most {
		a[index] = append(a[index], output)
	}
}

// selfRepeats is how often the primary is asked, to see whether it agrees with itself.
const selfRepeats = 2

// kept reads what both targets have answered so far. Without a recorder that is this
// run's outputs of the target only.
func (v *verification) kept(ctx context.Context) (ours, theirs answers, err error) {
	ours, theirs = make(answers, len(v.Contract.CaseList)), make(answers, len(v.Contract.CaseList))
	if v.opts.Recorder == nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		for i, output := range v.outputs {
			ours.add(i, output, 1)
		}
		return ours, theirs, nil
	}
	if err = v.read(ctx, &v.Target, ours, 1); err == nil {
		err = v.read(ctx, v.Primary, theirs, selfRepeats)
	}
	return ours, theirs, err
}

// read adds the outputs of a target's cases that are kept, oldest first.
func (v *verification) read(ctx context.Context, t *Target, into answers, most int) error {
	samples, err := v.opts.Recorder.SampleList(ctx, onejob.SampleListParams{
		ContractDigest: v.run.ContractDigest, TargetDigest: t.Digest, Environment: v.Environment, WithOutput: true,
	})
	oldest := v.run.StartedAt.Add(-v.lifetime)
	for i := range samples {
		s := &samples[i]
		index, known := v.indexOf[s.CaseID]
		if known && s.Stage == string(StageStructure) && s.Outcome != onejob.SampleInfra && !s.At.Before(oldest) {
			into.add(index, s.Output, most)
		}
	}
	return err
}

// callPrimary asks the primary about every case of which too little is kept. Its calls
// are samples of this run, in a stage of their own.
func (v *verification) callPrimary(ctx context.Context, theirs answers) *ending {
	var tasks []task
	for repeat := range selfRepeats {
		for i := range theirs {
			if len(theirs[i]) <= repeat {
				tasks = append(tasks, task{i, repeat + 1})
			}
		}
	}
	v.primaryTrouble(len(tasks))
	call := func(ctx context.Context, t task) (bool, *ending) { return v.callPrimaryOnce(ctx, t, theirs) }
	lost, end := v.callTasks(ctx, tasks, call)
	if end == nil && len(lost) > 0 {
		lost, end = v.callTasks(ctx, onceMore(lost, selfRepeats), call)
	}
	if end == nil && len(lost) > 0 {
		end = inconclusive("primary", fmt.Sprintf("%d calls came to nothing twice", len(lost)))
	}
	return end
}

func (v *verification) callPrimaryOnce(ctx context.Context, t task, theirs answers) (shown bool, end *ending) {
	c := &v.Contract.CaseList[t.index]
	rendered, err := v.body(v.Primary, c)
	if err != nil {
		return true, inconclusive("primary", err.Error())
	}
	s := onejob.VerificationSample{CaseID: c.ID, Repeat: t.repeat, Stage: string(StageMeaning)}
	r, end := v.ask(ctx, v.primary, rendered.Body, &s, func(r *reply) fault { return v.judgePrimary(c, r) })
	if r == nil || r.bearing == bearingNone {
		return r == nil, end
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	theirs.add(t.index, nonNil(r.output.Content), selfRepeats)
	v.progress(Progress{Stage: StageMeaning, Done: v.trouble.answered, Planned: selfRepeats * len(theirs)})
	return true, end
}

// primaryTrouble begins to count the primary's troubles apart.
func (v *verification) primaryTrouble(calls int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.trouble = trouble{allowed: int(v.Contract.Gates.Operation.MaxInfraErrorRate * float64(calls))}
}

func nonNil(output []byte) []byte {
	if output == nil {
		return []byte{}
	}
	return output
}

// judgePrimary is for the record only: the verdict is about the other target.
func (v *verification) judgePrimary(c *contract.Case, r *reply) fault {
	if r.bearing == bearingFault {
		return faultOf(r)
	}
	if found := v.checker.ValidateAnswer(r.answer(), c.Input); len(found) > 0 {
		return faultOfViolation(found[0])
	}
	return fault{}
}

// compare counts agreement, and says what it shows.
func (v *verification) compare(s StageReport, ours, theirs answers) {
	terms := v.Contract.Equivalence
	e := &EquivalenceReport{Primary: v.Primary.Name, Cases: len(ours), MinAgreement: terms.MinAgreement}
	for i := range ours {
		if len(ours[i]) > 0 && len(theirs[i]) > 0 && agree(terms.Compare, ours[i][0], theirs[i][0]) {
			e.Agreed++
		}
		if len(theirs[i]) == selfRepeats && agree(terms.Compare, theirs[i][0], theirs[i][1]) {
			e.SelfAgreed++
		}
	}
	e.Bound = contract.LowerBound(e.Cases, e.Cases-e.Agreed, v.Contract.Sampling.Confidence)
	enough := e.Bound >= terms.MinAgreement
	near := float64(e.Agreed) >= float64(e.SelfAgreed)-terms.RelativeToSelf*float64(e.Cases)
	s.Verdict, s.Equivalence = contract.VerdictPass, e
	if !enough || !near {
		s.Verdict = contract.VerdictFail
	}
	s.Text = fmt.Sprintf("agreement with %s %d/%d   >= %.1f %%, gate %g %%; %s with itself %d/%d",
		e.Primary, e.Agreed, e.Cases, floorPercent(e.Bound), 100*e.MinAgreement, e.Primary, e.SelfAgreed, e.Cases)
	if !near {
		s.Text += fmt.Sprintf("; more than %g points under that", 100*terms.RelativeToSelf)
	}
	v.report.add(s)
	v.pair = &onejob.PairResult{
		ContractDigest: v.run.ContractDigest, PrimaryDigest: v.Primary.Digest, FallbackDigest: v.Target.Digest, Environment: v.Environment,
		Agreed: e.Agreed, Cases: e.Cases, SelfAgreed: e.SelfAgreed, Equivalent: enough && near, RunID: v.run.ID,
	}
}

// agree reports whether two outputs have the same members at the paths given. What is
// no JSON, or lacks one, agrees with nothing.
func agree(paths []string, a, b []byte) bool {
	first, ok := decoded(a)
	second, also := decoded(b)
	if !ok || !also {
		return false
	}
	for _, path := range paths {
		x, found := memberAt(first, path)
		y, too := memberAt(second, path)
		if !found || !too || !bytes.Equal(x, y) {
			return false
		}
	}
	return true
}

func decoded(output []byte) (value any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(output))
	d.UseNumber()
	err := d.Decode(&value)
	return value, err == nil
}

// memberAt is the canonical form of what a path such as output.severity names.
func memberAt(value any, path string) (canonical []byte, found bool) {
	for _, step := range strings.Split(path, ".")[1:] {
		object, ok := value.(map[string]any)
		if !ok {
			return nil, false
		}
		if value, ok = object[step]; !ok {
			return nil, false
		}
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, false
	}
	canonical, err = onejob.Canonical(raw)
	return canonical, err == nil
}
