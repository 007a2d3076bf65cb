package httpapi

import (
	"errors"
	"net/http"

	"github.com/onejob-dev/onejob"
)

// StartAttemptRequest asks for one more attempt. The body may be left out.
type StartAttemptRequest struct {
	Target string `json:"target,omitzero" maxLength:"255" doc:"Absent: the next in the order of fallback"`
}

// startAttempt serves POST /v1/jobs/{id}/attempts, the fallback button. It has a
// key of its own: pressed twice, it is one attempt.
func (a *api) startAttempt(w http.ResponseWriter, r *http.Request) error {
	body, err := a.readJSON(w, r)
	if err != nil {
		return err
	}
	key, err := idempotencyKey(r.Header)
	if err != nil {
		return err
	}
	var req StartAttemptRequest
	if len(body) > 0 {
		if err := decode(body, &req); err != nil {
			return err
		}
	}
	if len(req.Target) > maxNameLength {
		return &onejob.Error{Code: onejob.CodeInvalidRequest, Message: `member "target" is too long`}
	}
	if err := checkText("target", req.Target); err != nil {
		return err
	}
	c := exchangeOf(r).caller
	attempt, existed, err := a.client.StartAttempt(r.Context(), onejob.StartAttemptParams{
		JobID: r.PathValue("id"), Owner: c.scope, Actor: c.actor, Key: key, Target: req.Target, IfRevision: ifMatch(r.Header),
	})
	if err != nil {
		a.noteRefusal(err)
		return err
	}
	h := w.Header()
	if existed {
		h.Set(replayedHeader, "true")
	}
	h.Set("Location", "/v1/attempts/"+attempt.ID)
	h.Set("Retry-After", retryAfterSeconds(pollAfter))
	return a.writeAttempt(w, http.StatusAccepted, &attempt)
}

// noteRefusal counts the targets that the gate kept from taking over.
func (a *api) noteRefusal(err error) {
	var e *onejob.Error
	if !errors.As(err, &e) || e.Code != onejob.CodeFailoverNotCertified {
		return
	}
	for _, c := range e.Candidates {
		a.opts.Observer.GateDecided(e.Kind, c.Target, false, c.Reason)
	}
}

func startAttemptDoc() operation {
	return operation{
		id: "startAttempt", summary: "Ask for one more attempt (the fallback button)",
		description: "Goes by the same rules as the job itself, but does not wait out a backoff. A refused request takes no key.",
		headers:     []header{keyHeaderDoc, ifMatchHeaderDoc},
		body:        StartAttemptRequest{}, bodyOptional: true,
		answers: []answer{{status: 202, says: "The attempt", body: Attempt{}, headers: []string{"Location", "Retry-After", replayedHeader}}},
		problems: []onejob.Code{
			onejob.CodeKeyMissing, onejob.CodeKeyInvalid, onejob.CodeInvalidRequest, onejob.CodePayloadNotCanonical, onejob.CodeNotFound,
			onejob.CodeKeyConflict, onejob.CodeAttemptUnresolved, onejob.CodeFailoverNotCertified, onejob.CodeJobTerminal,
			onejob.CodeVersionMismatch, onejob.CodePayloadTooLarge, onejob.CodeUnsupportedMedia, onejob.CodeInvalidJob,
		},
	}
}
