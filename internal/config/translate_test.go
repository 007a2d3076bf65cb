package config_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/config"
	"github.com/onejob-dev/onejob/provider/anthropic"
)

func TestATargetIsTranslatedToForKindsOfTheOtherAPIOnly(t *testing.T) {
	t.Parallel()
	sent := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent <- string(body)
		w.WriteHeader(http.StatusBadRequest)
	}))
	t.Cleanup(server.Close)
	c := mustLoad(t, strings.ReplaceAll(`targets:
  gpt: {provider: openai, model: m, base_url: "URL/v1", map: {stop: halt}}
  claude: {provider: anthropic, model: m, api_key: k, base_url: URL}
kinds:
  chats: {effect: none, targets: [gpt, claude]}
  messages: {effect: none, targets: [claude, gpt]}
  alone: {effect: none, targets: [claude]}
`, "URL", server.URL), nil)
	targets, err := c.Targets("a secret of sixteen")
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]onejob.Target{}
	for _, target := range targets {
		byName[target.Name] = target
	}
	const input = `{"model":"m","stop":["a"],"stop_sequences":["b"]}`
	for _, tt := range []struct{ kind, target, input, want string }{
		{"chats", "gpt", input, `{"model":"m","halt":["a"],"stop_sequences":["b"]}`},
		{"chats", "claude", `{"model":"x","stop":["a"]}`, `{"model":"m","stop_sequences":["a"]}`},
		{"messages", "claude", input, input},
		{"messages", "gpt", `{"model":"x","stop_sequences":["a"]}`, `{"model":"m","halt":["a"]}`}, // its own map is of that too
		{"alone", "claude", input, input},
		{"claude", "claude", input, input},
	} {
		_, _ = byName[tt.target].Provider.Call(t.Context(), onejob.Request{Kind: tt.kind, Input: []byte(tt.input)})
		if got := <-sent; got != tt.want {
			t.Errorf("%s at %s: sent %s; want %s", tt.kind, tt.target, got, tt.want)
		}
	}
	if got := digestOf(t, `{provider: anthropic, model: m, api_key: k, base_url: "`+server.URL+`"}`, nil); got != byName["claude"].Digest {
		t.Error("being translated to made another target, which certificates of other kinds are not for")
	}
}

func TestAKindWithAPromptIsRenderedForEachTargetAndNotTranslated(t *testing.T) {
	t.Parallel()
	contract, err := filepath.Abs("../../examples/triage/triage.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := mustLoad(t, `targets:
  gpt: {provider: openai, model: m, api_key: k}
  claude: {provider: anthropic, model: m, api_key: k}
kinds:
  triage_ticket: {effect: none, targets: [gpt, claude], contract: "`+contract+`"}
`, nil)
	targets, err := c.Targets("a secret of sixteen")
	if err != nil {
		t.Fatal(err)
	}
	if _, plain := targets[0].Provider.(*anthropic.Provider); !plain {
		t.Errorf("claude is a %T", targets[0].Provider)
	}
}

// What a certificate says of a translated target is about the translation too.
func TestHowATargetIsTranslatedToIsAPartOfWhatACertificateIsFor(t *testing.T) {
	t.Parallel()
	digests := func(kind string) map[string]string {
		t.Helper()
		c, err := config.Load(config.LoadParams{Path: contractFolder(t, smallContract, kind)})
		if err != nil {
			t.Fatal(err)
		}
		targets, err := c.Targets("a secret of sixteen")
		if err != nil {
			t.Fatal(err)
		}
		byName := map[string]string{}
		for _, target := range targets {
			byName[target.Name] = target.Digest
		}
		return byName
	}
	behind, alone := digests("{effect: none, targets: [gpt, claude], contract: summarise.yaml}"), digests("{effect: none, targets: [claude], contract: summarise.yaml}")
	if behind["claude"] == alone["claude"] {
		t.Error("a target that is translated to has the digest of one that is not")
	}
	if behind["gpt"] != alone["gpt"] {
		t.Error("the digest of a target that is not translated to has changed")
	}
}
