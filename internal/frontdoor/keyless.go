package frontdoor

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/httpapi"
)

// retryCountHeader is how often a client library has tried the call before. Those that
// send it send it with the first try too.
const retryCountHeader = "X-Stainless-Retry-Count"

const (
	// recordWithin bounds the recording of a call whose caller may have left.
	recordWithin = 30 * time.Second
	// endWithin bounds writing down how a caller's waiting ended.
	endWithin = 10 * time.Second
)

// keyless serves a call that does not name its intent. It is one of its own, unless it
// says that it is a retry and the job of one that was alike has lost its caller.
//
// It is recorded though its caller may leave meanwhile: the door has to know which job
// nobody waits for any more.
func (d *doors) keyless(w http.ResponseWriter, r *http.Request, v httpapi.Visit, m Model, asked request, p onejob.SubmitParams) error {
	got, err := d.submitKeyless(r, m, p)
	v.Submitted(p.Kind, got.TakenOver, err)
	if err != nil {
		if onejob.CodeOf(err) == onejob.CodeStoreUnavailable { // it may have been recorded all the same
			d.endWaiting(r.Context(), onejob.WaiterEndParams{Waiter: got.Waiter})
		}
		return err
	}
	defer got.Watch.Stop()
	d.waiting.add(got.Waiter)
	end := onejob.WaiterEndParams{Waiter: got.Waiter}
	defer func() {
		d.waiting.remove(got.Waiter)
		d.endWaiting(r.Context(), end)
	}()
	c := recognised{intent: intentNew, asked: asked, model: m, job: got.Job, existed: got.TakenOver, watch: got.Watch}
	if got.TakenOver {
		c.intent = intentClaimed
	}
	whole, err := d.serve(w, r, v, c)
	if err != nil {
		w.Header().Set("Location", "/v1/jobs/"+c.job.ID)
		v.WriteProblem(w, r, unrepeated(err, c.job, recognisable(r.Header, m)))
	}
	end.Delivered = whole && isOut(w, r)
	return nil
}

// recognisable reports whether a repeat of a call can find its job: one that counts its
// tries does so with the first, too.
func recognisable(h http.Header, m Model) bool {
	return m.TakeOver || len(h.Values(retryCountHeader)) > 0
}

// unrepeated is the error of a call whose job is recorded, and which must not be told to
// come again where its repeat would be another job: whoever does not count its tries
// would be, and so would everybody while the store does not learn who has left.
func unrepeated(err error, job *onejob.Job, recognisable bool) error {
	if code := onejob.CodeOf(err); code != onejob.CodeStoreUnavailable && (code != onejob.CodeOverloaded || recognisable) {
		return err
	}
	return &onejob.Error{
		Code: onejob.CodeOutcomeUnknown, JobID: job.ID, Err: err,
		Message: "the call is recorded, and what becomes of it cannot be told now; poll the job and do not send the request again",
	}
}

func (d *doors) submitKeyless(r *http.Request, m Model, p onejob.SubmitParams) (onejob.KeylessResult, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), recordWithin)
	defer cancel()
	k := onejob.KeylessParams{SubmitParams: p, Route: routes[m.API], Lease: d.opts.Lease}
	if mayTakeOver(r.Header, m) {
		k.TakeOverWithin = cmp.Or(m.TakeOverWithin, d.opts.TakeOverWithin)
	}
	return d.opts.Client.SubmitKeyless(ctx, k)
}

// mayTakeOver reports whether a call can be a retry. Of one that does not count its
// tries only the configuration knows.
func mayTakeOver(h http.Header, m Model) bool {
	counts := h.Values(retryCountHeader)
	if len(counts) == 0 {
		return m.TakeOver
	}
	n, err := strconv.Atoi(strings.TrimSpace(counts[0]))
	return err == nil && n >= 1
}

// isOut reports whether all of the answer left this process while its caller was
// there. Whether it was read nobody can tell.
func isOut(w http.ResponseWriter, r *http.Request) bool {
	return http.NewResponseController(w).Flush() == nil && r.Context().Err() == nil
}

// endWaiting writes down how a caller's waiting ended. If that fails its lease ends by
// itself.
func (d *doors) endWaiting(ctx context.Context, p onejob.WaiterEndParams) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	_ = d.opts.Client.StopWaiting(ctx, p)
}
