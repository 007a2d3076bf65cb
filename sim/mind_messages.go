package sim

import (
	"cmp"
	"encoding/json"
	"net/http"
	"time"
)

type messagesAnswer struct {
	ID           string          `json:"id"`
	Type         string          `json:"type"`
	Role         string          `json:"role"`
	Model        string          `json:"model"`
	Content      []messagesBlock `json:"content"`
	StopReason   *string         `json:"stop_reason"`
	StopSequence *string         `json:"stop_sequence"`
	Usage        anthropicUsage  `json:"usage"`
}

// messagesBlock is one part of a content: text, or the use of a tool.
type messagesBlock struct {
	Type  string          `json:"type"`
	Text  *string         `json:"text,omitempty"`
	ID    string          `json:"id,omitempty"`
	Name  string          `json:"name,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
}

// messagesFinishes are the finishes in the words of the messages API.
var messagesFinishes = map[finish]string{
	finishDone: "end_turn", finishStop: "stop_sequence", finishLength: "max_tokens", finishCalls: "tool_use", finishRefusal: "refusal", finishFilter: "refusal",
}

// tellMessages writes an answer as the messages API does.
func tellMessages(t *thought, id string, _ time.Time) answer {
	if t.isError {
		return anthropicFailure(failure{Status: http.StatusOK, Code: "overloaded_error", Message: "Overloaded"})
	}
	if t.q.stream {
		return streamMessages(t, id)
	}
	a := jsonAnswer(http.StatusOK, t.messagesAnswer(id))
	a.Header.Set("Request-Id", requestID())
	return a
}

func (t *thought) messagesAnswer(id string) messagesAnswer {
	why := messagesFinishes[t.finish]
	a := messagesAnswer{
		ID: t.idOr(id, "msg_01"), Type: "message", Role: "assistant", Model: t.model, Content: t.messagesBlocks(), StopReason: &why,
		Usage: anthropicUsage{InputTokens: t.in, OutputTokens: t.out, ServiceTier: "standard"},
	}
	if t.finish == finishStop {
		a.StopSequence = &t.stopAt
	}
	return a
}

// messagesBlocks is the content. A refusal has none.
func (t *thought) messagesBlocks() []messagesBlock {
	blocks := []messagesBlock{}
	if t.noChoices {
		return blocks
	}
	if t.text != "" {
		blocks = append(blocks, messagesBlock{Type: "text", Text: &t.text})
	}
	for _, c := range t.calls {
		input := json.RawMessage(c.text)
		if !json.Valid(input) { // cut: as the vendor does, what is left is no object
			input = json.RawMessage("{}")
		}
		blocks = append(blocks, messagesBlock{Type: "tool_use", ID: c.id, Name: c.name, Input: input})
	}
	return blocks
}

// messagesEvent is any event of a streamed message.
type messagesEvent struct {
	Type    string          `json:"type"`
	Index   *int            `json:"index,omitempty"`
	Message *messagesAnswer `json:"message,omitempty"`
	Block   *messagesBlock  `json:"content_block,omitempty"`
	Delta   any             `json:"delta,omitempty"`
	Usage   map[string]int  `json:"usage,omitempty"`
}

// streamMessages writes the events of an answer.
func streamMessages(t *thought, id string) answer {
	var s stream
	emit := func(e messagesEvent) { s.event(e.Type, e) }
	whole := t.messagesAnswer(id)
	begun := whole
	begun.Content, begun.StopReason, begun.StopSequence, begun.Usage.OutputTokens = []messagesBlock{}, nil, nil, min(1, t.out)
	emit(messagesEvent{Type: "message_start", Message: &begun})
	emit(messagesEvent{Type: "ping"})
	calls := 0
	for i, b := range whole.Content {
		index, open, parts, kind, member := &i, messagesBlock{Type: b.Type}, pieces(t.text), "text_delta", "text"
		if b.Type == "tool_use" {
			open.ID, open.Name, open.Input = b.ID, b.Name, json.RawMessage("{}")
			parts, kind, member = pieces(t.calls[calls].text), "input_json_delta", "partial_json"
			calls++
			if t.noIndex {
				index, open.ID = nil, ""
			}
		} else {
			open.Text = new(string)
		}
		emit(messagesEvent{Type: "content_block_start", Index: index, Block: &open})
		for _, part := range parts {
			emit(messagesEvent{Type: "content_block_delta", Index: index, Delta: map[string]string{"type": kind, member: part}})
		}
		emit(messagesEvent{Type: "content_block_stop", Index: index})
	}
	emit(messagesEvent{
		Type: "message_delta", Delta: map[string]any{"stop_reason": whole.StopReason, "stop_sequence": whole.StopSequence},
		Usage: map[string]int{"output_tokens": t.out},
	})
	emit(messagesEvent{Type: "message_stop"})
	a := s.answer()
	a.Header.Set("Request-Id", requestID())
	return a
}

// anthropicComplaint is a refusal in the vendor's own words: its types of errors say
// nothing of codes.
func anthropicComplaint(f failure) answer {
	f.Code, f.Message = "", cmp.Or(f.Message, "invalid request")
	if f.Status == http.StatusNotFound && f.Param == "model" {
		f.Message = "model: " + f.Message
	}
	return anthropicFailure(f)
}
