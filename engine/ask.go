package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/onejob-dev/onejob"
)

// ask finds out about an attempt by the surest way there is: the provider's own
// id, then something of ours that the request carried, then a replay. A later way
// is taken only where an earlier one is not open, or knew nothing.
func (e *Engine) ask(q *question) onejob.ProbeRecordParams {
	p := onejob.ProbeRecordParams{
		Method: onejob.ProbeLookup,
		Detail: "nothing could be asked: the provider's id is not known, and a replay is not allowed",
	}
	method, open := q.lookup()
	if open {
		var missing bool
		if p, missing = e.lookUp(q, method); !missing || p.Absence {
			return p
		}
	}
	if !q.mayReplay() || !q.withinKeyLife(time.Now()) {
		return p
	}
	if open {
		p.Ref, p.After = q.ref, q.pause(p.Outcome)
		e.recordProbe(q, p)
	}
	if r, sent := e.replay(q); sent {
		return r
	}
	return p
}

// lookup says by what the provider can be asked, if it can.
func (q *question) lookup() (onejob.ProbeMethod, bool) {
	how := q.target.Reconcile
	switch {
	case !asks(&q.target):
		return "", false
	case how.Lookup && q.Attempt.ProviderID != "":
		return onejob.ProbeLookup, true
	case how.Search:
		return onejob.ProbeSearch, true
	}
	return "", false
}

// request names the attempt to its provider.
func (q *question) request() onejob.ProbeRequest {
	return onejob.ProbeRequest{
		JobID: q.Job.ID, AttemptID: q.ref.ID, ProviderID: q.Attempt.ProviderID, ProviderKey: q.Attempt.ProviderKey,
	}
}

// lookUp asks the provider, and reports whether it does not know the attempt.
func (e *Engine) lookUp(q *question, method onejob.ProbeMethod) (_ onejob.ProbeRecordParams, missing bool) {
	ctx, cancel := context.WithTimeout(e.hard, askWithin)
	defer cancel()
	answer, err := probeOnce(ctx, q)
	p := onejob.ProbeRecordParams{Method: method}
	switch {
	case err != nil:
		p.Detail = clip("no answer that settles anything: " + err.Error())
		return p, false
	case answer.Found:
		return q.read(p, &answer.Answer), false
	}
	return q.absent(p), true
}

// probeOnce calls the prober. A panic in it proves nothing.
func probeOnce(ctx context.Context, q *question) (_ onejob.ProbeAnswer, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("the provider's code panicked")
		}
	}()
	return q.target.Provider.(onejob.Prober).Probe(ctx, q.request())
}

// byAttempt reports whether an answer is about this attempt and no earlier one.
func (q *question) byAttempt(m onejob.ProbeMethod) bool {
	return m == onejob.ProbeLookup || q.target.Reconcile.ByAttempt
}

// absent says what it proves that the provider does not know the attempt: nothing,
// but where its word is authoritative and it never said otherwise. The store holds
// it to the quarantine.
func (q *question) absent(p onejob.ProbeRecordParams) onejob.ProbeRecordParams {
	switch {
	case !q.target.Reconcile.Authoritative || !q.byAttempt(p.Method):
		p.Detail = "the provider does not know the attempt, which proves nothing at this target"
	case q.knownBefore():
		p.Detail = "the provider does not know the attempt and said otherwise before: it changed its mind, which proves nothing"
	default:
		p.Outcome, p.Absence, p.Next = onejob.OutcomeNotExecuted, true, onejob.NextAgain
		p.Detail = "the provider, whose word is authoritative, does not know the attempt"
		p.Failure = &onejob.Failure{Code: "not_found", Message: p.Detail}
	}
	return p
}

// knownBefore reports whether an earlier answer knew the attempt. What came after
// it is written down as unknown, so that it is not forgotten.
func (q *question) knownBefore() bool {
	for i := range q.history {
		if o := q.history[i].Outcome; o == onejob.OutcomeAccepted || o == onejob.OutcomeUnknown {
			return true
		}
	}
	return false
}

// read says what an answer about the attempt proves.
func (q *question) read(p onejob.ProbeRecordParams, a *onejob.Answer) onejob.ProbeRecordParams {
	if a.ProviderID != "" && q.Attempt.ProviderID != "" && a.ProviderID != q.Attempt.ProviderID {
		p.Detail = "the provider answered about other work"
		return p
	}
	f := outcomeOfAnswer(a)
	p.Evidence = f.Evidence
	switch {
	case f.Outcome == onejob.OutcomeSucceeded:
		p.Outcome, p.Result, p.ProviderID, p.Detail = f.Outcome, f.Result, f.ProviderID, "the work succeeded"
	case f.Outcome == onejob.OutcomeExecutedFailed && q.byAttempt(p.Method):
		p.Outcome, p.Failure, p.Next, p.ProviderID, p.Detail = f.Outcome, f.Failure, f.Next, f.ProviderID, "the work was done and failed"
	case f.Outcome == onejob.OutcomeCancelled && q.byAttempt(p.Method):
		p.Outcome, p.Failure, p.ProviderID, p.Detail = f.Outcome, f.Failure, f.ProviderID, "the provider gave the work up, as it was asked to"
		if q.Job.CancelRequestedAt.IsZero() { // it had begun, and nobody says how far it got
			p.Outcome, p.Next, p.Detail = onejob.OutcomeExecutedFailed, onejob.NextElsewhere, "the provider gave the work up, and nobody here asked it to"
			p.Failure = &onejob.Failure{Code: "cancelled_there", Message: p.Detail}
		}
	case f.Outcome == onejob.OutcomeExecutedFailed:
		p.Detail = "work under this key or job failed, which may be an earlier attempt's"
	case f.Outcome == onejob.OutcomeAccepted:
		p.Outcome, p.ProviderID, p.Detail = f.Outcome, f.ProviderID, "the provider is working on it"
	case f.Outcome == onejob.OutcomeResultLost:
		p.Detail = "the work is done, but its result is not in the answer"
	default:
		p.Detail = fmt.Sprintf("the answer %q settles nothing", f.Outcome)
	}
	return priced(p, &f)
}

// lastWords are the outcomes after which the work costs no more.
var lastWords = []onejob.Outcome{onejob.OutcomeSucceeded, onejob.OutcomeExecutedFailed, onejob.OutcomeCancelled}

// priced adds what the work cost, once that is the last word.
func priced(p onejob.ProbeRecordParams, f *onejob.AttemptFinishParams) onejob.ProbeRecordParams {
	if slices.Contains(lastWords, p.Outcome) {
		p.CostMicros, p.Currency, p.Usage = f.CostMicros, f.Currency, f.Usage
	}
	return p
}

// askToGiveUp asks a provider to give up an attempt whose job is to be cancelled.
// What it answers proves nothing.
func (e *Engine) askToGiveUp(q *question) {
	canceller, able := q.target.Provider.(onejob.Canceller)
	if !able || q.Job.CancelRequestedAt.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(e.hard, settleTime)
	defer cancel()
	if err := canceller.Cancel(ctx, q.request()); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		e.opts.Logger.Debug("the provider was not asked to cancel", "attempt_id", q.ref.ID, "err", err)
	}
}

// maxDetailBytes bounds what is kept of an error's text.
const maxDetailBytes = 500

func clip(text string) string {
	if len(text) <= maxDetailBytes {
		return text
	}
	end := maxDetailBytes
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
