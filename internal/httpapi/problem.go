package httpapi

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/onejob-dev/onejob"
)

// Advice says what a caller should do about a problem.
type Advice string

// What there is to do.
const (
	AdviceWait          Advice = "wait"            // ask again later; nothing is to be sent again
	AdviceRetrySameKey  Advice = "retry_same_key"  // send the same request again, with the same key
	AdviceDoNotResubmit Advice = "do_not_resubmit" // neither with this key nor with a new one
	AdviceFixRequest    Advice = "fix_request"     // the request as it is can never succeed
)

// verdict is what a code means on the wire.
type verdict struct {
	status    int
	retryable bool
	advice    Advice
	title     string
}

// verdicts is the only place where a code becomes an HTTP status.
var verdicts = map[onejob.Code]verdict{
	onejob.CodeKeyMissing:           {400, false, AdviceFixRequest, "An idempotency key is required"},
	onejob.CodeKeyInvalid:           {400, false, AdviceFixRequest, "The idempotency key is not valid"},
	onejob.CodeInvalidRequest:       {400, false, AdviceFixRequest, "The request is not valid"},
	onejob.CodePayloadNotCanonical:  {400, false, AdviceFixRequest, "The JSON could be read in more than one way"},
	onejob.CodeInvalidArgument:      {400, false, AdviceFixRequest, "An argument is not valid"},
	onejob.CodeUnauthenticated:      {401, false, AdviceFixRequest, "A valid credential is required"},
	onejob.CodeForbidden:            {403, false, AdviceFixRequest, "The credential does not allow this"},
	onejob.CodeNotFound:             {404, false, AdviceFixRequest, "There is no such thing"},
	onejob.CodeKeyConflict:          {409, false, AdviceFixRequest, "The idempotency key was used for another intent"},
	onejob.CodeAttemptUnresolved:    {409, false, AdviceWait, "An attempt is in doubt"},
	onejob.CodeOutcomeUnknown:       {409, false, AdviceDoNotResubmit, "The outcome is not known yet"},
	onejob.CodeRequestInProgress:    {409, true, AdviceWait, "The request is in progress"},
	onejob.CodeJobNotFinished:       {409, true, AdviceWait, "The job is not finished"},
	onejob.CodeFailoverNotCertified: {409, false, AdviceDoNotResubmit, "No other target may take over"},
	onejob.CodeJobTerminal:          {409, false, AdviceDoNotResubmit, "The job has ended"},
	onejob.CodeAttemptTerminal:      {409, false, AdviceDoNotResubmit, "The attempt has ended"},
	onejob.CodeAttemptNotUnknown:    {409, false, AdviceWait, "The attempt is not unknown"},
	onejob.CodeQuarantined:          {409, false, AdviceWait, "The provider may still be working"},
	onejob.CodeClaimLost:            {409, false, AdviceDoNotResubmit, "The claim is no longer held"},
	onejob.CodeKeyExpired:           {410, false, AdviceDoNotResubmit, "The key's job has been removed"},
	onejob.CodeResultExpired:        {410, false, AdviceDoNotResubmit, "The result is gone"},
	onejob.CodeVersionMismatch:      {412, false, AdviceFixRequest, "The job has changed"},
	onejob.CodePayloadTooLarge:      {413, false, AdviceFixRequest, "The body is too large"},
	onejob.CodeUnsupportedMedia:     {415, false, AdviceFixRequest, "The media type is not supported"},
	onejob.CodeInvalidJob:           {422, false, AdviceFixRequest, "The job is not valid"},
	onejob.CodeInvalidResolution:    {422, false, AdviceFixRequest, "The resolution is not valid"},
	onejob.CodeQuotaExceeded:        {429, true, AdviceRetrySameKey, "The owner's quota is exceeded"},
	onejob.CodeOverloaded:           {429, true, AdviceRetrySameKey, "The server is overloaded"},
	onejob.CodeProviderFailed:       {502, false, AdviceDoNotResubmit, "The job failed for good"},
	onejob.CodeStoreUnavailable:     {503, true, AdviceRetrySameKey, "The store is not available"},
	onejob.CodeDraining:             {503, true, AdviceRetrySameKey, "The server is stopping"},
	onejob.CodeRestoreUnconfirmed:   {503, true, AdviceRetrySameKey, "A restore waits to be confirmed"},
	onejob.CodeInternal:             {500, true, AdviceRetrySameKey, "Something went wrong on the server"},
	onejob.CodeInvalidTransition:    {500, true, AdviceRetrySameKey, "Something went wrong on the server"},
}

// Problem is an error as RFC 9457 has it.
type Problem struct {
	Type       string             `json:"type" doc:"urn:onejob:problem: and the code"`
	Title      string             `json:"title"`
	Status     int                `json:"status"`
	Detail     string             `json:"detail,omitzero"`
	Code       onejob.Code        `json:"code" doc:"Stable; never renamed"`
	Retryable  bool               `json:"retryable" doc:"Whether the same request, with the same key, can succeed later"`
	Advice     Advice             `json:"advice"`
	JobID      string             `json:"job_id,omitzero"`
	AttemptID  string             `json:"attempt_id,omitzero"`
	Reason     string             `json:"reason,omitzero" doc:"Why a fallback was refused"`
	Candidates []onejob.Candidate `json:"candidates,omitzero" nullable:"false" doc:"Targets that might take over, and why they may not"`
	Contract   string             `json:"contract,omitzero" doc:"Digest of the contract that a refused fallback was judged by"`
	Target     string             `json:"target,omitzero" doc:"Digest of the target that was refused"`
}

const problemType = "urn:onejob:problem:"

// problemOf translates an error. What is ours to mend comes out without detail.
func problemOf(err error) (p Problem, retryAfter time.Duration) {
	var e *onejob.Error
	if !errors.As(err, &e) {
		e = &onejob.Error{Code: onejob.CodeInternal}
	}
	v, known := verdicts[e.Code]
	if !known || v.status == http.StatusInternalServerError {
		e = &onejob.Error{Code: onejob.CodeInternal}
		v = verdicts[onejob.CodeInternal]
	}
	return Problem{
		Type: problemType + string(e.Code), Title: v.title, Status: v.status, Detail: e.Message,
		Code: e.Code, Retryable: v.retryable, Advice: v.advice,
		JobID: e.JobID, AttemptID: e.AttemptID, Reason: e.Reason, Candidates: e.Candidates,
		Contract: e.Contract, Target: e.TargetDigest,
	}, e.RetryAfter
}

// fail answers an error with its problem document.
func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) { a.failAs(w, r, 0, err) }

// failAs is fail with another status than the code's. Zero: the code's.
func (a *api) failAs(w http.ResponseWriter, r *http.Request, status int, err error) {
	p, retryAfter := problemOf(err)
	if status != 0 {
		p.Status = status
	}
	if p.Status >= http.StatusInternalServerError {
		level := slog.LevelError
		if p.Code == onejob.CodeDraining {
			level = slog.LevelInfo // as it should be while it stops
		}
		a.log.LogAttrs(r.Context(), level, "a request failed", slog.String("code", string(p.Code)), slog.String("route", exchangeOf(r).route), slog.Any("error", err))
	}
	body, err := encodeProblem(r, &p)
	if err != nil { // a problem is plain text and numbers; invalid UTF-8 is all that can be wrong
		p.Detail, p.Reason, p.Candidates = "", "", nil
		body, _ = encodeProblem(r, &p)
	}
	h := w.Header()
	h.Set("X-Should-Retry", strconv.FormatBool(p.Retryable))
	if retryAfter > 0 || p.Retryable {
		h.Set("Retry-After", retryAfterSeconds(retryAfter))
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="onejob"`)
	}
	write(w, p.Status, "application/problem+json", body)
}

// errorEvent is a problem for who was answered 200 already.
func (a *api) errorEvent(r *http.Request, err error) []byte {
	p, _ := problemOf(err)
	if p.Status >= http.StatusInternalServerError {
		a.log.ErrorContext(r.Context(), "a stream ended with an error", slog.String("code", string(p.Code)), slog.String("route", exchangeOf(r).route), slog.Any("error", err))
	}
	p.Type = "error"
	body, err := encodeProblem(r, &p)
	if err != nil { // as in failAs
		p.Detail, p.Reason, p.Candidates = "", "", nil
		body, _ = encodeProblem(r, &p)
	}
	return body
}

// retryAfterSeconds is always 1 to 60: stock clients ignore more and ask at once.
func retryAfterSeconds(d time.Duration) string {
	const least, most = time.Second, time.Minute
	d = min(max(d, least), most)
	return strconv.Itoa(int((d + time.Second - 1) / time.Second))
}

// write answers with a document of ours, as a line: a terminal that shows it puts
// what comes next on a line of its own.
func write(w http.ResponseWriter, status int, contentType string, body []byte) {
	line := append(slices.Clip(body), '\n') // a copy: the body may be shared
	writeBytes(w, status, contentType, line)
}

// writeBytes answers with bytes that are not ours, or are whole as they are.
func writeBytes(w http.ResponseWriter, status int, contentType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the caller is gone; what was done is recorded
}
