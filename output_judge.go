package onejob

import (
	"context"
	"strings"
)

// OutputJudge holds what targets hand back to the contracts of their kinds. It is
// safe for concurrent use.
type OutputJudge interface {
	// JudgeOutput judges the whole result of a success of attempt a, raw text and all,
	// by the contract that its job pins. The job comes with its input. Nil: there is
	// nothing wrong with it, or the job has no contract.
	//
	// What is judged so is what production showed of the target, counted once for each
	// attempt. An error means that it could not be judged now: the success is then not
	// to be recorded yet.
	JudgeOutput(ctx context.Context, job *Job, a *Attempt, r *Result) (*Failure, error)
	// JudgeRuling judges a result that a person hands in, which shows nothing of the
	// target: its whole answer, or the output alone.
	JudgeRuling(ctx context.Context, job *Job, a *Attempt, r *Result) (*Failure, error)
}

// FailureContractViolation is the code of a [Failure] whose output breaks the contract.
const FailureContractViolation = "contract_violation"

// Violate turns a success whose output breaks the contract into what that proves. The
// work was done and no result came of it: for effect none it failed, and another
// target may do better; under any other the effect stands and its result is lost, so
// that the attempt stays in doubt until somebody rules. The output can never win.
func (p *AttemptFinishParams) Violate(effect Effect, f *Failure) {
	p.Outcome, p.Next = OutcomeContractViolation, NextElsewhere
	if effect != EffectNone {
		p.Outcome, p.Next = OutcomeResultLost, ""
	}
	p.Evidence.Error = f.Message
	p.Evidence.Excerpt = excerptOf(p.Result)
	p.Failure, p.Result = f, nil
}

// Violate is [AttemptFinishParams.Violate] for what was found out later. What settles
// nothing is written down as unknown, so that no later absence rules it away.
func (p *ProbeRecordParams) Violate(effect Effect, f *Failure) {
	p.Outcome, p.Next = OutcomeContractViolation, NextElsewhere
	p.Detail = "the work was done, and its output breaks the contract: " + f.Message
	if effect != EffectNone {
		p.Outcome, p.Next = OutcomeUnknown, ""
		p.CostMicros, p.Currency, p.Usage = 0, "", nil // with the last word
		p.Detail += "; the effect stands, and its result is lost"
	}
	p.Evidence.Error = f.Message
	p.Evidence.Excerpt = excerptOf(p.Result)
	p.Failure, p.Result = f, nil
}

// maxExcerptBytes is how much of a body is kept that is no success.
const maxExcerptBytes = 2 << 10

func excerptOf(r *Result) string {
	if r == nil {
		return ""
	}
	return strings.ToValidUTF8(string(r.Body[:min(len(r.Body), maxExcerptBytes)]), "\ufffd")
}

// judging is one way of an [OutputJudge].
type judging func(ctx context.Context, job *Job, a *Attempt, r *Result) (*Failure, error)

// judge judges a success of attempt a before it is recorded. Nil: there is nothing
// wrong with it, or it has no contract.
func (c *Client) judge(ctx context.Context, a *Attempt, r *Result, by judging) (*Failure, *Job, error) {
	job, err := one(c.store.JobGet(ctx, []JobGetParams{{ID: a.JobID, WithInput: true}}))
	if err != nil || job.Policy.Contract == nil {
		return nil, job, err
	}
	f, err := by(ctx, job, a, r)
	return f, job, Unavailable(err)
}

// violation is [Client.judge] for what a target did, if anybody judges.
func (c *Client) violation(ctx context.Context, a *Attempt, r *Result) (*Failure, *Job, error) {
	if c.opts.Judge == nil || r == nil {
		return nil, nil, nil
	}
	return c.judge(ctx, a, r, c.opts.Judge.JudgeOutput)
}

// checkResolved holds a result that a person hands in to the contract.
func (c *Client) checkResolved(ctx context.Context, p *AttemptResolveParams) error {
	if c.opts.Judge == nil || p.Outcome != OutcomeSucceeded || p.Result == nil {
		return nil
	}
	a, err := c.Attempt(ctx, p.Owner, p.ID)
	if err != nil {
		return err
	}
	if a.State != AttemptUnknown {
		return nil // the store says so
	}
	violation, _, err := c.judge(ctx, &a, p.Result, c.opts.Judge.JudgeRuling)
	if err != nil || violation == nil {
		return err
	}
	return &Error{
		Code: CodeInvalidResolution, JobID: a.JobID, AttemptID: a.ID,
		Message: "the result breaks the contract of the job's kind: " + violation.Message,
	}
}
