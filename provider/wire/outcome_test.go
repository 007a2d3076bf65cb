package wire_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/providertest"
	"github.com/onejob-dev/onejob/provider/wire"
)

// proof is what an exchange proved, in a form that can be compared.
type proof struct {
	Outcome onejob.Outcome
	Next    onejob.Next
	Phase   onejob.Phase
	Code    string
}

const okBody = `{"ok":true}`

// proofOf reads back what a provider says.
func proofOf(a onejob.Answer, err error) proof {
	var ce *onejob.CallError
	switch {
	case err == nil:
		p := proof{Outcome: a.Outcome, Next: a.Next, Phase: a.Phase}
		if a.Failure != nil {
			p.Code = a.Failure.Code
		}
		return p
	case !errors.As(err, &ce):
		return proof{Code: "not a CallError: " + err.Error()}
	}
	p := proof{Outcome: onejob.OutcomeUnknown, Next: ce.Next, Phase: ce.Phase, Code: ce.Failure.Code}
	switch {
	case errors.Is(err, onejob.ErrNotSent):
		p.Outcome = onejob.OutcomeNotExecuted
	case errors.Is(err, onejob.ErrRefused):
		p.Outcome = onejob.OutcomeRefused
	}
	return p
}

// caller sends requests to one server.
type caller struct {
	client  *wire.Client
	url     string
	reading wire.Reading
}

func newCaller(t *testing.T, url string, opts wire.Options) *caller {
	t.Helper()
	c := &caller{client: wire.New(opts), url: url}
	t.Cleanup(c.client.Close)
	return c
}

func (c *caller) call(ctx context.Context, req onejob.Request, m wire.Message) (onejob.Answer, error) {
	m.URL = c.url
	return c.reading.Read(c.client.Send(ctx, req, m))
}

func (c *caller) post(ctx context.Context, body string) (onejob.Answer, error) {
	return c.call(ctx, onejob.Request{Effect: onejob.EffectExternal}, wire.Message{Body: []byte(body)})
}

func hold(t *testing.T, got, want proof) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("proof (-want +got):\n%s", diff)
	}
}

func unknownAt(phase onejob.Phase, code string) proof {
	return proof{Outcome: onejob.OutcomeUnknown, Phase: phase, Code: code}
}

func lostAs(code string) proof {
	return proof{Outcome: onejob.OutcomeResultLost, Phase: onejob.PhaseAnswered, Code: code}
}

// The answers of a provider that received the whole request. A POST whose connection
// was reset was sent again, without a key: images generated and paid thrice
// (ohdearquant/lionagi#2393). A gateway in between answers 502 and 504 for work that
// was accepted and charged (lotti#4338).
func TestAWholeRequestProves(t *testing.T) {
	t.Parallel()
	const long = `{"text":"0123456789"}`
	cases := []struct {
		name   string
		answer func(*providertest.Exchange)
		want   proof
	}{
		{"success", func(x *providertest.Exchange) { x.Answer(200, okBody) }, proof{onejob.OutcomeSucceeded, "", onejob.PhaseAnswered, ""}},
		{"success, chunked", func(x *providertest.Exchange) {
			x.Write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n" + okBody + "\r\n0\r\n\r\n")
		}, proof{onejob.OutcomeSucceeded, "", onejob.PhaseAnswered, ""}},
		{"nothing by an end of the connection", func(x *providertest.Exchange) { x.Close() }, unknownAt(onejob.PhaseSent, "no_answer")},
		{"nothing by a reset", func(x *providertest.Exchange) { x.Reset() }, unknownAt(onejob.PhaseSent, "no_answer")},
		{"nothing by a status line that is cut", func(x *providertest.Exchange) { x.Write("HTTP/1.1 20"); x.Close() }, unknownAt(onejob.PhaseSent, "no_answer")},
		{"nothing by headers that are cut", func(x *providertest.Exchange) {
			x.Write("HTTP/1.1 200 OK\r\nContent-Type: appl")
			x.Close()
		}, unknownAt(onejob.PhaseSent, "no_answer")},
		{"nothing by 1xx alone", func(x *providertest.Exchange) { x.Write("HTTP/1.1 102 Processing\r\n\r\n"); x.Close() }, unknownAt(onejob.PhaseSent, "no_answer")},
		{"nothing by noise", func(x *providertest.Exchange) { x.Write("SSH-2.0-OpenSSH_9\r\n"); x.Close() }, unknownAt(onejob.PhaseSent, "no_answer")},
		{"nothing by endless headers", func(x *providertest.Exchange) {
			x.Write("HTTP/1.1 200 OK\r\n" + strings.Repeat("X-Filler: "+strings.Repeat("x", 1000)+"\r\n", 400) + "\r\n")
			x.Close()
		}, unknownAt(onejob.PhaseSent, "no_answer")},

		{"execution, result lost: truncated", func(x *providertest.Exchange) {
			x.Write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n" + okBody)
			x.Close()
		}, lostAs("answer_truncated")},
		{"execution, result lost: truncated chunks", func(x *providertest.Exchange) {
			x.Write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n" + okBody + "\r\n")
			x.Close()
		}, lostAs("answer_truncated")},
		{"execution, result lost: delimited by the close, half a body", func(x *providertest.Exchange) {
			x.Write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + long[:9])
			x.Close()
		}, lostAs("answer_unreadable")},
		{"success, delimited by the close, a body that closes itself", func(x *providertest.Exchange) {
			x.Write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + long)
			x.Close()
		}, proof{onejob.OutcomeSucceeded, "", onejob.PhaseAnswered, ""}},
		{"execution, result lost: delimited by the close, what may be half a number", func(x *providertest.Exchange) {
			x.Write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n12")
			x.Close()
		}, lostAs("answer_unreadable")},
		{"execution, result lost: two values", func(x *providertest.Exchange) { x.Answer(200, `{"a":1} {"b":2}`) }, lostAs("answer_unreadable")},
		{"execution, result lost: garbage", func(x *providertest.Exchange) { x.Answer(200, "{") }, lostAs("answer_unreadable")},
		{"execution, result lost: a page", func(x *providertest.Exchange) { x.AnswerAs("text/html", 200, "<p>ok</p>") }, lostAs("answer_wrong_type")},
		{"execution, result lost: compressed unasked", func(x *providertest.Exchange) {
			x.Answer(200, "\x1f\x8b\x08\x00", "Content-Encoding: gzip")
		}, lostAs("answer_unreadable")},
		{"execution, result lost: empty", func(x *providertest.Exchange) { x.Answer(200, "") }, lostAs("answer_empty")},
		{"execution, result lost: 204", func(x *providertest.Exchange) { x.Write("HTTP/1.1 204 No Content\r\n\r\n") }, lostAs("answer_empty")},
		{"execution, result lost: huge", func(x *providertest.Exchange) { x.Answer(200, `"`+strings.Repeat("x", 70_000)+`"`) }, lostAs("answer_too_large")},
		{"nothing by 202 without an id", func(x *providertest.Exchange) { x.Answer(202, `{"id":"u1"}`) }, unknownAt(onejob.PhaseAnswered, "accepted_without_id")},
		{"failure by an error in the body", func(x *providertest.Exchange) { x.Answer(200, `{"error":{"message":"no"}}`) }, proof{onejob.OutcomeExecutedFailed, onejob.NextElsewhere, onejob.PhaseAnswered, "provider_failed"}},
		{"failure by a status in the body", func(x *providertest.Exchange) { x.Answer(201, `{"status":"failed"}`) }, proof{onejob.OutcomeExecutedFailed, onejob.NextElsewhere, onejob.PhaseAnswered, "provider_failed"}},
		{"success with an error that says nothing", func(x *providertest.Exchange) { x.Answer(200, `{"error":null}`) }, proof{onejob.OutcomeSucceeded, "", onejob.PhaseAnswered, ""}},
		{"success with an empty error", func(x *providertest.Exchange) { x.Answer(200, `{"error":"","status":"ok"}`) }, proof{onejob.OutcomeSucceeded, "", onejob.PhaseAnswered, ""}},
		{"nothing by 101", func(x *providertest.Exchange) {
			x.Write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
			x.Close()
		}, unknownAt(onejob.PhaseAnswered, "status_unknown")},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			srv := providertest.Serve(t, c.answer)
			got := newCaller(t, srv.URL, wire.Options{MaxResponseBytes: 64 << 10})
			hold(t, proofOf(got.post(t.Context(), `{"amount":5}`)), c.want)
			if n := srv.Executions(); n != 1 {
				t.Errorf("executed %d times, want 1", n)
			}
		})
	}
}

// One row for each status of the table.
func TestAStatusProves(t *testing.T) {
	t.Parallel()
	const quota = `{"error":{"code":"insufficient_quota"}}`
	type given struct {
		status  int
		effect  onejob.Effect
		key     bool
		body    string
		headers []string
	}
	external, none := onejob.EffectExternal, onejob.EffectNone
	rows := []struct {
		want     proof
		statuses []int
		given    given
	}{
		{proof{onejob.OutcomeRefused, onejob.NextNowhere, onejob.PhaseAnswered, "redirected"}, []int{301, 302, 303, 307, 308}, given{effect: external, headers: []string{"Location: /elsewhere"}}},
		{proof{onejob.OutcomeRefused, onejob.NextNowhere, onejob.PhaseAnswered, "input_refused"}, []int{400, 404, 405, 410, 413, 414, 415, 422, 431, 451, 501, 505}, given{effect: external}},
		{proof{onejob.OutcomeRefused, onejob.NextElsewhere, onejob.PhaseAnswered, "access_refused"}, []int{401, 402, 403}, given{effect: external}},
		{proof{onejob.OutcomeRefused, onejob.NextAgain, onejob.PhaseAnswered, "rate_limited"}, []int{425, 429, 529}, given{effect: external}},
		{proof{onejob.OutcomeRefused, onejob.NextElsewhere, onejob.PhaseAnswered, "quota_exhausted"}, []int{429}, given{effect: external, body: quota}},
		{unknownAt(onejob.PhaseAnswered, "key_in_use"), []int{409}, given{effect: external, key: true}},
		{proof{onejob.OutcomeRefused, onejob.NextAgain, onejob.PhaseAnswered, "conflict"}, []int{409}, given{effect: external}},
		{unknownAt(onejob.PhaseAnswered, "provider_error_unproven"), []int{408, 499, 500, 502, 503, 504, 520, 522, 524}, given{effect: external}},
		{unknownAt(onejob.PhaseAnswered, "provider_error_unproven"), []int{500}, given{effect: onejob.EffectIdempotent}},
		{unknownAt(onejob.PhaseAnswered, "provider_error_unproven"), []int{500}, given{effect: ""}},
		{proof{onejob.OutcomeExecutedFailed, onejob.NextAgain, onejob.PhaseAnswered, "provider_error"}, []int{500}, given{effect: none}},
		{unknownAt(onejob.PhaseAnswered, "provider_error_unproven"), []int{408, 499, 502, 503, 504, 520, 522, 524}, given{effect: none}},
		{proof{onejob.OutcomeRefused, onejob.NextAgain, onejob.PhaseAnswered, "overloaded"}, []int{503}, given{effect: external, headers: []string{"Retry-After: 7"}}},
		{proof{onejob.OutcomeRefused, onejob.NextAgain, onejob.PhaseAnswered, "overloaded"}, []int{503}, given{effect: external, body: `{"type":"error","error":{"type":"overloaded_error"}}`}},
		{proof{onejob.OutcomeNotExecuted, onejob.NextAgain, onejob.PhaseAnswered, "origin_unreached"}, []int{521, 523, 525, 526, 530}, given{effect: external}},
		{unknownAt(onejob.PhaseAnswered, "status_unknown"), []int{406, 418, 426, 506, 507, 511, 527, 599}, given{effect: external}},
	}
	for _, row := range rows {
		for _, status := range row.statuses {
			g := row.given
			g.status = status
			t.Run(http.StatusText(status)+" "+row.want.Code, func(t *testing.T) {
				t.Parallel()
				srv := providertest.Serve(t, func(x *providertest.Exchange) { x.Answer(g.status, g.body, g.headers...) })
				c := newCaller(t, srv.URL, wire.Options{})
				got := proofOf(c.call(t.Context(), onejob.Request{Effect: g.effect}, wire.Message{Body: []byte(`{}`), KeySent: g.key}))
				hold(t, got, row.want)
				if n := srv.Executions(); n != 1 {
					t.Errorf("status %d: %d requests arrived, want 1", status, n)
				}
			})
		}
	}
}

func TestADroppedKeptAliveConnectionProvesNothingAndIsNotRepeated(t *testing.T) {
	t.Parallel()
	drops := map[string]func(*providertest.Exchange){
		"end":   func(x *providertest.Exchange) { x.Close() },
		"reset": func(x *providertest.Exchange) { x.Reset() },
	}
	for name, drop := range drops {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := providertest.Serve(t, func(x *providertest.Exchange) {
				if x.Number == 2 {
					drop(x)
					return
				}
				x.Answer(200, okBody)
			})
			c := newCaller(t, srv.URL, wire.Options{})
			m := wire.Message{Body: []byte(`{}`), Header: http.Header{"Idempotency-Key": {"k"}}, KeySent: true}
			hold(t, proofOf(c.call(t.Context(), onejob.Request{}, m)), proof{onejob.OutcomeSucceeded, "", onejob.PhaseAnswered, ""})
			_, err := c.call(t.Context(), onejob.Request{}, m)
			hold(t, proofOf(onejob.Answer{}, err), unknownAt(onejob.PhaseSent, "no_answer"))
			var ce *onejob.CallError
			if errors.As(err, &ce) && !ce.Evidence.ReusedConnection {
				t.Errorf("evidence = %+v, want a reused connection", ce.Evidence)
			}
			if srv.Executions() != 2 || srv.Connections() != 1 {
				t.Errorf("%d executions over %d connections, want 2 over 1", srv.Executions(), srv.Connections())
			}
		})
	}
}

func TestARequestWithoutBodyTakesAFreshConnectionAndIsNotRepeated(t *testing.T) {
	t.Parallel()
	srv := providertest.Serve(t, func(x *providertest.Exchange) {
		if strings.HasSuffix(x.Path, "/drop") {
			x.Close()
			return
		}
		x.Answer(200, okBody)
	})
	c := newCaller(t, srv.URL, wire.Options{})
	for _, m := range []wire.Message{{Method: http.MethodGet}, {Method: http.MethodPost}} {
		hold(t, proofOf(c.call(t.Context(), onejob.Request{}, m)), proof{onejob.OutcomeSucceeded, "", onejob.PhaseAnswered, ""})
	}
	c.url += "/drop"
	hold(t, proofOf(c.call(t.Context(), onejob.Request{}, wire.Message{Method: http.MethodGet})), unknownAt(onejob.PhaseSent, "no_answer"))
	if srv.Executions() != 3 || srv.Connections() != 3 {
		t.Errorf("%d executions over %d connections, want 3 over 3", srv.Executions(), srv.Connections())
	}
}

func TestAnEndlessBodyIsCutOff(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]string{
		"of a success": "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n\"",
		"of a refusal": "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n\r\n\"",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chunk := strings.Repeat("x", 64<<10)
			srv := providertest.Serve(t, func(x *providertest.Exchange) {
				x.Write(start)
				for n := 0; x.Write(chunk); n++ {
					if n == 1000 {
						t.Error("the client took 64 MB")
						break
					}
				}
				x.Close()
			})
			got := proofOf(newCaller(t, srv.URL, wire.Options{MaxResponseBytes: 64 << 10}).post(t.Context(), `{}`))
			if got.Code != "answer_too_large" && got.Code != "input_refused" {
				t.Errorf("proof = %+v", got)
			}
		})
	}
}

func TestSilenceProvesNothing(t *testing.T) {
	t.Parallel()
	answers := map[string]func(*providertest.Exchange){
		"no byte": func(x *providertest.Exchange) { x.Wait() },
		"a drip": func(x *providertest.Exchange) {
			x.Write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
			x.Wait()
		},
	}
	phases := map[string]onejob.Phase{"no byte": onejob.PhaseSent, "a drip": onejob.PhaseAnswered}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			srv := providertest.Serve(t, func(x *providertest.Exchange) {
				time.AfterFunc(50*time.Millisecond, cancel)
				answer(x)
			})
			c := newCaller(t, srv.URL, wire.Options{})
			hold(t, proofOf(c.post(ctx, `{}`)), unknownAt(phases[name], "silence"))
		})
	}
}

func TestWhatNeverGotAConnectionWasNotSent(t *testing.T) {
	t.Parallel()
	notSent := func(next onejob.Next, code string) proof {
		return proof{onejob.OutcomeNotExecuted, next, onejob.PhaseNotSent, code}
	}
	t.Run("dial refused", func(t *testing.T) {
		t.Parallel()
		srv := providertest.Serve(t, func(x *providertest.Exchange) {})
		srv.Close()
		hold(t, proofOf(newCaller(t, srv.URL, wire.Options{}).post(t.Context(), `{}`)), notSent(onejob.NextAgain, "no_connection"))
	})
	t.Run("no such host", func(t *testing.T) {
		t.Parallel()
		c := newCaller(t, "http://no-such-host.invalid/", wire.Options{DialFunc: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.DNSError{Err: "no such host", Name: "no-such-host.invalid", IsNotFound: true}
		}})
		hold(t, proofOf(c.post(t.Context(), `{}`)), notSent(onejob.NextAgain, "no_connection"))
	})
	t.Run("certificate not trusted", func(t *testing.T) {
		t.Parallel()
		srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request arrived") }))
		t.Cleanup(srv.Close)
		srv.Config.ErrorLog = quiet()
		hold(t, proofOf(newCaller(t, srv.URL, wire.Options{}).post(t.Context(), `{}`)), notSent(onejob.NextElsewhere, "tls_certificate"))
	})
	t.Run("no TLS at the other side", func(t *testing.T) {
		t.Parallel()
		srv := providertest.ServeConn(t, func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) })
		url := strings.Replace(srv.URL, "http:", "https:", 1)
		hold(t, proofOf(newCaller(t, url, wire.Options{}).post(t.Context(), `{}`)), notSent(onejob.NextAgain, "no_connection"))
	})
	t.Run("TLS handshake never answered", func(t *testing.T) {
		t.Parallel()
		srv := providertest.ServeConn(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 1<<16)); <-t.Context().Done() })
		url := strings.Replace(srv.URL, "http:", "https:", 1)
		c := newCaller(t, url, wire.Options{DialTimeout: 50 * time.Millisecond})
		hold(t, proofOf(c.post(t.Context(), `{}`)), notSent(onejob.NextAgain, "no_connection"))
	})
	t.Run("given up before", func(t *testing.T) {
		t.Parallel()
		srv := providertest.Serve(t, func(x *providertest.Exchange) { x.Answer(200, okBody) })
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		got := proofOf(newCaller(t, srv.URL, wire.Options{}).post(ctx, `{}`))
		if got.Outcome != onejob.OutcomeNotExecuted || srv.Began() != 0 {
			t.Errorf("proof = %+v with %d requests begun, want not_executed and none", got, srv.Began())
		}
	})
}

func TestTLSCountsWhatTheProviderCanRead(t *testing.T) {
	t.Parallel()
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(okBody))
	}))
	t.Cleanup(srv.Close)
	config := srv.Client().Transport.(*http.Transport).TLSClientConfig
	sent := 0
	c := newCaller(t, srv.URL, wire.Options{TLS: config})
	for range 2 {
		a, err := c.call(t.Context(), onejob.Request{Sent: func() { sent++ }}, wire.Message{Body: []byte(`{}`)})
		hold(t, proofOf(a, err), proof{onejob.OutcomeSucceeded, "", onejob.PhaseAnswered, ""})
		if n := a.Evidence.BytesWritten; n < 50 || n > 200 {
			t.Errorf("counted %d bytes written, want those of a small request", n)
		}
	}
	if sent != 2 {
		t.Errorf("Sent was called %d times for 2 requests", sent)
	}
}
