package httpapi

import (
	"net/http"

	"github.com/onejob-dev/onejob"
)

// getJob serves GET /v1/jobs/{id}.
func (a *api) getJob(w http.ResponseWriter, r *http.Request) error {
	scope := exchangeOf(r).caller.scope
	job, err := a.client.Get(r.Context(), scope, r.PathValue("id"))
	if err != nil {
		return err
	}
	if job, err = a.waitSettled(w, r, job, a.watching(scope, job.ID)); err != nil {
		return err
	}
	if !noneMatches(r.Header, job) {
		w.Header().Set("ETag", etag(job))
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return a.writeJob(w, http.StatusOK, job)
}

func getJobDoc() operation {
	return operation{
		id: "getJob", summary: "Read a job",
		headers: []header{preferHeaderDoc, ifNoneMatchHeaderDoc},
		answers: []answer{
			{status: 200, says: "The job as it is now", body: Job{}, headers: []string{"ETag", "Preference-Applied"}},
			{status: 304, says: "The job is still at the revision of If-None-Match"},
		},
		problems: []onejob.Code{onejob.CodeNotFound},
	}
}
