// Package providertest holds what every provider must keep. A provider's own
// test calls [Run]; [Serve] gives it servers that misbehave.
package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
)

// Canary is the credential that a provider under test is opened with. It must
// show up nowhere but in the request.
const Canary onejob.Secret = "canary-7f3a9c51d2"

// ProviderKey is the provider key of the requests.
const ProviderKey = "pk_providertest"

// Options describe a provider to [Run].
type Options struct {
	// Open makes a provider whose requests go to the server at url, with [Canary]
	// as its credential. It is called once per test.
	Open func(t testing.TB, url string) onejob.Provider

	Input   string // one that it takes
	Success string // the JSON body of a good answer

	// KeyHeader carries the provider key. Empty: the provider sends none.
	KeyHeader string
	// MaxResponseBytes is the cap that Open sets.
	MaxResponseBytes int
}

// Run runs the suite as subtests.
func Run(t *testing.T, opts Options) {
	t.Helper()
	s := suite{opts}
	for name, test := range map[string]func(suite, *testing.T){
		"Success/IsWhole":                  suite.success,
		"Request/IsTheSameForOneKey":       suite.sameRequest,
		"DroppedKeepAlive/IsDoubtAndOnce":  suite.droppedKeepAlive,
		"Doubt/IsTheDefault":               suite.doubt,
		"Unusable/IsExecuted":              suite.unusable,
		"Refusal/IsProof":                  suite.refusal,
		"Redirect/IsNotFollowed":           suite.redirect,
		"Context/EndsTheWaitInDoubt":       suite.context,
		"Context/OverBeforeSendsNothing":   suite.contextOver,
		"SendBy/NothingLeavesAfter":        suite.sendBy,
		"ConnectionRefused/IsNotSent":      suite.connectionRefused,
		"Answer/IsCapped":                  suite.capped,
		"Secrets/StayInTheRequest":         suite.secrets,
		"Concurrency/OneExecutionEach":     suite.concurrent,
		"Goroutines/EndWithTheConnections": suite.goroutines,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(s, t)
		})
	}
}

type suite struct{ opts Options }

func (s suite) request() onejob.Request {
	return onejob.Request{
		JobID: "job_1", AttemptID: "att_1", Number: 1, Kind: "kind", Target: "target",
		Effect: onejob.EffectExternal, Input: []byte(s.opts.Input), ProviderKey: ProviderKey,
		SendBy: time.Now().Add(time.Minute), SendWithin: time.Minute,
	}
}

func (s suite) open(t *testing.T, answer func(*Exchange)) (onejob.Provider, *Server) {
	t.Helper()
	srv := Serve(t, answer)
	p := s.opts.Open(t, srv.URL)
	t.Cleanup(func() { closeIdle(p) })
	return p, srv
}

// closeIdle drops a provider's idle connections, if it can.
func closeIdle(p onejob.Provider) {
	if c, ok := p.(interface{ Close() }); ok {
		c.Close()
	}
}

func (s suite) answerWell(x *Exchange) { x.Answer(200, s.opts.Success) }

// proves fails the test unless err carries exactly the given proof; nil is doubt.
func proves(t *testing.T, a onejob.Answer, err, proof error) {
	t.Helper()
	_ = proven(t, a, err, proof)
}

// proven is proves for those who look at the rest of the error, too.
func proven(t *testing.T, a onejob.Answer, err, proof error) *onejob.CallError {
	t.Helper()
	var ce *onejob.CallError
	if !errors.As(err, &ce) {
		t.Fatalf("Call = outcome %q, error %v; want a *onejob.CallError", a.Outcome, err)
	}
	for _, e := range []error{onejob.ErrNotSent, onejob.ErrRefused} {
		if got, want := errors.Is(err, e), errors.Is(proof, e); got != want {
			t.Errorf("errors.Is(%v, %v) = %t, want %t", err, e, got, want)
		}
	}
	return ce
}

func executedOnce(t *testing.T, srv *Server) {
	t.Helper()
	if n := srv.Executions(); n != 1 {
		t.Errorf("the provider did the work %d times, want 1", n)
	}
}

func (s suite) success(t *testing.T) {
	p, srv := s.open(t, s.answerWell)
	req := s.request()
	var sent atomic.Int64
	req.Sent = func() { sent.Add(1) }
	a, err := p.Call(t.Context(), req)
	if err != nil {
		t.Fatalf("Call: %v", err)
	}
	if a.Outcome != onejob.OutcomeSucceeded || string(a.Body) != s.opts.Success || a.ContentType != "application/json" {
		t.Errorf("answer = %q %q %q, want the body byte for byte", a.Outcome, a.ContentType, a.Body)
	}
	e := a.Evidence
	if a.Phase != onejob.PhaseAnswered || e.Status != 200 || e.BytesWritten == 0 || e.BytesRead == 0 || e.SentMS == 0 || e.FirstByteMS == 0 || e.EndedMS == 0 {
		t.Errorf("phase %q, evidence %+v; want all of an answer", a.Phase, e)
	}
	if sent.Load() != 1 {
		t.Errorf("Sent was called %d times, want 1", sent.Load())
	}
	executedOnce(t, srv)
}

func (s suite) sameRequest(t *testing.T) {
	p, srv := s.open(t, s.answerWell)
	for number := 1; number <= 2; number++ {
		req := s.request()
		req.Number, req.AttemptID = number, fmt.Sprintf("att_%d", number)
		if _, err := p.Call(t.Context(), req); err != nil {
			t.Fatalf("Call %d: %v", number, err)
		}
	}
	asked := srv.Asked()
	if len(asked) != 2 || asked[0].Body != asked[1].Body || asked[0].Path != asked[1].Path {
		t.Errorf("two attempts under one key asked %q, want the same request", asked)
	}
	for _, a := range asked {
		if h := s.opts.KeyHeader; h != "" && a.Header.Get(h) != ProviderKey {
			t.Errorf("%s = %q, want %q", h, a.Header.Get(h), ProviderKey)
		}
	}
}

func (s suite) droppedKeepAlive(t *testing.T) {
	p, srv := s.open(t, func(x *Exchange) {
		if x.Number > 1 {
			x.Close()
			return
		}
		s.answerWell(x)
	})
	const most = 100
	for range most { // a machine that is busy does not use every connection again
		before := srv.Executions()
		a, err := p.Call(t.Context(), s.request())
		if n := srv.Executions() - before; n != 1 {
			t.Fatalf("one Call did the work %d times, want 1", n)
		}
		if int(srv.Connections()) < len(srv.Asked()) {
			proves(t, a, err, nil)
			return
		}
		if err != nil {
			t.Fatalf("Call on a connection of its own: %v", err)
		}
	}
	t.Errorf("in %d calls no connection was used again", most)
}

func (s suite) doubt(t *testing.T) {
	for name, answer := range map[string]func(*Exchange){
		"end of the connection": (*Exchange).Close,
		"reset":                 (*Exchange).Reset,
		"half a status line":    func(x *Exchange) { x.Write("HTTP/1.1 20"); x.Close() },
		"500":                   func(x *Exchange) { x.Answer(500, `{}`) },
		"502":                   func(x *Exchange) { x.AnswerAs("text/html", 502, "bad gateway") },
		"503 that says nothing": func(x *Exchange) { x.Answer(503, `{}`) },
		"504":                   func(x *Exchange) { x.Answer(504, `{}`) },
		"a status of its own":   func(x *Exchange) { x.Answer(599, `{}`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, srv := s.open(t, answer)
			a, err := p.Call(t.Context(), s.request())
			proves(t, a, err, nil)
			executedOnce(t, srv)
		})
	}
}

func (s suite) unusable(t *testing.T) {
	half := s.opts.Success[:len(s.opts.Success)/2]
	for name, answer := range map[string]func(*Exchange){
		"truncated": func(x *Exchange) {
			x.Write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n" + half)
			x.Close()
		},
		"delimited by the close": func(x *Exchange) {
			x.Write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + half)
			x.Close()
		},
		"a page": func(x *Exchange) { x.AnswerAs("text/html", 200, "<p>welcome</p>") },
		"empty":  func(x *Exchange) { x.Answer(200, "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, srv := s.open(t, answer)
			a, err := p.Call(t.Context(), s.request())
			if err != nil || a.Outcome != onejob.OutcomeResultLost || a.Failure == nil || a.Body != nil {
				t.Errorf("Call = %+v, %v; want result_lost with a failure and no body", a, err)
			}
			executedOnce(t, srv)
		})
	}
}

func (s suite) refusal(t *testing.T) {
	for _, c := range []struct {
		status int
		next   onejob.Next
	}{{400, onejob.NextNowhere}, {401, onejob.NextElsewhere}, {429, onejob.NextAgain}} {
		p, srv := s.open(t, func(x *Exchange) { x.Answer(c.status, `{"error":{"message":"no"}}`, "Retry-After: 3") })
		a, err := p.Call(t.Context(), s.request())
		ce := proven(t, a, err, onejob.ErrRefused)
		if ce.Next != c.next || ce.RetryAfter != 3*time.Second || ce.Evidence.Status != c.status {
			t.Errorf("%d: next %q, retry after %v, status %d; want %q, 3s, %d", c.status, ce.Next, ce.RetryAfter, ce.Evidence.Status, c.next, c.status)
		}
		executedOnce(t, srv)
	}
}

func (s suite) redirect(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		p, srv := s.open(t, func(x *Exchange) { x.Answer(status, `{}`, "Location: /elsewhere") })
		a, err := p.Call(t.Context(), s.request())
		proves(t, a, err, onejob.ErrRefused)
		executedOnce(t, srv)
	}
}

func (s suite) context(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p, srv := s.open(t, func(x *Exchange) {
		cancel()
		x.Wait()
	})
	a, err := p.Call(ctx, s.request())
	if ce := proven(t, a, err, nil); ce.Phase != onejob.PhaseSent {
		t.Errorf("phase = %q, want %q", ce.Phase, onejob.PhaseSent)
	}
	executedOnce(t, srv)
}

func (s suite) contextOver(t *testing.T) {
	p, srv := s.open(t, s.answerWell)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a, err := p.Call(ctx, s.request())
	proves(t, a, err, onejob.ErrNotSent)
	if srv.Began() != 0 {
		t.Errorf("%d requests began, want none", srv.Began())
	}
}

func (s suite) sendBy(t *testing.T) {
	p, srv := s.open(t, s.answerWell)
	req := s.request()
	req.SendBy = time.Now().Add(-time.Nanosecond)
	req.Sent = func() { t.Error("Sent was called") }
	a, err := p.Call(t.Context(), req)
	if ce := proven(t, a, err, onejob.ErrNotSent); ce.Phase != onejob.PhaseNotSent || ce.Next != onejob.NextAgain {
		t.Errorf("phase %q, next %q; want not_sent, again", ce.Phase, ce.Next)
	}
	if srv.Began() != 0 {
		t.Errorf("%d requests began, want none", srv.Began())
	}
}

func (s suite) connectionRefused(t *testing.T) {
	p, srv := s.open(t, s.answerWell)
	srv.Close()
	a, err := p.Call(t.Context(), s.request())
	proves(t, a, err, onejob.ErrNotSent)
}

func (s suite) capped(t *testing.T) {
	body := fmt.Sprintf(`{"filler":%q}`, strings.Repeat("x", s.opts.MaxResponseBytes))
	p, srv := s.open(t, func(x *Exchange) { x.Answer(200, body) })
	a, err := p.Call(t.Context(), s.request())
	if err != nil || a.Outcome != onejob.OutcomeResultLost || len(a.Evidence.Excerpt) > 2<<10 {
		t.Errorf("Call = outcome %q, %v; want result_lost with a short excerpt", a.Outcome, err)
	}
	executedOnce(t, srv)
}

// secrets lets the provider send back whatever it was sent.
func (s suite) secrets(t *testing.T) {
	for _, status := range []int{200, 400, 401, 429, 500} {
		p, srv := s.open(t, func(x *Exchange) {
			echo, _ := json.Marshal(fmt.Sprint(x.Header))
			x.Answer(status, fmt.Sprintf(`{"error":{"message":%s}}`, echo), "X-Request-Id: "+Canary.Reveal(), "X-Goog-Api-Key: "+Canary.Reveal())
		})
		a, err := p.Call(t.Context(), s.request())
		text, _ := json.Marshal([]any{a, err})
		if told := fmt.Sprintf("%+v %+v %v %s", a, a.Failure, err, text); strings.Contains(told, Canary.Reveal()) {
			t.Errorf("status %d: the credential is in %s", status, told)
		}
		if asked := srv.Asked(); len(asked) != 1 || !strings.Contains(fmt.Sprint(asked[0].Header), Canary.Reveal()) {
			t.Errorf("status %d: the credential was not in the request", status)
		}
	}
	p, srv := s.open(t, s.answerWell)
	srv.Close()
	if _, err := p.Call(t.Context(), s.request()); err == nil || strings.Contains(err.Error(), srv.URL) || strings.Contains(err.Error(), "http") {
		t.Errorf("error = %v, want one without a URL", err)
	}
}

func (s suite) concurrent(t *testing.T) {
	p, srv := s.open(t, s.answerWell)
	var calls sync.WaitGroup
	for range 16 {
		calls.Go(func() {
			for range 4 {
				var sent atomic.Int64
				req := s.request()
				req.Sent = func() { sent.Add(1) }
				if _, err := p.Call(t.Context(), req); err != nil || sent.Load() != 1 {
					t.Errorf("Call: %v, Sent called %d times", err, sent.Load())
				}
			}
		})
	}
	calls.Wait()
	if n := srv.Executions(); n != 64 {
		t.Errorf("64 calls did the work %d times", n)
	}
}
