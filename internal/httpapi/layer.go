package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
)

// recorder remembers what was answered.
type recorder struct {
	http.ResponseWriter
	status int // zero: nothing yet
}

func (rec *recorder) WriteHeader(status int) {
	if rec.status == 0 {
		rec.status = status
	}
	rec.ResponseWriter.WriteHeader(status)
}

func (rec *recorder) Write(b []byte) (int, error) {
	if rec.status == 0 {
		rec.status = http.StatusOK
	}
	return rec.ResponseWriter.Write(b)
}

// Unwrap lets [http.ResponseController] through.
func (rec *recorder) Unwrap() http.ResponseWriter { return rec.ResponseWriter }

// record is the outermost layer: it logs and counts the request, and answers a
// panic without its stack.
func (a *api) record(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := a.opts.NowFunc()
		r, x := withExchange(w, r)
		rec := &x.answer
		defer func() {
			fault := recover()
			if fault != nil {
				a.answerPanic(rec, r, fault)
			}
			a.recorded(r, x, rec.status, a.since(start))
			if fault != nil && rec.status != http.StatusInternalServerError {
				panic(http.ErrAbortHandler) // half an answer must not look whole
			}
		}()
		next.ServeHTTP(rec, r)
	})
}

func (a *api) answerPanic(rec *recorder, r *http.Request, fault any) {
	if fault == http.ErrAbortHandler { //nolint:errorlint // compared as net/http compares it
		return
	}
	a.log.ErrorContext(r.Context(), "a handler panicked", slog.String("panic", fmt.Sprint(fault)), slog.String("stack", string(debug.Stack())))
	if rec.status == 0 {
		a.fail(rec, r, &onejob.Error{Code: onejob.CodeInternal})
	}
}

func (a *api) recorded(r *http.Request, x *exchange, status int, took time.Duration) {
	route := x.route
	if route == "" {
		route = "none"
	}
	a.opts.Observer.RequestServed(methodLabel(r.Method), route, status, took)
	if isProbe(r) || !a.log.Enabled(r.Context(), slog.LevelDebug) {
		return
	}
	a.log.LogAttrs(r.Context(), slog.LevelDebug, "served", slog.String("method", r.Method), slog.String("route", route),
		slog.Int("status", status), slog.Duration("took", took), slog.String("owner", x.caller.owner))
}

// methodLabel keeps callers from making up labels.
func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

// apiPolicy is the content policy of what is no page: it may load nothing and be
// shown inside nothing.
const apiPolicy = "default-src 'none'; frame-ancestors 'none'"

// protection is what every answer carries. Its values are shared by all of them and
// must not be changed in place, which neither Set nor Add does.
var protection = map[string][]string{
	"X-Content-Type-Options":  only("nosniff"),
	"Referrer-Policy":         only("no-referrer"),
	"Cache-Control":           only("no-store"),
	"Content-Security-Policy": only(apiPolicy),
}

func only(value string) []string { return []string{value} }

// protect sets the headers that every answer carries.
func (a *api) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		maps.Copy(w.Header(), protection)
		next.ServeHTTP(w, r)
	})
}

// bound refuses what is too much before anything of it is read, so that no key is
// taken. Probes always get in: a server under load is not a dead one.
func (a *api) bound(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isProbe(r) {
			next.ServeHTTP(w, r)
			return
		}
		x := exchangeOf(r)
		if !x.served.take(a.serving) {
			a.fail(w, r, &onejob.Error{
				Code: onejob.CodeOverloaded, RetryAfter: time.Second,
				Message: "the server is serving as many requests as it can; ask again with the same idempotency key",
			})
			return
		}
		defer func() {
			x.served.leave()
			x.held.leave()
		}()
		next.ServeHTTP(w, r)
	})
}

// isProbe reports whether a request may come from anybody: the two routes that
// tell an orchestrator about the process.
func isProbe(r *http.Request) bool {
	return (r.URL.Path == "/livez" || r.URL.Path == "/readyz") && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// isCallback reports whether a provider may be reporting an attempt.
func isCallback(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/v1/callbacks/")
}

// checkOrigin refuses what another site makes a browser send.
func (a *api) checkOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := a.origin.Check(r); err != nil {
			a.fail(w, r, &onejob.Error{Code: onejob.CodeForbidden, Message: "cross-origin requests are not allowed", Err: err})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hold gives the request's place among those being served to others and takes one
// among those that hold, for at most d. It reports false when there is none.
// While it holds the server's deadlines are lifted, and ctx ends when the server
// begins to stop. done ends the holding; the place is kept until the answer has
// been written, and whoever does not read that is cut off.
func (a *api) hold(w http.ResponseWriter, r *http.Request, d time.Duration) (ctx context.Context, done func(), ok bool) {
	x := exchangeOf(r)
	if !x.held.take(a.holding) {
		return nil, nil, false
	}
	x.served.leave()
	ctx, cancel := context.WithCancel(r.Context())
	if d > 0 {
		ctx, cancel = context.WithTimeout(r.Context(), d)
	}
	stop := stopWhenClosing(r.Context(), cancel)
	liftDeadlines(w)
	return ctx, func() {
		stop()
		cancel()
		writeWithin(w, writeTimeoutOf(r))
	}, true
}

// writeWithin gives the caller d to read what is written next. The deadline is the
// kernel's, so it goes by the real clock. Writers in tests have none.
func writeWithin(w http.ResponseWriter, d time.Duration) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d))
}

// liftDeadlines undoes what the server set for ordinary requests. Writers in tests
// have none.
func liftDeadlines(w http.ResponseWriter) {
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Time{})
	_ = rc.SetWriteDeadline(time.Time{})
}
