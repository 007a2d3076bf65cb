package anthropic_test

import (
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/anthropic"
	"github.com/onejob-dev/onejob/provider/providertest"
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
