package httpapi

import (
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
)

// resultWriteTimeout bounds how long a caller may take to read a result.
const resultWriteTimeout = 5 * time.Minute

// getResult serves GET /v1/jobs/{id}/result: the provider's own bytes.
func (a *api) getResult(w http.ResponseWriter, r *http.Request) error {
	job, err := a.client.Get(r.Context(), exchangeOf(r).caller.scope, r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := checkResult(job); err != nil {
		return err
	}
	h := w.Header()
	h.Set("ETag", etag(job))
	if !noneMatches(r.Header, job) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	contentType := contentTypeOf(job.Result)
	if !isPassive(contentType) {
		h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", job.ID))
	}
	h.Set("Content-Security-Policy", apiPolicy+"; sandbox")
	writeWithin(w, resultWriteTimeout)
	writeBytes(w, http.StatusOK, contentType, job.Result.Body)
	return nil
}

// checkResult says why a job has no result to give.
func checkResult(job *onejob.Job) error {
	refuse := func(code onejob.Code, message string) error {
		return &onejob.Error{Code: code, JobID: job.ID, Message: message}
	}
	switch {
	case !job.State.Terminal():
		e := &onejob.Error{Code: onejob.CodeJobNotFinished, JobID: job.ID, Message: fmt.Sprintf("the job is %s", job.State), RetryAfter: pollAfter}
		if job.Blocked != nil {
			e.AttemptID = job.Blocked.AttemptID
		}
		return e
	case job.State != onejob.JobSucceeded:
		return refuse(onejob.CodeJobTerminal, fmt.Sprintf("the job is %s; it has no result", job.State))
	case job.Purged() || job.Result == nil:
		return refuse(onejob.CodeResultExpired, "the result has been removed")
	case job.Result.Lost:
		return refuse(onejob.CodeResultExpired, "the effect happened, but its result cannot be had")
	}
	return nil
}

// isPassive reports whether a browser can show the type without running anything.
func isPassive(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil || media == "image/svg+xml" {
		return false
	}
	top, _, _ := strings.Cut(media, "/")
	return media == "text/plain" || isJSON(media) || top == "image" || top == "audio" || top == "video"
}

func getResultDoc() operation {
	return operation{
		id: "getResult", summary: "Read a result: the provider's own bytes and content type",
		headers: []header{ifNoneMatchHeaderDoc},
		answers: []answer{
			{status: 200, says: "The provider's own answer", contentType: "*/*", headers: []string{"ETag"}},
			{status: 304, says: "The job is still at the revision of If-None-Match"},
		},
		problems: []onejob.Code{onejob.CodeNotFound, onejob.CodeJobNotFinished, onejob.CodeJobTerminal, onejob.CodeResultExpired},
	}
}
