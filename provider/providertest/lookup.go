package providertest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
)

// LookupOptions describe a provider that can be asked about its work.
type LookupOptions struct {
	// Open makes the provider whose questions go to the server at url, with [Canary]
	// as its credential.
	Open func(t testing.TB, url string) onejob.Provider

	ID   string // the provider's own, as it is in the answers
	Path string // where it is looked up

	// Running, Succeeded and Failed are bodies of a look-up's answer.
	Running, Succeeded, Failed string
}

// RunLookups runs the suite for providers that are a [onejob.Prober], as subtests.
func RunLookups(t *testing.T, opts LookupOptions) {
	t.Helper()
	s := lookups{opts}
	for name, test := range map[string]func(lookups, *testing.T){
		"Probe/AsksOnceAndChangesNothing": lookups.asksOnce,
		"Probe/SaysHowTheWorkStands":      lookups.stands,
		"Probe/DoubtSettlesNothing":       lookups.doubt,
		"Probe/NotFoundIsNoOutcome":       lookups.notFound,
		"Probe/EndsWithItsContext":        lookups.context,
		"Probe/TellsNoSecret":             lookups.secrets,
		"Cancel/ASingleRequest":           lookups.cancel,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(s, t)
		})
	}
}

type lookups struct{ opts LookupOptions }

func (s lookups) open(t *testing.T, answer func(*Exchange)) (onejob.Prober, *Server) {
	t.Helper()
	srv := Serve(t, answer)
	p := s.opts.Open(t, srv.URL)
	t.Cleanup(func() { closeIdle(p) })
	prober, able := p.(onejob.Prober)
	if !able {
		t.Fatalf("%T cannot be asked", p)
	}
	return prober, srv
}

func (s lookups) request() onejob.ProbeRequest {
	return onejob.ProbeRequest{JobID: "job_1", AttemptID: "att_1", ProviderID: s.opts.ID, ProviderKey: ProviderKey}
}

func (s lookups) asksOnce(t *testing.T) {
	p, srv := s.open(t, func(x *Exchange) { x.Answer(200, s.opts.Running) })
	for range 2 {
		if _, err := p.Probe(t.Context(), s.request()); err != nil {
			t.Fatalf("Probe: %v", err)
		}
	}
	asked := srv.Asked()
	if len(asked) != 2 {
		t.Fatalf("two questions made %d requests", len(asked))
	}
	for _, a := range asked {
		if a.Method != "GET" || a.Path != s.opts.Path || a.Body != "" {
			t.Errorf("asked %s %s %q; want GET %s without a body", a.Method, a.Path, a.Body, s.opts.Path)
		}
	}
}

func (s lookups) stands(t *testing.T) {
	for body, want := range map[string]onejob.Outcome{
		s.opts.Running: onejob.OutcomeAccepted, s.opts.Succeeded: onejob.OutcomeSucceeded, s.opts.Failed: onejob.OutcomeExecutedFailed,
	} {
		p, _ := s.open(t, func(x *Exchange) { x.Answer(200, body) })
		got, err := p.Probe(t.Context(), s.request())
		a := got.Answer
		if err != nil || !got.Found || a.Outcome != want || a.ProviderID != s.opts.ID {
			t.Errorf("%s: %+v, %v; want %s of %s", body, got, err, want, s.opts.ID)
		}
		if (len(a.Body) > 0) != (want == onejob.OutcomeSucceeded) || (a.Failure != nil) != (want == onejob.OutcomeExecutedFailed) {
			t.Errorf("%s: result %q, failure %+v; want a result of a success alone, and a failure of a failure", body, a.Body, a.Failure)
		}
	}
}

// doubt is all that is no clear word of the provider about this work.
func (s lookups) doubt(t *testing.T) {
	bad := func(status int) func(*Exchange) {
		return func(x *Exchange) { x.Answer(status, s.opts.Failed) }
	}
	for name, answer := range map[string]func(*Exchange){
		"end of the connection": (*Exchange).Close,
		"reset":                 (*Exchange).Reset,
		"302":                   func(x *Exchange) { x.Answer(302, s.opts.Succeeded, "Location: /elsewhere") },
		"401":                   bad(401), "429": bad(429), "500": bad(500), "503": bad(503),
		"a page":     func(x *Exchange) { x.AnswerAs("text/html", 200, "<p>done</p>") },
		"empty":      func(x *Exchange) { x.Answer(200, "") },
		"half of it": func(x *Exchange) { x.Answer(200, s.opts.Succeeded[:len(s.opts.Succeeded)/2]) },
		"cut": func(x *Exchange) {
			x.Write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n" + s.opts.Succeeded)
			x.Close()
		},
		"another's id": func(x *Exchange) { x.Answer(200, strings.ReplaceAll(s.opts.Succeeded, s.opts.ID, s.opts.ID+"0")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := s.open(t, answer)
			if got, err := p.Probe(t.Context(), s.request()); err == nil {
				t.Errorf("Probe = %+v; want an error", got)
			}
		})
	}
}

func (s lookups) notFound(t *testing.T) {
	p, _ := s.open(t, func(x *Exchange) { x.Answer(404, `{"error":{"message":"there is none"}}`) })
	if got, err := p.Probe(t.Context(), s.request()); err == nil && (got.Found || got.Answer.Outcome != "") {
		t.Errorf("Probe = %+v; want it not found, or an error", got)
	}
}

func (s lookups) context(t *testing.T) {
	p, _ := s.open(t, func(x *Exchange) { x.Wait() })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got, err := p.Probe(ctx, s.request()); err == nil {
		t.Errorf("Probe = %+v; want an error once its context is over", got)
	}
}

func (s lookups) secrets(t *testing.T) {
	for _, status := range []int{200, 401, 500} {
		p, srv := s.open(t, func(x *Exchange) { x.Answer(status, fmt.Sprintf(`{"error":{"message":%q}}`, Canary.Reveal())) })
		got, err := p.Probe(t.Context(), s.request())
		if told := fmt.Sprintf("%+v %+v %v", got, got.Answer.Failure, err); strings.Contains(told, Canary.Reveal()) || strings.Contains(told, srv.URL) {
			t.Errorf("%d: the credential or the URL is in %s", status, told)
		}
	}
	p, srv := s.open(t, (*Exchange).Close)
	srv.Close()
	if _, err := p.Probe(t.Context(), s.request()); err == nil || strings.Contains(err.Error(), srv.URL) {
		t.Errorf("Probe: %v; want an error without the URL", err)
	}
}

// cancel is asked for once, and what is answered is no end.
func (s lookups) cancel(t *testing.T) {
	for _, status := range []int{200, 409, 500} {
		p, srv := s.open(t, func(x *Exchange) { x.Answer(status, s.opts.Failed) })
		c, able := p.(onejob.Canceller)
		if !able {
			t.Skip("it cannot be asked to cancel")
		}
		err := c.Cancel(t.Context(), s.request())
		if (err == nil) != (status == 200) || len(srv.Asked()) != 1 {
			t.Errorf("a cancel that is answered %d: %v after %d requests; want an error but for 200, after 1", status, err, len(srv.Asked()))
		}
	}
}
