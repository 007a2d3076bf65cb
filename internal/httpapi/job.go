package httpapi

import (
	"bytes"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/onejob-dev/onejob"
)

// Job is a job as callers see it.
type Job struct {
	ID      string          `json:"id"`
	Kind    string          `json:"kind"`
	Owner   string          `json:"owner"`
	Target  string          `json:"target,omitzero" doc:"The target asked for; absent: the kind's first"`
	State   onejob.JobState `json:"state"`
	Blocked *Blocked        `json:"blocked,omitzero" doc:"With state blocked"`

	Version  int64 `json:"version" doc:"Counts what happened to the result slot"`
	Revision int64 `json:"revision" doc:"Counts every visible change; the ETag"`

	CompletedBy string   `json:"completed_by,omitzero" doc:"The attempt that won"`
	ResultLost  bool     `json:"result_lost,omitzero" doc:"The effect happened; its result cannot be had"`
	Error       *Failure `json:"error,omitzero"`

	Attempts          []AttemptSummary `json:"attempts" nullable:"false" doc:"Oldest first"`
	CancelRequestedAt time.Time        `json:"cancel_requested_at,omitzero"`
	Cost              []Cost           `json:"cost" nullable:"false" doc:"One entry a currency"`
	Metadata          jsontext.Value   `json:"metadata"`
	CreatedAt         time.Time        `json:"created_at"`
	FinishedAt        time.Time        `json:"finished_at,omitzero"`

	// Result comes last: see encode.
	Result jsontext.Value `json:"result,omitzero" doc:"The provider's own answer when it is JSON; otherwise content_type, size and url. Lists and batches leave it out"`
}

// AttemptSummary is what a job tells of each attempt.
type AttemptSummary struct {
	ID     string              `json:"id"`
	Number int                 `json:"number"`
	Lane   int                 `json:"lane"`
	Target string              `json:"target"`
	State  onejob.AttemptState `json:"state"`
}

// Failure says why a job or an attempt failed.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Blocked says what a blocked job waits for.
type Blocked struct {
	Reason     onejob.BlockReason `json:"reason"`
	Since      time.Time          `json:"since"`
	Detail     string             `json:"detail"`
	AttemptID  string             `json:"attempt_id,omitzero"`
	Candidates []onejob.Candidate `json:"candidates,omitzero" nullable:"false"`
	Actions    []Action           `json:"actions" nullable:"false" doc:"What would let the job go on, or end it"`
}

// Action is a call that would help.
type Action struct {
	Name        string `json:"name" enum:"resolve,retry_primary,verify,waive,unblock,cancel"`
	Method      string `json:"method"`
	Href        string `json:"href"`
	Description string `json:"description"`
}

// Cost is a sum of money in one currency.
type Cost struct {
	Currency string `json:"currency"`
	Micros   int64  `json:"micros"`
	AtLeast  bool   `json:"at_least" doc:"An attempt in doubt may still be charged"`
}

// StoredResult describes a result that is not JSON.
type StoredResult struct {
	ContentType string `json:"content_type"`
	Size        int    `json:"size"`
	URL         string `json:"url"`
}

func jobOf(j *onejob.Job) Job {
	job := Job{
		ID: j.ID, Kind: j.Kind, Owner: j.Owner, Target: j.Target, State: j.State,
		Version: j.Version, Revision: j.Revision, CompletedBy: j.CompletedBy,
		ResultLost: j.Result != nil && j.Result.Lost,
		Error:      failureOf(j.Error),
		Attempts:   make([]AttemptSummary, len(j.Attempts)),
		Metadata:   jsontext.Value(`{}`),
		CreatedAt:  j.CreatedAt.UTC(), CancelRequestedAt: utc(j.CancelRequestedAt), FinishedAt: utc(j.FinishedAt),
	}
	if j.State == onejob.JobBlocked && j.Blocked != nil {
		job.Blocked = blockedOf(j)
	}
	for i := range j.Attempts {
		t := &j.Attempts[i]
		job.Attempts[i] = AttemptSummary{ID: t.ID, Number: t.Number, Lane: t.Lane, Target: t.Target, State: t.State}
	}
	for _, c := range j.Costs() {
		job.Cost = append(job.Cost, Cost{Currency: c.Currency, Micros: c.Micros, AtLeast: c.AtLeast})
	}
	if len(j.Metadata) > 0 {
		job.Metadata = jsontext.Value(j.Metadata)
	}
	return job
}

func failureOf(f *onejob.Failure) *Failure {
	if f == nil {
		return nil
	}
	return &Failure{Code: f.Code, Message: f.Message}
}

// utc keeps the zero time zero.
func utc(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}

func blockedOf(j *onejob.Job) *Blocked {
	b := j.Blocked
	return &Blocked{
		Reason: b.Reason, Since: b.Since.UTC(), Detail: b.Detail, AttemptID: b.AttemptID,
		Candidates: b.Candidates, Actions: actionsOf(j),
	}
}

// actionsOf lists the calls that would help a blocked job.
func actionsOf(j *onejob.Job) []Action {
	jobPath := "/v1/jobs/" + j.ID
	var actions []Action
	add := func(name, href, description string) {
		actions = append(actions, Action{name, http.MethodPost, href, description})
	}
	switch j.Blocked.Reason {
	case onejob.BlockAttemptUnknown:
		add("resolve", "/v1/attempts/"+j.Blocked.AttemptID+"/resolve", "say what became of the attempt, with evidence")
	case onejob.BlockFailoverNotCertified:
		add("retry_primary", jobPath+"/attempts", "start an attempt at the first target again, or at a candidate once it may take over")
		verify, waive := helps(j)
		if verify {
			add("verify", "/v1/contracts/"+url.PathEscape(j.Kind)+"/verify", "have a candidate verified; the job goes on by itself once it is certified")
		}
		if waive {
			add("waive", "/v1/waivers", "let a candidate take over without a certificate until a day, in your name")
		}
	case onejob.BlockParked, onejob.BlockNeedsOperator:
		add("unblock", jobPath+"/unblock", "let the job go on, with a reason")
	case onejob.BlockFailoverUnproven, onejob.BlockTargetsExhaustedUnproven:
	}
	add("cancel", jobPath+"/cancel", "give the job up")
	return actions
}

// helps says what would let a candidate take over. Without a contract there is
// nothing to verify or waive.
func helps(j *onejob.Job) (verify, waive bool) {
	if j.Policy.Contract == nil {
		return false, false
	}
	for _, c := range j.Blocked.Candidates {
		verify = verify || slices.Contains(verifiable, c.Reason)
		waive = waive || verify || c.Reason == onejob.GateRefused
	}
	return verify, waive
}

// verifiable are the reasons that a verification may do away with.
var verifiable = []string{
	onejob.GateNoCertificate, onejob.GateExpired, onejob.GateSuspendedDrift, onejob.GateSuspendedViolations, onejob.GateInconclusive,
	onejob.GatePairNotEquivalent, onejob.GateContractChanged, onejob.GateTargetChanged,
}

// encodeJob returns a job as JSON, with its result if it has one.
func encodeJob(j *onejob.Job) ([]byte, error) {
	body, err := encode(jobOf(j))
	if err != nil {
		return nil, err
	}
	return withResult(body, j.Result, "/v1/jobs/"+j.ID+"/result"), nil
}

// withResult adds a result to an encoded object as its last member, byte for
// byte: an encoder would write its white space and its escapes anew.
func withResult(object []byte, r *onejob.Result, url string) []byte {
	if r == nil {
		return object
	}
	const name = `,"result":`
	object = append(object[:len(object)-1], name...)
	object = append(object, resultValue(r, url)...)
	return append(object, '}')
}

// resultValue is the provider's answer when it is JSON that everybody reads the
// same way, and a description of it otherwise.
func resultValue(r *onejob.Result, url string) []byte {
	switch {
	case r.Lost:
		return []byte("null")
	case isJSON(r.ContentType) && jsontext.Value(r.Body).IsValid():
		return bytes.TrimSpace(r.Body)
	}
	described, err := json.Marshal(StoredResult{ContentType: contentTypeOf(r), Size: len(r.Body), URL: url})
	if err != nil {
		return []byte("null") // three plain members cannot fail
	}
	return described
}

func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
}

// contentTypeOf is the provider's own, unless it is none.
func contentTypeOf(r *onejob.Result) string {
	if _, _, err := mime.ParseMediaType(r.ContentType); err != nil {
		return "application/octet-stream"
	}
	return strings.ToValidUTF8(r.ContentType, "")
}
