package sim_test

import (
	"encoding/base64"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob/sim"
)

// shape checks that an answer has exactly the members that the vendor documents,
// by path: "a.b" for members, "0" for items.
func shape(t *testing.T, what, body string, want map[string]any) {
	t.Helper()
	var got any = decode(t, body)
	leaves := map[string]any{}
	flatten(leaves, "", got)
	for path, v := range want {
		is, found := leaves[path]
		if prefix, asked := v.(prefixed); asked {
			text, _ := is.(string)
			if !strings.HasPrefix(text, string(prefix)) {
				t.Errorf("%s: %s is %v; want it to begin with %s", what, path, is, prefix)
			}
		} else if _, number := v.(anyNumber); number {
			if _, is := is.(float64); !is {
				t.Errorf("%s: %s is %v; want a number", what, path, is)
			}
		} else if !found || is != v {
			t.Errorf("%s: %s is %#v; want %#v", what, path, is, v)
		}
		delete(leaves, path)
	}
	if len(leaves) > 0 {
		t.Errorf("%s: it has these too:\n%s", what, lines(leaves))
	}
}

type (
	prefixed  string
	anyNumber struct{}
)

// usageOf adds a usage in the form of the chat completions API.
func usageOf(want map[string]any, in, out, reasoning float64) map[string]any {
	for path, n := range map[string]float64{
		"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out,
		"prompt_tokens_details.cached_tokens": 0, "prompt_tokens_details.audio_tokens": 0,
		"completion_tokens_details.reasoning_tokens": reasoning, "completion_tokens_details.audio_tokens": 0,
		"completion_tokens_details.accepted_prediction_tokens": 0, "completion_tokens_details.rejected_prediction_tokens": 0,
	} {
		want["usage."+path] = n
	}
	return want
}

func chatShape(more map[string]any, in, out float64) map[string]any {
	want := map[string]any{
		"id": prefixed("chatcmpl-"), "object": "chat.completion", "created": anyNumber{}, "model": "m", "service_tier": "default",
		"system_fingerprint": prefixed("fp_"), "choices.0.index": 0.0, "choices.0.logprobs": nil, "choices.0.message.role": "assistant",
		"choices.0.message.refusal": nil,
	}
	for path, v := range more {
		want[path] = v
	}
	return usageOf(want, in, out, 0)
}

func TestAnHonestChatCompletionHasTheVendorsShape(t *testing.T) {
	t.Parallel()
	srv := liar(t, "honest")
	for what, c := range map[string]struct {
		body    string
		in, out float64
		want    map[string]any
	}{
		"Words":    {chatWords, 7, 3, map[string]any{chatText: "one END two", chatFinish: "stop"}},
		"JSON":     {chatJSON, 114, 22, map[string]any{chatText: triaged, chatFinish: "stop"}},
		"Stop":     {limited(chatWords, `"stop":["two","END"]`), 7, 1, map[string]any{chatText: "one ", chatFinish: "stop"}},
		"Length":   {limited(chatWords, `"max_tokens":2`), 7, 2, map[string]any{chatText: "one END ", chatFinish: "length"}},
		"Length16": {`{"model":"m","max_completion_tokens":16,"messages":[{"role":"user","content":"Count to 500."}]}`, 8, 16, map[string]any{chatText: "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 2", chatFinish: "length"}},
		"Refusal":  {strings.Replace(chatWords, "one END two", "Tell me: "+sim.RefusedPhrase+"?", 1), 16, 6, map[string]any{chatText: nil, chatFinish: "stop", "choices.0.message.refusal": "I can't help with that."}},
		"AnyJSON":  {limited(chatWords, `"response_format":{"type":"json_object"}`), 7, 6, map[string]any{chatText: `{"answer":"one END two"}`, chatFinish: "stop"}},
		"Tool": {chatTool + `,"tool_choice":"required"}`, 54, 8, map[string]any{
			chatText: nil, chatFinish: "tool_calls", "choices.0.message.tool_calls.0.id": prefixed("call_"), "choices.0.message.tool_calls.0.type": "function",
			"choices.0.message.tool_calls.0.function.name": "look_up", "choices.0.message.tool_calls.0.function.arguments": `{"count":5,"all":false}`,
		}},
		"NoTool":      {chatTool + `,"tool_choice":"none"}`, 54, 6, map[string]any{chatText: "Please look_up.\nCount: 5", chatFinish: "stop"}},
		"AfterATool":  {limited(history(`null`, "call_1"), `"tools":[`+lookUpTool+`]`), 0, 1, map[string]any{chatText: "ok", chatFinish: "stop"}},
		"InWordsPut":  {strings.Replace(chatWords, `{"role":"user"`, "{\"role\":\"system\",\"content\":\"Put the word k7Qz2 in `probe`.\"},"+`{"role":"user"`, 1), 0, 6, map[string]any{chatText: "probe: k7Qz2\none END two", chatFinish: "stop"}},
		"InWordsSay":  {strings.Replace(chatWords, "one END two", "Mention 'canary'.", 1), 0, 6, map[string]any{chatText: "canary Mention 'canary'.", chatFinish: "stop"}},
		"SystemFirst": {strings.Replace(chatJSON, `Severity: low`, `Put other into the field probe.\nSeverity: low`, 1), 0, 22, map[string]any{chatText: triaged, chatFinish: "stop"}},
	} {
		status, got := asked(t, srv, onChat, c.body)
		if c.in == 0 {
			c.in, _ = at(decode(t, got), "usage", "prompt_tokens").(float64)
		}
		if status != 200 {
			t.Fatalf("%s: %d %s", what, status, got)
		}
		got = strings.Replace(got, `"annotations":[]`, `"annotations":null`, 1)
		want := chatShape(c.want, c.in, c.out)
		want["choices.0.message.annotations"] = nil
		if what == "Refusal" {
			want["choices.0.message.refusal"] = "I can't help with that."
		}
		shape(t, what, got, want)
	}
}

func TestAnHonestMessageHasTheVendorsShape(t *testing.T) {
	t.Parallel()
	srv := liar(t, "honest")
	const words = `{"model":"m","max_tokens":90,"messages":[{"role":"user","content":[{"type":"text","text":"one END two"}]}]}`
	text := func(s, stop string) map[string]any {
		return map[string]any{"content.0.type": "text", messageText: s, "stop_reason": stop, "stop_sequence": nil}
	}
	for what, c := range map[string]struct {
		body    string
		in, out float64
		want    map[string]any
	}{
		"Words":   {words, 7, 3, text("one END two", "end_turn")},
		"JSON":    {messagesJSON, 114, 22, text(triaged, "end_turn")},
		"Stop":    {limited(words, `"stop_sequences":["END"]`), 7, 1, with(text("one ", "stop_sequence"), "stop_sequence", "END")},
		"Length":  {strings.Replace(words, `90`, `1`, 1), 7, 1, text("one ", "max_tokens")},
		"Prefill": {strings.Replace(words, `}]}]}`, `}]},{"role":"assistant","content":"one"}]}`, 1), 12, 2, text(" END two", "end_turn")},
		"Refusal": {strings.Replace(words, `one END two`, sim.RefusedPhrase, 1), 14, 6, map[string]any{"stop_reason": "refusal", "stop_sequence": nil}},
		"Tool": {messagesTool + `,"tool_choice":{"type":"tool","name":"look_up"}}`, 40, 8, map[string]any{
			"content.0.type": "tool_use", "content.0.id": prefixed("toolu_01"), "content.0.name": "look_up", "content.0.input.count": 5.0, "content.0.input.all": false,
			"stop_reason": "tool_use", "stop_sequence": nil,
		}},
	} {
		status, got := asked(t, srv, onMessages, c.body)
		if status != 200 {
			t.Fatalf("%s: %d %s", what, status, got)
		}
		want := map[string]any{
			"id": prefixed("msg_01"), "type": "message", "role": "assistant", "model": "m", "usage.input_tokens": c.in, "usage.output_tokens": c.out,
			"usage.cache_creation_input_tokens": 0.0, "usage.cache_read_input_tokens": 0.0, "usage.service_tier": "standard",
		}
		for path, v := range c.want {
			want[path] = v
		}
		shape(t, what, strings.Replace(got, `"content":[]`, `"content":{}`, 1), want)
	}
}

func TestAnHonestResponseHasTheVendorsShape(t *testing.T) {
	t.Parallel()
	srv := liar(t, "honest")
	const words = `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"one END two"}]}]}`
	const tool = `{"model":"m","input":"Please look_up.\nCount: 5","tools":[{"type":"function","name":"look_up","parameters":{"properties":{"count":{"type":"integer"}}}}]`
	said := func(text string) map[string]any {
		return map[string]any{
			"output.0.id": prefixed("msg_"), "output.0.type": "message", "output.0.role": "assistant", "output.0.status": "completed",
			"output.0.content.0.type": "output_text", responseText: text, "status": "completed", "incomplete_details": nil,
		}
	}
	cut := with(with(said("one "), "output.0.status", "incomplete"), "status", "incomplete")
	delete(cut, "incomplete_details")
	refused := said("")
	delete(refused, responseText)
	for what, c := range map[string]struct {
		body    string
		in, out float64
		want    map[string]any
	}{
		"Words":  {words, 7, 3, said("one END two")},
		"JSON":   {responsesJSON, 114, 22, said(triaged)},
		"Length": {limited(words, `"max_output_tokens":1`), 7, 1, with(cut, "incomplete_details.reason", "max_output_tokens")},
		"Refusal": {
			strings.Replace(words, `one END two`, sim.RefusedPhrase, 1), 14, 6,
			with(with(refused, "output.0.content.0.type", "refusal"), "output.0.content.0.refusal", "I can't help with that."),
		},
		"Tool": {tool + `}`, 34, 5, map[string]any{
			"output.0.id": prefixed("fc_"), "output.0.type": "function_call", "output.0.status": "completed", "output.0.call_id": prefixed("call_"),
			"output.0.name": "look_up", "output.0.arguments": `{"count":5}`, "status": "completed", "incomplete_details": nil,
		}},
	} {
		status, got := asked(t, srv, onResponses, c.body)
		if status != 200 {
			t.Fatalf("%s: %d %s", what, status, got)
		}
		want := map[string]any{
			"id": prefixed("resp_"), "object": "response", "created_at": anyNumber{}, "background": false, "error": nil, "model": "m", "service_tier": "default",
			"usage.input_tokens": c.in, "usage.input_tokens_details.cached_tokens": 0.0, "usage.output_tokens": c.out,
			"usage.output_tokens_details.reasoning_tokens": 0.0, "usage.total_tokens": c.in + c.out,
		}
		for path, v := range c.want {
			want[path] = v
		}
		shape(t, what, got, want)
	}
}

func TestAnUnknownModelAndABadParameterAreErrors(t *testing.T) {
	t.Parallel()
	srv := liar(t, "honest,window=100")
	long := strings.Repeat("word ", 100)
	for _, c := range []struct {
		path, body  string
		status      int
		where, want string
	}{
		{onChat, strings.Replace(chatWords, `"m"`, `"none"`, 1), 404, "error.code", "model_not_found"},
		{onResponses, `{"model":"none","input":"x"}`, 404, "error.code", "model_not_found"},
		{onMessages, `{"model":"none","max_tokens":1,"messages":[{"role":"user","content":"x"}]}`, 404, "error.type", "not_found_error"},
		{onChat, limited(chatWords, `"temperature":2.5`), 400, "error.param", "temperature"},
		{onMessages, `{"model":"m","max_tokens":1,"temperature":1.5,"messages":[{"role":"user","content":"x"}]}`, 400, "error.type", "invalid_request_error"},
		{onMessages, `{"model":"m","messages":[{"role":"user","content":"x"}]}`, 400, "error.message", "max_tokens: Field required"},
		{onMessages, `{"model":"m","max_tokens":1,"messages":[{"role":"assistant","content":"x"}]}`, 400, "error.message", "messages: the first message must be of the user"},
		{onChat, limited(chatWords, `"max_tokens":0`), 400, "error.param", "max_tokens"},
		{onChat, limited(chatWords, `"made_up":1`), 400, "error.code", "unknown_parameter"},
		{onChat, limited(chatWords, `"tool_choice":"required"`), 400, "error.param", "tool_choice"},
		{onChat, limited(chatWords, `"response_format":{"type":"json_schema","json_schema":{"name":"x"}}`), 400, "error.param", "response_format"},
		{onChat, limited(chatWords, `"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"text"}}}`), 400, "error.message", `Invalid schema for response_format: #: "text" is not a type`},
		{onChat, limited(chatWords, `"response_format":{"type":"json_schema","json_schema":{"strict":true,"schema":{"type":"object","properties":{"a":{"type":"null"}}}}}`), 400, "error.param", "response_format"},
		{onChat, strings.Replace(chatWords, "user", "wizard", 1), 400, "error.param", "messages"},
		{onChat, strings.Replace(history(`null`, "call_1"), `"tool_call_id":"call_1"`, `"tool_call_id":"call_2"`, 1), 400, "error.param", "messages"},
		{onChat, strings.Replace(chatWords, "one", long, 1), 400, "error.code", "context_length_exceeded"},
		{onChat, `{"model":"m"}`, 400, "error.param", "messages"},
		{onChat, `{`, 400, "error.type", "invalid_request_error"},
		{onResponses, `{"model":"m","input":"x","background":true,"stream":true}`, 400, "error.param", "background"},
	} {
		status, got := asked(t, srv, c.path, c.body)
		if is := flat(t, got); status != c.status || is[c.where] != c.want {
			t.Errorf("%s %s: %d %s; want %d and %s %q", c.path, c.body, status, got, c.status, c.where, c.want)
		}
	}
	if n := srv.TotalExecutions(); n != 0 {
		t.Errorf("%d executions; a refusal is none", n)
	}
}

func TestUnicodeIsEchoedByteForByte(t *testing.T) {
	t.Parallel()
	srv := liar(t, "honest")
	const text = "Umeå 漢字 é 🐙"
	for _, order := range []string{"Copy `" + text + "` into echo.", `Copy the text '` + text + `' exactly into the field echo.`, `Write ` + text + ` into echo`} {
		body := `{"model":"m","messages":[{"role":"user","content":"` + order + `"}],"response_format":{"type":"json_schema","json_schema":{"name":"e","schema":` +
			`{"type":"object","properties":{"echo":{"type":"string"}},"required":["echo"]}}}}`
		if _, got := asked(t, srv, onChat, body); flat(t, got)[chatText] != `{"echo":"`+text+`"}` {
			t.Errorf("%s: got %s", order, got)
		}
	}
}

func TestTheNonceOfASchemaComesBack(t *testing.T) {
	t.Parallel()
	body := `{"model":"m","messages":[{"role":"user","content":"Hello."}],"response_format":{"type":"json_schema","json_schema":{"name":"p","strict":true,"schema":` +
		`{"type":"object","additionalProperties":false,"required":["probe"],"properties":{"probe":{"type":"string","const":"k7Qz2"}}}}}}`
	for mind, want := range map[string]string{
		"honest": `{"probe":"k7Qz2"}`, "schema_ignored": `{"verdict":"fine","suggestion":"none"}`, "free_text": "Here is my answer. Hello.",
	} {
		if _, got := asked(t, liar(t, mind), onChat, body); flat(t, got)[chatText] != want {
			t.Errorf("%s: got %s; want %s", mind, got, want)
		}
	}
}

func TestAnAnswerMayBeMadeUpInGo(t *testing.T) {
	t.Parallel()
	var asking sim.Question
	srv := sim.ForTest(t, sim.Options{Models: map[string]sim.Mind{"m": {
		Lies: []sim.Lie{{Fault: "enum_drift"}},
		AnswerFunc: func(q sim.Question) string {
			asking = q
			return `{"severity":"medium"}`
		},
	}}})
	_, got := asked(t, srv, onChat, chatJSON)
	if is := flat(t, got)[chatText]; is != `{"severity":"Medium"}` {
		t.Errorf("got %v; want what the func says, and the lie about its enum", is)
	}
	if asking.Model != "m" || asking.System != "Put k7Qz2 in probe." || !strings.HasPrefix(asking.Prompt, "Severity: low\n") || asking.Schema != triage {
		t.Errorf("it was asked %+v", asking)
	}
}

func TestRequestsAreCountedAsTheyAreBilled(t *testing.T) {
	t.Parallel()
	srv := liar(t, "honest")
	for _, c := range []struct{ path, count, body string }{
		{onMessages, "/v1/messages/count_tokens", messagesJSON},
		{onMessages, "/v1/messages/count_tokens", messagesTool + `}`},
		{onResponses, "/v1/responses/input_tokens", responsesJSON},
	} {
		_, answered := asked(t, srv, c.path, c.body)
		before := srv.TotalExecutions()
		status, counted := asked(t, srv, c.count, c.body)
		if n := decode(t, counted)["input_tokens"]; status != 200 || n == nil || n != at(decode(t, answered), "usage", "input_tokens") || srv.TotalExecutions() != before {
			t.Errorf("%s: %d %s, %d executions more; want what %s is billed", c.count, status, counted, srv.TotalExecutions()-before, answered)
		}
	}
	if status, got := asked(t, srv, "/v1/messages/count_tokens", `{"model":"m","messages":[{"role":"user","content":"hello"}]}`); status != 200 || got != `{"input_tokens":6}` {
		t.Errorf("got %d %s; want 4 for the message and 2 for its text, without max_tokens", status, got)
	}
	if status, _ := asked(t, srv, "/v1/messages/count_tokens", `{"model":"none","messages":[{"role":"user","content":"x"}]}`); status != 404 {
		t.Errorf("an unknown model is counted with %d", status)
	}
}

func TestModelsAreListed(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{Models: map[string]sim.Mind{"b": {}, "a/x": {}, sim.AnyModel: {}}})
	_, got := get(t, srv.URL()+"/v1/models")
	list := decode(t, got)
	if list["object"] != "list" || at(list, "data", 0, "id") != "a/x" || at(list, "data", 1, "id") != "b" || at(list, "data", 1, "object") != "model" ||
		at(list, "data", 2) != nil || list["has_more"] != false || list["first_id"] != "a/x" || list["last_id"] != "b" {
		t.Errorf("the list is %s", got)
	}
	if _, got := get(t, srv.URL()+"/v1/models/a/x"); decode(t, got)["id"] != "a/x" {
		t.Errorf("one is %s", got)
	}
	if resp, got := get(t, srv.URL()+"/v1/models/c"); resp.StatusCode != http.StatusNotFound || at(decode(t, got), "error", "code") != "model_not_found" {
		t.Errorf("an unknown one is %d %s", resp.StatusCode, got)
	}
	if status, got := asked(t, srv, onChat, strings.Replace(chatWords, `"m"`, `"whatever"`, 1)); status != 200 || decode(t, got)["model"] != "whatever" {
		t.Errorf("any other model is %d %s; want it to answer under its name", status, got)
	}
}

func TestEmbeddingsAreTheSameForTheSameText(t *testing.T) {
	t.Parallel()
	srv := liar(t, "honest")
	_, got := asked(t, srv, "/v1/embeddings", `{"model":"m","input":["hello","world","hello"],"dimensions":8}`)
	answer := decode(t, got)
	vector, _ := at(answer, "data", 0, "embedding").([]any)
	sum := 0.0
	for _, x := range vector {
		sum += x.(float64) * x.(float64)
	}
	if len(vector) != 8 || math.Abs(sum-1) > 1e-6 || fmt.Sprint(vector) != fmt.Sprint(at(answer, "data", 2, "embedding")) || fmt.Sprint(vector) == fmt.Sprint(at(answer, "data", 1, "embedding")) ||
		at(answer, "data", 1, "index") != 1.0 || at(answer, "data", 0, "object") != "embedding" || at(answer, "usage", "total_tokens") != 6.0 || srv.TotalExecutions() != 1 {
		t.Errorf("got %s", got)
	}
	_, got = asked(t, srv, "/v1/embeddings", `{"model":"m","input":"hello","encoding_format":"base64"}`)
	text, _ := at(decode(t, got), "data", 0, "embedding").(string)
	if raw, err := base64.StdEncoding.DecodeString(text); err != nil || len(raw) != 4*64 {
		t.Errorf("got %d bytes, %v; want 64 numbers of four", len(raw), err)
	}
	for _, bad := range []string{`{"model":"m"}`, `{"model":"m","input":""}`, `{"model":"m","input":"x","dimensions":0}`, `{"model":"m","input":"x","encoding_format":"hex"}`} {
		if status, got := asked(t, srv, "/v1/embeddings", bad); status != 400 {
			t.Errorf("%s: %d %s; want 400", bad, status, got)
		}
	}
	if status, _ := asked(t, srv, "/v1/embeddings", `{"model":"none","input":"x"}`); status != 404 {
		t.Errorf("an unknown model embeds with %d", status)
	}
}
