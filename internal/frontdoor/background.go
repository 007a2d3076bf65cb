package frontdoor

import (
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/httpapi"
)

// responses are the routes by which a response is asked for that was made in the
// background.
func (d *doors) responses() []httpapi.Door {
	route := routes[APIResponses] + "/{id}"
	return []httpapi.Door{
		{Pattern: "GET " + route, Role: onejob.RoleViewer, Serve: d.getResponse},
		{Pattern: "POST " + route + "/cancel", Role: onejob.RoleSubmitter, Serve: d.cancelResponse},
	}
}

// getResponse serves GET /openai/v1/responses/{id}: the response as it is now.
func (d *doors) getResponse(w http.ResponseWriter, r *http.Request, v httpapi.Visit) error {
	if r.URL.Query().Get("stream") == "true" {
		return &onejob.Error{Code: onejob.CodeInvalidJob, Message: `"stream" is not served of a response that was made before: ask for it without`}
	}
	job, err := d.responseJob(r, v)
	if err != nil {
		return err
	}
	return giveResponse(w, job)
}

// cancelResponse serves POST /openai/v1/responses/{id}/cancel. It is a request, as any
// cancelling is: what is in doubt ends by itself. One that has ended is given as it is.
func (d *doors) cancelResponse(w http.ResponseWriter, r *http.Request, v httpapi.Visit) error {
	job, err := d.responseJob(r, v)
	if err != nil {
		return err
	}
	cancelled, err := d.opts.Client.Cancel(r.Context(), onejob.JobCancelParams{ID: job.ID, Owner: v.Scope, Actor: v.Actor})
	if onejob.CodeOf(err) == onejob.CodeJobTerminal {
		cancelled, err = d.opts.Client.Get(r.Context(), v.Scope, job.ID) // it may have ended just now
	}
	if err != nil {
		return err
	}
	return giveResponse(w, cancelled)
}

// Prefixes of a job's id, and of what a response of it is called.
const (
	jobPrefix      = "job_"
	responsePrefix = "resp_"
)

// responseJob finds the job of a response. Any other job is not found, as one of
// another owner's is not.
func (d *doors) responseJob(r *http.Request, v httpapi.Visit) (*onejob.Job, error) {
	notFound := &onejob.Error{Code: onejob.CodeNotFound, Message: "there is no such response; it has the id that it was first given, and not the provider's"}
	id, ours := strings.CutPrefix(r.PathValue("id"), responsePrefix)
	if !ours {
		return nil, notFound
	}
	job, err := d.opts.Client.Get(r.Context(), v.Scope, jobPrefix+id)
	if onejob.CodeOf(err) == onejob.CodeNotFound || err == nil && d.answersElsewhere(job.Kind) {
		return nil, notFound
	}
	return job, err
}

// answersElsewhere reports whether a kind has another API than responses. Of one that
// is configured no more nobody knows.
func (d *doors) answersElsewhere(kind string) bool {
	for _, m := range d.opts.Models {
		if m.Kind == kind {
			return m.API != APIResponses
		}
	}
	return false
}

// giveResponse answers with the response as it is: the winner's own bytes once there
// is one.
func giveResponse(w http.ResponseWriter, job *onejob.Job) error {
	if job.State == onejob.JobSucceeded {
		return answer(w, job)
	}
	body, err := json.Marshal(responseOf(job))
	if err != nil {
		return err
	}
	tell(w.Header(), job)
	if job.State == onejob.JobBlocked {
		w.Header().Set("Location", "/v1/jobs/"+job.ID)
	}
	write(w, "application/json", body)
	return nil
}

// response is one without a winner, in the shape of OpenAI's. What the caller asked is
// not repeated.
type response struct {
	ID                string         `json:"id"`
	Object            string         `json:"object"`
	CreatedAt         int64          `json:"created_at"`
	Status            string         `json:"status"`
	Background        bool           `json:"background"`
	Error             *responseError `json:"error"`
	IncompleteDetails *struct{}      `json:"incomplete_details"`
	Model             string         `json:"model"`
	Output            []struct{}     `json:"output"`
	Usage             *struct{}      `json:"usage"`
}

// responseError has one of the codes that the API has.
type responseError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func responseOf(job *onejob.Job) response {
	r := response{
		ID: responsePrefix + strings.TrimPrefix(job.ID, jobPrefix), Object: "response", CreatedAt: job.CreatedAt.Unix(),
		Status: responseStatus(job.State), Background: true, Model: job.Kind, Output: []struct{}{},
	}
	if job.State == onejob.JobFailed {
		r.Error = &responseError{Code: "server_error", Message: failureOf(job)}
	}
	return r
}

// responseStatus is the state of a job in the words of the API. What is in doubt, or
// waits for a person, has not failed.
func responseStatus(s onejob.JobState) string {
	switch s {
	case onejob.JobQueued:
		return "queued"
	case onejob.JobFailed:
		return "failed"
	case onejob.JobCancelled:
		return "cancelled"
	case onejob.JobRunning, onejob.JobBlocked, onejob.JobSucceeded:
	}
	return "in_progress"
}
