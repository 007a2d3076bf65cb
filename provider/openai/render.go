package openai

import (
	"encoding/json"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/wire/prompt"
)

var (
	_ onejob.Prompter     = (*Provider)(nil)
	_ onejob.TokenCounter = (*Provider)(nil)
)

// renderVersion changes when the same prompt is rendered or read in another way:
// evidence belongs to what was sent.
const renderVersion = 1

// Protocols by API.
var (
	chatProtocol = prompt.Protocol{
		Members: map[string]string{
			prompt.Cap: "max_completion_tokens", prompt.Temperature: "temperature", prompt.Schema: "response_format", prompt.Stream: "stream",
			prompt.Effort: "reasoning_effort", prompt.Tools: "tools", "stop": "stop", "seed": "seed", "top_p": "top_p",
			"frequency_penalty": "frequency_penalty", "presence_penalty": "presence_penalty",
		},
		MaxTemperature: 2,
		ToolFunc:       func(t prompt.Tool) any { return chatTool{"function", strictTool(t)} },
		ChoiceFunc: func(t prompt.Tool) any {
			return map[string]any{"type": "function", "function": map[string]string{"name": t.Name}}
		},
	}
	responsesProtocol = prompt.Protocol{
		Members: map[string]string{
			prompt.Cap: "max_output_tokens", prompt.Temperature: "temperature", prompt.Schema: "text.format", prompt.Stream: "stream",
			prompt.Effort: "reasoning.effort", prompt.Tools: "tools", "top_p": "top_p",
		},
		MaxTemperature: 2,
		ToolFunc: func(t prompt.Tool) any {
			f := strictTool(t)
			f.Type = "function"
			return f
		},
		ChoiceFunc: func(t prompt.Tool) any { return map[string]string{"type": "function", "name": t.Name} },
	}
)

type chatTool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

// function is a tool; the responses API has its type inside.
type function struct {
	Type        string          `json:"type,omitempty"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

func strictTool(t prompt.Tool) function {
	return function{Name: t.Name, Description: t.Description, Parameters: t.Parameters, Strict: true}
}

// carrier puts parameters where the target wants them.
func (o Options) carrier() (*prompt.Carrier, error) {
	protocol := chatProtocol
	if o.API == APIResponses {
		protocol = responsesProtocol
	}
	return prompt.NewCarrier(protocol, prompt.Options{Map: o.Map, MinTemperature: o.MinTemperature, Bounds: o.SelfHosted})
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Render makes the body of a request. The model is put in by Call, as into any
// other input.
func (p *Provider) Render(pr onejob.Prompt) (onejob.Rendered, error) {
	if !p.opts.API.prompted() {
		return onejob.Rendered{}, errNoPrompt
	}
	var body prompt.Body
	if err := p.say(&body, pr); err != nil {
		return onejob.Rendered{}, err
	}
	r, err := p.carrier.Carry(&body, pr)
	if err != nil {
		return onejob.Rendered{}, err
	}
	r.Body, err = body.MarshalJSON()
	return r, err
}

// say puts the texts of a prompt into the body.
func (p *Provider) say(body *prompt.Body, pr onejob.Prompt) error {
	if p.opts.API == APIResponses {
		if pr.System != "" {
			if err := body.SetValue("instructions", pr.System); err != nil {
				return err
			}
		}
		return body.SetValue("input", pr.User)
	}
	messages := []message{{"user", pr.User}}
	if pr.System != "" {
		messages = []message{{"system", pr.System}, messages[0]}
	}
	return body.SetValue("messages", messages)
}
