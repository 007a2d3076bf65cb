package openai_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/openai"
	"github.com/onejob-dev/onejob/provider/providertest"
	"github.com/onejob-dev/onejob/provider/wire"
)

const (
	input      = `{"messages":[{"role":"user","content":"hi"}]}`
	completion = `{"id":"c1","object":"chat.completion","model":"gpt-5-2026","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":3,"total_tokens":13}}`
)

func open(t testing.TB, url string) onejob.Provider {
	t.Helper()
	p, err := openai.New(openai.Options{BaseURL: url + "/v1", Model: "gpt-5", APIKey: providertest.Canary, MaxResponseBytes: 64 << 10})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return p
}

func TestProvider(t *testing.T) {
	t.Parallel()
	providertest.Run(t, providertest.Options{
		Open: open, Input: input, Success: completion, KeyHeader: "Idempotency-Key", MaxResponseBytes: 64 << 10,
	})
}

// called makes one call to a server that answers so.
func called(t *testing.T, status int, body, input string) (onejob.Answer, []providertest.Asked, error) {
	t.Helper()
	srv := providertest.Serve(t, func(x *providertest.Exchange) { x.Answer(status, body) })
	p, err := openai.New(openai.Options{
		BaseURL: srv.URL + "/v1/", Model: "gpt-5", APIKey: providertest.Canary, Organization: "org",
		Price: wire.TokenPrice{InputMicros: 1_000_000, OutputMicros: 2_000_000, Currency: "USD"},
	})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(p.Close)
	a, err := p.Call(t.Context(), onejob.Request{Input: []byte(input), ProviderKey: "pk_1"})
	return a, srv.Asked(), err
}

func TestTheTargetsModelWinsAndNothingElseChanges(t *testing.T) {
	t.Parallel()
	_, asked, err := called(t, 200, completion, "{ \"model\":\"mine\", \"temperature\":0.70,\n\"stream\":false, \"messages\":[] }")
	if err != nil || len(asked) != 1 {
		t.Fatalf("Call: %v, asked %v", err, asked)
	}
	got := asked[0]
	if want := "{ \"model\":\"gpt-5\", \"temperature\":0.70,\n\"stream\":false, \"messages\":[] }"; got.Body != want || got.Path != "/v1/chat/completions" {
		t.Errorf("asked %s %s, want %s", got.Path, got.Body, want)
	}
	if h := got.Header; h.Get("Authorization") != "Bearer "+providertest.Canary.Reveal() || h.Get("Openai-Organization") != "org" || h.Get("Idempotency-Key") != "pk_1" {
		t.Errorf("header = %v", h)
	}
}

func TestUsageModelAndPriceAreTold(t *testing.T) {
	t.Parallel()
	a, _, err := called(t, 200, completion, input)
	if err != nil || a.CostMicros != 16 || a.Currency != "USD" || a.Evidence.Model != "gpt-5-2026" || len(a.Usage) == 0 {
		t.Errorf("answer = %+v, %v; want 16 micros of USD by gpt-5-2026", a, err)
	}
}

func TestWhatIsNoRequestIsNotSent(t *testing.T) {
	t.Parallel()
	for _, in := range []string{`{"stream":true,"stream":false,"messages":[]}`, `{"stream":1}`, `[]`, `{"model":1,"model":2}`, `x`} {
		_, asked, err := called(t, 200, completion, in)
		var ce *onejob.CallError
		if !errors.As(err, &ce) || !errors.Is(err, onejob.ErrNotSent) || ce.Next != onejob.NextNowhere || len(asked) != 0 {
			t.Errorf("%s: asked %v, error %v; want nothing, and next nowhere", in, asked, err)
		}
	}
}

func TestACompletionIsHeldToItsShape(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]onejob.Outcome{
		completion: onejob.OutcomeSucceeded,
		`{"choices":[{"message":{"content":null,"tool_calls":[]},"finish_reason":"tool_calls"}]}`: onejob.OutcomeSucceeded,
		`{"choices":[]}`:                                                    onejob.OutcomeExecutedFailed,
		`{"error":{"message":"boom"}}`:                                      onejob.OutcomeExecutedFailed,
		`{"choices":[{"message":{},"finish_reason":"error"}]}`:              onejob.OutcomeExecutedFailed,
		`{"choices":[{"message":{"content":"half"},"finish_reason":null}]}`: onejob.OutcomeResultLost,
		`{"choices":[{"finish_reason":"stop"}]}`:                            onejob.OutcomeResultLost,
		`{"object":"chat.completion"}`:                                      onejob.OutcomeResultLost,
		`[]`:                                                                onejob.OutcomeResultLost,
	} {
		if a, _, err := called(t, 200, body, input); err != nil || a.Outcome != want {
			t.Errorf("%s: outcome %q, %v; want %q", body, a.Outcome, err, want)
		}
	}
}

func TestAUsedUpQuotaSendsTheJobElsewhere(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]onejob.Next{
		`{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"You exceeded your current quota"}}`: onejob.NextElsewhere,
		`{"error":{"type":"requests","code":"rate_limit_exceeded","message":"Rate limit reached"}}`:                       onejob.NextAgain,
	} {
		_, _, err := called(t, 429, body, input)
		var ce *onejob.CallError
		if !errors.As(err, &ce) || ce.Next != want {
			t.Errorf("%s: %v with next %q, want %q", body, err, ce.Next, want)
		}
	}
}

func TestNewReportsAllThatIsWrongAtOnce(t *testing.T) {
	t.Parallel()
	_, err := openai.New(openai.Options{Price: wire.TokenPrice{InputMicros: 1}, Outcomes: []wire.Rule{{When: "x", Class: "fine"}}})
	for _, want := range []string{"model is required", "api_key is required", "currency", "outcomes[0]"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v, want %q in it", err, want)
		}
	}
}
