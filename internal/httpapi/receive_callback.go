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
	result, err := a.report(w, r, p)
	switch {
	case errors.Is(err, onejob.ErrNotFound):
		return a.refusals.refuse(r, refusedToken)
	case err != nil:
		return err
	}
	a.reported(r, &p, &result)
	said, err := encode(CallbackAnswer{Duplicate: result.Duplicate})
	if err != nil {
		return err
	}
	write(w, http.StatusOK, "application/json", said)
	return nil
}

// report writes a report down. One that comes before the call that it is about was
// recorded waits for that, for a provider may not report twice.
func (a *api) report(w http.ResponseWriter, r *http.Request, p onejob.ReportParams) (onejob.ReportResult, error) {
	result, err := a.client.Report(r.Context(), p)
	var early *onejob.Error
	if onejob.CodeOf(err) != onejob.CodeRequestInProgress || !errors.As(err, &early) {
		return result, err
	}
	ctx, done, ok := a.hold(w, r, a.opts.CallbackWait)
	if !ok {
		return result, err
	}
	defer done()
	_, watchErr := a.client.WatchUntil(ctx, "", early.JobID, func(job *onejob.Job) bool {
		attempt := onejob.AttemptOf(job, p.AttemptID)
		return attempt == nil || attempt.State != onejob.AttemptStarting && attempt.Outcome != ""
	})
	if watchErr != nil {
		return result, err
	}
	// Whether the provider still waits for the answer or not, its report counts.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportWithin)
	defer cancel()
	return a.client.Report(bounded, p)
}

// reported tells whoever wants to know what a report changed.
func (a *api) reported(r *http.Request, p *onejob.ReportParams, result *onejob.ReportResult) {
	if result.Duplicate {
		return
	}
	outcome := onejob.Outcome("")
	if p.Answer != nil {
		outcome = p.Answer.Outcome
	}
	a.opts.Observer.ProbeAnswered(p.Target, onejob.ProbeCallback, outcome)
	log := a.log.With("job_id", result.JobID, "attempt_id", p.AttemptID, "target", p.Target)
	if result.Discarded != nil {
		log.WarnContext(r.Context(), "success discarded", "winner", result.Discarded.Winner, "after", result.Discarded.After)
		a.opts.Observer.RaceLost(p.Target)
	}
	if result.Incident != "" {
		log.ErrorContext(r.Context(), "incident: the effect may have happened twice", "incident", result.Incident)
		a.opts.Observer.Incident(result.Incident)
	}
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

// reportWithin bounds the writing down of a report that waited.
const reportWithin = 10 * time.Second

// defaultCallbackWait is how long a report waits for the call that it is about.
const defaultCallbackWait = 5 * time.Second
