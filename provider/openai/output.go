package openai

import (
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/wire"
	"github.com/onejob-dev/onejob/provider/wire/prompt"
)

// Ends in the words of the chat completions API.
var chatFinishes = map[string]onejob.OutputFinish{
	"stop": onejob.OutputComplete, "length": onejob.OutputLength, "content_filter": onejob.OutputFiltered,
	"tool_calls": onejob.OutputTool, "function_call": onejob.OutputTool, "refusal": onejob.OutputRefusal,
}

type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	InputTokens      int `json:"input_tokens"`
	OutputTokens     int `json:"output_tokens"`
}

// origin is what both APIs say made an answer.
type origin struct {
	ID          string         `json:"id"`
	Model       string         `json:"model"`
	Fingerprint string         `json:"system_fingerprint"`
	Provider    jsontext.Value `json:"provider"` // of aggregators: a name
	Usage       usage          `json:"usage"`
}

type chatBody struct {
	origin  `json:",inline"`
	Error   jsontext.Value `json:"error"`
	Choices []struct {
		FinishReason string      `json:"finish_reason"`
		Message      *chatAnswer `json:"message"`
	} `json:"choices"`
}

type chatAnswer struct {
	Content   string `json:"content"`
	Refusal   string `json:"refusal"`
	ToolCalls []struct {
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// ReadOutput reads the body of a whole completion or response, of a stream too. A content that is no
// text, as some gateways make it, is an error: nobody's reader would take it.
func (p *Provider) ReadOutput(body []byte) (onejob.Output, error) {
	if !p.opts.API.prompted() {
		return onejob.Output{}, errNoPrompt
	}
	body, err := wire.Assemble(body, p.opts.API.assembler())
	if err != nil {
		return onejob.Output{}, err
	}
	if p.opts.API == APIResponses {
		return p.readResponse(body)
	}
	var a chatBody
	if err := prompt.Decode(body, &a); err != nil {
		return onejob.Output{}, err
	}
	switch {
	case saysError(a.Error):
		return onejob.Output{}, errors.New("there is an error where an answer belongs")
	case len(a.Choices) != 1 || a.Choices[0].Message == nil:
		return onejob.Output{}, errors.New("there is not one choice with a message")
	}
	m := a.Choices[0].Message
	out := p.output(a.origin)
	out.InputTokens, out.OutputTokens = a.Usage.PromptTokens, a.Usage.CompletionTokens
	out.Finish = prompt.Finish(a.Choices[0].FinishReason, chatFinishes)
	out.Content, out.ToolCalls = []byte(m.Content), len(m.ToolCalls)
	if len(m.ToolCalls) > 0 {
		out.ToolName = m.ToolCalls[0].Function.Name
	}
	if len(m.ToolCalls) == 1 {
		out.Content = []byte(m.ToolCalls[0].Function.Arguments)
	}
	if m.Refusal != "" || out.Finish == onejob.OutputRefusal {
		out.Refused, out.Finish = true, onejob.OutputRefusal
	}
	return out, nil
}

func saysError(v jsontext.Value) bool { return len(v) > 0 && v.Kind() != 'n' }

// output is what both APIs say beside the text. A server of one's own says its build
// where vendors say a fingerprint.
func (p *Provider) output(from origin) onejob.Output {
	out := onejob.Output{ResponseID: from.ID, Model: from.Model, Fingerprint: from.Fingerprint, Upstream: prompt.UpstreamName(from.Provider)}
	if p.opts.SelfHosted {
		out.Build = from.Fingerprint
	}
	return out
}

type responseBody struct {
	origin            `json:",inline"`
	Status            string         `json:"status"`
	Error             jsontext.Value `json:"error"`
	IncompleteDetails struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Output []outputItem `json:"output"`
}

type outputItem struct {
	Type    string `json:"type"`
	Content []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func (p *Provider) readResponse(body []byte) (onejob.Output, error) {
	var a responseBody
	if err := prompt.Decode(body, &a); err != nil {
		return onejob.Output{}, err
	}
	out := p.output(a.origin)
	out.InputTokens, out.OutputTokens = a.Usage.InputTokens, a.Usage.OutputTokens
	switch {
	case saysError(a.Error):
		return onejob.Output{}, errors.New("there is an error where an answer belongs")
	case a.Status == "completed":
		out.Finish = onejob.OutputComplete
	case a.Status == "incomplete":
		out.Finish = prompt.Finish(a.IncompleteDetails.Reason, map[string]onejob.OutputFinish{
			"max_output_tokens": onejob.OutputLength, "content_filter": onejob.OutputFiltered, "": "incomplete",
		})
	default:
		return onejob.Output{}, errors.New("the response is neither completed nor incomplete")
	}
	if len(a.Output) == 0 {
		return onejob.Output{}, errors.New("the response has no output")
	}
	readItems(a.Output, &out)
	return out, nil
}

// readItems reads the texts, calls and refusals of a response; thoughts are none of
// them.
func readItems(items []outputItem, out *onejob.Output) {
	var text strings.Builder
	arguments := ""
	for _, item := range items {
		if item.Type == "function_call" {
			if out.ToolCalls++; out.ToolCalls == 1 {
				out.ToolName, arguments = item.Name, item.Arguments
			}
		}
		for _, part := range item.Content {
			if item.Type == "message" && part.Type == "output_text" {
				text.WriteString(part.Text)
			}
			out.Refused = out.Refused || part.Refusal != ""
		}
	}
	out.Content = []byte(text.String())
	if out.ToolCalls == 1 {
		out.Content = []byte(arguments)
	}
	switch {
	case out.Refused:
		out.Finish = onejob.OutputRefusal
	case out.ToolCalls > 0 && out.Finish == onejob.OutputComplete:
		out.Finish = onejob.OutputTool
	}
}
