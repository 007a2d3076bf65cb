package translate

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"
)

// ResponseEvents is a whole response as the stream of it: each text and each call in one
// piece. Its end has all of it once more, with its usage.
func ResponseEvents(response []byte) ([]byte, error) {
	errNone := errors.New("the answer is no response that has ended")
	members, err := membersOf("", response)
	if err != nil {
		return nil, errNone
	}
	values := valuesOf(members)
	items, err := list("output", values["output"])
	end, ended := responseEnds[literal(values["status"])]
	if err != nil || !ended || literal(values["object"]) != "response" {
		return nil, errNone
	}
	begun := changed(members, map[string]any{
		"status": "in_progress", "output": []any{}, "usage": nil, "error": nil, "incomplete_details": nil, "completed_at": nil,
	})
	var e responseEvents
	e.tell("response.created", "response", begun)
	e.tell("response.in_progress", "response", begun)
	for i, each := range items {
		if err := e.item(i, each); err != nil {
			return nil, err
		}
	}
	e.tell(end, "response", raw(response))
	return e.bytes()
}

// responseEnds are the events that end a stream, by the status of the response.
var responseEnds = map[string]string{
	"completed": "response.completed", "incomplete": "response.incomplete", "failed": "response.failed",
}

// responseEvents is the event stream of a response being written.
type responseEvents struct {
	events
	told int
}

// tell writes an event. What it says comes as name, value, name, value.
func (e *responseEvents) tell(kind string, says ...any) {
	b := event(kind, "sequence_number", e.told)
	e.told++
	for i := 0; i+1 < len(says); i += 2 {
		name, _ := says[i].(string)
		b.value(name, says[i+1])
	}
	e.event(kind, b)
}

// bits are a member that comes bit by bit, and what such a bit is called.
type bits struct{ member, event string }

// itemInput is what comes so of an item.
var itemInput = map[string]bits{
	"function_call":    {"arguments", "response.function_call_arguments"},
	"custom_tool_call": {"input", "response.custom_tool_call_input"},
}

// itemLists are the members of an item whose parts come one by one.
var itemLists = map[string][]parts{
	"message":   {{"content", "content_index", "response.content_part"}},
	"reasoning": {{"summary", "summary_index", "response.reasoning_summary_part"}, {"content", "content_index", "response.content_part"}},
}

// item writes one item: its beginning, what it says, its end. An item that is not known
// is said at once, and so is one without an id: clients put a bit where its item_id is.
func (e *responseEvents) item(i int, v jsontext.Value) error {
	members, err := membersOf(at("output", i), v)
	if err != nil {
		return err
	}
	values := valuesOf(members)
	begun := map[string]any{"status": "in_progress"}
	var lists []parts
	var input bits
	id := literal(values["id"])
	if id != "" {
		lists, input = itemLists[literal(values["type"])], itemInput[literal(values["type"])]
	}
	for _, p := range lists {
		begun[p.member] = []any{}
	}
	comes := values[input.member].Kind() == '"'
	if comes {
		begun[input.member] = ""
	}
	where := []any{"item_id", id, "output_index", i}
	e.tell("response.output_item.added", "output_index", i, "item", changed(members, begun))
	for _, p := range lists {
		if err := e.parts(p, values[p.member], where); err != nil {
			return err
		}
	}
	if comes {
		said := raw(values[input.member])
		e.tell(input.event+".delta", append(where, "delta", said)...)
		e.tell(input.event+".done", append(where, input.member, said)...)
	}
	e.tell("response.output_item.done", "output_index", i, "item", raw(v))
	return nil
}

// parts are a list of an item, by what its parts are counted and announced.
type parts struct{ member, index, event string }

const outputText = "response.output_text"

// partText is what comes bit by bit of a part.
var partText = map[string]bits{
	"output_text":    {"text", outputText},
	"refusal":        {"refusal", "response.refusal"},
	"reasoning_text": {"text", "response.reasoning_text"},
	"summary_text":   {"text", "response.reasoning_summary_text"},
}

// parts writes those of one list. An item that has none says nothing there.
func (e *responseEvents) parts(p parts, v jsontext.Value, item []any) error {
	if v.Kind() != '[' {
		return nil
	}
	all, err := list(p.member, v)
	if err != nil {
		return err
	}
	for i, each := range all {
		members, err := membersOf(at(p.member, i), each)
		if err != nil {
			return err
		}
		values, where := valuesOf(members), append(item, p.index, i)
		text := partText[literal(values["type"])]
		e.tell(p.event+".added", append(where, "part", changed(members, map[string]any{text.member: "", "annotations": []any{}, "logprobs": []any{}}))...)
		if values[text.member].Kind() == '"' {
			e.text(text, values, where)
		}
		e.tell(p.event+".done", append(where, "part", raw(each))...)
	}
	return nil
}

// text writes a text in one piece, and what stands beside it. Of an answer's own that is
// a list of probabilities in any case: there are clients that read it unasked.
func (e *responseEvents) text(t bits, values map[string]jsontext.Value, where []any) {
	said, beside := raw(values[t.member]), []any{}
	switch logprobs := values["logprobs"]; {
	case logprobs.Kind() == '[':
		beside = append(beside, "logprobs", raw(logprobs))
	case t.event == outputText:
		beside = append(beside, "logprobs", []any{})
	}
	e.tell(t.event+".delta", append(append(where, "delta", said), beside...)...)
	annotations, _ := list("annotations", values["annotations"]) // what is no list has none
	for i, each := range annotations {
		e.tell(t.event+".annotation.added", append(where, "annotation_index", i, "annotation", raw(each))...)
	}
	e.tell(t.event+".done", append(append(where, t.member, said), beside...)...)
}

func valuesOf(members []member) map[string]jsontext.Value {
	values := map[string]jsontext.Value{}
	for _, m := range members {
		values[m.name] = m.value
	}
	return values
}

// changed is an object with other values for those of its members that are named.
func changed(members []member, to map[string]any) *builder {
	b := &builder{}
	for _, m := range members {
		if v, known := to[m.name]; known {
			b.value(m.name, v)
			continue
		}
		b.copy(m.name, m.value)
	}
	return b
}
