package frontdoor_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/frontdoor"
	"github.com/onejob-dev/onejob/provider/anthropic"
	"github.com/onejob-dev/onejob/provider/openai"
	"github.com/onejob-dev/onejob/provider/translate"
	"github.com/onejob-dev/onejob/sim"
)

// newPairs serves chats, whose first target speaks chat completions and whose second
// messages, and letters, the other way round. script is what the provider does with each request in turn.
func newPairs(t *testing.T, script ...string) *world {
	t.Helper()
	provider := sim.ForTest(t, sim.Options{Models: map[string]sim.Mind{sim.AnyModel: {}}})
	if len(script) > 0 {
		provider.Script(sim.MustParse(script...)...)
	}
	gpt, err := openai.New(openai.Options{BaseURL: provider.URL() + "/v1", Model: "gpt-x"})
	if err != nil {
		t.Fatal(err)
	}
	claude, err := anthropic.New(anthropic.Options{BaseURL: provider.URL(), Model: "claude-x", APIKey: "sk-fake", MaxTokens: 100})
	if err != nil {
		t.Fatal(err)
	}
	pair := func(first, second string) onejob.Kind {
		return onejob.Kind{Policy: onejob.Policy{
			Effect: onejob.EffectNone, Targets: []string{first, second}, Failover: onejob.FailoverDeclared, FailoverWhy: "they are alike",
		}}
	}
	w := &world{t: t, store: newStore(), provider: provider}
	w.run([]onejob.Target{
		{Name: "gpt", Provider: translate.New(gpt, translate.Options{Speaks: translate.Chat, Kinds: []string{"letters"}}), Digest: gpt.Digest()},
		{Name: "claude", Provider: translate.New(claude, translate.Options{Speaks: translate.Messages, Kinds: []string{"chats"}}), Digest: claude.Digest()},
	}, map[string]onejob.Kind{"chats": pair("gpt", "claude"), "letters": pair("claude", "gpt")}, map[string]frontdoor.Model{
		"chats":   {Kind: "chats", API: frontdoor.APIChat, EventsFunc: translate.ChatEvents},
		"letters": {Kind: "letters", API: frontdoor.APIMessages, EventsFunc: func(body []byte, _ bool) ([]byte, error) { return translate.MessageEvents(body) }},
	})
	return w
}

const (
	weather = `"tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}}}],"tool_choice":"required"`
	chats   = `{"model":"chats","seed":7,"user":"u1","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"copy ` + "`Umeå`" + ` into the field city"}],` + weather + `}`
	letters = `{"model":"letters","max_tokens":50,"system":[{"type":"text","text":"be brief","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":"put 7 in n"}],` +
		`"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}}}}`
)

func TestAFallbackOfTheOtherAPIAnswersAChat(t *testing.T) {
	t.Parallel()
	w := newPairs(t, "status=401")
	first, repeat := w.post(chat, chats, "Idempotency-Key", "k1"), w.post(chat, chats, "Idempotency-Key", "k1")
	var got struct {
		Object, Model string
		Choices       []struct {
			FinishReason string `json:"finish_reason"`
			Message      struct {
				ToolCalls []struct {
					ID       string
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
		}
		Usage struct {
			Total int `json:"total_tokens"`
		}
	}
	if err := json.Unmarshal(first.body, &got); err != nil || first.status != http.StatusOK || got.Object != "chat.completion" || got.Model != "claude-x" || len(got.Choices) != 1 {
		t.Fatalf("%d %s", first.status, first.body)
	}
	c := got.Choices[0]
	if c.FinishReason != "tool_calls" || len(c.Message.ToolCalls) != 1 || c.Message.ToolCalls[0].ID == "" ||
		c.Message.ToolCalls[0].Function.Arguments != `{"city":"Umeå"}` || got.Usage.Total == 0 {
		t.Errorf("it answered %s", first.body)
	}
	for _, a := range []answer{first, repeat} {
		if a.header.Get("Onejob-Target") != "claude" || a.header.Get("Onejob-Params-Dropped") != "seed" || a.header.Get("Content-Type") != "application/json" || string(a.body) != string(first.body) {
			t.Errorf("%v: %s", a.header, a.body)
		}
	}
	if n := len(w.provider.Ledger()); n != 2 {
		t.Errorf("%d requests at the provider; want 2", n)
	}
}

func TestAFallbackOfTheOtherAPIAnswersALetter(t *testing.T) {
	t.Parallel()
	w := newPairs(t, "status=401")
	got := w.post(messages, letters, "Idempotency-Key", "k1")
	var m struct {
		Type, Model string
		Content     []struct{ Type, Text string }
		StopReason  string `json:"stop_reason"`
		Usage       struct {
			In int `json:"input_tokens"`
		}
	}
	if err := json.Unmarshal(got.body, &m); err != nil || got.status != http.StatusOK || m.Type != "message" || m.Model != "gpt-x" || m.StopReason != "end_turn" || m.Usage.In == 0 ||
		len(m.Content) != 1 || m.Content[0].Text != `{"n":7}` {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if got.header.Get("Onejob-Target") != "gpt" || got.header.Get("Onejob-Params-Dropped") != "cache_control" {
		t.Errorf("%v", got.header)
	}
}

func TestAFirstTargetIsAskedInItsOwnAPI(t *testing.T) {
	t.Parallel()
	w := newPairs(t)
	got := w.post(chat, chats, "Idempotency-Key", "k1")
	if got.status != http.StatusOK || got.header.Get("Onejob-Target") != "gpt" || got.header.Values("Onejob-Params-Dropped") != nil {
		t.Errorf("%d %v: %s", got.status, got.header, got.body)
	}
	w.post(messages, strings.Replace(letters, "letters", "chats", 1)).wantProblem(t, http.StatusUnprocessableEntity, onejob.CodeInvalidJob)
}

func TestWhatTheFallbackCannotBeAskedIsNotSentThere(t *testing.T) {
	t.Parallel()
	w := newPairs(t, "status=401")
	got := w.post(chat, strings.Replace(chats, `"seed":7`, `"verbosity":"low"`, 1), "Idempotency-Key", "k1")
	got.wantProblem(t, http.StatusBadGateway, onejob.CodeProviderFailed)
	if !strings.Contains(string(got.body), `verbosity`) {
		t.Errorf("it does not say why: %s", got.body)
	}
	if n := len(w.provider.Ledger()); n != 1 {
		t.Errorf("%d requests at the provider; want 1", n)
	}
}

func TestAStreamOfATargetOfTheOtherAPIIsMadeOfItsWholeAnswer(t *testing.T) {
	t.Parallel()
	for path, tt := range map[string]struct{ body, first, last string }{
		chat:     {chats, `data: {"id":`, `"total_tokens":`},
		messages: {letters, "event: message_start\ndata: ", "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"},
	} {
		w := newPairs(t, "status=401")
		body := strings.Replace(tt.body, "{", `{"stream":true,`, 1)
		if path == chat {
			body = strings.Replace(body, "{", `{"stream_options":{"include_usage":true},`, 1)
		}
		first, repeat := w.post(path, body, "Idempotency-Key", "k1"), w.post(path, body, "Idempotency-Key", "k1")
		if first.status != http.StatusOK || first.header.Get("Content-Type") != "text/event-stream" || !strings.HasPrefix(string(first.body), tt.first) || !strings.Contains(string(first.body), tt.last) {
			t.Errorf("%s: %d %v\n%s", path, first.status, first.header, first.body)
		}
		if string(repeat.body) != string(first.body) || repeat.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: a repeat got\n%s", path, repeat.body)
		}
	}
}

// Many servers answer as a whole whatever they are asked for. Their answer counts, and is
// given to who asked for a stream as one.
func TestAProviderThatIgnoresThatAStreamWasAskedForIsShownAsOne(t *testing.T) {
	t.Parallel()
	for path, tt := range map[string]struct{ body, target, first, last string }{
		chat:     {chats, "gpt", `data: {"id":`, "data: [DONE]\n\n"},
		messages: {letters, "claude", "event: message_start\ndata: ", "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"},
	} {
		w := newPairs(t, "stream_ignored")
		body := strings.Replace(tt.body, "{", `{"stream":true,`, 1)
		first, repeat := w.post(path, body, "Idempotency-Key", "k1"), w.post(path, body, "Idempotency-Key", "k1")
		if first.status != http.StatusOK || first.header.Get("Content-Type") != "text/event-stream" || first.header.Get("Onejob-Target") != tt.target ||
			!strings.HasPrefix(string(first.body), tt.first) || !strings.HasSuffix(string(first.body), tt.last) {
			t.Errorf("%s: %d %v\n%s", path, first.status, first.header, first.body)
		}
		if string(repeat.body) != string(first.body) || repeat.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: a repeat got\n%s", path, repeat.body)
		}
		if n := len(w.provider.Ledger()); n != 1 {
			t.Errorf("%s: %d requests at the provider; want 1", path, n)
		}
	}
}
