package translate

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/onejob-dev/onejob/provider/wire/prompt"
)

// stopOf says why a completion ended in the words of a message. A word that is not
// here is passed on.
var stopOf = map[string]string{
	"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal",
}

// anyCompletion is what is read of an answer of chat completions. Chances of tokens,
// thoughts, and what its usage says beside tokens have no place in a message.
type anyCompletion struct {
	ID      string         `json:"id"`
	Model   string         `json:"model"`
	Error   jsontext.Value `json:"error"`
	Choices []struct {
		FinishReason string `json:"finish_reason"`
		Message      *struct {
			Content      string         `json:"content"`
			Refusal      string         `json:"refusal"`
			Audio        jsontext.Value `json:"audio"`
			FunctionCall jsontext.Value `json:"function_call"`
			ToolCalls    []struct {
				ID       string `json:"id"`
				Function struct {
					Name      string         `json:"name"`
					Arguments jsontext.Value `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"message"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
		Details    struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
}

// spokenMessage is an answer of the messages API as it is written.
type spokenMessage struct {
	ID           string  `json:"id"`
	Type         string  `json:"type"`
	Role         string  `json:"role"`
	Model        string  `json:"model"`
	Content      []any   `json:"content"`
	StopReason   string  `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
	Usage        tokens  `json:"usage"`
}

type tokens struct {
	Input        int64 `json:"input_tokens"`
	CacheWritten int64 `json:"cache_creation_input_tokens"`
	CacheRead    int64 `json:"cache_read_input_tokens"`
	Output       int64 `json:"output_tokens"`
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type useBlock struct {
	Type  string `json:"type"`
	ID    string `json:"id"`
	Name  string `json:"name"`
	Input raw    `json:"input"`
}

// ToMessage says an answer of chat completions as one of the messages API. It has one
// choice; audio and arguments that are no object, and were not cut off, are errors. A stop sequence cannot be
// told from another end.
func ToMessage(chat []byte) ([]byte, error) {
	var c anyCompletion
	if err := prompt.Decode(chat, &c); err != nil {
		return nil, err
	}
	switch {
	case len(c.Error) > 0 && c.Error.Kind() != 'n':
		return nil, errors.New("there is an error where an answer belongs")
	case len(c.Choices) != 1 || c.Choices[0].Message == nil:
		return nil, errors.New("there is not one choice with a message")
	}
	m := spokenMessage{ID: c.ID, Type: "message", Role: "assistant", Model: c.Model, StopReason: wordFor(c.Choices[0].FinishReason, stopOf)}
	if err := c.speak(&m); err != nil {
		return nil, err
	}
	if u := c.Usage; u != nil {
		m.Usage = tokens{Input: max(0, u.Prompt-u.Details.Cached), CacheRead: u.Details.Cached, Output: u.Completion}
	}
	return written(m)
}

// speak puts what the completion says. Some servers say that it stopped where it calls.
func (c *anyCompletion) speak(m *spokenMessage) error {
	said := c.Choices[0].Message
	if has(said.Audio) || has(said.FunctionCall) {
		return errors.New("the completion has something that a message has no place for")
	}
	m.Content = []any{}
	if said.Content != "" {
		m.Content = append(m.Content, textBlock{"text", said.Content})
	}
	if said.Refusal != "" {
		m.Content, m.StopReason = append(m.Content, textBlock{"text", said.Refusal}), "refusal"
	}
	for _, each := range said.ToolCalls {
		input, err := objectIn(each.Function.Arguments)
		if err != nil && m.StopReason == "max_tokens" { // cut off: as the vendor does, it is called with nothing
			input, err = jsontext.Value("{}"), nil
		}
		if err != nil {
			return fmt.Errorf("the arguments of a call: %w", err)
		}
		m.Content = append(m.Content, useBlock{"tool_use", each.ID, each.Function.Name, raw(input)})
	}
	if len(said.ToolCalls) > 0 && m.StopReason == "end_turn" {
		m.StopReason = "tool_use"
	}
	return nil
}

func has(v jsontext.Value) bool { return len(v) > 0 && v.Kind() != 'n' }
