package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/onejob-dev/onejob"
)

// try is the life of one attempt in this process: marked, called once, settled.
func (e *Engine) try(t *trial) {
	defer t.slot.give()
	e.held.add(t)
	defer e.held.drop(t)
	if t.target.Provider == nil {
		e.giveUp(t, "target_unknown", "this engine does not know the target, so nothing was sent")
		return
	}
	if !e.prepare(t) || !e.mark(t) {
		return
	}
	e.opts.Observer.AttemptStarted(t.target.Name)
	e.noteGate(t)
	e.call(t)
}

// trial is one attempt under way.
type trial struct {
	onejob.Claimed
	target   onejob.Target
	slot     oneSlot
	ref      onejob.AttemptRef
	token    string // the claim's; set once
	began    time.Time
	input    []byte               // of the request
	dropped  string               // the parameters that it does not carry
	rendered bool                 // for the target
	sendBy   time.Time            // on our own clock, which started before the mark was asked for
	sent     atomic.Bool          // the whole request was handed to the kernel
	gaveUp   atomic.Bool          // the provider was asked to give up, where it can be
	feed     atomic.Pointer[feed] // of an answer that comes in pieces; nil: they are not kept
}

func (e *Engine) newTrial(c onejob.Claimed) *trial {
	return &trial{
		Claimed: c, target: e.targets[c.Attempt.Target], slot: oneSlot{slots: e.slots},
		ref: refOf(&c.Attempt), token: c.Attempt.ClaimToken, began: time.Now(),
	}
}

func refOf(a *onejob.Attempt) onejob.AttemptRef {
	return onejob.AttemptRef{Part: a.Part, JobID: a.JobID, ID: a.ID}
}

// mark commits that bytes may leave, and reports whether they may. When it is not
// known whether the mark was committed, nothing is sent: we hold the token and
// know that we wrote nothing, so the attempt ends as not sent.
func (e *Engine) mark(t *trial) bool {
	policy := &t.Job.Policy
	if t.Attempt.State == onejob.AttemptRunning { // marked in the commit that created the job
		t.sendBy = t.Since.Add(policy.SendWithin)
		return true
	}
	clock := time.Now()
	ctx, cancel := context.WithTimeout(e.hard, e.opts.Lease)
	defer cancel()
	results, err := e.store.AttemptMark(ctx, []onejob.AttemptMarkParams{{
		Ref: t.ref, ClaimToken: t.token, Lease: e.opts.Lease, SendWithin: policy.SendWithin,
		Pins: onejob.TargetPins{Digest: t.target.Digest, MaxExecution: t.target.MaxExecution},
	}})
	if err == nil && onejob.CodeOf(results[0].Err) == onejob.CodeStoreUnavailable {
		err = results[0].Err
	}
	switch {
	case err != nil:
		e.complain("mark not confirmed; nothing is sent", err, "job_id", t.Job.ID, "attempt_id", t.ref.ID)
		e.giveUp(t, "mark_unconfirmed", "the store did not confirm the mark, so nothing was sent")
		return false
	// It was cancelled, its lease ended, or what let it take over did: the attempt is
	// settled, and its job decided again.
	case results[0].Err != nil:
		e.noteForbidden(t, results[0].Err)
		e.opts.Signals.JobChanged(t.Job.ID)
		e.opts.Signals.WorkReady()
		return false
	}
	t.Attempt = results[0].Attempt
	t.sendBy = clock.Add(policy.SendWithin)
	e.opts.Signals.JobChanged(t.Job.ID)
	return true
}

// giveUp ends an attempt that this process knows was never sent, through no fault
// of its target.
func (e *Engine) giveUp(t *trial, code, message string) {
	e.finish(t, onejob.AttemptFinishParams{
		Outcome: onejob.OutcomeNotExecuted, Phase: onejob.PhaseNotSent, Next: onejob.NextAgain, OwnFault: true,
		Failure: &onejob.Failure{Code: code, Message: message},
	})
}

// said is what came of a provider's call.
type said struct {
	answer onejob.Answer
	err    error
}

// whole reports whether there is an answer that can settle the job.
func (s *said) whole() bool {
	return s.err == nil && (s.answer.Outcome == "" || s.answer.Outcome == onejob.OutcomeSucceeded)
}

// call calls the provider once and settles what it says. Silence past the timeout
// makes the attempt unknown and frees its slot; the call goes on for the linger.
func (e *Engine) call(t *trial) {
	ctx, hangUp := context.WithCancel(e.hard)
	defer hangUp()
	f := e.feedOf(t, hangUp)
	defer f.settled() // even if the provider's code ends the goroutine
	v := e.keepVigil(t, f, hangUp)
	s := func() said {
		defer v.end() // even if the provider's code ends the goroutine
		return callOnce(ctx, t)
	}()
	f.end(s.whole())
	e.settle(t, s)
}

// silent is the outcome of an attempt that did not answer in time: nothing is proven.
func (t *trial) silent() onejob.AttemptFinishParams {
	phase := onejob.PhasePartlySent
	if t.sent.Load() {
		phase = onejob.PhaseSent
	}
	text := fmt.Sprintf("no answer within %s; the connection stays open for another %s", t.Job.Policy.Timeout, t.Job.Policy.Linger)
	return onejob.AttemptFinishParams{
		Outcome: onejob.OutcomeUnknown, Phase: phase,
		Evidence: onejob.Evidence{Error: text},
		Failure:  &onejob.Failure{Code: "timeout", Message: text},
	}
}

// callOnce calls the provider. A panic in it proves nothing.
func callOnce(ctx context.Context, t *trial) (s said) {
	defer func() {
		if r := recover(); r != nil {
			s = said{err: fmt.Errorf("the provider's code panicked: %v", r)}
		}
	}()
	req := onejob.Request{
		JobID: t.Job.ID, AttemptID: t.ref.ID, Number: t.Attempt.Number,
		Kind: t.Job.Kind, Effect: t.Job.Policy.Effect, Target: t.target.Name,
		Input: t.input, Rendered: t.rendered, Metadata: t.Job.Metadata,
		ProviderKey: t.Attempt.ProviderKey,
		SendBy:      t.sendBy, SendWithin: t.Job.Policy.SendWithin,
		Sent: func() { t.sent.Store(true) },
	}
	if f := t.feed.Load(); f != nil {
		req.Chunk, req.Dropped = f.take, f.dropped
		if t.dropped != "" {
			f.dropped(t.dropped)
		}
	}
	answer, err := t.target.Provider.Call(ctx, req)
	return said{answer, err}
}

// oneSlot is given back once.
type oneSlot struct {
	slots *slots
	given bool
}

func (s *oneSlot) give() {
	if !s.given {
		s.given = true
		s.slots.give()
	}
}
