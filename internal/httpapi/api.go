package httpapi

import (
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/onejob-dev/onejob"
)

// api is the JSON API of one client.
type api struct {
	client *onejob.Client
	opts   Options
	log    *slog.Logger

	mux       *http.ServeMux
	verbs     verbs
	serving   gauge // requests being served
	holding   gauge // requests that wait for a job, or stream it
	summing   gauge // sums of money under way
	refusals  *refusals
	readiness readiness
	origin    *http.CrossOriginProtection
	document  func() ([]byte, error) // the OpenAPI document; made once, when it is asked for
	page      func() (docsPage, error)
}

// New returns the API as a handler. It returns [onejob.CodeInvalidArgument] with
// all that is wrong with opts at once. Serve it with [Server], which bounds what a
// connection may do.
func New(opts Options) (http.Handler, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	a := &api{
		client: opts.Client, opts: opts, log: opts.Logger,
		mux: http.NewServeMux(), verbs: verbs{},
		serving: newGauge(opts.MaxRequests), holding: newGauge(opts.MaxHolding), summing: newGauge(summingAtOnce),
		origin: http.NewCrossOriginProtection(), refusals: newRefusals(&opts),
	}
	routes := a.routes()
	a.document = sync.OnceValues(func() ([]byte, error) { return document(routes) })
	a.page = sync.OnceValues(func() (docsPage, error) { return newDocsPage(routes) })
	for _, rt := range append(routes[:len(routes):len(routes)], a.doors()...) {
		if rt.isVerb() {
			a.verbs[rt.pattern] = a.serve(rt)
			continue
		}
		a.mux.Handle(rt.pattern, a.serve(rt))
	}
	// From the outside in: whatever happens is recorded and a panic answered;
	// every answer carries the headers; what is too much is refused; and nobody
	// reaches any route without a credential.
	return a.record(a.protect(a.bound(a.authenticate(a.checkOrigin(http.HandlerFunc(a.route)))))), nil
}

// serve runs one route's handler for those whose role allows it.
func (a *api) serve(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := exchangeOf(r)
		x.route = rt.path()
		if rt.role != "" && !x.caller.may(rt.role) {
			a.fail(w, r, &onejob.Error{
				Code:    onejob.CodeForbidden,
				Message: "this needs the role " + string(rt.role) + "; the credential has " + string(x.caller.role),
			})
			return
		}
		if !isText(r.URL.Path) {
			a.fail(w, r, &onejob.Error{Code: onejob.CodeInvalidRequest, Message: "the path is no text: it holds a NUL character or is not UTF-8"})
			return
		}
		if err := rt.handle(w, r); err != nil {
			a.fail(w, r, err)
		}
	})
}

// route finds the route of a request, or answers that there is none.
func (a *api) route(w http.ResponseWriter, r *http.Request) {
	if handler, id := a.verbs.find(r); handler != nil {
		r.SetPathValue("id", id)
		handler.ServeHTTP(w, r)
		return
	}
	handler, pattern := a.mux.Handler(r)
	switch {
	case pattern != "" && !strings.Contains(pattern, "{"):
		handler.ServeHTTP(w, r) // nothing in the path for the mux to find: it need not look again
		return
	case pattern != "":
		a.mux.ServeHTTP(w, r)
		return
	}
	// The mux answers by itself, in plain text: look only at what it would say.
	said := discard{header: http.Header{}}
	handler.ServeHTTP(&said, r)
	if said.status == http.StatusMethodNotAllowed {
		allow := said.header.Get("Allow")
		w.Header().Set("Allow", allow)
		a.failAs(w, r, http.StatusMethodNotAllowed, &onejob.Error{
			Code: onejob.CodeInvalidRequest, Message: r.Method + " is not possible here; possible is " + allow,
		})
		return
	}
	a.fail(w, r, &onejob.Error{Code: onejob.CodeNotFound, Message: "there is no such route"})
}

// discard keeps a status and headers, and no body.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header { return d.header }

func (d *discard) Write(b []byte) (int, error) { return len(b), nil }

func (d *discard) WriteHeader(status int) { d.status = status }

// since is how long ago start was, in this process.
func (a *api) since(start time.Time) time.Duration { return a.opts.NowFunc().Sub(start) }
