//go:build sdks

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/v2/option"
	anthropicstream "github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
)

func TestStockGoClients(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for _, c := range []stock{
		{name: "OpenAIChat", ask: askOpenAIChat},
		{name: "OpenAIResponses", ask: askOpenAIResponses},
		{name: "AnthropicMessages", ask: askAnthropic},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s.meet(t, c)
		})
	}
}

var (
	orderOnly = map[string]any{
		"type": "object", "additionalProperties": false, "required": []string{"order"},
		"properties": map[string]any{"order": map[string]any{"type": "string"}},
	}
	orderAndSeverity = map[string]any{
		"type": "object", "additionalProperties": false, "required": []string{"order", "severity"},
		"properties": map[string]any{
			"order":    map[string]any{"type": "string"},
			"severity": map[string]any{"type": "string", "enum": []string{"low", "high"}},
		},
	}
)

func openAIOptions(q question) []option.RequestOption {
	opts := []option.RequestOption{option.WithBaseURL(q.BaseURL + "/openai/v1"), option.WithAPIKey(q.Credential)}
	if q.Key != "" {
		opts = append(opts, option.WithHeader("Idempotency-Key", q.Key))
	}
	if q.Wait > 0 {
		opts = append(opts, option.WithHeader("Prefer", fmt.Sprintf("wait=%d", q.Wait)))
	}
	if q.TimeoutMS > 0 {
		opts = append(opts, option.WithRequestTimeout(time.Duration(q.TimeoutMS)*time.Millisecond))
	}
	return opts
}

func askOpenAIChat(t *testing.T, q question) answered {
	c := openai.NewClient(openAIOptions(q)...)
	params := openai.ChatCompletionNewParams{Model: "chat", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(q.prompt())}}
	switch q.Ask {
	case askTool:
		params.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "look_up_order", Parameters: orderOnly})}
	case askSchema:
		params.ResponseFormat.OfJSONSchema = &openai.ResponseFormatJSONSchemaParam{
			JSONSchema: openai.ResponseFormatJSONSchemaJSONSchemaParam{Name: "ticket", Strict: openai.Bool(true), Schema: orderAndSeverity},
		}
	case askPlain:
	}
	if q.Stream {
		return readOpenAIChat(c.Chat.Completions.NewStreaming(t.Context(), params))
	}
	completion, err := c.Chat.Completions.New(t.Context(), params)
	if err != nil {
		return openAIError(err)
	}
	message := completion.Choices[0].Message
	a := answered{Text: message.Content}
	if len(message.ToolCalls) > 0 {
		a.Tool, a.Arguments = message.ToolCalls[0].Function.Name, message.ToolCalls[0].Function.Arguments
	}
	return a
}

func askOpenAIResponses(t *testing.T, q question) answered {
	c := openai.NewClient(openAIOptions(q)...)
	params := responses.ResponseNewParams{Model: "respond", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(q.prompt())}}
	switch q.Ask {
	case askTool:
		params.Tools = []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{Name: "look_up_order", Parameters: orderOnly, Strict: openai.Bool(true)}}}
	case askSchema:
		params.Text.Format.OfJSONSchema = &responses.ResponseFormatTextJSONSchemaConfigParam{Name: "ticket", Strict: openai.Bool(true), Schema: orderAndSeverity}
	case askPlain:
	}
	if q.Stream {
		return readOpenAIResponses(c.Responses.NewStreaming(t.Context(), params))
	}
	response, err := c.Responses.New(t.Context(), params)
	if err != nil {
		return openAIError(err)
	}
	a := answered{Text: response.OutputText()}
	for _, item := range response.Output {
		if item.Type == "function_call" {
			call := item.AsFunctionCall()
			a.Tool, a.Arguments = call.Name, call.Arguments
		}
	}
	return a
}

func openAIError(err error) answered {
	var said *openai.Error
	if !errors.As(err, &said) {
		return transportError(err)
	}
	a := answered{Error: "*openai.Error", Status: said.StatusCode, Code: said.Code, Message: said.Message}
	a.readHeader(said.Response.Header)
	return a
}

func (a *answered) readHeader(h http.Header) {
	a.Job, a.Location = h.Get("Onejob-Job-Id"), h.Get("Location")
}

func transportError(err error) answered {
	if errors.Is(err, context.DeadlineExceeded) {
		return answered{Error: "context.DeadlineExceeded", Message: err.Error()}
	}
	return answered{Error: fmt.Sprintf("%T", err), Message: err.Error()}
}

func askAnthropic(t *testing.T, q question) answered {
	opts := []anthropicoption.RequestOption{
		anthropicoption.WithoutEnvironmentDefaults(), // a credential of the machine's is nobody's business here
		anthropicoption.WithBaseURL(q.BaseURL + "/anthropic"), anthropicoption.WithAPIKey(q.Credential),
	}
	if q.Key != "" {
		opts = append(opts, anthropicoption.WithHeader("Idempotency-Key", q.Key))
	}
	if q.Wait > 0 {
		opts = append(opts, anthropicoption.WithHeader("Prefer", fmt.Sprintf("wait=%d", q.Wait)))
	}
	if q.TimeoutMS > 0 {
		opts = append(opts, anthropicoption.WithRequestTimeout(time.Duration(q.TimeoutMS)*time.Millisecond))
	}
	c := anthropic.NewClient(opts...)
	params := anthropic.MessageNewParams{
		Model: "message", MaxTokens: 500,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(q.prompt()))},
	}
	switch q.Ask {
	case askTool:
		params.Tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
			Name: "look_up_order", InputSchema: anthropic.ToolInputSchemaParam{Properties: orderOnly["properties"], Required: []string{"order"}},
		}}}
	case askSchema:
		params.OutputConfig.Format = anthropic.JSONOutputFormatParam{Schema: orderAndSeverity}
	case askPlain:
	}
	if q.Stream {
		return readAnthropic(c.Messages.NewStreaming(t.Context(), params))
	}
	message, err := c.Messages.New(t.Context(), params)
	if err != nil {
		return anthropicError(err)
	}
	return anthropicMessage(message)
}

func anthropicMessage(message *anthropic.Message) (a answered) {
	for _, block := range message.Content {
		switch block.Type {
		case "text":
			a.Text += block.Text
		case "tool_use":
			a.Tool, a.Arguments = block.Name, string(block.Input)
		}
	}
	return a
}

// Streams are read by what each library has for it.

func readOpenAIChat(stream *ssestream.Stream[openai.ChatCompletionChunk]) (a answered) {
	var whole openai.ChatCompletionAccumulator
	for stream.Next() {
		if !whole.AddChunk(stream.Current()) {
			return answered{Error: "the chunks do not add up"}
		}
	}
	if err := stream.Err(); err != nil {
		return openAIError(err)
	}
	if len(whole.Choices) == 0 {
		return answered{Error: "nothing came"}
	}
	message := whole.Choices[0].Message
	a = answered{Text: message.Content}
	if len(message.ToolCalls) > 0 {
		a.Tool, a.Arguments = message.ToolCalls[0].Function.Name, message.ToolCalls[0].Function.Arguments
	}
	return a
}

func readOpenAIResponses(stream *ssestream.Stream[responses.ResponseStreamEventUnion]) (a answered) {
	for stream.Next() {
		switch event := stream.Current(); event.Type {
		case "response.output_text.delta":
			a.Text += event.Delta
		case "response.function_call_arguments.delta":
			a.Arguments += event.Delta
		case "response.output_item.done":
			if event.Item.Type == "function_call" {
				a.Tool = event.Item.Name
			}
		}
	}
	if err := stream.Err(); err != nil {
		return openAIError(err)
	}
	return a
}

func readAnthropic(stream *anthropicstream.Stream[anthropic.MessageStreamEventUnion]) answered {
	var whole anthropic.Message
	for stream.Next() {
		if err := whole.Accumulate(stream.Current()); err != nil {
			return answered{Error: "the events do not add up: " + err.Error()}
		}
	}
	if err := stream.Err(); err != nil {
		return anthropicError(err)
	}
	return anthropicMessage(&whole)
}

// anthropicError reads the problem's code out of the whole body: the library has no
// member of its own for it.
func anthropicError(err error) answered {
	var said *anthropic.Error
	if !errors.As(err, &said) {
		return transportError(err)
	}
	var problem struct {
		Code  string `json:"code"`
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal([]byte(said.RawJSON()), &problem); err != nil {
		return answered{Error: "*anthropic.Error", Status: said.StatusCode, Message: strings.TrimSpace(said.RawJSON())}
	}
	a := answered{Error: "*anthropic.Error", Status: said.StatusCode, Code: problem.Code, Message: problem.Error.Message}
	a.readHeader(said.Response.Header)
	return a
}
