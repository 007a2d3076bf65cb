package anthropic_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/anthropic"
	"github.com/onejob-dev/onejob/provider/providertest"
	"github.com/onejob-dev/onejob/provider/wire"
)

const (
	input   = `{"messages":[{"role":"user","content":"hi"}]}`
	message = `{"id":"m1","type":"message","role":"assistant","model":"claude-sonnet-5","content":[{"type":"text","text":"hello"}],"stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":3}}`
)

func open(t testing.TB, url string) onejob.Provider {
	t.Helper()
	p, err := anthropic.New(anthropic.Options{BaseURL: url, Model: "claude-sonnet-5", APIKey: providertest.Canary, MaxTokens: 1024, MaxResponseBytes: 64 << 10})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return p
}

func TestProvider(t *testing.T) {
	t.Parallel()
	providertest.Run(t, providertest.Options{
		Open: open, Input: input, Success: message, KeyHeader: "Idempotency-Key", MaxResponseBytes: 64 << 10,
	})
}

// called makes one call to a server that answers so.
func called(t *testing.T, status int, body, input string) (onejob.Answer, []providertest.Asked, error) {
	t.Helper()
	srv := providertest.Serve(t, func(x *providertest.Exchange) { x.Answer(status, body) })
	p, err := anthropic.New(anthropic.Options{
		BaseURL: srv.URL + "/v1/", Model: "claude-sonnet-5", APIKey: providertest.Canary, MaxTokens: 64,
		Price: wire.TokenPrice{InputMicros: 1_000_000, OutputMicros: 2_000_000, Currency: "USD"},
	})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(p.Close)
	a, err := p.Call(t.Context(), onejob.Request{Input: []byte(input), ProviderKey: "pk_1"})
	return a, srv.Asked(), err
}

func TestMaxTokensIsFilledInWhereItIsMissing(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"messages":[]}`:                `{"max_tokens":64,"model":"claude-sonnet-5","messages":[]}`,
		`{"max_tokens": 7, "model":"x"}`: `{"max_tokens": 7, "model":"claude-sonnet-5"}`,
	} {
		_, asked, err := called(t, 200, message, in)
		if err != nil || len(asked) != 1 || asked[0].Body != want || asked[0].Path != "/v1/messages" {
			t.Errorf("%s: asked %+v, %v; want %s", in, asked, err, want)
			continue
		}
		if h := asked[0].Header; h.Get("X-Api-Key") != providertest.Canary.Reveal() || h.Get("Anthropic-Version") != anthropic.DefaultVersion {
			t.Errorf("header = %v", h)
		}
	}
}

func TestUsageModelAndPriceAreTold(t *testing.T) {
	t.Parallel()
	a, _, err := called(t, 200, strings.Replace(message, `"input_tokens":10`, `"input_tokens":10,"cache_read_input_tokens":5`, 1), input)
	if err != nil || a.CostMicros != 21 || a.Currency != "USD" || a.Evidence.Model != "claude-sonnet-5" || len(a.Usage) == 0 {
		t.Errorf("answer = %+v, %v; want 21 micros of USD", a, err)
	}
}

func TestAMessageIsHeldToItsShape(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]onejob.Outcome{
		message: onejob.OutcomeSucceeded,
		`{"type":"error","error":{"type":"api_error","message":"boom"}}`: onejob.OutcomeExecutedFailed,
		`{"type":"error"}`: onejob.OutcomeExecutedFailed,
		`{"type":"message","content":[],"stop_reason":null}`: onejob.OutcomeResultLost,
		`{"type":"message","stop_reason":"end_turn"}`:        onejob.OutcomeResultLost,
		`"hello"`: onejob.OutcomeResultLost,
	} {
		if a, _, err := called(t, 200, body, input); err != nil || a.Outcome != want {
			t.Errorf("%s: outcome %q, %v; want %q", body, a.Outcome, err, want)
		}
	}
}

func TestAnOverloadIsARefusal(t *testing.T) {
	t.Parallel()
	const overloaded = `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`
	for _, status := range []int{503, 529} {
		_, _, err := called(t, status, overloaded, input)
		var ce *onejob.CallError
		if !errors.As(err, &ce) || !errors.Is(err, onejob.ErrRefused) || ce.Next != onejob.NextAgain || !strings.Contains(ce.Failure.Message, "Overloaded") {
			t.Errorf("%d: %+v, want a refusal to be tried again, in its own words", status, err)
		}
	}
}

func TestNewReportsAllThatIsWrongAtOnce(t *testing.T) {
	t.Parallel()
	_, err := anthropic.New(anthropic.Options{BaseURL: "gopher://x", MaxTokens: -1})
	for _, want := range []string{"base_url", "model is required", "api_key is required", "max_tokens"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v, want %q in it", err, want)
		}
	}
}
