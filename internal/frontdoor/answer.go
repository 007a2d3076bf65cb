package frontdoor

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
)

// answer gives the winner's bytes, or says why there are none.
func answer(w http.ResponseWriter, job *onejob.Job) error {
	tell(w.Header(), job)
	if err := refusal(job); err != nil {
		w.Header().Set("Location", "/v1/jobs/"+job.ID)
		return err
	}
	contentType := job.Result.ContentType
	if contentType == "" {
		contentType = "application/json"
	}
	write(w, contentType, job.Result.Body)
	return nil
}

// tell says in headers what became of the intent.
func tell(h http.Header, job *onejob.Job) {
	h.Set("Onejob-Job-Id", job.ID)
	h.Set("Onejob-Attempts", strconv.Itoa(job.AttemptsMade))
	if a := winner(job); a != nil {
		tellAttempt(h, a)
	}
}

// winner is the attempt that brought the job's result; nil: none has, or it is not known.
func winner(job *onejob.Job) *onejob.Attempt {
	i := slices.IndexFunc(job.Attempts, func(a onejob.Attempt) bool { return a.ID == job.CompletedBy })
	if i < 0 {
		return nil
	}
	return &job.Attempts[i]
}

// tellAttempt says whose answer it is.
func tellAttempt(h http.Header, a *onejob.Attempt) {
	h.Set("Onejob-Target", a.Target)
	if a.CertificateID != "" {
		h.Set("Onejob-Certificate", a.CertificateID)
	}
	tellDropped(h, a.Evidence.DroppedParams)
}

const droppedHeader = "Onejob-Params-Dropped"

func tellDropped(h http.Header, dropped string) {
	if dropped != "" {
		h.Set(droppedHeader, spelt(dropped))
	}
}

func spelt(dropped string) string { return strings.ReplaceAll(dropped, ",", ", ") }

// refusal says why a job has no answer to give; nil: it has one.
func refusal(job *onejob.Job) error {
	refuse := func(code onejob.Code, message string) *onejob.Error {
		return &onejob.Error{Code: code, JobID: job.ID, Message: message}
	}
	switch job.State {
	case onejob.JobSucceeded:
		switch {
		case job.Result == nil || job.Purged():
			return refuse(onejob.CodeResultExpired, "the result has been removed")
		case job.Result.Lost:
			return refuse(onejob.CodeResultExpired, "the effect happened, but its result cannot be had")
		}
		return nil
	case onejob.JobFailed:
		return refuse(onejob.CodeProviderFailed, failureOf(job))
	case onejob.JobCancelled:
		return refuse(onejob.CodeJobTerminal, "the job was cancelled")
	case onejob.JobBlocked:
		return blocked(job, refuse)
	case onejob.JobQueued, onejob.JobRunning:
	}
	for i := range job.Attempts {
		if a := &job.Attempts[i]; a.State.InDoubt() {
			e := refuse(onejob.CodeOutcomeUnknown, fmt.Sprintf("attempt %d at %s has not answered yet; poll the job and do not send the request again", a.Number, a.Target))
			e.AttemptID = a.ID
			return e
		}
	}
	e := refuse(onejob.CodeRequestInProgress, "the job waits for its turn; ask again with the same idempotency key")
	e.RetryAfter = time.Second
	return e
}

func failureOf(job *onejob.Job) string {
	if job.Error == nil {
		return "the job failed"
	}
	return job.Error.Code + ": " + job.Error.Message
}

func blocked(job *onejob.Job, refuse func(onejob.Code, string) *onejob.Error) error {
	b := job.Blocked
	if b == nil {
		return refuse(onejob.CodeOutcomeUnknown, "the job waits for a person")
	}
	code := onejob.CodeOutcomeUnknown
	if b.Reason == onejob.BlockFailoverNotCertified {
		code = onejob.CodeFailoverNotCertified
	}
	e := refuse(code, b.Detail)
	e.AttemptID, e.Reason, e.Candidates = b.AttemptID, string(b.Reason), b.Candidates
	if len(b.Candidates) > 0 {
		e.Reason = b.Candidates[0].Reason
	}
	return e
}
