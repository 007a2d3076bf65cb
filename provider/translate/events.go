package translate

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/onejob-dev/onejob/provider/wire/prompt"
)

// events is an event stream being written.
type events struct {
	text strings.Builder
	err  error
}

// event writes one. Without a name it has none.
func (e *events) event(name string, data any) {
	if e.err != nil {
		return
	}
	var body []byte
	if body, e.err = written(data); e.err != nil {
		return
	}
	if name != "" {
		e.text.WriteString("event: " + name + "\n")
	}
	e.text.WriteString("data: ")
	e.text.Write(body)
	e.text.WriteString("\n\n")
}

func (e *events) bytes() ([]byte, error) {
	if e.err != nil {
		return nil, e.err
	}
	return []byte(e.text.String()), nil
}

// fragment is one piece of a chat completion. What a completion says of itself is said
// of each piece.
type fragment struct {
	head    []member
	Choices []fragmentChoice
	Usage   raw // nil: none is said
}

// MarshalJSON writes what the completion says of itself first.
func (f fragment) MarshalJSON() ([]byte, error) {
	var b builder
	for _, m := range f.head {
		b.copy(m.name, m.value)
	}
	b.value("choices", f.Choices)
	if f.Usage != nil {
		b.value("usage", f.Usage)
	}
	body, err := b.body("")
	if err != nil {
		return nil, err
	}
	return body.MarshalJSON()
}

type fragmentChoice struct {
	Index        int     `json:"index"`
	Delta        any     `json:"delta"`
	Logprobs     raw     `json:"logprobs"`
	FinishReason *string `json:"finish_reason"`
}

// wholeChoice is one choice of a completion. What a message says beside its text and
// calls is said with its role.
type wholeChoice struct {
	Index        int            `json:"index"`
	Logprobs     jsontext.Value `json:"logprobs"`
	FinishReason *string        `json:"finish_reason"`
	Message      jsontext.Value `json:"message"`
}

// ChatEvents is a whole chat completion as the stream of it: each text and each call
// in one piece. withUsage ends it with the usage, as stream_options ask for it.
func ChatEvents(completion []byte, withUsage bool) ([]byte, error) {
	f, choices, usage, err := readCompletion(completion)
	if err != nil {
		return nil, err
	}
	if withUsage {
		f.Usage = raw("null")
	}
	var e events
	for i := range choices {
		if err := choices[i].tell(&e, f); err != nil {
			return nil, err
		}
	}
	if withUsage {
		f.Choices, f.Usage = []fragmentChoice{}, usage
		e.event("", f)
	}
	e.text.WriteString("data: [DONE]\n\n")
	return e.bytes()
}

// readCompletion reads what is said of each piece, what is said in them, and what it
// took: null where that is not told.
func readCompletion(completion []byte) (f fragment, choices []wholeChoice, usage raw, err error) {
	errNone := errors.New("the answer is no completion")
	members, err := membersOf("", completion)
	if err != nil {
		return f, nil, nil, errNone
	}
	usage = raw("null")
	for _, m := range members {
		switch m.name {
		case "choices":
			if err := prompt.Decode(m.value, &choices); err != nil {
				return f, nil, nil, err
			}
		case "usage":
			usage = raw(m.value)
		case "object":
			f.head = append(f.head, member{m.name, jsontext.Value(`"chat.completion.chunk"`)})
		default:
			f.head = append(f.head, m)
		}
	}
	if choices == nil {
		return f, nil, nil, errNone
	}
	return f, choices, usage, nil
}

// tell writes the pieces of a choice: who speaks, what is said, why it ended.
func (c *wholeChoice) tell(e *events, f fragment) error {
	members, err := membersOf("", c.Message)
	if err != nil {
		return errors.New("a choice has no message")
	}
	piece := func(delta any, logprobs raw, finish *string) {
		f.Choices = []fragmentChoice{{Index: c.Index, Delta: delta, Logprobs: logprobs, FinishReason: finish}}
		e.event("", f)
	}
	var first builder
	first.value("role", "assistant")
	var said []member
	for _, m := range members {
		switch m.name {
		case "role":
		case "content", "refusal", "tool_calls":
			said = append(said, m)
		default:
			first.copy(m.name, m.value)
		}
	}
	begun, err := first.body("")
	if err != nil {
		return err
	}
	piece(begun, nil, nil)
	for _, m := range said {
		switch {
		case m.value.Kind() == 'n', literal(m.value) == "":
		case m.name == "tool_calls":
			calls, err := numbered(m.value)
			if err != nil {
				return err
			}
			for _, call := range calls {
				piece(map[string]any{"tool_calls": []any{call}}, nil, nil)
			}
		default:
			piece(map[string]raw{m.name: raw(m.value)}, nil, nil)
		}
	}
	piece(struct{}{}, raw(c.Logprobs), c.FinishReason)
	return nil
}

// numbered are calls as a stream has them, each with its place.
func numbered(v jsontext.Value) ([]*prompt.Body, error) {
	calls, err := list("tool_calls", v)
	if err != nil {
		return nil, err
	}
	var written []*prompt.Body
	for i, each := range calls {
		members, err := membersOf(at("tool_calls", i), each)
		if err != nil {
			return nil, err
		}
		var b builder
		b.value("index", i)
		for _, m := range members {
			if m.name != "index" {
				b.copy(m.name, m.value)
			}
		}
		call, err := b.body("")
		if err != nil {
			return nil, err
		}
		written = append(written, call)
	}
	return written, nil
}

// MessageEvents is a whole message as the stream of it: each block in one piece.
func MessageEvents(message []byte) ([]byte, error) {
	members, err := membersOf("", message)
	if err != nil {
		return nil, errors.New("the answer is no message")
	}
	var begun builder
	var blocks []jsontext.Value
	delta := map[string]raw{"stop_reason": raw("null"), "stop_sequence": raw("null")}
	usage := raw(`{"output_tokens":0}`)
	for _, m := range members {
		switch m.name {
		case "content":
			if blocks, err = list(m.name, m.value); err != nil {
				return nil, err
			}
			begun.value(m.name, []any{})
		case "stop_reason", "stop_sequence":
			delta[m.name] = raw(m.value)
			begun.value(m.name, nil)
		case "usage":
			usage = raw(m.value)
			begun.value(m.name, withoutOutput(m.value))
		default:
			begun.copy(m.name, m.value)
		}
	}
	start, err := begun.body("")
	if err != nil || blocks == nil {
		return nil, errors.New("the answer is no message")
	}
	var e events
	e.event("message_start", event("message_start", "message", start))
	for i, each := range blocks {
		if err := e.block(i, each); err != nil {
			return nil, err
		}
	}
	last := event("message_delta", "delta", delta)
	last.value("usage", usage)
	e.event("message_delta", last)
	e.event("message_stop", event("message_stop", "", nil))
	return e.bytes()
}

// withoutOutput is the usage as it is before anything was said.
func withoutOutput(usage jsontext.Value) any {
	var all map[string]raw
	if json.Unmarshal(usage, &all) != nil || all == nil {
		return raw(usage)
	}
	all["output_tokens"] = raw("0")
	return all
}

// MarshalJSON writes the object.
func (b *builder) MarshalJSON() ([]byte, error) {
	if b.err != nil {
		return nil, b.err
	}
	return b.out.MarshalJSON()
}

func event(kind, member string, v any) *builder {
	b := &builder{}
	b.value("type", kind)
	if member != "" {
		b.value(member, v)
	}
	return b
}

// bit is a member that comes bit by bit.
type bit struct{ member, kind, delta string }

// pieces are the members of blocks that come bit by bit, and what such a bit is
// called. A block begins with them empty.
var pieces = map[string][]bit{
	"text":     {{"text", "text_delta", "text"}},
	"thinking": {{"thinking", "thinking_delta", "thinking"}, {"signature", "signature_delta", "signature"}},
	"tool_use": {{"input", "input_json_delta", "partial_json"}},
}

// block writes one block: its beginning, its bits, its end.
func (e *events) block(i int, v jsontext.Value) error {
	members, err := membersOf(at("content", i), v)
	if err != nil {
		return err
	}
	values := valuesOf(members)
	bits := pieces[literal(values["type"])]
	var begun builder
	for _, m := range members {
		empty := any(raw(m.value))
		if slices.ContainsFunc(bits, func(b bit) bool { return b.member == m.name }) {
			empty = ""
			if m.name == "input" {
				empty = struct{}{}
			}
		}
		begun.value(m.name, empty)
	}
	start := event("content_block_start", "index", i)
	start.value("content_block", &begun)
	e.event("content_block_start", start)
	for _, p := range bits {
		said := literal(values[p.member])
		if said == "" {
			continue
		}
		delta := event("content_block_delta", "index", i)
		delta.value("delta", map[string]string{"type": p.kind, p.delta: said})
		e.event("content_block_delta", delta)
	}
	stop := event("content_block_stop", "index", i)
	e.event("content_block_stop", stop)
	return nil
}
