package engine

import (
	"context"
	"time"

	"github.com/onejob-dev/onejob"
)

// mayReplay reports whether the same bytes may be sent once more under the same
// key, as far as that shows without the store's clock.
func (q *question) mayReplay() bool {
	a := &q.Attempt
	return q.target.Reconcile.Replays() &&
		a.State == onejob.AttemptUnknown && a.ProviderID == "" && a.ProviderKey != "" && !a.MarkedAt.IsZero() &&
		a.TargetDigest == q.target.Digest && q.Job.Input != nil && q.Job.CancelRequestedAt.IsZero()
}

// replay sends the attempt's bytes once more under its provider key, as a question:
// a provider that promises one effect per key answers with what became of the
// first. The question is written down before anything is sent, and that tells the
// time by the store's clock: no byte may arrive after the key's promised life. It
// also begins the quarantine anew, so that nobody rules about bytes that are on
// their way.
func (e *Engine) replay(q *question) (_ onejob.ProbeRecordParams, sent bool) {
	again := &trial{Claimed: q.Claimed, target: q.target, ref: q.ref}
	if e.request(again) != nil {
		return onejob.ProbeRecordParams{}, false // the bytes that were sent cannot be made again
	}
	policy := &q.Job.Policy
	clock := time.Now()
	announced := onejob.ProbeRecordParams{
		Ref: q.ref, Method: onejob.ProbeReplay, Detail: "sending the same bytes under the same key",
		After:      policy.Timeout + recordWithin, // nobody asks meanwhile
		SendWithin: policy.SendWithin,
	}
	if r, recorded := e.recordProbe(q, announced); !recorded || r.Err != nil || !e.recall(q) || len(q.history) == 0 {
		return onejob.ProbeRecordParams{}, false
	}
	if !q.withinKeyLife(q.history[len(q.history)-1].At) {
		return onejob.ProbeRecordParams{}, false
	}
	ctx, cancel := context.WithTimeout(e.hard, policy.Timeout)
	defer cancel()
	again.sendBy = clock.Add(policy.SendWithin)
	return readReplay(callOnce(ctx, again)), true
}

// withinKeyLife reports whether what is sent from now on arrives while the provider
// still remembers the key. Its life began with the first attempt that carried it.
func (q *question) withinKeyLife(now time.Time) bool {
	first := q.Attempt.MarkedAt
	for i := range q.Job.Attempts {
		a := &q.Job.Attempts[i]
		if a.ProviderKey == q.Attempt.ProviderKey && !a.MarkedAt.IsZero() && a.MarkedAt.Before(first) {
			first = a.MarkedAt
		}
	}
	latest := now.Add(2 * q.Job.Policy.SendWithin) // written by then, and delivered by then
	return latest.Before(first.Add(q.target.Reconcile.ReplayFor))
}

// readReplay says what the answer to a replay proves about the attempt. That the
// replay was refused, not sent or not answered says nothing about the original.
func readReplay(s said) onejob.ProbeRecordParams {
	f := outcomeOf(s)
	p := onejob.ProbeRecordParams{
		Method: onejob.ProbeReplay, Evidence: f.Evidence,
	}
	switch f.Outcome {
	case onejob.OutcomeSucceeded:
		p.Outcome, p.Result, p.Detail = f.Outcome, f.Result, "the same request under the same key was answered with success"
	case onejob.OutcomeExecutedFailed:
		p.Outcome, p.Failure, p.Next, p.Detail = f.Outcome, f.Failure, f.Next, "the same request under the same key was answered with the work's failure"
	case onejob.OutcomeAccepted:
		p.Outcome, p.ProviderID, p.Detail = f.Outcome, f.ProviderID, "the provider works on it under an id of its own"
	default:
		p.Detail = "the replay ended " + string(f.Outcome) + ", which says nothing about the original"
	}
	return priced(p, &f)
}
