package openai

import (
	"encoding/json"
	"strings"

	"github.com/onejob-dev/onejob/provider/wire"
)

// assembler returns what adds up the events of one answer.
func (a API) assembler() wire.Assembler {
	if a == APIResponses {
		return &responseStream{}
	}
	return &chatStream{}
}

// maxParts bounds the choices, and the tool calls of one, that a stream adds up.
const maxParts = 256

// chatStream adds up the chunks of a completion.
type chatStream struct {
	head    chatChunk // of the first chunk
	usage   json.RawMessage
	choices []chatPart
	failure []byte // an event that says that it failed
	broken  bool   // something that no reader could put together
}

// chatChunk is one event of a stream of completions.
type chatChunk struct {
	ID          string          `json:"id"`
	Created     json.RawMessage `json:"created,omitempty"`
	Model       string          `json:"model"`
	Fingerprint string          `json:"system_fingerprint,omitempty"`
	Provider    json.RawMessage `json:"provider,omitempty"`
	Usage       json.RawMessage `json:"usage"`
	Error       json.RawMessage `json:"error"`
	Choices     []struct {
		Index        int                        `json:"index"`
		Delta        map[string]json.RawMessage `json:"delta"`
		FinishReason *string                    `json:"finish_reason"`
	} `json:"choices"`
}

// chatPart is a choice, as far as it came.
type chatPart struct {
	content, refusal strings.Builder
	calls            []callPart
	finish           *string
}

type callPart struct {
	id, kind, name string
	arguments      strings.Builder
}

// Add takes a chunk.
func (s *chatStream) Add(e wire.Event) wire.Step {
	if string(e.Body) == "[DONE]" {
		return wire.StepEnds
	}
	var c chatChunk
	if len(e.Body) == 0 {
		return wire.StepOn // a comment
	}
	if err := json.Unmarshal(e.Body, &c); err != nil {
		s.broken = true
		return wire.StepOn
	}
	if e.Name == "error" || len(c.Error) > 0 && string(c.Error) != "null" {
		s.failure = e.Body
		return wire.StepFails
	}
	if s.head.ID == "" {
		s.head = c
	}
	if len(c.Usage) > 0 && string(c.Usage) != "null" {
		s.usage = c.Usage
	}
	step := wire.StepOn
	for _, choice := range c.Choices {
		if choice.Index < 0 || choice.Index >= maxParts {
			s.broken = true
			continue
		}
		for len(s.choices) <= choice.Index {
			s.choices = append(s.choices, chatPart{})
		}
		part := &s.choices[choice.Index]
		if choice.FinishReason != nil {
			part.finish = choice.FinishReason
			step = wire.StepShows
		}
		if s.delta(part, choice.Delta) {
			step = wire.StepShows
		}
	}
	return step
}

// delta adds what a chunk has of a choice, and reports whether it is anything but who
// speaks.
func (s *chatStream) delta(part *chatPart, delta map[string]json.RawMessage) (shows bool) {
	for name, value := range delta {
		switch text := ""; {
		case name == "role" || string(value) == "null" || string(value) == `""` || string(value) == "[]":
		case name == "content" && json.Unmarshal(value, &text) == nil:
			part.content.WriteString(text)
			shows = true
		case name == "refusal" && json.Unmarshal(value, &text) == nil:
			part.refusal.WriteString(text)
			shows = true
		case name == "tool_calls":
			s.calls(part, value)
			shows = true
		default:
			shows = true
		}
	}
	return shows
}

// calls adds parts of tool calls, each to the call whose index it names.
func (s *chatStream) calls(part *chatPart, value json.RawMessage) {
	var calls []struct {
		Index    *int   `json:"index"`
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	}
	if err := json.Unmarshal(value, &calls); err != nil {
		s.broken = true
		return
	}
	for _, c := range calls {
		if c.Index == nil || *c.Index < 0 || *c.Index >= maxParts {
			s.broken = true
			continue
		}
		for len(part.calls) <= *c.Index {
			part.calls = append(part.calls, callPart{})
		}
		call := &part.calls[*c.Index]
		if c.ID != "" {
			call.id = c.ID
		}
		if c.Type != "" {
			call.kind = c.Type
		}
		call.name += c.Function.Name
		call.arguments.WriteString(c.Function.Arguments)
	}
}

// Document is the completion that the chunks add up to; nil if they add up to nothing.
func (s *chatStream) Document() []byte {
	switch {
	case s.failure != nil:
		return s.failure
	case s.broken:
		return nil
	}
	choices := make([]map[string]any, len(s.choices))
	for i := range s.choices {
		part := &s.choices[i]
		choices[i] = map[string]any{"index": i, "message": part.message(), "finish_reason": part.finish}
	}
	document, err := json.Marshal(struct {
		chatChunk
		Object  string           `json:"object"`
		Choices []map[string]any `json:"choices"`
		Usage   json.RawMessage  `json:"usage,omitempty"`
		Error   json.RawMessage  `json:"error,omitempty"`
	}{chatChunk: s.head, Object: "chat.completion", Choices: choices, Usage: s.usage})
	if err != nil {
		return nil
	}
	return document
}

func (p *chatPart) message() map[string]any {
	m := map[string]any{"role": "assistant", "content": p.content.String()}
	if p.refusal.Len() > 0 {
		m["refusal"] = p.refusal.String()
	}
	calls := make([]map[string]any, len(p.calls))
	for i := range p.calls {
		c := &p.calls[i]
		calls[i] = map[string]any{"id": c.id, "type": c.kind, "function": map[string]any{"name": c.name, "arguments": c.arguments.String()}}
	}
	if len(calls) > 0 {
		m["tool_calls"] = calls
		if p.content.Len() == 0 {
			m["content"] = nil
		}
	}
	return m
}

// responseStream reads the events of a response, of which the last has all of it.
type responseStream struct{ document []byte }

// Add takes an event.
func (s *responseStream) Add(e wire.Event) wire.Step {
	var event struct {
		Type     string          `json:"type"`
		Response json.RawMessage `json:"response"`
	}
	if json.Unmarshal(e.Body, &event) != nil {
		return wire.StepOn
	}
	if e.Name == "error" {
		event.Type = e.Name
	}
	switch event.Type {
	case "response.created", "response.queued", "response.in_progress":
		return wire.StepOn
	case "response.completed", "response.incomplete":
		s.document = event.Response
		return wire.StepEnds
	case "response.failed":
		s.document = event.Response
		return wire.StepFails
	case "error":
		s.document = errorDocument(e.Body)
		return wire.StepFails
	}
	return wire.StepShows
}

// errorDocument is an event of an error as a body would say it.
func errorDocument(data []byte) []byte {
	if m := wire.Member(data, "error"); m != nil {
		return data
	}
	body, err := json.Marshal(map[string]json.RawMessage{"error": data})
	if err != nil {
		return data
	}
	return body
}

// Document is the response; nil before its end.
func (s *responseStream) Document() []byte { return s.document }
