package openai_test

import (
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/openai"
	"github.com/onejob-dev/onejob/provider/providertest"
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
