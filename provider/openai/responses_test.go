package openai_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/openai"
	"github.com/onejob-dev/onejob/provider/providertest"
	"github.com/onejob-dev/onejob/provider/wire"
)

// response is one as the provider shows it.
func response(status, more string) string {
	return fmt.Sprintf(`{"id":"resp_1","object":"response","model":"gpt-5-2026","background":true,"status":%q,"error":null,"incomplete_details":null%s}`, status, more)
}

const (
	question = `{"input":"hi"}`
	said     = `,"output":[{"type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hello"}]}],"usage":{"input_tokens":10,"output_tokens":3,"total_tokens":13}`
	thought  = `,"output":[{"type":"reasoning","summary":[]}],"usage":{"input_tokens":10,"output_tokens":3,"total_tokens":13}`
)

// newResponses is a target whose responses are looked up at url.
func newResponses(t testing.TB, url string, change ...func(*openai.Options)) *openai.Provider {
	t.Helper()
	opts := openai.Options{
		BaseURL: url + "/v1", Model: "gpt-5", APIKey: providertest.Canary, Background: true, MaxResponseBytes: 64 << 10,
		Price: wire.TokenPrice{InputMicros: 1_000_000, OutputMicros: 2_000_000, Currency: "USD"},
	}
	for _, c := range change {
		c(&opts)
	}
	p, err := openai.New(opts)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(p.Close)
	return p
}

func TestResponses(t *testing.T) {
	t.Parallel()
	providertest.Run(t, providertest.Options{
		Open:  func(t testing.TB, url string) onejob.Provider { return newResponses(t, url) },
		Input: question, Success: response("completed", said), KeyHeader: "Idempotency-Key", MaxResponseBytes: 64 << 10,
	})
}

func TestResponseLookups(t *testing.T) {
	t.Parallel()
	providertest.RunLookups(t, providertest.LookupOptions{
		Open: func(t testing.TB, url string) onejob.Provider { return newResponses(t, url) },
		ID:   "resp_1", Path: "/v1/responses/resp_1",
		Running: response("in_progress", ""), Succeeded: response("completed", said), Failed: response("failed", ""),
	})
}

func TestABackgroundResponseIsStoredAndAcceptedUnderItsID(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"queued", "in_progress"} {
		srv := providertest.Serve(t, func(x *providertest.Exchange) { x.Answer(200, response(status, "")) })
		a, err := newResponses(t, srv.URL).Call(t.Context(), onejob.Request{Input: []byte(question), ProviderKey: "pk_1"})
		if err != nil || a.Outcome != onejob.OutcomeAccepted || a.ProviderID != "resp_1" || a.Currency != "" {
			t.Errorf("%s: %+v, %v; want accepted as resp_1, without a price", status, a, err)
		}
		asked := srv.Asked()[0]
		if want := `{"background":true,"store":true,"model":"gpt-5","input":"hi"}`; asked.Path != "/v1/responses" || asked.Body != want {
			t.Errorf("asked %s %s; want %s", asked.Path, asked.Body, want)
		}
	}
}

func TestAnInputThatForbidsTheBackgroundIsNotSent(t *testing.T) {
	t.Parallel()
	srv := providertest.Serve(t, func(x *providertest.Exchange) { x.Answer(200, response("queued", "")) })
	for _, in := range []string{`{"store":false,"input":"hi"}`, `{"background":false}`, `{"stream":true}`, `{"store":true,"store":true}`} {
		_, err := newResponses(t, srv.URL).Call(t.Context(), onejob.Request{Input: []byte(in)})
		if !errors.Is(err, onejob.ErrNotSent) || len(srv.Asked()) != 0 {
			t.Errorf("%s: %v after %d requests; want it not sent", in, err, len(srv.Asked()))
		}
	}
}

func TestAnAcceptedResponseWithoutAnIDIsDoubt(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"null", `""`, "7", `"` + strings.Repeat("x", 300) + `"`} {
		srv := providertest.Serve(t, func(x *providertest.Exchange) { x.Answer(200, `{"id":`+id+`,"status":"queued"}`) })
		_, err := newResponses(t, srv.URL).Call(t.Context(), onejob.Request{Input: []byte(question)})
		var ce *onejob.CallError
		if !errors.As(err, &ce) || ce.Proof != nil {
			t.Errorf("id %.20s: %v; want doubt", id, err)
		}
	}
}

// What is executed and cut is told apart by why: the caller's own bound is an answer,
// a filter is a failure, and all else is no result to trust.
func TestTheStateOfAResponseSaysWhatIsProven(t *testing.T) {
	t.Parallel()
	cut := func(reason, more string) string {
		return strings.Replace(response("incomplete", more), `"incomplete_details":null`, `"incomplete_details":`+reason, 1)
	}
	for _, c := range []struct {
		name, body string
		call       onejob.Outcome // of the call that makes it
		probe      onejob.Outcome // of the look-up
	}{
		{"completed", response("completed", said), onejob.OutcomeSucceeded, onejob.OutcomeSucceeded},
		{"completed, its output gone", response("completed", `,"output":[]`), onejob.OutcomeResultLost, onejob.OutcomeResultLost},
		{"failed", strings.Replace(response("failed", `,"output":[]`), `"error":null`, `"error":{"code":"server_error","message":"boom"}`, 1), onejob.OutcomeExecutedFailed, onejob.OutcomeExecutedFailed},
		{"cancelled", response("cancelled", `,"output":[]`), onejob.OutcomeExecutedFailed, onejob.OutcomeCancelled},
		{"cut at its bound", cut(`{"reason":"max_output_tokens"}`, said), onejob.OutcomeSucceeded, onejob.OutcomeSucceeded},
		{"cut before it spoke", cut(`{"reason":"max_output_tokens"}`, thought), onejob.OutcomeExecutedFailed, onejob.OutcomeExecutedFailed},
		{"cut by a filter", cut(`{"reason":"content_filter"}`, said), onejob.OutcomeExecutedFailed, onejob.OutcomeExecutedFailed},
		{"cut for no known reason", cut(`{"reason":"moon"}`, said), onejob.OutcomeResultLost, onejob.OutcomeResultLost},
		{"cut and not said why", cut(`null`, said), onejob.OutcomeResultLost, onejob.OutcomeResultLost},
		{"no known state", response("dreaming", said), onejob.OutcomeResultLost, onejob.OutcomeResultLost},
		{"no state", `{"id":"resp_1","output":[]}`, onejob.OutcomeResultLost, onejob.OutcomeResultLost},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			srv := providertest.Serve(t, func(x *providertest.Exchange) { x.Answer(200, c.body) })
			p := newResponses(t, srv.URL)
			a, err := p.Call(t.Context(), onejob.Request{Input: []byte(question)})
			if err != nil || a.Outcome != c.call {
				t.Errorf("the call: %q, %v; want %q", a.Outcome, err, c.call)
			}
			got, err := p.Probe(t.Context(), onejob.ProbeRequest{ProviderID: "resp_1"})
			if err != nil || !got.Found || got.Answer.Outcome != c.probe || got.Answer.ProviderID != "resp_1" {
				t.Errorf("the look-up: %+v, %v; want %q of resp_1", got, err, c.probe)
			}
			if priced := strings.Contains(c.body, "usage"); priced && (got.Answer.CostMicros != 16 || got.Answer.Currency != "USD") {
				t.Errorf("the look-up costs %d %s; want 16 USD", got.Answer.CostMicros, got.Answer.Currency)
			}
			if c.probe == onejob.OutcomeSucceeded && string(got.Answer.Body) != c.body {
				t.Errorf("the result is %s; want the body byte for byte", got.Answer.Body)
			}
			if asked := srv.Asked(); len(asked) != 2 || asked[1].Method != "GET" || asked[1].Path != "/v1/responses/resp_1" || asked[1].Body != "" {
				t.Errorf("asked %+v; want one GET of the id", asked)
			}
		})
	}
}

// A poll that met a 500 was taken for the provider's word (elizaOS/eliza#11920).
func TestALookUpThatIsNotAnsweredWellSettlesNothing(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(*providertest.Exchange){
		"500":        func(x *providertest.Exchange) { x.Answer(500, `{"status":"failed"}`) },
		"401":        func(x *providertest.Exchange) { x.Answer(401, `{"error":{"message":"no"}}`) },
		"429":        func(x *providertest.Exchange) { x.Answer(429, `{}`) },
		"a page":     func(x *providertest.Exchange) { x.AnswerAs("text/html", 200, "<p>") },
		"a 404 page": func(x *providertest.Exchange) { x.AnswerAs("text/html", 404, "<p>") },
		"a reset":    (*providertest.Exchange).Reset,
		"other work": func(x *providertest.Exchange) {
			x.Answer(200, strings.Replace(response("completed", said), "resp_1", "resp_2", 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := providertest.Serve(t, answer)
			if got, err := newResponses(t, srv.URL).Probe(t.Context(), onejob.ProbeRequest{ProviderID: "resp_1"}); err == nil {
				t.Errorf("%+v; want an error", got)
			} else if strings.Contains(err.Error(), "http") || strings.Contains(err.Error(), providertest.Canary.Reveal()) {
				t.Errorf("the error tells too much: %v", err)
			}
		})
	}
	srv := providertest.Serve(t, func(x *providertest.Exchange) { x.Answer(404, `{"error":{"message":"no such response"}}`) })
	if got, err := newResponses(t, srv.URL).Probe(t.Context(), onejob.ProbeRequest{ProviderID: "resp_1"}); err != nil || got.Found {
		t.Errorf("not found: %+v, %v; want it told as not found", got, err)
	}
}

func TestACancelIsAskedForUnderTheID(t *testing.T) {
	t.Parallel()
	srv := providertest.Serve(t, func(x *providertest.Exchange) { x.Answer(200, response("cancelled", "")) })
	p := newResponses(t, srv.URL)
	if err := p.Cancel(t.Context(), onejob.ProbeRequest{ProviderID: "a/b?c"}); err != nil {
		t.Fatal(err)
	}
	if asked := srv.Asked()[0]; asked.Method != "POST" || asked.Path != "/v1/responses/a%2Fb%3Fc/cancel" || asked.Body != "" {
		t.Errorf("asked %+v", asked)
	}
	for _, id := range []string{"", ".", ".."} {
		if err := p.Cancel(t.Context(), onejob.ProbeRequest{ProviderID: id}); err == nil {
			t.Errorf("the id %q was asked about", id)
		}
	}
}

func TestChatCompletionsCannotBeAskedAbout(t *testing.T) {
	t.Parallel()
	p := open(t, "http://127.0.0.1:1").(*openai.Provider)
	_, err := p.Probe(t.Context(), onejob.ProbeRequest{ProviderID: "x"})
	if !errors.Is(err, errors.ErrUnsupported) || !errors.Is(p.Cancel(t.Context(), onejob.ProbeRequest{ProviderID: "x"}), errors.ErrUnsupported) {
		t.Errorf("Probe: %v; want unsupported", err)
	}
	_, err = openai.New(openai.Options{
		Model: "m", APIKey: "k", API: openai.APIChat, Background: true, Outcomes: []wire.Rule{{When: "true", Class: onejob.OutcomeAccepted}},
	})
	for _, want := range []string{"background", "accepted needs api responses"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v; want %q in it", err, want)
		}
	}
}
