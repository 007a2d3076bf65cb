package onejob_test

import (
	"strings"
	"testing"

	"github.com/onejob-dev/onejob"
)

func TestNewTellsAllThatIsWrongAtOnce(t *testing.T) {
	t.Parallel()
	_, err := onejob.New(nil, onejob.Options{Secret: []byte("short"), MaxInputBytes: -1, PollInterval: -1, Kinds: map[string]onejob.Kind{
		"draw": {}, "charge": {Policy: onejob.Policy{Effect: onejob.EffectExternal, Targets: []string{"a"}, Lanes: 2}},
	}})
	e := wantError(t, err, onejob.CodeInvalidArgument)
	for _, want := range []string{"Secret has 5 bytes", "MaxInputBytes", "PollInterval", `kind "draw"`, `kind "charge"`, "lanes above 1"} {
		if !strings.Contains(e.Message, want) {
			t.Errorf("New says %q; want %q in it", e.Message, want)
		}
	}
	if strings.Contains(err.Error(), "short") {
		t.Errorf("New shows the secret: %v", err)
	}
	_, err = onejob.New(nil, onejob.Options{Secret: instanceSecret})
	if e := wantError(t, err, onejob.CodeInvalidArgument); !strings.Contains(e.Message, "Kinds is empty") {
		t.Errorf("New says %q; want it to miss the kinds", e.Message)
	}
}

func TestInputsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if got := w.client.MaxInputBytes(); got != 1<<20 {
		t.Errorf("by default inputs have up to %d bytes; want 1 MiB", got)
	}
	largest := `"` + strings.Repeat("x", 1<<20-2) + `"`
	w.submit(drawing(largest))
	_, _, err := w.client.Submit(t.Context(), drawing(largest+" "))
	wantCode(t, err, onejob.CodePayloadTooLarge)
}

// What a client was made with is its own: changing it later changes nothing.
func TestOptionsAreCopied(t *testing.T) {
	t.Parallel()
	given := kinds()
	w := newWorld(t, func(_ *world, o *onejob.Options) { o.Kinds = given })
	delete(given, "draw")
	w.submit(drawing(`1`))
}

func TestARefusalNamesTheKindsThereAre(t *testing.T) {
	t.Parallel()
	many := map[string]onejob.Kind{}
	for c := 'a'; c <= 'z'; c++ {
		many[string(c)] = kinds()["draw"]
	}
	for want, given := range map[string]map[string]onejob.Kind{
		"the kinds are charge, draw":                             kinds(),
		"the kinds are a, b, c, d, e, f, g, h, i, j and 16 more": many,
	} {
		w := newWorld(t, func(_ *world, o *onejob.Options) { o.Kinds = given })
		p := drawing(`1`)
		p.Kind = "unknown"
		_, _, err := w.client.Submit(t.Context(), p)
		if e := wantError(t, err, onejob.CodeInvalidJob); !strings.Contains(e.Message, want) {
			t.Errorf("the refusal says %q; want %q in it", e.Message, want)
		}
	}
}
