package engine

import (
	"context"
	"time"

	"github.com/onejob-dev/onejob"
)

// Contracts makes the requests of kinds that have a contract, and judges what comes
// back. It is safe for concurrent use.
type Contracts interface {
	onejob.OutputJudge
	// Request returns what an attempt of the job at the target sends: the same for the
	// same job and target, whenever it is asked. A target that cannot carry it is a
	// [*onejob.CallError] with [onejob.ErrNotSent]; any other error says nothing of the
	// target. It may ask the target how long the request is.
	Request(ctx context.Context, job *onejob.Job, target *onejob.Target) (Prepared, error)
}

// Prepared is a request as it is sent.
type Prepared struct {
	Input []byte // of the [onejob.Request]
	// Dropped are parameters that the target does not carry, sorted, with commas
	// between. Empty: none.
	Dropped string
	// Rendered says that Input was made for the target, and is not the caller's own.
	Rendered bool
}

// prepareWithin bounds the making of one request.
const prepareWithin = 10 * time.Second

// request makes the bytes of a trial.
func (e *Engine) request(t *trial) error {
	t.input = t.Job.Input
	if e.opts.Contracts == nil || t.Job.Policy.Contract == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(e.hard, prepareWithin)
	defer cancel()
	prepared, err := e.opts.Contracts.Request(ctx, t.Job, &t.target)
	t.input, t.dropped, t.rendered = prepared.Input, prepared.Dropped, prepared.Rendered
	return err
}

// prepare makes what an attempt sends, and reports whether there is anything to
// send. A target that cannot carry it was never asked, so that another may be.
func (e *Engine) prepare(t *trial) bool {
	err := e.request(t)
	if err == nil {
		return true
	}
	p := outcomeOf(said{err: err})
	if p.Outcome != onejob.OutcomeNotExecuted {
		e.complain("request not made; nothing is sent", err, "job_id", t.Job.ID, "attempt_id", t.ref.ID)
		e.giveUp(t, "request_not_made", "the contract of the job could not be read, so nothing was sent")
		return false
	}
	e.finish(t, p)
	return false
}

// judge holds a success to the contract of its job before it is recorded, and tries
// until it can. It reports false when the process is being stopped for good; the
// attempt is then left to its lease, which makes it unknown.
func (e *Engine) judge(t *trial, p *onejob.AttemptFinishParams) bool {
	violation, known := e.violation(t.Job, &t.Attempt, p.Result)
	if violation != nil {
		p.Violate(t.Job.Policy.Effect, violation)
	}
	return known
}

// judgeFound is [Engine.judge] for what was found out by asking.
func (e *Engine) judgeFound(q *question, p *onejob.ProbeRecordParams) bool {
	violation, known := e.violation(q.Job, &q.Attempt, p.Result)
	if violation != nil {
		p.Violate(q.Job.Policy.Effect, violation)
	}
	return known
}

func (e *Engine) violation(job *onejob.Job, a *onejob.Attempt, r *onejob.Result) (_ *onejob.Failure, known bool) {
	if e.opts.Contracts == nil || job.Policy.Contract == nil || r == nil {
		return nil, true
	}
	giveUp := time.Now().Add(settleTime)
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(e.hard), settleTime)
		violation, err := e.opts.Contracts.JudgeOutput(ctx, job, a, r)
		cancel()
		if err == nil {
			return violation, true
		}
		e.complain("output not judged yet", err, "job_id", job.ID, "attempt_id", a.ID)
		if e.hard.Err() != nil && time.Now().After(giveUp) {
			return nil, false
		}
		time.Sleep(pause)
	}
}
