package verification

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
)

// task is one call of one case.
type task struct {
	index  int // of the case
	repeat int // from 1
}

// span is what one call of a case took.
type span struct {
	took time.Duration
	cost int64
}

// structure is S4: every case with its repeats. Expectations are asked of the same
// outputs; what they showed is told in S5.
func (v *verification) structure(ctx context.Context) *ending {
	end := v.pooledFailure()
	if end == nil {
		end = v.callCases(ctx)
	}
	for _, g := range v.gates {
		if g.name == gateSemantic {
			continue
		}
		s, verdict := v.judge(g, StageStructure)
		v.report.add(s)
		if end == nil {
			end = verdictEnding(g, s, verdict)
		}
	}
	if end != nil && end.reason == gateSemantic {
		v.reportSemantic()
	}
	if end == nil {
		end = v.oneThing()
	}
	return end
}

// verdictEnding ends a run by a gate that is not passed.
func verdictEnding(g *gate, s StageReport, verdict contract.Verdict) *ending {
	switch verdict {
	case contract.VerdictFail:
		return refused(g.name, s.Text)
	case contract.VerdictInconclusive:
		return inconclusive(g.name, s.Text)
	case contract.VerdictPass, contract.VerdictAssumed:
	}
	return nil
}

// oneThing : a certificate is about one model, served by one upstream from one build.
func (v *verification) oneThing() *ending {
	if text := v.seen.mixed(&v.Target); text != "" {
		return inconclusive("observed", text)
	}
	return nil
}

// pooledFailure ends a run whose gates earlier ones have broken: no call could mend them.
func (v *verification) pooledFailure() *ending {
	for _, g := range v.gates {
		if g.broken() {
			return refused(g.name, fmt.Sprintf("%s failed in earlier runs of the same contract and target (%s); case %s", many(g.earlier, "case"), g.why(), g.first))
		}
	}
	return nil
}

// callCases makes the calls of all cases, each repeat of all of them before the next.
// Those that came to nothing are made once more, since they show nothing either way; a
// call that showed something is never repeated.
func (v *verification) callCases(ctx context.Context) *ending {
	tasks := make([]task, 0, v.planned())
	for repeat := range v.Contract.Sampling.Repeats {
		for i := range v.Contract.CaseList {
			tasks = append(tasks, task{i, repeat + 1})
		}
	}
	lost, end := v.callTasks(ctx, tasks, v.callCase)
	if end == nil && len(lost) > 0 {
		_, end = v.callTasks(ctx, onceMore(lost, v.Contract.Sampling.Repeats), v.callCase)
	}
	return end
}

// onceMore are calls that came to nothing, under numbers of their own.
func onceMore(lost []task, repeats int) []task {
	for i := range lost {
		lost[i].repeat += repeats
	}
	return lost
}

// callTasks makes calls, some at a time, until one ends the run. It returns those that
// came to nothing.
func (v *verification) callTasks(ctx context.Context, tasks []task, call func(context.Context, task) (shown bool, end *ending)) (lost []task, end *ending) {
	var mu sync.Mutex
	inParallel(v.opts.Parallel, tasks, func(t task) bool {
		shown, over := call(ctx, t)
		mu.Lock()
		defer mu.Unlock()
		if !shown {
			lost = append(lost, t)
		}
		if end == nil {
			end = over
		}
		return over == nil
	})
	slices.SortFunc(lost, func(a, b task) int {
		if a.repeat != b.repeat {
			return a.repeat - b.repeat
		}
		return a.index - b.index
	})
	return lost, end
}

func (v *verification) callCase(ctx context.Context, t task) (shown bool, end *ending) {
	c := &v.Contract.CaseList[t.index]
	rendered, err := v.body(&v.Target, c)
	if err != nil {
		return true, broken("render", err)
	}
	s := onejob.VerificationSample{CaseID: c.ID, Repeat: t.repeat, Stage: string(StageStructure)}
	r, end := v.ask(ctx, v.target, rendered.Body, &s, func(r *reply) fault { return v.judgeCase(t.index, r) })
	if r == nil {
		return true, end
	}
	if over := v.weigh(t, &s, r); end == nil {
		end = over
	}
	return r.bearing != bearingNone, end
}

// judgeCase holds one output to the contract.
func (v *verification) judgeCase(index int, r *reply) fault {
	if r.bearing == bearingFault {
		return faultOf(r)
	}
	c := &v.Contract.CaseList[index]
	if found := v.checker.ValidateAnswer(r.answer(), c.Input); len(found) > 0 {
		return faultOfViolation(found[0])
	}
	if v.billedOtherwise(index, r) {
		return v.countFault(index, r)
	}
	if semantic, _ := v.checker.Expect(r.output.Content, c); len(semantic) > 0 {
		return fault{class: string(contract.ClassExpectation), detail: semantic[0].String()}
	}
	return fault{}
}

func faultOfViolation(violation contract.Violation) fault {
	return fault{class: string(violation.Class), detail: violation.String()}
}

func (v *verification) countFault(index int, r *reply) fault {
	return fault{class: classCount, detail: fmt.Sprintf("%d tokens were billed, and %d counted", r.output.InputTokens, v.rendered[index].counted)}
}

func (v *verification) billedOtherwise(index int, r *reply) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.drifts(index, r.output.InputTokens)
}

// weigh counts a sample for every gate, and ends the run when one is broken.
func (v *verification) weigh(t task, s *onejob.VerificationSample, r *reply) *ending {
	v.mu.Lock()
	defer v.mu.Unlock()
	var end *ending
	for _, g := range v.gates {
		g.add(s, v.Contract.CaseList[t.index].Expect != nil)
		if end == nil && g.broken() && v.Contract.Sampling.StopEarly == "on_fail_only" {
			end = refused(g.name, fmt.Sprintf("case %s: %s", s.CaseID, s.Detail))
		}
	}
	if r.bearing == bearingAnswer {
		v.remember(t.index, r.output.Content)
		v.spans = append(v.spans, span{r.took, r.cost})
	}
	v.progress(Progress{Stage: StageStructure, Done: len(v.spans), Planned: v.planned()})
	return end
}

// progress tells how far the run is. v.mu is held.
func (v *verification) progress(p Progress) {
	if v.opts.ProgressFunc == nil {
		return
	}
	_, p.SpendMicros = v.budget.used()
	v.opts.ProgressFunc(p)
}

// remember keeps an output for the comparison with a primary, where nobody else does.
// v.mu is held.
func (v *verification) remember(index int, output []byte) {
	if v.primary == nil || v.opts.Recorder != nil || v.outputs[index] != nil {
		return
	}
	if v.outputs == nil {
		v.outputs = map[int][]byte{}
	}
	v.outputs[index] = nonNil(output)
}
