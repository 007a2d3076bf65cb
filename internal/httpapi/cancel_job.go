package httpapi

import (
	"net/http"

	"github.com/onejob-dev/onejob"
)

// cancelJob serves POST /v1/jobs/{id}/cancel: 202 while an attempt is in doubt,
// 200 once the job is cancelled.
func (a *api) cancelJob(w http.ResponseWriter, r *http.Request) error {
	if err := a.readNothing(w, r); err != nil {
		return err
	}
	c := exchangeOf(r).caller
	job, err := a.client.Cancel(r.Context(), onejob.JobCancelParams{
		ID: r.PathValue("id"), Owner: c.scope, Actor: c.actor, IfRevision: ifMatch(r.Header),
	})
	if err != nil {
		return err
	}
	return a.writeJob(w, statusOf(job), job)
}

func cancelJobDoc() operation {
	return operation{
		id: "cancelJob", summary: "Ask for a job to be given up",
		description: "Forbids new attempts. An attempt in doubt ends by itself; if it succeeds after all, so does the job. Safe to repeat.",
		headers:     []header{ifMatchHeaderDoc},
		answers: []answer{
			{status: 202, says: "An attempt is still in doubt", body: Job{}, headers: []string{"ETag", "Location", "Retry-After"}},
			{status: 200, says: "The job is cancelled", body: Job{}, headers: []string{"ETag"}},
		},
		problems: []onejob.Code{onejob.CodeInvalidRequest, onejob.CodeNotFound, onejob.CodeJobTerminal, onejob.CodeVersionMismatch, onejob.CodePayloadTooLarge, onejob.CodeUnsupportedMedia},
	}
}
