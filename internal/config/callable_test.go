package config_test

import (
	"strings"
	"testing"

	"github.com/onejob-dev/onejob/internal/config"
)

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
		"gpt":     {Kind: "gpt", API: "chat"},
		"plain":   {Kind: "plain", API: "chat"},
		"strict":  {Kind: "strict", API: "chat", FrontDoor: config.FrontDoor{RequireKey: true}},
		"lenient": {Kind: "lenient", API: "chat", FrontDoor: config.FrontDoor{TakeOver: true}},
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
