package httpapi

import (
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/onejob-dev/onejob"
)

// JobRequest is one intent.
type JobRequest struct {
	Kind       string         `json:"kind" maxLength:"255"`
	Input      jsontext.Value `json:"input" doc:"Any JSON; the provider gets these bytes"`
	Target     string         `json:"target,omitzero" maxLength:"255" doc:"One of the kind's targets; absent: the first"`
	Metadata   jsontext.Value `json:"metadata,omitzero" doc:"An object; not part of the intent"`
	RunAfter   time.Time      `json:"run_after,omitzero"`
	Deadline   time.Time      `json:"deadline,omitzero" doc:"No attempt starts after it"`
	Priority   int            `json:"priority,omitzero" minimum:"-100" maximum:"100" doc:"Higher first, among your own jobs; owners take turns whatever their priorities. Not part of the intent"`
	Supersedes string         `json:"supersedes,omitzero" maxLength:"255" doc:"The id of a job that ended, which this one replaces"`
	Webhook    *JobWebhook    `json:"webhook,omitzero" doc:"Who is told how the job ends; not part of the intent. Absent: every endpoint that is told about the owner's jobs"`
}

// JobWebhook is the one endpoint that is told about a job.
type JobWebhook struct {
	URL string `json:"url" minLength:"1" maxLength:"2048" doc:"That of an endpoint that the server's configuration registers"`
}

const (
	maxNameLength    = 255
	maxMetadataBytes = 16 << 10
	maxURLBytes      = 2048
)

// check finds what is wrong with an intent before its key is looked up: what is
// missing or cannot be meant, not what the configuration says.
func (req *JobRequest) check() error {
	for _, member := range [...]struct{ name, value string }{{"kind", req.Kind}, {"target", req.Target}, {"supersedes", req.Supersedes}} {
		if len(member.value) > maxNameLength {
			return invalid("member %q is longer than %d bytes", member.name, maxNameLength)
		}
		if err := checkText(member.name, member.value); err != nil {
			return err
		}
	}
	switch {
	case req.Kind == "":
		return invalid("member %q is required", "kind")
	case len(req.Input) == 0:
		return invalid("member %q is required; null must be said", "input")
	case len(req.Metadata) > 0 && !isObject(req.Metadata):
		return invalid("member %q is not an object", "metadata")
	case len(req.Metadata) > maxMetadataBytes:
		return invalid("member %q is longer than %d bytes", "metadata", maxMetadataBytes)
	}
	return req.Webhook.check()
}

// check finds what is wrong with a webhook as it is written. Whether there is such
// an endpoint guards only the insert.
func (h *JobWebhook) check() error {
	switch {
	case h == nil:
		return nil
	case h.URL == "":
		return invalid("member %q is required", "webhook.url")
	case len(h.URL) > maxURLBytes:
		return invalid("member %q is longer than %d bytes", "webhook.url", maxURLBytes)
	}
	return checkText("webhook.url", h.URL)
}

func (req *JobRequest) params(owner, key, trace string) onejob.SubmitParams {
	p := onejob.SubmitParams{
		Owner: owner, Key: key, Kind: req.Kind, Input: req.Input,
		Target: req.Target, Metadata: req.Metadata, Priority: req.Priority,
		RunAfter: req.RunAfter, Deadline: req.Deadline, Supersedes: req.Supersedes, Trace: trace,
	}
	if req.Webhook != nil {
		p.Webhook = req.Webhook.URL
	}
	return p
}

// submitJob serves POST /v1/jobs: 202 while the job is under way, 200 once it has ended.
func (a *api) submitJob(w http.ResponseWriter, r *http.Request) error {
	body, err := a.readJSON(w, r)
	if err != nil {
		return err
	}
	key, err := idempotencyKey(r.Header)
	if err != nil {
		return err
	}
	var req JobRequest
	if err := decode(body, &req); err != nil {
		return err
	}
	if err := req.check(); err != nil {
		return err
	}
	c := exchangeOf(r).caller
	job, existed, watch, err := a.client.SubmitWatched(r.Context(), req.params(c.owner, key, traceparent(r.Header)))
	a.observeSubmit(req.Kind, existed, err)
	if err != nil {
		return err
	}
	defer watch.Stop()
	if existed {
		w.Header().Set(replayedHeader, "true")
	}
	if job, err = a.waitSettled(w, r, job, watch.Until); err != nil {
		return err
	}
	status := statusOf(job)
	if status != http.StatusAccepted { // which says so itself
		w.Header().Set("Location", "/v1/jobs/"+job.ID)
	}
	return a.writeJob(w, status, job)
}

// observeSubmit counts what found or made a job, and what met another intent.
func (a *api) observeSubmit(kind string, existed bool, err error) {
	switch {
	case err == nil && existed:
		a.opts.Observer.JobSubmitted(kind, "replayed")
	case err == nil:
		a.opts.Observer.JobSubmitted(kind, "new")
	case onejob.CodeOf(err) == onejob.CodeKeyConflict:
		a.opts.Observer.JobSubmitted(kind, "conflict")
	}
}

func submitJobDoc() operation {
	return operation{
		id: "submitJob", summary: "Record an intent and get its job",
		description: "Safe to repeat with the same key: a repeat answers the same job as it is now. The key is bound to the intent for ever.",
		headers:     []header{keyHeaderDoc, preferHeaderDoc},
		body:        JobRequest{},
		answers: []answer{
			{status: 202, says: "The job, under way", body: Job{}, headers: jobHeaders},
			{status: 200, says: "The job, which has ended", body: Job{}, headers: jobHeaders},
		},
		problems: []onejob.Code{
			onejob.CodeKeyMissing, onejob.CodeKeyInvalid, onejob.CodeInvalidRequest, onejob.CodePayloadNotCanonical,
			onejob.CodeKeyConflict, onejob.CodeAttemptUnresolved, onejob.CodeKeyExpired, onejob.CodeNotFound,
			onejob.CodePayloadTooLarge, onejob.CodeUnsupportedMedia, onejob.CodeInvalidJob, onejob.CodeQuotaExceeded, onejob.CodeDraining,
			onejob.CodeRestoreUnconfirmed,
		},
	}
}
