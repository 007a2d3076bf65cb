package prompt_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/wire/prompt"
)

var protocol = prompt.Protocol{
	Members: map[string]string{
		prompt.Cap: "max", prompt.Temperature: "temperature", prompt.Schema: "response_format", prompt.Stream: "stream", "seed": "seed",
		prompt.Effort: "thought.effort",
	},
	MaxTemperature: 1,
	Efforts:        []string{"low"},
}

func param(name, value string) onejob.PromptParam {
	return onejob.PromptParam{Name: name, Value: json.RawMessage(value)}
}

func required(name, value string) onejob.PromptParam {
	return onejob.PromptParam{Name: name, Value: json.RawMessage(value), Required: true}
}

// carried returns the body and what else Carry said.
func carried(t *testing.T, o prompt.Options, params ...onejob.PromptParam) (string, onejob.Rendered, error) {
	t.Helper()
	c, err := prompt.NewCarrier(protocol, o)
	if err != nil {
		t.Fatalf("NewCarrier: %v", err)
	}
	var body prompt.Body
	r, err := c.Carry(&body, onejob.Prompt{Params: params})
	text, marshalErr := body.MarshalJSON()
	if marshalErr != nil {
		t.Fatal(marshalErr)
	}
	return string(text), r, err
}

func TestATargetsMapOverridesTheAPIs(t *testing.T) {
	t.Parallel()
	o := prompt.Options{Map: map[string]string{prompt.Cap: "limits.out", "seed": prompt.Drop, "top_k": "limits.k", prompt.Schema: "guided_json"}}
	body, r, err := carried(t, o, param(prompt.Cap, "9"), param(prompt.Schema, `{"type":"object"}`), param("seed", "7"), param("stop", `["a"]`), param("top_k", "3"))
	if want := `{"limits":{"out":9,"k":3},"guided_json":{"type":"object"}}`; err != nil || body != want {
		t.Errorf("body %s, %v; want %s", body, err, want)
	}
	if !slices.Equal(r.Dropped, []string{"seed", "stop"}) {
		t.Errorf("dropped %v, want seed and stop", r.Dropped)
	}
}

func TestARequiredParameterThatIsNotCarriedIsRefused(t *testing.T) {
	t.Parallel()
	for _, p := range []onejob.PromptParam{
		required("stop", `["x"]`), required(prompt.Stream, "true"), required(prompt.Effort, `"none"`), required(prompt.Temperature, "1.5"), required(prompt.Tools, `[]`),
	} {
		if body, _, err := carried(t, prompt.Options{}, p); !errors.Is(err, onejob.ErrParamUnsupported) || body != "{}" {
			t.Errorf("%s: %s, %v; want it refused", p.Name, body, err)
		}
		p.Required = false
		if _, r, err := carried(t, prompt.Options{}, p); err != nil || !slices.Equal(r.Dropped, []string{p.Name}) {
			t.Errorf("%s: dropped %v, %v; want it dropped where it is not required", p.Name, r.Dropped, err)
		}
	}
}

func TestALowTemperatureIsTheLeastThatTheTargetTakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		least float64
		asked string
		want  string
	}{{0, onejob.TemperatureLow, "0"}, {0.5, onejob.TemperatureLow, "0.5"}, {1, onejob.TemperatureLow, "1"}, {0, "0.3", "0.3"}} {
		body, r, err := carried(t, prompt.Options{MinTemperature: c.least}, param(prompt.Temperature, c.asked))
		if err != nil || body != `{"temperature":`+c.want+`}` || r.Temperature == nil {
			t.Errorf("%s at least %v: %s, %v", c.asked, c.least, body, err)
		}
	}
	body, r, err := carried(t, prompt.Options{Map: map[string]string{prompt.Temperature: prompt.Drop}}, param(prompt.Temperature, onejob.TemperatureLow))
	if err != nil || body != "{}" || r.Temperature != nil || !slices.Equal(r.Dropped, []string{prompt.Temperature}) {
		t.Errorf("dropped: %s, %+v, %v; want it said", body, r, err)
	}
}

func TestLimitsAreTakenOffASchemaAndNothingElse(t *testing.T) {
	t.Parallel()
	schema := `{"$schema":"x","type":"object","properties":{"minimum":{"type":"integer","minimum":1},"b":{"enum":["<",{"maxLength":2}]}},` +
		`"required":["minimum"],"anyOf":[{"maxLength":3},{"const":{"pattern":1}}],"items":{"format":"date","type":"string"},"additionalProperties":false,"$defs":{}}`
	want := `{"type":"object","properties":{"minimum":{"type":"integer"},"b":{"enum":["<",{"maxLength":2}]}},` +
		`"required":["minimum"],"anyOf":[{},{"const":{"pattern":1}}],"items":{"type":"string"},"additionalProperties":false,"$defs":{}}`
	o := prompt.Options{Map: map[string]string{prompt.Schema: "grammar"}}
	if body, _, err := carried(t, o, param(prompt.Schema, schema)); err != nil || body != `{"grammar":`+want+`}` {
		t.Errorf("%s, %v\nwant %s", body, err, want)
	}
	o.Bounds = true
	if body, _, err := carried(t, o, param(prompt.Schema, schema)); err != nil || body != `{"grammar":`+schema+`}` {
		t.Errorf("with bounds: %s, %v; want the schema as it is", body, err)
	}
}

func TestAMapThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]prompt.Options{
		`"a.b" is no parameter`:  {Map: map[string]string{"a.b": "seed"}},
		`"messages" is no param`: {Map: map[string]string{"messages": prompt.Drop}},
		"neither a member":       {Map: map[string]string{"seed": "a..b"}},
		"seed: \"messages.0\"":   {Map: map[string]string{"seed": "messages.0"}},
		"stream is never asked":  {Map: map[string]string{prompt.Stream: "stream"}},
		"two parameters go":      {Map: map[string]string{"seed": "max"}},
		"min_temperature is":     {MinTemperature: 3},
	} {
		if _, err := prompt.NewCarrier(protocol, o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestATokenizerThatNobodyHasIsRefused(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{
		"": true, "remote": true, "tiktoken:o200k_base": true, "file:a/tokenizer.json": true,
		"vllm": false, "tiktoken:gpt2": false, "file:": false, "file:/": false, "o200k_base": false,
	} {
		if err := prompt.CheckTokenizer(text, prompt.CountRemote); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAMapSaysWhatBecomesOfACallersOwnMembers(t *testing.T) {
	t.Parallel()
	c, err := prompt.NewCarrier(protocol, prompt.Options{Map: map[string]string{"seed": prompt.Drop, "max_tokens": "limits.out", "stream": prompt.Drop}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Moves(), map[string]string{"seed": "", "max_tokens": "limits.out"}; !maps.Equal(got, want) {
		t.Errorf("moves %v, want %v", got, want)
	}
}
