package onejob

import (
	"context"
	"encoding/json"
	"errors"
)

// Prompt is a request to a model in neutral words. The adapter that will send it
// renders it, so that what is verified is what production sends.
type Prompt struct {
	System string // empty: none
	User   string
	// Params by name, sorted. The names are those of a contract: max_output_tokens,
	// temperature, response_schema, stream, stop, seed, top_p, top_k,
	// frequency_penalty, presence_penalty, reasoning_effort, tools.
	Params []PromptParam
}

// PromptParam is one parameter of a [Prompt].
type PromptParam struct {
	Name  string
	Value json.RawMessage
	// Required parameters make a target that cannot carry them refuse the prompt;
	// others are dropped, and it is said which.
	Required bool
}

// TemperatureLow is the value of a temperature that is 0 where the target takes
// it, and otherwise the least that it takes.
const TemperatureLow = `"low"`

// ErrParamUnsupported : the target cannot carry a required parameter.
var ErrParamUnsupported = errors.New("parameter unsupported")

// Rendered is a prompt as a target is sent it.
type Rendered struct {
	Body []byte // of the request, and thereby the input of a [Request]
	// Dropped are the parameters that the target does not carry, sorted.
	Dropped []string
	// Temperature as it is sent. Nil: none is.
	Temperature *float64
}

// Output is what a model said, in neutral words.
type Output struct {
	// Content is the text, or for one tool call its arguments, byte for byte. With
	// neither it is empty.
	Content []byte
	// ToolCalls is how many there are. ToolName is the first one's.
	ToolCalls int
	ToolName  string
	Finish    OutputFinish // empty: the provider did not say
	Refused   bool         // by the provider's own signal

	ResponseID string // the provider's own id of this answer. Empty: it told none
	// Model, Fingerprint, Upstream and Build are what the provider says made the
	// answer. Empty: it did not say.
	Model, Fingerprint, Upstream, Build string
	// InputTokens and OutputTokens as the provider counted them. Zero: not told.
	InputTokens, OutputTokens int
}

// OutputFinish is how an output ended.
type OutputFinish string

// Ways to end.
const (
	OutputComplete OutputFinish = "complete"
	OutputLength   OutputFinish = "length"
	OutputFiltered OutputFinish = "filter"
	OutputRefusal  OutputFinish = "refusal"
	OutputTool     OutputFinish = "tool"
)

// Optional abilities of a provider that calls a model.
type (
	// Prompter renders prompts and reads outputs. Both are pure.
	Prompter interface {
		// Render makes the body of a request. It wraps [ErrParamUnsupported] for a
		// required parameter that the target cannot carry.
		Render(p Prompt) (Rendered, error)
		// ReadOutput reads the body of a complete answer. An error means that it
		// has not the shape of one.
		ReadOutput(body []byte) (Output, error)
	}
	// TokenCounter asks the target how many tokens the body of a request has. It is
	// no execution. [errors.ErrUnsupported]: the target cannot be asked.
	TokenCounter interface {
		CountTokens(ctx context.Context, body []byte) (int, error)
	}
)
