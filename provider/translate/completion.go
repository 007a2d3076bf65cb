package translate

import (
	"errors"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/onejob-dev/onejob/provider/wire/prompt"
)

// finishOf says why a message ended in the words of a chat completion. A word that is
// not here is passed on.
var finishOf = map[string]string{
	"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "model_context_window_exceeded": "length",
	"tool_use": "tool_calls", "refusal": "content_filter",
}

// anyMessage is what is read of an answer of the messages API. Thoughts, which of the
// stop sequences it was, and what its usage says beside tokens have no place in a
// completion.
type anyMessage struct {
	Type       string  `json:"type"`
	ID         string  `json:"id"`
	Model      string  `json:"model"`
	Content    []block `json:"content"`
	StopReason string  `json:"stop_reason"`
	Usage      *struct {
		Input        int64 `json:"input_tokens"`
		CacheWritten int64 `json:"cache_creation_input_tokens"`
		CacheRead    int64 `json:"cache_read_input_tokens"`
		Output       int64 `json:"output_tokens"`
	} `json:"usage"`
}

type block struct {
	Type  string         `json:"type"`
	Text  string         `json:"text"`
	ID    string         `json:"id"`
	Name  string         `json:"name"`
	Input jsontext.Value `json:"input"`
}

// completion is an answer of chat completions as it is written.
type completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
}

type choice struct {
	Index        int    `json:"index"`
	Message      spoken `json:"message"`
	Logprobs     *raw   `json:"logprobs"`
	FinishReason string `json:"finish_reason"`
}

type spoken struct {
	Role      string  `json:"role"`
	Content   *string `json:"content"`
	Refusal   *string `json:"refusal"`
	ToolCalls []call  `json:"tool_calls,omitempty"`
}

type call struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type usage struct {
	Prompt     int64   `json:"prompt_tokens"`
	Completion int64   `json:"completion_tokens"`
	Total      int64   `json:"total_tokens"`
	Details    details `json:"prompt_tokens_details"`
}

type details struct {
	Cached int64 `json:"cached_tokens"`
}

// ToCompletion says an answer of the messages API as one of chat completions, made at
// a time that the other API does not tell. A block that is neither text, nor a thought,
// nor the use of a tool is an error.
func ToCompletion(message []byte, created time.Time) ([]byte, error) {
	var m anyMessage
	if err := prompt.Decode(message, &m); err != nil {
		return nil, err
	}
	if m.Type != "message" || m.Content == nil {
		return nil, errors.New("the answer is no message")
	}
	said, err := m.spoken()
	if err != nil {
		return nil, err
	}
	c := completion{
		ID: m.ID, Object: "chat.completion", Created: created.Unix(), Model: m.Model,
		Choices: []choice{{Message: said, FinishReason: wordFor(m.StopReason, finishOf)}},
	}
	if u := m.Usage; u != nil {
		in := u.Input + u.CacheWritten + u.CacheRead
		c.Usage = &usage{Prompt: in, Completion: u.Output, Total: in + u.Output, Details: details{u.CacheRead}}
	}
	return written(c)
}

// spoken is what the message says. Texts are joined.
func (m *anyMessage) spoken() (spoken, error) {
	said := spoken{Role: "assistant"}
	var text strings.Builder
	texts := 0
	for _, b := range m.Content {
		switch b.Type {
		case "text":
			texts++
			text.WriteString(b.Text)
		case "tool_use":
			arguments := literal(b.Input)
			if b.Input.Kind() != '{' {
				return said, errors.New("the input of a tool is not an object")
			}
			said.ToolCalls = append(said.ToolCalls, call{ID: b.ID, Type: "function", Function: function{b.Name, arguments}})
		case "thinking", "redacted_thinking":
		default:
			return said, errors.New("the message has a block that a completion has no place for")
		}
	}
	if texts > 0 || len(said.ToolCalls) == 0 {
		whole := text.String()
		said.Content = &whole
	}
	return said, nil
}

func wordFor(word string, words map[string]string) string {
	if other, known := words[word]; known {
		return other
	}
	return word
}
