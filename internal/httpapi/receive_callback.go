package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/onejob-dev/onejob"
)

// CallbackReader reads what a target's provider reports by itself. A report that
// settles nothing is an error; one that is not signed as the target signs wraps
// [onejob.ErrForged].
type CallbackReader interface {
	ReadCallback(header http.Header, body []byte) (onejob.Answer, error)
}

// CallbackAnswer is what a provider that reported is told.
type CallbackAnswer struct {
	Duplicate bool `json:"duplicate" doc:"The attempt had ended before"`
}

// receiveCallback serves POST /v1/callbacks/{target}/{token}. It needs no
// credential: the token proves that this instance gave it out for this attempt.
// What proves nothing changes nothing.
func (a *api) receiveCallback(w http.ResponseWriter, r *http.Request) error {
	target := r.PathValue("target")
	reader, known := a.opts.Callbacks[target]
	id, genuine := onejob.CheckCallbackToken(a.opts.Secret, target, r.PathValue("token"))
	if !known || !genuine || a.opts.Secret == "" {
		return a.refusals.refuse(r, refusedToken)
	}
	body, err := a.readJSON(w, r)
	if err != nil {
		return err
	}
	answer, err := reader.ReadCallback(r.Header, body)
	if errors.Is(err, onejob.ErrForged) {
		return a.refusals.refuse(r, refusedSignature)
	}
	p := onejob.ReportParams{Target: target, AttemptID: id}
	if err == nil {
		p.Answer = &answer
	}
	duplicate, err := a.report(w, r, p)
	switch {
	case errors.Is(err, onejob.ErrNotFound):
		return a.refusals.refuse(r, refusedToken)
	case err != nil:
		return err
	}
	said, err := encode(CallbackAnswer{Duplicate: duplicate})
	if err != nil {
		return err
	}
	write(w, http.StatusOK, "application/json", said)
	return nil
}

// report writes a report down. One that comes before the call that it is about was
// recorded waits for that, for a provider may not report twice.
func (a *api) report(w http.ResponseWriter, r *http.Request, p onejob.ReportParams) (duplicate bool, err error) {
	duplicate, err = a.client.Report(r.Context(), p)
	var early *onejob.Error
	if onejob.CodeOf(err) != onejob.CodeRequestInProgress || !errors.As(err, &early) {
		return duplicate, err
	}
	ctx, done, ok := a.hold(w, r, a.opts.CallbackWait)
	if !ok {
		return false, err
	}
	defer done()
	_, watchErr := a.client.WatchUntil(ctx, "", early.JobID, func(job *onejob.Job) bool {
		attempt := onejob.AttemptOf(job, p.AttemptID)
		return attempt == nil || attempt.State != onejob.AttemptStarting && attempt.Outcome != ""
	})
	if watchErr != nil {
		return false, err
	}
	return a.client.Report(context.WithoutCancel(ctx), p)
}

func receiveCallbackDoc() operation {
	return operation{
		id: "receiveCallback", summary: "Report how an attempt ended, as its provider",
		description: "The URL is given to the provider as callback_url. Its token is good for one attempt at one target. Where the target signs, the signature is checked as well.",
		body:        jsontext.Value{},
		answers:     []answer{{status: 200, says: "It was received", body: CallbackAnswer{}}},
		problems: []onejob.Code{
			onejob.CodeNotFound, onejob.CodeUnauthenticated, onejob.CodeRequestInProgress, onejob.CodePayloadTooLarge, onejob.CodeUnsupportedMedia,
			onejob.CodeQuotaExceeded, onejob.CodeOverloaded, onejob.CodeInternal,
		},
	}
}

// defaultCallbackWait is how long a report waits for the call that it is about.
const defaultCallbackWait = 5 * time.Second
