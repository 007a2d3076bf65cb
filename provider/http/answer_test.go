package httpcall_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/onejob-dev/onejob"
	httpcall "github.com/onejob-dev/onejob/provider/http"
	"github.com/onejob-dev/onejob/provider/providertest"
	"github.com/onejob-dev/onejob/provider/wire"
)

func TestOutcomesOverrideTheTable(t *testing.T) {
	t.Parallel()
	rule := func(when string, class onejob.Outcome, fault bool) []wire.Rule {
		return []wire.Rule{{When: "body.nothing.such == 1", Class: onejob.OutcomeSucceeded}, {When: when, Class: class, TargetFault: fault}}
	}
	cases := []struct {
		name    string
		rules   []wire.Rule
		answer  func(*providertest.Exchange)
		outcome onejob.Outcome // of an answer without error
		proof   error
		next    onejob.Next
	}{
		{"refused", rule("status == 502", onejob.OutcomeRefused, false), status(502), "", onejob.ErrRefused, onejob.NextNowhere},
		{"the target's fault", rule("status == 400 && headers['x-why'] == 'us'", onejob.OutcomeRefused, true), func(x *providertest.Exchange) { x.Answer(400, `{}`, "X-Why: us") }, "", onejob.ErrRefused, onejob.NextElsewhere},
		{"not executed", rule("status == 500 && body.code > 6.5", onejob.OutcomeNotExecuted, false), func(x *providertest.Exchange) { x.Answer(500, `{"code":7}`) }, "", onejob.ErrNotSent, onejob.NextAgain},
		{"executed and failed", rule("status == 504", onejob.OutcomeExecutedFailed, false), status(504), onejob.OutcomeExecutedFailed, nil, onejob.NextElsewhere},
		{"succeeded", rule("status == 409", onejob.OutcomeSucceeded, false), status(409), onejob.OutcomeSucceeded, nil, ""},
		{"unknown", rule("status == 200", onejob.OutcomeUnknown, false), status(200), "", nil, ""},
		{"result lost", rule("status == 200", onejob.OutcomeResultLost, false), status(200), onejob.OutcomeResultLost, nil, ""},
		{"never of a success that broke off", rule("status == 200", onejob.OutcomeSucceeded, false), func(x *providertest.Exchange) {
			x.Write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{")
			x.Close()
		}, onejob.OutcomeResultLost, nil, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			srv := providertest.Serve(t, c.answer)
			a, err := newProvider(t, httpcall.Options{URL: srv.URL, Outcomes: c.rules}).Call(t.Context(), onejob.Request{Input: []byte(`{}`)})
			var ce *onejob.CallError
			if errors.As(err, &ce) {
				a.Next = ce.Next
			}
			var proof error
			for _, e := range []error{onejob.ErrNotSent, onejob.ErrRefused} {
				if errors.Is(err, e) {
					proof = e
				}
			}
			if a.Outcome != c.outcome || a.Next != c.next || proof != c.proof {
				t.Errorf("outcome %q, next %q, error %v; want %q, %q, %v", a.Outcome, a.Next, err, c.outcome, c.next, c.proof)
			}
		})
	}
}

func TestARuleCanSayThatWorkWasAccepted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code    int
		body    string
		outcome onejob.Outcome // empty: doubt
	}{
		{409, `{"id":"ch_1","error":"it is under way already"}`, onejob.OutcomeAccepted},
		{409, `{"error":"it is under way already"}`, ""},
		{409, `no JSON`, ""},
		{202, `{"id":"ch_1"}`, onejob.OutcomeAccepted},
	} {
		srv := providertest.Serve(t, func(x *providertest.Exchange) { x.Answer(c.code, c.body) })
		p := newProvider(t, httpcall.Options{
			URL: srv.URL, Accepted: &httpcall.Accepted{ID: "body.id"},
			Outcomes: []wire.Rule{{When: "status == 409", Class: onejob.OutcomeAccepted}},
		})
		a, err := p.Call(t.Context(), onejob.Request{Input: []byte(`{}`)})
		if a.Outcome != c.outcome || (c.outcome == "") != (err != nil) || a.Outcome == onejob.OutcomeAccepted && a.ProviderID != "ch_1" {
			t.Errorf("%d %s: %q as %q, %v; want %q", c.code, c.body, a.Outcome, a.ProviderID, err, c.outcome)
		}
	}
	_, err := httpcall.New(httpcall.Options{URL: "http://x", Outcomes: []wire.Rule{{When: "status == 409", Class: onejob.OutcomeAccepted}}})
	if err == nil || !strings.Contains(err.Error(), "accepted needs accepted.id") {
		t.Errorf("New without accepted.id: %v; want it to ask for one", err)
	}
}

// The first request under a key may be at work, wherever the key was written.
func TestAConflictProvesNothingWhereTheBodyCarriesTheKey(t *testing.T) {
	t.Parallel()
	for body, refused := range map[string]bool{
		`{"idempotency_key": {{ provider_key }}, "in": {{ input }}}`:                    false,
		`{% set key = provider_key %}{"idempotency_key": {{ key }}, "in": {{ input }}}`: false,
		`{"idempotency_key": "none", "in": {{ input }}}`:                                true,
	} {
		srv := providertest.Serve(t, status(409))
		_, err := newProvider(t, httpcall.Options{URL: srv.URL, Body: body}).Call(t.Context(), onejob.Request{Input: []byte(`{}`), ProviderKey: "pk_1"})
		if err == nil || errors.Is(err, onejob.ErrRefused) != refused {
			t.Errorf("409 to %s: %v; want it refused: %t", body, err, refused)
		}
	}
}

func status(code int) func(*providertest.Exchange) {
	return func(x *providertest.Exchange) { x.Answer(code, `{}`) }
}

func TestCostAndUsageAreReadFromTheAnswer(t *testing.T) {
	t.Parallel()
	srv := providertest.Serve(t, func(x *providertest.Exchange) {
		x.Answer(200, `{"cost_micros":1200,"usage":{"calls": 1}}`)
	})
	a, err := newProvider(t, httpcall.Options{URL: srv.URL, Cost: "body.cost_micros * 2", Currency: "EUR"}).Call(t.Context(), onejob.Request{Input: []byte(`{}`)})
	if err != nil || a.CostMicros != 2400 || a.Currency != "EUR" || string(a.Usage) != `{"calls": 1}` {
		t.Errorf("cost %d %q, usage %s, error %v; want 2400 EUR and the usage", a.CostMicros, a.Currency, a.Usage, err)
	}
	a, err = newProvider(t, httpcall.Options{URL: srv.URL, Cost: "body.price"}).Call(t.Context(), onejob.Request{Input: []byte(`{}`)})
	if err != nil || a.Currency != "" || a.Outcome != onejob.OutcomeSucceeded {
		t.Errorf("a price that cannot be read: %+v, %v; want a success without a price", a, err)
	}
}

// asynchronous is a target that takes work and tells of it later.
func asynchronous(url string) httpcall.Options {
	return httpcall.Options{
		URL: url + "/v1/charges", Accepted: &httpcall.Accepted{ID: "body.id"},
		Lookup: &httpcall.Lookup{
			URL: url + "/v1/charges/{id}", Authoritative: true, Running: "body.status == 'processing'",
			Succeeded: "body.status == 'succeeded'", Failed: "body.status == 'failed'", Result: "body.result",
		},
		Cancel:   &httpcall.Cancel{URL: url + "/v1/charges/{id}/cancel?by={attempt_id}"},
		Callback: &httpcall.Callback{Succeeded: "body.status == 'succeeded'", Failed: "body.status == 'failed'", Result: "body"},
	}
}

func TestLookups(t *testing.T) {
	t.Parallel()
	providertest.RunLookups(t, providertest.LookupOptions{
		Open: func(t testing.TB, url string) onejob.Provider {
			opts := asynchronous(url)
			opts.SecretHeaders = map[string]onejob.Secret{"Authorization": "Bearer " + providertest.Canary}
			return newProvider(t, opts)
		},
		ID: "ch_1", Path: "/v1/charges/ch_1",
		Running:   `{"id":"ch_1","status":"processing"}`,
		Succeeded: `{"id":"ch_1","status":"succeeded","result":{"n":1}}`, Failed: `{"id":"ch_1","status":"failed"}`,
	})
}

func TestAnAsynchronousTargetAcceptsUnderItsOwnID(t *testing.T) {
	t.Parallel()
	srv := providertest.Serve(t, func(x *providertest.Exchange) { x.Answer(202, `{"id":"ch_1","status":"processing"}`) })
	a, err := newProvider(t, asynchronous(srv.URL)).Call(t.Context(), onejob.Request{Input: []byte(`{}`)})
	if err != nil || a.Outcome != onejob.OutcomeAccepted || a.ProviderID != "ch_1" {
		t.Errorf("answer = %+v, %v; want accepted as ch_1", a, err)
	}
}

// A poll that timed out refunded in full what the provider went on to bill: only a
// definite answer may say that it failed (elizaOS/eliza#11920).
func TestALookUpResolvesOnlyWhatTheProviderSays(t *testing.T) {
	t.Parallel()
	found := func(o onejob.Outcome, body string) onejob.ProbeAnswer {
		a := onejob.ProbeAnswer{Found: true, Answer: onejob.Answer{Outcome: o, ProviderID: "ch_1"}}
		if body != "" {
			a.Answer.Body = []byte(body)
		}
		return a
	}
	cases := []struct {
		name    string
		answer  func(*providertest.Exchange)
		want    onejob.ProbeAnswer
		settles bool
	}{
		{"processing", say(200, `{"id":"ch_1","status":"processing"}`), found(onejob.OutcomeAccepted, ""), true},
		{"succeeded", say(200, `{"id":"ch_1","status":"succeeded","result":{"n":1}}`), found(onejob.OutcomeSucceeded, `{"n":1}`), true},
		{"failed", say(200, `{"id":"ch_1","status":"failed"}`), found(onejob.OutcomeExecutedFailed, ""), true},
		{"succeeded, its result gone", say(200, `{"id":"ch_1","status":"succeeded"}`), found(onejob.OutcomeResultLost, ""), true},
		{"not found, authoritatively", say(404, `{}`), onejob.ProbeAnswer{}, true},
		{"not found, by a page of something in between", func(x *providertest.Exchange) {
			x.AnswerAs("text/html; charset=utf-8", 404, "<h1>404 page not found</h1>")
		}, onejob.ProbeAnswer{}, false},
		{"other work", say(200, `{"id":"ch_2","status":"succeeded"}`), onejob.ProbeAnswer{}, false},
		{"no known state", say(200, `{"id":"ch_1","status":"dreaming"}`), onejob.ProbeAnswer{}, false},
		{"a page", func(x *providertest.Exchange) { x.AnswerAs("text/html", 200, "<p>") }, onejob.ProbeAnswer{}, false},
		{"500", say(500, `{}`), onejob.ProbeAnswer{}, false},
		{"a reset", (*providertest.Exchange).Reset, onejob.ProbeAnswer{}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			srv := providertest.Serve(t, c.answer)
			got, err := newProvider(t, asynchronous(srv.URL)).Probe(t.Context(), onejob.ProbeRequest{ProviderID: "ch_1", AttemptID: "att_1"})
			if (err == nil) != c.settles {
				t.Fatalf("Probe: %v, want settled %t", err, c.settles)
			}
			brief := onejob.ProbeAnswer{Found: got.Found, Answer: onejob.Answer{Outcome: got.Answer.Outcome, ProviderID: got.Answer.ProviderID, Body: got.Answer.Body}}
			if diff := cmp.Diff(c.want, brief); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if asked := srv.Asked(); len(asked) != 1 || asked[0].Method != "GET" || asked[0].Path != "/v1/charges/ch_1" || asked[0].Body != "" {
				t.Errorf("asked %+v, want one GET of the id", asked)
			}
		})
	}
}

// Where the look-up is not authoritative, not to know the work is no answer.
func TestNotFoundIsNoAnswerWhereTheLookUpIsNotAuthoritative(t *testing.T) {
	t.Parallel()
	srv := providertest.Serve(t, say(404, `{}`))
	o := asynchronous(srv.URL)
	o.Lookup.Authoritative = false
	if got, err := newProvider(t, o).Probe(t.Context(), onejob.ProbeRequest{ProviderID: "ch_1", AttemptID: "att_1"}); err == nil {
		t.Errorf("Probe = %+v, nil; want an error, which settles nothing", got)
	}
}

func say(code int, body string) func(*providertest.Exchange) {
	return func(x *providertest.Exchange) { x.Answer(code, body) }
}

func TestAProvidersIDStaysOneSegmentOfTheURL(t *testing.T) {
	t.Parallel()
	srv := providertest.Serve(t, say(200, `{}`))
	p := newProvider(t, asynchronous(srv.URL))
	if err := p.Cancel(t.Context(), onejob.ProbeRequest{ProviderID: "../../admin?x=1 #", AttemptID: "att_1"}); err != nil {
		t.Fatalf("Cancel: %v", err)
	}
	if got, want := srv.Asked()[0].Path, "/v1/charges/..%2F..%2Fadmin%3Fx%3D1%20%23/cancel?by=att_1"; got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
	for _, id := range []string{"", ".", ".."} {
		if _, err := p.Probe(t.Context(), onejob.ProbeRequest{ProviderID: id}); err == nil {
			t.Errorf("a look-up of the id %q was made", id)
		}
	}
	if n := len(srv.Asked()); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

func TestAnAbilityThatIsNotConfiguredIsUnsupported(t *testing.T) {
	t.Parallel()
	p := newProvider(t, httpcall.Options{URL: "https://acme.example"})
	_, probe := p.Probe(t.Context(), onejob.ProbeRequest{ProviderID: "x"})
	_, callback := p.ReadCallback(nil, nil)
	for name, err := range map[string]error{"Probe": probe, "Cancel": p.Cancel(t.Context(), onejob.ProbeRequest{}), "ReadCallback": callback} {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v, want errors.ErrUnsupported", name, err)
		}
	}
}

func TestACallbackIsReadAsAnAnswer(t *testing.T) {
	t.Parallel()
	p := newProvider(t, asynchronous("https://acme.example"))
	a, err := p.ReadCallback(nil, []byte(`{"status":"succeeded", "n":12345678901234567890}`))
	if err != nil || a.Outcome != onejob.OutcomeSucceeded || string(a.Body) != `{"status":"succeeded", "n":12345678901234567890}` {
		t.Errorf("answer = %+v, %v; want the body byte for byte", a, err)
	}
	if _, err := p.ReadCallback(nil, []byte(`{"status":"processing"}`)); err == nil {
		t.Error("a report that settles nothing was taken for an answer")
	}
}
