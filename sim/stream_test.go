package sim_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// event is one server-sent event, its data decoded.
type event struct {
	name string
	data map[string]any
	raw  string
}

// streamed asks for a stream and returns its events.
func streamed(t *testing.T, mind, path, body string) []event {
	t.Helper()
	r := request(t, liar(t, mind).URL(), "k", body)
	r.URL.Path = path
	r.Header.Set("Anthropic-Version", "2023-06-01")
	resp, text := do(t, r)
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") || !strings.HasSuffix(text, "\n\n") {
		t.Fatalf("got %d %v %q; want a whole stream", resp.StatusCode, resp.Header, text)
	}
	var events []event
	for block := range strings.SplitSeq(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		var e event
		for line := range strings.SplitSeq(block, "\n") {
			if name, found := strings.CutPrefix(line, "event: "); found {
				e.name = name
			}
			if data, found := strings.CutPrefix(line, "data: "); found {
				e.raw = data
				_ = json.Unmarshal([]byte(data), &e.data) // "[DONE]" is none
			}
		}
		events = append(events, e)
	}
	return events
}

func TestAStreamedChatCompletionAddsUpToTheWhole(t *testing.T) {
	t.Parallel()
	events := streamed(t, "honest", onChat, limited(chatJSON, `"stream":true,"stream_options":{"include_usage":true}`))
	text, finishes := "", []any{}
	for i, e := range events[:len(events)-2] {
		if e.data["object"] != "chat.completion.chunk" || e.data["id"] != events[0].data["id"] || e.data["usage"] != nil {
			t.Errorf("chunk %d is %s", i, e.raw)
		}
		part, _ := at(e.data, "choices", 0, "delta", "content").(string)
		text += part
		finishes = append(finishes, at(e.data, "choices", 0, "finish_reason"))
	}
	usage := events[len(events)-2].data
	if text != triaged || at(events[0].data, "choices", 0, "delta", "role") != "assistant" || finishes[len(finishes)-1] != "stop" || finishes[0] != nil ||
		events[len(events)-1].raw != "[DONE]" || len(usage["choices"].([]any)) != 0 || at(usage, "usage", "completion_tokens") != 22.0 {
		t.Errorf("got %q, finishes %v, usage %v", text, finishes, usage)
	}
	if quiet := streamed(t, "honest", onChat, limited(chatJSON, `"stream":true`)); len(quiet) != len(events)-1 {
		t.Errorf("%d events without a usage, %d with it", len(quiet), len(events))
	}
}

func TestAStreamedToolCallHasItsIndexUnlessThatIsKeptBack(t *testing.T) {
	t.Parallel()
	for mind, whole := range map[string]bool{"honest": true, "delta_without_index": false} {
		arguments, calls := "", 0
		for _, e := range streamed(t, mind, onChat, chatTool+`,"stream":true}`) {
			call, found := at(e.data, "choices", 0, "delta", "tool_calls", 0).(map[string]any)
			if !found {
				continue
			}
			arguments += at(call, "function", "arguments").(string)
			if calls++; (call["index"] == 0.0) != whole || calls == 1 && (call["id"] != nil) != whole {
				t.Errorf("%s: a part is %s", mind, e.raw)
			}
		}
		if arguments != `{"count":5,"all":false}` || calls < 3 {
			t.Errorf("%s: %q in %d parts", mind, arguments, calls)
		}
		for path, body := range map[string]string{onMessages: messagesTool + `,"stream":true}`, onResponses: `{"model":"m","stream":true,"input":"look_up","tools":[{"type":"function","name":"look_up"}]}`} {
			for _, e := range streamed(t, mind, path, body) {
				ofCall := strings.Contains(e.raw, `"input_json_delta"`) || strings.HasPrefix(e.name, "response.function_call_arguments")
				_, byIndex := e.data["index"]
				_, byOutput := e.data["output_index"]
				if ofCall && (byIndex || byOutput) != whole {
					t.Errorf("%s: a part is %s", mind, e.raw)
				}
			}
		}
	}
}

func TestAStreamedMessageAddsUpToTheWhole(t *testing.T) {
	t.Parallel()
	var order []string
	text, last := "", map[string]any{}
	for _, e := range streamed(t, "honest", onMessages, limited(messagesJSON, `"stream":true`)) {
		if e.name != e.data["type"] {
			t.Errorf("event %s is %s", e.name, e.raw)
		}
		if len(order) == 0 || order[len(order)-1] != e.name {
			order = append(order, e.name)
		}
		if part, found := at(e.data, "delta", "text").(string); found {
			text += part
		}
		if e.name == "message_delta" {
			last = e.data
		}
	}
	want := []string{"message_start", "ping", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"}
	if text != triaged || !reflect.DeepEqual(order, want) || at(last, "delta", "stop_reason") != "end_turn" || at(last, "usage", "output_tokens") != 22.0 {
		t.Errorf("got %q in %v, ending %v", text, order, last)
	}
}

func TestAStreamedResponseAddsUpToTheWhole(t *testing.T) {
	t.Parallel()
	var order []string
	text, whole := "", map[string]any{}
	for i, e := range streamed(t, "honest", onResponses, limited(responsesJSON, `"stream":true`)) {
		if e.name != e.data["type"] || e.data["sequence_number"] != float64(i) {
			t.Errorf("event %d, %s, is %s", i, e.name, e.raw)
		}
		if len(order) == 0 || order[len(order)-1] != e.name {
			order = append(order, e.name)
		}
		if e.name == "response.output_text.delta" {
			text += e.data["delta"].(string)
		}
		whole, _ = e.data["response"].(map[string]any)
	}
	want := []string{
		"response.created", "response.in_progress", "response.output_item.added", "response.content_part.added", "response.output_text.delta",
		"response.output_text.done", "response.content_part.done", "response.output_item.done", "response.completed",
	}
	if text != triaged || !reflect.DeepEqual(order, want) || at(whole, "output", 0, "content", 0, "text") != triaged || at(whole, "usage", "output_tokens") != 22.0 {
		t.Errorf("got %q in %v, ending %v", text, order, whole)
	}
	if cut := streamed(t, "honest", onResponses, limited(responsesJSON, `"stream":true,"max_output_tokens":4`)); cut[len(cut)-1].name != "response.incomplete" {
		t.Errorf("a cut one ends with %s", cut[len(cut)-1].raw)
	}
}

// A server that makes no streams answers a request for one as it answers any other.
func TestAStreamThatIsIgnoredIsAnsweredAsAWhole(t *testing.T) {
	t.Parallel()
	srv := liar(t, "stream_ignored")
	for path, body := range map[string]string{onChat: limited(chatJSON, `"stream":true`), onResponses: limited(responsesJSON, `"stream":true`)} {
		status, got := asked(t, srv, path, body)
		var whole map[string]any
		if err := json.Unmarshal([]byte(got), &whole); err != nil || status != http.StatusOK || whole["usage"] == nil {
			t.Errorf("%s: got %d %s, %v; want a whole answer", path, status, got, err)
		}
	}
	for i, entry := range srv.Ledger() {
		if entry.Lies != "stream_ignored" {
			t.Errorf("request %d: the lies %q are told", i, entry.Lies)
		}
	}
}

func TestFaultsOfTheConnectionMeetAStreamToo(t *testing.T) {
	t.Parallel()
	srv := liar(t, "honest")
	body := limited(chatJSON, `"stream":true`)
	_, whole := asked(t, srv, onChat, body)
	srv.Script(mustSteps("drip=1us", "error_body", "status=503", "fence")...)
	if _, dripped := asked(t, srv, onChat, body); len(dripped) != len(whole) {
		t.Errorf("dripped %d bytes of %d", len(dripped), len(whole))
	}
	if status, got := asked(t, srv, onChat, body); status != 200 || !strings.Contains(got, `"error"`) {
		t.Errorf("got %d %s; want an error", status, got)
	}
	if status, _ := asked(t, srv, onChat, body); status != 503 {
		t.Errorf("got %d; want 503", status)
	}
	if _, got := asked(t, srv, onChat, body); !strings.Contains(got, "```") {
		t.Errorf("got %s; want it fenced", got)
	}
}
