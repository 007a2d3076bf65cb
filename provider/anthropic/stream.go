package anthropic

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/onejob-dev/onejob/provider/wire"
)

// maxBlocks bounds the blocks of content that a stream adds up.
const maxBlocks = 1024

// messageStream adds up the events of a message.
type messageStream struct {
	message map[string]json.RawMessage
	usage   map[string]json.RawMessage
	blocks  []blockPart
	failure []byte // an event that says that it failed
	broken  bool   // something that no reader could put together
}

// blockPart is one block of content, as far as it came.
type blockPart struct {
	start map[string]json.RawMessage
	texts map[string]*strings.Builder // by the member that they add to
}

// messageEvent is one event of a stream of messages.
type messageEvent struct {
	Type    string                     `json:"type"`
	Message map[string]json.RawMessage `json:"message"`
	Index   int                        `json:"index"`
	Block   map[string]json.RawMessage `json:"content_block"`
	Delta   map[string]json.RawMessage `json:"delta"`
	Usage   map[string]json.RawMessage `json:"usage"`
}

// Add takes an event.
func (s *messageStream) Add(e wire.Event) wire.Step {
	if len(e.Body) == 0 {
		return wire.StepOn // a comment
	}
	var event messageEvent
	if json.Unmarshal(e.Body, &event) != nil {
		s.broken = true
		return wire.StepOn
	}
	switch event.Type {
	case "message_start":
		s.message, s.usage = event.Message, map[string]json.RawMessage{}
		var usage map[string]json.RawMessage
		_ = json.Unmarshal(event.Message["usage"], &usage) // none: it is told at the end
		s.count(usage)
	case "content_block_start":
		s.begin(event)
		return wire.StepShows
	case "content_block_delta":
		s.add(event)
		return wire.StepShows
	case "message_delta":
		if s.message == nil {
			s.broken = true
			break
		}
		maps.Copy(s.message, event.Delta)
		s.count(event.Usage)
		return wire.StepShows
	case "message_stop":
		return wire.StepEnds
	case "error":
		s.failure = e.Body
		return wire.StepFails
	}
	return wire.StepOn
}

// count adds what an event tells of the usage. A null tells nothing anew.
func (s *messageStream) count(usage map[string]json.RawMessage) {
	for name, value := range usage {
		if string(value) != "null" {
			s.usage[name] = value
		}
	}
}

// begin opens the next block.
func (s *messageStream) begin(e messageEvent) {
	if e.Index != len(s.blocks) || e.Index >= maxBlocks || e.Block == nil {
		s.broken = true
		return
	}
	s.blocks = append(s.blocks, blockPart{start: e.Block, texts: map[string]*strings.Builder{}})
}

// deltaMembers are the members of a block that its deltas add to, by the member of the
// delta.
var deltaMembers = map[string]string{"text": "text", "thinking": "thinking", "partial_json": "input", "signature": "signature"}

// add adds a delta to its block. What deltas there are beside these is not read.
func (s *messageStream) add(e messageEvent) {
	if e.Index < 0 || e.Index >= len(s.blocks) {
		s.broken = true
		return
	}
	texts := s.blocks[e.Index].texts
	for name, member := range deltaMembers {
		var text string
		if value, ok := e.Delta[name]; !ok || json.Unmarshal(value, &text) != nil {
			continue
		}
		if texts[member] == nil {
			texts[member] = new(strings.Builder)
		}
		texts[member].WriteString(text)
	}
}

// Document is the message that the events add up to; nil if they add up to nothing.
func (s *messageStream) Document() []byte {
	switch {
	case s.failure != nil:
		return s.failure
	case s.broken || s.message == nil:
		return nil
	}
	message := maps.Clone(s.message)
	content := make([]map[string]json.RawMessage, len(s.blocks))
	for i := range s.blocks {
		content[i] = s.blocks[i].whole()
	}
	for name, value := range map[string]any{"content": content, "usage": s.usage} {
		encoded, err := json.Marshal(value)
		if err != nil {
			return nil
		}
		message[name] = encoded
	}
	document, err := json.Marshal(message)
	if err != nil {
		return nil
	}
	return document
}

// whole is the block with what its deltas add.
func (b *blockPart) whole() map[string]json.RawMessage {
	whole := maps.Clone(b.start)
	for member, text := range b.texts {
		if text.Len() == 0 {
			continue // a tool without arguments has such parts
		}
		if member == "input" { // of a tool: JSON in parts; if it is none, the message does not encode
			whole[member] = json.RawMessage(text.String())
			continue
		}
		var start string
		_ = json.Unmarshal(b.start[member], &start)            // none, or no text: it begins empty
		whole[member], _ = json.Marshal(start + text.String()) // a text encodes
	}
	return whole
}
