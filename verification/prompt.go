package verification

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
)

// Parameters of a prompt that a probe sets itself.
const (
	paramSchema      = "response_schema"
	paramTools       = "tools"
	paramCap         = "max_output_tokens"
	paramStop        = "stop"
	paramTemperature = "temperature"
)

// prompts is what probes know of the contract's own prompts.
type prompts struct {
	output contract.Output
	params []onejob.PromptParam // sorted
	cap    int                  // of output tokens; zero: none is known
	stop   []string             // required ones
}

// newPrompts reads the parameters, which are those of every case.
func newPrompts(c *contract.Contract, k *contract.Checker) (*prompts, error) {
	p := &prompts{output: c.Output}
	p.cap, _ = strconv.Atoi(string(c.Params.Required[paramCap]))
	if c.Prompt == nil {
		return p, nil
	}
	first, err := k.Prompt(c.CaseList[0].Input)
	if err != nil {
		return nil, err
	}
	p.params = first.Params
	if raw := c.Params.Required[paramStop]; raw != nil {
		err = json.Unmarshal(raw, &p.stop)
	}
	return p, err
}

// structured reports whether outputs are JSON by a schema that the target is sent.
func (p *prompts) structured() bool {
	return p.output.Media == contract.MediaJSON || p.output.Media == contract.MediaToolCall
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
	slices.SortFunc(params, func(a, b onejob.PromptParam) int { return strings.Compare(a.Name, b.Name) })
	return params
}

// shaped are changes that ask for another schema, by the way that the contract asks for
// its own. Nil: for none, and so for words.
func (p *prompts) shaped(schema json.RawMessage) map[string]json.RawMessage {
	changes := map[string]json.RawMessage{paramSchema: nil, paramTools: nil, paramStop: nil}
	switch {
	case schema == nil:
	case p.output.Media == contract.MediaToolCall:
		changes[paramTools] = p.tool(schema)
	default:
		changes[paramSchema] = schema
	}
	return changes
}

// probing are the changes for a probe whose answer is a text: in a member where the
// contract's outputs have members, bare otherwise.
func (p *prompts) probing() map[string]json.RawMessage {
	if !p.structured() {
		return p.shaped(nil)
	}
	return p.shaped(one(textMember))
}

// tool is the contract's tool with other parameters. Nil: it has none.
func (p *prompts) tool(schema json.RawMessage) json.RawMessage {
	i := slices.IndexFunc(p.params, func(param onejob.PromptParam) bool { return param.Name == paramTools })
	var tools []map[string]json.RawMessage
	if i < 0 || json.Unmarshal(p.params[i].Value, &tools) != nil || len(tools) == 0 {
		return nil
	}
	tools[0]["parameters"] = schema
	return marshal(tools[:1])
}
