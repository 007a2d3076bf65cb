package anthropic_test

import (
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/anthropic"
	"github.com/onejob-dev/onejob/provider/providertest"
)

func event(name, members string) string {
	return "event: " + name + "\ndata: {\"type\":\"" + name + "\"" + members + "}\n\n"
}

var messageEvents = []string{
	event("message_start", `,"message":{"id":"m1","type":"message","role":"assistant","model":"claude-sonnet-5","content":[],"stop_reason":null,"usage":{"input_tokens":10,"output_tokens":1}}`),
	event("ping", ""),
	event("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`),
	event("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"hel"}`),
	event("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"lo"}`),
	event("content_block_stop", `,"index":0`),
	event("message_delta", `,"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":3}`),
	event("message_stop", ""),
}

func TestStreams(t *testing.T) {
	t.Parallel()
	const failure = `"error":{"type":"overloaded_error","message":"Overloaded"}`
	providertest.RunStreams(t, providertest.StreamOptions{
		Open: open, Input: `{"stream":true,"messages":[]}`, Events: messageEvents, First: 2,
		Failed: event("error", ","+failure), Error: `{"type":"error",` + failure + `}`, Whole: message, MaxResponseBytes: 64 << 10,
	})
}

// What a stream adds up to is read as the whole answer would be.
func TestAStreamIsReadAsTheWholeAnswer(t *testing.T) {
	t.Parallel()
	events := messageEvents[0] +
		event("content_block_start", `,"index":0,"content_block":{"type":"thinking","thinking":""}`) +
		event("content_block_delta", `,"index":0,"delta":{"type":"thinking_delta","thinking":"hm"}`) +
		event("content_block_stop", `,"index":0`) +
		event("content_block_start", `,"index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"grade","input":{}}`) +
		event("content_block_delta", `,"index":1,"delta":{"type":"input_json_delta","partial_json":"{\"grade\":"}`) +
		event("content_block_delta", `,"index":1,"delta":{"type":"input_json_delta","partial_json":"\"A\"}"}`) +
		event("content_block_stop", `,"index":1`) +
		event("message_delta", `,"delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":3}`) + event("message_stop", "")
	p, err := anthropic.New(anthropic.Options{Model: "claude-sonnet-5", APIKey: providertest.Canary})
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.ReadOutput([]byte(events))
	if err != nil || out.ToolName != "grade" || string(out.Content) != `{"grade":"A"}` || out.Finish != onejob.OutputTool || out.InputTokens != 10 || out.OutputTokens != 3 {
		t.Errorf("output = %+v, %v", out, err)
	}
	for name, events := range map[string]string{
		"without its end":       messageEvents[0] + messageEvents[2] + messageEvents[6],
		"a block of nobody":     messageEvents[0] + messageEvents[3] + messageEvents[6] + messageEvents[7],
		"a block out of turn":   messageEvents[0] + event("content_block_start", `,"index":7,"content_block":{"type":"text","text":""}`) + messageEvents[6] + messageEvents[7],
		"an end of no message":  messageEvents[6] + messageEvents[7],
		"a tool's input halved": messageEvents[0] + event("content_block_start", `,"index":0,"content_block":{"type":"tool_use","id":"t","name":"g","input":{}}`) + event("content_block_delta", `,"index":0,"delta":{"type":"input_json_delta","partial_json":"{"}`) + messageEvents[6] + messageEvents[7],
	} {
		if out, err := p.ReadOutput([]byte(events)); err == nil {
			t.Errorf("%s: output = %+v; want an error", name, out)
		}
	}
	if out, err := p.ReadOutput([]byte(message)); err != nil || string(out.Content) != "hello" {
		t.Errorf("a whole message is read as %+v, %v", out, err)
	}
}

// A tool that is called without arguments has deltas of its input, which add nothing.
func TestAToolCalledWithoutArgumentsIsWhole(t *testing.T) {
	t.Parallel()
	p, err := anthropic.New(anthropic.Options{Model: "claude-sonnet-5", APIKey: providertest.Canary})
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.ReadOutput([]byte(messageEvents[0] +
		event("content_block_start", `,"index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"now","input":{}}`) +
		event("content_block_delta", `,"index":0,"delta":{"type":"input_json_delta","partial_json":""}`) +
		event("content_block_stop", `,"index":0`) +
		event("message_delta", `,"delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":3}`) + event("message_stop", "")))
	if err != nil || out.ToolName != "now" || string(out.Content) != `{}` {
		t.Errorf("output = %+v, %v; want a call of now with {}", out, err)
	}
}

func TestAUsageThatIsToldAtTheEndOnlyIsRead(t *testing.T) {
	t.Parallel()
	p, err := anthropic.New(anthropic.Options{Model: "claude-sonnet-5", APIKey: providertest.Canary})
	if err != nil {
		t.Fatal(err)
	}
	for _, usage := range []string{"", `,"usage":null`, `,"usage":7`} {
		out, err := p.ReadOutput([]byte(event("message_start", `,"message":{"type":"message","model":"m","content":[]`+usage+`}`) +
			messageEvents[2] + messageEvents[3] + messageEvents[6] + messageEvents[7]))
		if err != nil || string(out.Content) != "hel" || out.OutputTokens != 3 {
			t.Errorf("after a head with %q: output = %+v, %v; want hel and 3 tokens", usage, out, err)
		}
	}
	out, err := p.ReadOutput([]byte(messageEvents[0] + messageEvents[2] + messageEvents[3] +
		event("message_delta", `,"delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":null,"output_tokens":3}`) + messageEvents[7]))
	if err != nil || out.InputTokens != 10 || out.OutputTokens != 3 {
		t.Errorf("output = %+v, %v; want the 10 tokens of the head, and 3", out, err)
	}
}
