package verification

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
)

// bearing is what a call has to say about a target.
type bearing int

const (
	bearingAnswer bearing = iota // there is an output to be judged
	bearingFault                 // the target did answer, and it is no output
	bearingNone                  // the call came to nothing
)

// reply is what one call brought.
type reply struct {
	bearing bearing
	class   string // of a fault, or of an error
	detail  string // free of secrets and of values of the output
	status  int    // HTTP status; zero: none came
	output  onejob.Output
	cost    int64
	took    time.Duration
}

// Classes of what is wrong with an answer before there is an output. Others are the
// codes that the provider's own adapter gives.
const (
	classRequestRefused = "request_refused" // loudly, so that it is no output
	classAnswerShape    = "answer_shape"    // not the shape of an answer
	classCached         = "cached"          // its id was seen before
	classCount          = "count_mismatch"  // other tokens billed than counted
)

// caller makes calls of one target through the adapter that production uses.
type caller struct {
	target  *Target
	kind    string
	effect  onejob.Effect
	timeout time.Duration
	budget  *budget
	cap     int
	// rendered says that bodies are made for the target, and not a case's own.
	rendered bool
}

// call sends body once. An error means that it was not made: a ceiling was reached.
func (c *caller) call(ctx context.Context, runID string, body []byte) (reply, error) {
	aside, err := c.budget.take(c.worst(body))
	if err != nil {
		return reply{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	key := rand.Text()
	start := time.Now()
	answer, err := c.target.Provider.Call(ctx, onejob.Request{
		JobID: runID, AttemptID: runID + "." + key, Number: 1, Kind: c.kind, Target: c.target.Name,
		Effect: c.effect, Input: body, Rendered: c.rendered, ProviderKey: key,
	})
	r := c.read(answer, err)
	r.took = time.Since(start)
	c.budget.settle(aside, r.cost)
	return r, nil
}

// worst is what a call can cost: no token has less than a byte.
func (c *caller) worst(body []byte) int64 {
	if c.target.PriceFunc == nil {
		return 0
	}
	return c.target.PriceFunc(len(body), c.cap)
}

func (c *caller) read(a onejob.Answer, err error) reply {
	var told *onejob.CallError
	switch {
	case errors.As(err, &told):
		r := reply{class: told.Failure.Code, detail: told.Failure.Message, status: told.Evidence.Status, cost: told.CostMicros}
		r.bearing = bearingOf(told.Evidence.Status, told.Next == onejob.NextNowhere && told.Evidence.Status == 0)
		if r.bearing == bearingFault {
			r.class = classRequestRefused
		}
		return r
	case err != nil:
		return reply{bearing: bearingNone, class: "no_answer", detail: "no answer came"}
	}
	r := reply{status: a.Evidence.Status, cost: a.CostMicros}
	switch a.Outcome {
	case "", onejob.OutcomeSucceeded:
		return c.readOutput(r, a.Body)
	case onejob.OutcomeAccepted:
		r.bearing, r.class, r.detail = bearingNone, "accepted", "the target works in the background, which a verification does not wait for"
		return r
	default:
		r.bearing = bearingOf(r.status, false)
		if a.Failure != nil {
			r.class, r.detail = a.Failure.Code, a.Failure.Message
		}
		if r.class == "answer_truncated" {
			r.bearing = bearingNone // the connection broke
		}
		return r
	}
}

func (c *caller) readOutput(r reply, body []byte) reply {
	prompter, ok := c.target.Provider.(onejob.Prompter)
	if !ok {
		r.output = onejob.Output{Content: body}
		return r
	}
	output, err := prompter.ReadOutput(body)
	if err != nil {
		r.bearing, r.class, r.detail = bearingFault, classAnswerShape, err.Error()
		return r
	}
	r.output = output
	return r
}

// refusals are the statuses by which a target says that it will not take such a
// request. A model that is not there, or a key that is not taken, may be there tomorrow.
var refusals = []int{
	http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
	http.StatusUnprocessableEntity, http.StatusNotImplemented,
}

// bearingOf tells what a status that brings no output says of the target. unsendable:
// the request cannot be put on the wire at all.
func bearingOf(status int, unsendable bool) bearing {
	switch {
	case unsendable, status >= 200 && status < 300, slices.Contains(refusals, status):
		return bearingFault
	}
	return bearingNone
}

// answer is the output as a contract judges it.
func (r *reply) answer() contract.Answer {
	o := &r.output
	return contract.Answer{
		Raw: o.Content, Finish: contract.Finish(o.Finish), Refused: o.Refused, ToolCalls: o.ToolCalls,
		InputTokens: o.InputTokens, OutputTokens: o.OutputTokens,
	}
}

func (r *reply) observed() onejob.Observed {
	o := &r.output
	return onejob.Observed{Model: o.Model, Fingerprint: o.Fingerprint, Upstream: o.Upstream, Build: o.Build}
}

// String tells a call that brought no output.
func (r *reply) String() string {
	if r.status != 0 {
		return fmt.Sprintf("%s (status %d): %s", r.class, r.status, r.detail)
	}
	return r.class + ": " + r.detail
}
