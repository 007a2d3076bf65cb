package httpapi

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/onejob-dev/onejob"
)

// doorPrefixes are where routes in the shape of a provider's API lie.
var doorPrefixes = []string{"/openai/", "/anthropic/"}

// Door is a route in the shape of a provider's API, for clients that speak it. It
// passes the same layers as every other: credential, role, bounds, records. Its
// errors are problem documents that such clients understand too.
type Door struct {
	Pattern string // as in POST /openai/v1/chat/completions; below /openai/ or /anthropic/
	Role    onejob.Role
	Serve   func(w http.ResponseWriter, r *http.Request, v Visit) error
}

// Visit is one request at a door, by somebody whom the layers let in.
type Visit struct {
	Owner string // of what it creates
	Scope string // whose jobs it sees; empty: everybody's
	Actor string // who it is, for what is written down
	api   *api
}

// ReadJSON reads the whole body within its bounds. A body that is not there is nil.
func (v Visit) ReadJSON(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	return v.api.readJSON(w, r)
}

// Hold keeps the request open for at most d: it gives up its place among those being
// served, and the server's deadlines are lifted. ctx ends with d, with the caller, or
// when the server begins to stop. done ends it. Without a place it is
// [onejob.CodeOverloaded].
func (v Visit) Hold(w http.ResponseWriter, r *http.Request, d time.Duration) (ctx context.Context, done func(), err error) {
	ctx, done, ok := v.api.hold(w, r, d)
	if !ok {
		return nil, nil, &onejob.Error{
			Code: onejob.CodeOverloaded, RetryAfter: time.Second,
			Message: "the server holds as many requests as it can; ask again with the same idempotency key",
		}
	}
	return ctx, done, nil
}

// Key is the key that the request carries, as it was written. Empty: it carries none.
func (v Visit) Key(h http.Header) (string, error) {
	for _, name := range []string{keyHeader, "X-" + keyHeader} {
		if values := h.Values(name); len(values) > 0 {
			return keyOf(values)
		}
	}
	return "", nil
}

// WantsNoWait reports whether the caller asks for the job instead of its result
// (RFC 7240).
func (v Visit) WantsNoWait(h http.Header) bool {
	for _, line := range h.Values("Prefer") {
		for preference := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(preference), "respond-async") {
				return true
			}
		}
	}
	return false
}

// Wait is how long the caller prefers to be held. Zero: it does not say.
func (v Visit) Wait(h http.Header) time.Duration { return waitOf(h) }

// WriteJob answers with the job itself: 202 while it is under way.
func (v Visit) WriteJob(w http.ResponseWriter, job *onejob.Job) error {
	return v.api.writeJob(w, statusOf(job), job)
}

// WriteProblem answers with an error, as returning it does, for who goes on after that.
func (v Visit) WriteProblem(w http.ResponseWriter, r *http.Request, err error) { v.api.fail(w, r, err) }

// ErrorEvent is an error as an event of a stream that was begun to be answered: a
// problem in both shapes, whose type is "error".
func (v Visit) ErrorEvent(r *http.Request, err error) []byte { return v.api.errorEvent(r, err) }

// Submitted counts what a submission found.
func (v Visit) Submitted(kind string, existed bool, err error) {
	v.api.observeSubmit(kind, existed, err)
}

// doors are the routes of [Options.Doors].
func (a *api) doors() []route {
	routes := make([]route, len(a.opts.Doors))
	for i, d := range a.opts.Doors {
		routes[i] = route{pattern: d.Pattern, role: d.Role, handle: func(w http.ResponseWriter, r *http.Request) error {
			c := exchangeOf(r).caller
			return d.Serve(w, r, Visit{Owner: c.owner, Scope: c.scope, Actor: c.actor, api: a})
		}}
	}
	return routes
}

func isDoor(r *http.Request) bool {
	for _, prefix := range doorPrefixes {
		if strings.HasPrefix(r.URL.Path, prefix) {
			return true
		}
	}
	return false
}

// DoorError is what clients of both providers look for in an error.
type DoorError struct {
	Message string      `json:"message"`
	Type    string      `json:"type"`
	Code    onejob.Code `json:"code"`
	Param   *string     `json:"param"` // never known: null
}

// doorErrorTypes are the types of errors of both providers, by status.
var doorErrorTypes = map[int]string{
	http.StatusUnauthorized: "authentication_error", http.StatusForbidden: "permission_error",
	http.StatusNotFound: "not_found_error", http.StatusRequestEntityTooLarge: "request_too_large",
	http.StatusTooManyRequests: "rate_limit_error", http.StatusServiceUnavailable: "overloaded_error",
}

// doorProblem is a problem in both shapes at once.
type doorProblem struct {
	Problem `json:",inline"`
	Error   DoorError `json:"error"`
}

// encodeProblem writes a problem, at a door in both shapes.
func encodeProblem(r *http.Request, p *Problem) ([]byte, error) {
	if !isDoor(r) {
		return json.Marshal(p)
	}
	kind, known := doorErrorTypes[p.Status]
	switch {
	case !known && p.Status >= http.StatusInternalServerError:
		kind = "api_error"
	case !known:
		kind = "invalid_request_error"
	}
	message := p.Detail
	if message == "" {
		message = p.Title
	}
	return json.Marshal(doorProblem{Problem: *p, Error: DoorError{Message: message, Type: kind, Code: p.Code}})
}
