package production

import (
	"context"
	"sync"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
)

// JudgeOutput implements [onejob.OutputJudge].
func (l *Line) JudgeOutput(ctx context.Context, job *onejob.Job, a *onejob.Attempt, r *onejob.Result) (*onejob.Failure, error) {
	if job.Policy.Contract == nil {
		return nil, nil
	}
	held, err := l.termsOf(ctx, job.Policy.Contract.Digest)
	switch {
	case notKept(err):
		return unjudgeable(err), nil
	case err != nil:
		return nil, err
	}
	output, shaped := l.read(a.Target, r.Body)
	violations := held.judge(output, shaped, job.Input)
	if l.seen.first(a.ID) {
		l.count(job, a, held, output, violations)
	}
	return failureOf(violations), nil
}

// JudgeRuling implements [onejob.OutputJudge].
func (l *Line) JudgeRuling(ctx context.Context, job *onejob.Job, a *onejob.Attempt, r *onejob.Result) (*onejob.Failure, error) {
	if job.Policy.Contract == nil {
		return nil, nil
	}
	held, err := l.termsOf(ctx, job.Policy.Contract.Digest)
	switch {
	case notKept(err):
		return unjudgeable(err), nil
	case err != nil:
		return nil, err
	}
	output, shaped := l.read(a.Target, r.Body)
	if !shaped {
		output, shaped = onejob.Output{Content: r.Body}, true
	}
	return failureOf(held.judge(output, shaped, job.Input)), nil
}

// read takes the output out of a target's answer. It reports false for an answer that
// has not the shape of one. Where no adapter knows a shape, the answer is the output.
func (l *Line) read(target string, body []byte) (_ onejob.Output, shaped bool) {
	prompter, able := l.targets[target].Provider.(onejob.Prompter)
	if !able {
		return onejob.Output{Content: body}, true
	}
	output, err := prompter.ReadOutput(body)
	return output, err == nil
}

// judge lists what is wrong with an output.
func (t *terms) judge(o onejob.Output, shaped bool, input []byte) []contract.Violation {
	if !shaped {
		return []contract.Violation{{Class: contract.ClassErrorBody, Message: "the answer has not the shape of one"}}
	}
	return t.checker.ValidateAnswer(contract.Answer{
		Raw: o.Content, Finish: contract.Finish(o.Finish), Refused: o.Refused, ToolCalls: o.ToolCalls,
		InputTokens: o.InputTokens, OutputTokens: o.OutputTokens,
	}, input)
}

func failureOf(violations []contract.Violation) *onejob.Failure {
	if len(violations) == 0 {
		return nil
	}
	return &onejob.Failure{Code: onejob.FailureContractViolation, Message: violations[0].String()}
}

// unjudgeable is the verdict on an output whose contract is gone: what nobody can
// judge does not win.
func unjudgeable(err error) *onejob.Failure {
	return &onejob.Failure{Code: onejob.FailureContractViolation, Message: string(contract.ClassUndecidable) + ": " + err.Error()}
}

// seen remembers the attempts whose outputs were counted, the last ones.
type seen struct {
	mu   sync.Mutex
	ids  map[string]bool
	ring []string
	next int
}

// maxSeen bounds what is remembered. An answer that comes twice comes soon.
const maxSeen = 8192

// first reports whether an attempt is seen for the first time.
func (s *seen) first(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids[id] {
		return false
	}
	if s.ids == nil {
		s.ids, s.ring = map[string]bool{}, make([]string, maxSeen)
	}
	delete(s.ids, s.ring[s.next])
	s.ring[s.next] = id
	s.ids[id] = true
	s.next = (s.next + 1) % maxSeen
	return true
}
