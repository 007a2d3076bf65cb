package httpapi

import (
	"net/http"

	"github.com/onejob-dev/onejob"
)

// UnblockRequest says why a job may go on.
type UnblockRequest struct {
	Reason string `json:"reason" minLength:"1" maxLength:"4096"`
}

// unblockJob serves POST /v1/jobs/{id}/unblock.
func (a *api) unblockJob(w http.ResponseWriter, r *http.Request) error {
	body, err := a.readJSON(w, r)
	if err != nil {
		return err
	}
	var req UnblockRequest
	if err := decode(body, &req); err != nil {
		return err
	}
	if req.Reason == "" || len(req.Reason) > maxEvidenceBytes {
		return &onejob.Error{Code: onejob.CodeInvalidRequest, Message: `member "reason" is required, and at most 4096 bytes`}
	}
	if err := checkText("reason", req.Reason); err != nil {
		return err
	}
	c := exchangeOf(r).caller
	job, err := a.client.Unblock(r.Context(), onejob.JobUnblockParams{
		ID: r.PathValue("id"), Owner: c.scope, Actor: c.actor, Reason: req.Reason, IfRevision: ifMatch(r.Header),
	})
	if err != nil {
		return err
	}
	return a.writeJob(w, http.StatusOK, job)
}

func unblockJobDoc() operation {
	return operation{
		id: "unblockJob", summary: "Let a job go on that is parked or needs an operator",
		headers: []header{ifMatchHeaderDoc},
		body:    UnblockRequest{},
		answers: []answer{{status: 200, says: "The job", body: Job{}, headers: []string{"ETag"}}},
		problems: []onejob.Code{
			onejob.CodeInvalidRequest, onejob.CodePayloadNotCanonical, onejob.CodeNotFound, onejob.CodeAttemptUnresolved,
			onejob.CodeJobTerminal, onejob.CodeVersionMismatch, onejob.CodePayloadTooLarge, onejob.CodeUnsupportedMedia,
		},
	}
}
