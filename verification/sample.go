package verification

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/onejob-dev/onejob"
)

// fault is what one call showed to be wrong. The zero value: nothing.
type fault struct {
	class  string
	detail string // without values of the output
	hint   string // what it may come from; may be empty
}

func (f fault) found() bool { return f.class != "" }

// faultOf is the fault of a call that was answered and brought no output.
func faultOf(r *reply) fault {
	if r.bearing != bearingFault {
		return fault{}
	}
	return fault{class: r.class, detail: r.String()}
}

// trouble counts calls that came to nothing. How many may is fixed beforehand.
type trouble struct {
	allowed  int
	calls    int // of this run, whatever became of them
	infra    int
	inARow   int
	answered int
}

// After so many calls in a row that came to nothing a target cannot be reached: without
// more ado, and where more came to nothing than may.
const (
	deadAfter       = 5
	deadAfterBeyond = 3
)

// note counts one call, and ends the run when nothing can be shown any more.
func (t *trouble) note(r *reply) *ending {
	t.calls++
	if r.bearing != bearingNone {
		t.answered++
		t.inARow = 0
		return nil
	}
	t.infra++
	t.inARow++
	switch {
	case t.inARow >= deadAfter, t.infra > t.allowed && (t.answered == 0 || t.inARow >= deadAfterBeyond):
		return unreachable(fmt.Sprintf("%d calls in a row came to nothing, the last one by %s", t.inARow, r))
	case t.infra > t.allowed:
		return inconclusive("infra_errors", fmt.Sprintf("%d of %d calls came to nothing, more than max_infra_error_rate takes; the last one by %s", t.infra, t.calls, r))
	}
	return nil
}

// lostProbe ends a run whose probe came to nothing twice.
func (v *verification) lostProbe(name string, r *reply) *ending {
	v.mu.Lock()
	defer v.mu.Unlock()
	detail := fmt.Sprintf("%s came to nothing twice, the last time by %s", name, r)
	if v.trouble.answered == 0 {
		return unreachable(detail)
	}
	return inconclusive(name, detail)
}

func unreachable(detail string) *ending {
	return &ending{state: onejob.RunInconclusive, reason: "unreachable", detail: detail, err: fmt.Errorf("%w: %s", ErrUnreachable, detail)}
}

// ceiling ends a run whose budget is used up.
func (v *verification) ceiling(err error) *ending {
	calls, micros := v.budget.used()
	return inconclusive(err.Error(), fmt.Sprintf("the budget does not reach for the next call: %d of %d calls made, %s of %s spent", calls, v.MaxCalls, dollars(micros), dollars(v.MaxSpendMicros)))
}

// ask makes one call, has it judged and keeps it as a sample, whatever becomes of it.
// judge is not asked about calls that came to nothing. The ending is one that no later
// call can change.
func (v *verification) ask(ctx context.Context, c *caller, body []byte, s *onejob.VerificationSample, judge func(*reply) fault) (*reply, *ending) {
	if ctx.Err() != nil {
		return nil, broken("cancelled", ctx.Err())
	}
	r, err := c.call(ctx, v.run.ID, body)
	if err != nil {
		return nil, v.ceiling(err)
	}
	s.RunID, s.LatencyMS, s.CostMicros = v.run.ID, r.took.Milliseconds(), r.cost
	s.TokensIn, s.TokensOut, s.ResponseID, s.Output = r.output.InputTokens, r.output.OutputTokens, r.output.ResponseID, r.output.Content
	s.Outcome = onejob.SamplePassed
	switch r.bearing {
	case bearingNone:
		s.Outcome, s.FaultClass, s.Detail = onejob.SampleInfra, r.class, r.detail
	case bearingFault, bearingAnswer:
		if f := judge(&r); f.found() {
			s.Outcome, s.FaultClass, s.Detail = onejob.SampleFailed, f.class, f.detail
		}
	}
	if r.bearing == bearingAnswer {
		s.Observed = observedJSON(r.observed())
	}
	if err := v.keep(ctx, s); err != nil {
		return &r, broken("store", err)
	}
	if r.bearing == bearingNone && ctx.Err() != nil {
		return &r, broken("cancelled", ctx.Err())
	}
	return &r, v.note(c, &r)
}

// note counts a call. Who the primary is has no place in the certificate of another
// target: what is observed is what later answers of this one are compared with.
func (v *verification) note(c *caller, r *reply) *ending {
	v.mu.Lock()
	defer v.mu.Unlock()
	if r.bearing == bearingAnswer && c != v.primary {
		v.seen.add(r.observed())
	}
	v.made.add(r)
	return v.trouble.note(r)
}

// keep records a sample. One whose answer was given before is a failure: it came from a
// cache, and shows nothing of what the target does now.
func (v *verification) keep(ctx context.Context, s *onejob.VerificationSample) error {
	if v.wasSeen(s.ResponseID) {
		cached(s)
	}
	if v.opts.Recorder == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	err := v.add(ctx, *s)
	if errors.Is(err, onejob.ErrSampleSeen) {
		cached(s)
		err = v.add(ctx, *s)
	}
	return err
}

func (v *verification) add(ctx context.Context, s onejob.VerificationSample) error {
	each, err := v.opts.Recorder.SampleAdd(ctx, []onejob.VerificationSample{s})
	if err == nil && len(each) > 0 {
		err = each[0]
	}
	return err
}

func (v *verification) wasSeen(id string) bool {
	if id == "" {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	seen := v.ids[id]
	v.ids[id] = true
	return seen
}

// cached makes a sample one that failed. It is kept without the id, which is taken.
func cached(s *onejob.VerificationSample) {
	s.Outcome, s.FaultClass, s.ResponseID = onejob.SampleFailed, classCached, ""
	s.Detail = "an answer with this id was seen before: it came from a cache"
}

func observedJSON(o onejob.Observed) json.RawMessage {
	raw, err := json.Marshal(o)
	if err != nil {
		return nil // texts marshal
	}
	return raw
}
