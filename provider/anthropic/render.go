package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/wire"
	"github.com/onejob-dev/onejob/provider/wire/prompt"
)

var (
	_ onejob.Prompter     = (*Provider)(nil)
	_ onejob.TokenCounter = (*Provider)(nil)
)

// renderVersion changes when the same prompt is rendered or read in another way:
// evidence belongs to what was sent.
const renderVersion = 1

var protocol = prompt.Protocol{
	Members: map[string]string{
		prompt.Cap: "max_tokens", prompt.Temperature: "temperature", prompt.Schema: "output_config.format", prompt.Stream: "stream",
		prompt.Effort: "output_config.effort", prompt.Tools: "tools", "stop": "stop_sequences", "top_p": "top_p", "top_k": "top_k",
	},
	MaxTemperature: 1,
	Efforts:        []string{"low", "medium", "high"},
	ToolFunc: func(t prompt.Tool) any {
		return tool{Name: t.Name, Description: t.Description, Schema: t.Parameters}
	},
	ChoiceFunc: func(t prompt.Tool) any { return map[string]string{"type": "tool", "name": t.Name} },
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"input_schema"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Render makes the body of a request. The model is put in by Call, as into any
// other input.
func (p *Provider) Render(pr onejob.Prompt) (onejob.Rendered, error) {
	var body prompt.Body
	if pr.System != "" {
		if err := body.SetValue("system", pr.System); err != nil {
			return onejob.Rendered{}, err
		}
	}
	if err := body.SetValue("messages", []message{{"user", pr.User}}); err != nil {
		return onejob.Rendered{}, err
	}
	r, err := p.carrier.Carry(&body, pr)
	if err != nil {
		return onejob.Rendered{}, err
	}
	r.Body, err = body.MarshalJSON()
	return r, err
}

// Ends in the words of the messages API.
var finishes = map[string]onejob.OutputFinish{
	"end_turn": onejob.OutputComplete, "stop_sequence": onejob.OutputComplete, "max_tokens": onejob.OutputLength,
	"model_context_window_exceeded": onejob.OutputLength, "tool_use": onejob.OutputTool, "refusal": onejob.OutputRefusal,
}

type answer struct {
	ID         string         `json:"id"`
	Type       string         `json:"type"`
	Model      string         `json:"model"`
	StopReason string         `json:"stop_reason"`
	Content    []block        `json:"content"`
	Provider   jsontext.Value `json:"provider"` // of aggregators: a name
	Usage      struct {
		Input        int `json:"input_tokens"`
		CacheWritten int `json:"cache_creation_input_tokens"`
		CacheRead    int `json:"cache_read_input_tokens"`
		Output       int `json:"output_tokens"`
	} `json:"usage"`
}

// block is one part of a content.
type block struct {
	Type  string         `json:"type"`
	Text  string         `json:"text"`
	Name  string         `json:"name"`
	Input jsontext.Value `json:"input"`
}

// ReadOutput reads the body of a whole message. Texts are joined, thoughts are left
// out.
func (p *Provider) ReadOutput(body []byte) (onejob.Output, error) {
	body, err := wire.Assemble(body, &messageStream{})
	if err != nil {
		return onejob.Output{}, err
	}
	var a answer
	if err := prompt.Decode(body, &a); err != nil {
		return onejob.Output{}, err
	}
	if a.Type != "message" || a.Content == nil {
		return onejob.Output{}, errors.New("the answer is no message")
	}
	out := onejob.Output{
		ResponseID: a.ID, Model: a.Model, Upstream: prompt.UpstreamName(a.Provider), Finish: prompt.Finish(a.StopReason, finishes),
		InputTokens: a.Usage.Input + a.Usage.CacheWritten + a.Usage.CacheRead, OutputTokens: a.Usage.Output,
	}
	out.Refused = out.Finish == onejob.OutputRefusal
	a.read(&out)
	return out, nil
}

// read reads the texts and calls of a message.
func (a *answer) read(out *onejob.Output) {
	var text strings.Builder
	var arguments []byte
	for _, b := range a.Content {
		switch b.Type {
		case "text":
			text.WriteString(b.Text)
		case "tool_use":
			if out.ToolCalls++; out.ToolCalls == 1 {
				out.ToolName, arguments = b.Name, slices.Clone(b.Input)
			}
		}
	}
	out.Content = []byte(text.String())
	if out.ToolCalls == 1 {
		out.Content = arguments
	}
}

// counted are the members that the endpoint for counting takes.
var counted = strings.Fields("messages model system tools tool_choice thinking output_config")

// CountTokens asks how many tokens the body of a request has. The vendor calls it an
// estimate. Where [Options.Tokenizer] counts locally it is [errors.ErrUnsupported].
func (p *Provider) CountTokens(ctx context.Context, body []byte) (int, error) {
	if t := p.opts.Tokenizer; t != "" && t != prompt.CountRemote {
		return 0, errors.ErrUnsupported
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil || all == nil {
		return 0, errors.New("the body is not a JSON object")
	}
	ask := map[string]json.RawMessage{}
	for _, name := range counted {
		if all[name] != nil {
			ask[name] = all[name]
		}
	}
	ask["model"] = p.model
	text, err := json.Marshal(ask)
	if err != nil {
		return 0, err
	}
	return p.count(ctx, text)
}

func (p *Provider) count(ctx context.Context, body []byte) (int, error) {
	m := wire.Message{Method: http.MethodPost, URL: p.url + "/count_tokens", Header: p.header(onejob.Request{}), Body: body}
	s := p.client.Send(ctx, onejob.Request{}, m)
	if s.Status != http.StatusOK || s.Trouble != "" {
		return 0, fmt.Errorf("the provider counted nothing: %s", s.Complaint())
	}
	var counted struct {
		InputTokens int `json:"input_tokens"`
	}
	if err := prompt.Decode(s.Body, &counted); err != nil {
		return 0, err
	}
	return prompt.Count(counted.InputTokens)
}
