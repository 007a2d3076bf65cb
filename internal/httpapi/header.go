package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
)

const (
	keyHeader      = "Idempotency-Key"
	replayedHeader = "Idempotent-Replayed"
)

// maxWait is the longest a request holds.
const maxWait = time.Minute

// idempotencyKey returns the one key of a request as it was written, once it is
// known to be valid: the client reads it, and what is read twice is unquoted twice.
func idempotencyKey(h http.Header) (string, error) {
	values := h.Values(keyHeader)
	if len(values) == 0 {
		return checkKey("")
	}
	return keyOf(values)
}

// keyOf is the one key among the values of a header that is there.
func keyOf(values []string) (string, error) {
	if len(values) == 1 {
		return checkKey(values[0])
	}
	return "", &onejob.Error{Code: onejob.CodeKeyInvalid, Message: "the idempotency key is not valid: there is more than one " + keyHeader + " header"}
}

// checkKey returns a key as it was written, or what is wrong with it.
func checkKey(written string) (string, error) {
	if _, err := onejob.ParseKey(written); err != nil {
		return "", err
	}
	return written, nil
}

// waitOf reads how long the caller would like to be held: Prefer: wait=N, in
// seconds (RFC 7240). Zero: not at all. What is longer than allowed is cut.
func waitOf(h http.Header) time.Duration {
	for _, line := range h.Values("Prefer") {
		for preference := range strings.SplitSeq(line, ",") {
			preference, _, _ = strings.Cut(preference, ";")
			name, value, _ := strings.Cut(preference, "=")
			if !strings.EqualFold(strings.TrimSpace(name), "wait") {
				continue
			}
			seconds, err := strconv.Atoi(strings.Trim(strings.TrimSpace(value), `"`))
			if err != nil || seconds <= 0 {
				return 0
			}
			return time.Duration(min(seconds, int(maxWait/time.Second))) * time.Second
		}
	}
	return 0
}

// etag is the quoted revision.
func etag(job *onejob.Job) string { return `"` + strconv.FormatInt(job.Revision, 10) + `"` }

// noneMatches reports whether If-None-Match leaves the job worth sending.
func noneMatches(h http.Header, job *onejob.Job) bool {
	for _, line := range h.Values("If-None-Match") {
		for tag := range strings.SplitSeq(line, ",") {
			tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
			if tag == "*" || tag == etag(job) {
				return false
			}
		}
	}
	return true
}

// noRevision is none that a job can be at.
const noRevision = -1

// ifMatch reads the revision that the caller believes the job to be at. Nil: any.
// What cannot be an ETag of ours matches nothing; the store says so, after it has
// said whether there is such a job.
func ifMatch(h http.Header) *int64 {
	tag := strings.TrimSpace(h.Get("If-Match"))
	if tag == "" || tag == "*" {
		return nil
	}
	revision, err := strconv.ParseInt(strings.Trim(tag, `"`), 10, 64)
	if err != nil || revision < 0 || tag != `"`+strconv.FormatInt(revision, 10)+`"` {
		revision = noRevision
	}
	return &revision
}

// traceparent reads a W3C trace context. What is none is left out: it decides nothing.
func traceparent(h http.Header) string {
	const length = 55
	t := h.Get("Traceparent")
	if len(t) != length || strings.IndexFunc(t, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'f') && r != '-'
	}) >= 0 {
		return ""
	}
	return t
}
