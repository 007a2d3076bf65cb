package verification

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/ardanlabs/jinja"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
)

// Parameters of a prompt that a verification sets itself.
const (
	paramSchema      = "response_schema"
	paramTools       = "tools"
	paramCap         = "max_output_tokens"
	paramStop        = "stop"
	paramTemperature = "temperature"
)

// prompts makes the prompts of a contract. Nil templates: it has none, and an input is
// itself the body of the request.
type prompts struct {
	contract     *contract.Contract
	system, user *jinja.Template
	params       []onejob.PromptParam // sorted
	cap          int                  // of output tokens; zero: none is known
	stop         []string
}

func newPrompts(c *contract.Contract) (*prompts, error) {
	p := &prompts{contract: c}
	p.cap, _ = strconv.Atoi(string(c.Params.Required[paramCap]))
	if c.Prompt == nil {
		return p, nil
	}
	var err error
	if p.system, err = jinja.Compile(c.Prompt.System); err != nil {
		return nil, fmt.Errorf("prompt.system: %w", err)
	}
	if p.user, err = jinja.Compile(c.Prompt.User); err != nil {
		return nil, fmt.Errorf("prompt.user: %w", err)
	}
	return p, p.read()
}

// read takes the parameters over, in neutral words.
func (p *prompts) read() error {
	add := func(name string, value json.RawMessage, required bool) {
		if name == paramSchema {
			value = json.RawMessage(p.contract.Output.Schema)
		}
		p.params = append(p.params, onejob.PromptParam{Name: name, Value: value, Required: required})
	}
	for _, name := range slices.Sorted(maps.Keys(p.contract.Params.Required)) {
		add(name, json.RawMessage(p.contract.Params.Required[name]), true)
	}
	for _, name := range slices.Sorted(maps.Keys(p.contract.Params.Tuning)) {
		add(name, json.RawMessage(p.contract.Params.Tuning[name]), false)
	}
	switch t := p.contract.Params.Temperature; t {
	case "":
	case "low":
		add(paramTemperature, json.RawMessage(onejob.TemperatureLow), true)
	default:
		add(paramTemperature, json.RawMessage(t), true)
	}
	if p.contract.Output.Media == contract.MediaToolCall {
		add(paramTools, p.tool(json.RawMessage(p.contract.Output.Schema)), true)
	}
	p.sort(p.params)
	if raw := p.contract.Params.Required[paramStop]; raw != nil {
		return json.Unmarshal(raw, &p.stop)
	}
	return nil
}

func (p *prompts) sort(params []onejob.PromptParam) {
	slices.SortFunc(params, func(a, b onejob.PromptParam) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
}

// tool is the one tool whose arguments are the output.
func (p *prompts) tool(schema json.RawMessage) json.RawMessage {
	raw, err := json.Marshal([]map[string]any{{"name": p.contract.Kind, "parameters": schema}})
	if err != nil {
		return nil // the schema was read as JSON
	}
	return raw
}

// with are the contract's parameters, some in place of others. A nil value takes one
// away.
func (p *prompts) with(changes map[string]json.RawMessage) []onejob.PromptParam {
	var params []onejob.PromptParam
	for _, param := range p.params {
		if _, changed := changes[param.Name]; !changed {
			params = append(params, param)
		}
	}
	for name, value := range changes {
		if value != nil {
			params = append(params, onejob.PromptParam{Name: name, Value: value, Required: true})
		}
	}
	p.sort(params)
	return params
}

// shaped are the contract's parameters with another schema for the output, by the way
// that the contract asks for it. Nil: none.
func (p *prompts) shaped(schema json.RawMessage) map[string]json.RawMessage {
	changes := map[string]json.RawMessage{paramSchema: nil, paramTools: nil, paramStop: nil}
	switch {
	case schema == nil:
	case p.contract.Output.Media == contract.MediaToolCall:
		changes[paramTools] = p.tool(schema)
	default:
		changes[paramSchema] = schema
	}
	return changes
}

// of is the prompt of one input.
func (p *prompts) of(input json.RawMessage) (onejob.Prompt, error) {
	value, err := templateValue(input)
	if err != nil {
		return onejob.Prompt{}, err
	}
	data := map[string]any{"input": value}
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

// templateValue reads an input as templates see it: whole numbers stay whole.
func templateValue(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	return plain(value), nil
}

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
