package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/internal/config"
)

const callables = `
targets:
  gpt: {provider: openai, model: m, api_key: k}
  vectors: {provider: openai, model: m, api_key: k, api: embeddings}
  claude: {provider: anthropic, model: m, api_key: k}
  charge: {provider: http, request: {url: "https://pay.test/v1"}}
kinds:
  chat: {effect: none, targets: [gpt]}
  mixed: {effect: none, targets: [gpt, claude]}
  other: {effect: none, targets: [claude, gpt]}
  apart: {effect: none, targets: [gpt, vectors]}
secret: "a secret of thirty-two characters!!"
`

// usual is how calls that name a kind are taken which says nothing of it.
var usual = config.FrontDoor{TakeOverWithin: config.Duration(15 * time.Minute)}

func TestWhatMayBeNamedAsAModel(t *testing.T) {
	t.Parallel()
	c, err := load(callables, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]config.Callable{
		"chat": {Kind: "chat", First: "gpt", API: "chat", FrontDoor: usual}, "mixed": {Kind: "mixed", First: "gpt", API: "chat", FrontDoor: usual},
		"other": {Kind: "other", First: "claude", API: "messages", FrontDoor: usual}, "apart": {Kind: "apart", First: "gpt", FrontDoor: usual},
		"gpt": {Kind: "gpt", First: "gpt", API: "chat"}, "vectors": {Kind: "vectors", First: "vectors", API: "embeddings"},
		"claude": {Kind: "claude", First: "claude", API: "messages"},
	}
	got := c.Callables()
	if len(got) != len(want) {
		t.Errorf("%d models; want %d", len(got), len(want))
	}
	for name, m := range want {
		if got[name] != m {
			t.Errorf("%s is %+v; want %+v", name, got[name], m)
		}
	}
}

func TestATargetIsOfNoUseOnlyWhereNothingCanNameIt(t *testing.T) {
	t.Parallel()
	c, err := load(callables, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(c.Warnings, "\n")
	if !strings.Contains(got, "targets.charge: no kind uses it") || strings.Contains(got, "targets.vectors: no kind") {
		t.Errorf("warnings:\n%s\nwant one of charge, and none of vectors", got)
	}
}

const models = `
targets:
  gpt: {provider: openai, model: m, api_key: k}
kinds:
`

func TestAKindSaysHowItsFrontDoorTakesCallsWithoutAKey(t *testing.T) {
	t.Parallel()

	c := mustLoad(t, models+`  plain: {effect: none, targets: [gpt]}
  strict: {effect: none, targets: [gpt], front_door: {require_key: true}}
  lenient: {effect: none, targets: [gpt], front_door: {take_over: true}}
`, nil)
	want := map[string]config.Callable{
		"gpt":     {Kind: "gpt", First: "gpt", API: "chat"},
		"plain":   {Kind: "plain", First: "gpt", API: "chat", FrontDoor: usual},
		"strict":  {Kind: "strict", First: "gpt", API: "chat", FrontDoor: config.FrontDoor{RequireKey: true, TakeOverWithin: usual.TakeOverWithin}},
		"lenient": {Kind: "lenient", First: "gpt", API: "chat", FrontDoor: config.FrontDoor{TakeOver: true, TakeOverWithin: usual.TakeOverWithin}},
	}
	got := c.Callables()
	for name, m := range want {
		if got[name] != m {
			t.Errorf("the model %q is %+v; want %+v", name, got[name], m)
		}
	}
	if len(got) != len(want) {
		t.Errorf("there are %d models; want %d", len(got), len(want))
	}
}

func TestWhereAKeyIsRequiredNothingIsLeftToTakeOver(t *testing.T) {
	t.Parallel()

	_, err := load(models+"  k: {effect: none, targets: [gpt], front_door: {require_key: true, take_over: true}}\n", nil)
	if want := "kinds.k.front_door.take_over: require_key leaves no call without a key that could take over"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v; want %q", err, want)
	}
}
