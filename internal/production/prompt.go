package production

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ardanlabs/jinja"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
)

// prompts makes the prompts of one version of a contract.
type prompts struct {
	system, user *jinja.Template
	params       []onejob.PromptParam // sorted
}

// newPrompts returns nil for a contract without a prompt.
func newPrompts(c *contract.Contract) (*prompts, error) {
	if c.Prompt == nil {
		return nil, nil
	}
	p := &prompts{params: paramsOf(c)}
	var err error
	if p.system, err = jinja.Compile(c.Prompt.System); err != nil {
		return nil, fmt.Errorf("prompt.system: %w", err)
	}
	if p.user, err = jinja.Compile(c.Prompt.User); err != nil {
		return nil, fmt.Errorf("prompt.user: %w", err)
	}
	return p, nil
}

// paramsOf takes the parameters over, in neutral words.
func paramsOf(c *contract.Contract) (params []onejob.PromptParam) {
	add := func(name string, value json.RawMessage, required bool) {
		if name == "response_schema" {
			value = json.RawMessage(c.Output.Schema)
		}
		params = append(params, onejob.PromptParam{Name: name, Value: value, Required: required})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Params.Required)) {
		add(name, json.RawMessage(c.Params.Required[name]), true)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Params.Tuning)) {
		add(name, json.RawMessage(c.Params.Tuning[name]), false)
	}
	switch t := c.Params.Temperature; t {
	case "":
	case "low":
		add("temperature", json.RawMessage(onejob.TemperatureLow), true)
	default:
		add("temperature", json.RawMessage(t), true)
	}
	if c.Output.Media == contract.MediaToolCall {
		tools, err := json.Marshal([]map[string]any{{"name": c.Kind, "parameters": json.RawMessage(c.Output.Schema)}})
		if err == nil { // the schema was read as JSON
			add("tools", tools, true)
		}
	}
	slices.SortFunc(params, func(a, b onejob.PromptParam) int { return strings.Compare(a.Name, b.Name) })
	return params
}

// of is the prompt of one input.
func (p *prompts) of(input json.RawMessage) (onejob.Prompt, error) {
	d := json.NewDecoder(bytes.NewReader(input))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return onejob.Prompt{}, err
	}
	data := map[string]any{"input": plain(value)}
	system, err := p.system.Render(data)
	if err != nil {
		return onejob.Prompt{}, fmt.Errorf("prompt.system: %w", err)
	}
	user, err := p.user.Render(data)
	if err != nil {
		return onejob.Prompt{}, fmt.Errorf("prompt.user: %w", err)
	}
	return onejob.Prompt{System: system, User: user, Params: p.params}, nil
}

// plain keeps whole numbers whole.
func plain(value any) any {
	switch v := value.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64() // has been read before
		return f
	case map[string]any:
		for name, inner := range v {
			v[name] = plain(inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = plain(inner)
		}
	}
	return value
}
