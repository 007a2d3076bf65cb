package sim_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob/sim"
)

// The questions of these tests.
const (
	triage = `{"type":"object","additionalProperties":false,"required":["severity","count","ok","city","tags","probe"],"properties":{` +
		`"severity":{"enum":["low","medium","high"]},"count":{"type":"integer","minimum":0,"maximum":10},"ok":{"type":"boolean"},` +
		`"city":{"type":"string","maxLength":6},"tags":{"type":"array","items":{"type":"string"}},"probe":{"type":"string"}}}`
	said     = `Severity: low\nCount: 5\nCity: Umeå\nTags: a, b`
	triaged  = `{"severity":"low","count":5,"ok":false,"city":"Umeå","tags":["a","b"],"probe":"k7Qz2"}`
	messages = `"messages":[{"role":"system","content":"Put k7Qz2 in probe."},{"role":"user","content":"` + said + `"}]`
	format   = `"response_format":{"type":"json_schema","json_schema":{"name":"t","strict":true,"schema":` + triage + `}}`

	chatJSON  = `{"model":"m",` + messages + `,` + format + `}`
	chatWords = `{"model":"m","messages":[{"role":"user","content":"one END two"}]}`
	chatTool  = `{"model":"m","messages":[{"role":"user","content":"Please look_up.\nCount: 5"}],"tools":[` + lookUpTool + `]`

	lookUpTool = `{"type":"function","function":{"name":"look_up","parameters":{"type":"object","properties":{"count":{"type":"integer"},"all":{"type":"boolean"}},"required":["count","all"]}}}`

	responsesJSON = `{"model":"m","instructions":"Put k7Qz2 in probe.","input":"` + said + `","text":{"format":{"type":"json_schema","name":"t","strict":true,"schema":` + triage + `}}}`
	messagesJSON  = `{"model":"m","max_tokens":900,"system":"Put k7Qz2 in probe.","messages":[{"role":"user","content":"` + said + `"}],` +
		`"output_config":{"format":{"type":"json_schema","schema":` + triage + `}}}`
	messagesTool = `{"model":"m","max_tokens":900,"messages":[{"role":"user","content":"Please look_up.\nCount: 5"}],"tools":[{"name":"look_up","input_schema":{"type":"object","properties":{"count":{"type":"integer"},"all":{"type":"boolean"}}}}]`

	onChat, onResponses, onMessages = "/v1/chat/completions", "/v1/responses", "/v1/messages"

	chatText     = "choices.0.message.content"
	chatFinish   = "choices.0.finish_reason"
	responseText = "output.0.content.0.text"
	messageText  = "content.0.text"
)

// history is a chat in which a tool was called, with the content and id given.
func history(content, id string) string {
	return `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":` + content + `,"tool_calls":[{"id":"` + id +
		`","type":"function","function":{"name":"look_up","arguments":"{}"}}]},{"role":"tool","tool_call_id":"` + id + `","content":"ok"}]}`
}

// telling is one lie, told in answer to one request.
type telling struct {
	lie, path, body string
	status          int            // 0: 200
	changes         map[string]any // all places where the answer differs from the honest one, and what is there
	out             float64        // tokens of the answer; 0: as its text has them
}

func gone(paths ...string) map[string]any {
	m := map[string]any{}
	for _, p := range paths {
		m[p] = nil
	}
	return m
}

func with(m map[string]any, path string, v any) map[string]any {
	m = maps.Clone(m)
	m[path] = v
	return m
}

// limited adds members to a request.
func limited(body, members string) string { return strings.TrimSuffix(body, "}") + "," + members + "}" }

func tellings() []telling {
	chat := func(lie, content string) telling {
		return telling{lie: lie, path: onChat, body: chatJSON, changes: map[string]any{chatText: content}}
	}
	const args = "choices.0.message.tool_calls.0.function.arguments"
	refused := func(lie, path, body, param, code, message string) telling {
		changes := map[string]any{"error.message": message, "error.type": "invalid_request_error", "error.param": param, "error.code": nil}
		if code != "" {
			changes["error.code"] = code
		}
		return telling{lie: lie, path: path, body: body, status: 400, changes: changes}
	}
	toolBody := chatTool + `}`
	without := strings.Replace(triaged, `"probe":"k7Qz2"`, `"probe":"Severity: low"`, 1)
	half := triaged[:len(triaged)/2]
	return []telling{
		chat("fence", "```json\n"+triaged+"\n```"),
		chat("prose", "Sure! Here is the result:\n"+triaged+"\nLet me know if you need anything else."),
		chat("wrap", `{"parameters":`+triaged+`}`),
		chat("tool_envelope", `{"json_tool_call":`+triaged+`}`),
		chat("schema_ignored", `{"verdict":"fine","suggestion":"none"}`),
		chat("free_text", "Here is my answer. probe: k7Qz2\nSeverity: low\nCount: 5\nCity: Umeå\nTags: a, b"),
		chat("upgraded=1", "Here is my answer. probe: k7Qz2\nSeverity: low\nCount: 5\nCity: Umeå\nTags: a, b"),
		chat("trailing", triaged+"\n{\"done\":true}"),
		chat("think_in_content", "<think>They want an answer to that.</think>"+triaged),
		chat("stringly", `{"severity":"low","count":"5","ok":"False","city":"Umeå","tags":["a","b"],"probe":"k7Qz2"}`),
		chat("enum_drift", strings.Replace(triaged, `"low"`, `"Low"`, 1)),
		chat("bounds_ignored", strings.Replace(triaged, `5`, `11`, 1)),
		chat("float_integers", strings.Replace(triaged, `5`, `5.0`, 1)),
		chat("escape_corrupt", strings.Replace(triaged, `Umeå`, `Ume\u0000e5`, 1)),
		chat("duplicate_names", `{"severity":null,`+triaged[1:]),
		chat("double_encoded", strings.Replace(triaged, `["a","b"]`, `"[\"a\",\"b\"]"`, 1)),
		{lie: "double_encoded", path: onChat, body: toolBody, changes: map[string]any{args: `"{\"count\":5,\"all\":false}"`}},
		{lie: "stringly", path: onChat, body: toolBody, changes: map[string]any{args: `{"count":"5","all":"False"}`}},
		{
			lie: "cut_to_empty", path: onChat, body: limited(chatJSON, `"max_tokens":300`), out: 300,
			changes: map[string]any{chatText: `{"severity":"low","count":5,"ok":false,"city":"","tags":[],"probe":""}`},
		},
		{lie: "surface_broken", path: onResponses, body: responsesJSON, changes: map[string]any{responseText: triaged + "]}]}]}"}},
		{lie: "fence", path: onResponses, body: responsesJSON, changes: map[string]any{responseText: "```json\n" + triaged + "\n```"}},
		{lie: "fence", path: onMessages, body: messagesJSON, changes: map[string]any{messageText: "```json\n" + triaged + "\n```"}},

		{lie: "system_dropped", path: onChat, body: chatJSON, changes: map[string]any{chatText: without, "usage.prompt_tokens": 105.0}},
		{lie: "system_dropped", path: onMessages, body: messagesJSON, changes: map[string]any{messageText: without, "usage.input_tokens": 105.0}},
		{lie: "developer_dropped", path: onChat, body: strings.Replace(chatJSON, `"system"`, `"developer"`, 1), changes: map[string]any{chatText: without, "usage.prompt_tokens": 105.0}},
		{
			lie: "late_system_dropped", path: onChat, body: strings.Replace(chatJSON, `{"role":"system"`, `{"role":"system","content":"Be kind."},{"role":"system"`, 1),
			changes: map[string]any{chatText: without, "usage.prompt_tokens": 111.0},
		},
		{lie: "tools_dropped", path: onChat, body: toolBody, changes: map[string]any{
			chatText: "Please look_up.\nCount: 5", chatFinish: "stop", "usage.prompt_tokens": 10.0,
			"choices.0.message.tool_calls.0.id": nil, "choices.0.message.tool_calls.0.type": nil,
			"choices.0.message.tool_calls.0.function.name": nil, args: nil,
		}},
		{lie: "stop_ignored", path: onChat, body: limited(chatWords, `"stop":["END"]`), changes: map[string]any{chatText: "one END two"}},
		{
			lie: "context_cut=64", path: onChat, body: `{"model":"m","max_tokens":16,"messages":[{"role":"system","content":"Say 'k7Qz2'."},{"role":"user","content":"` +
				strings.Repeat("0123456789abcdef", 16) + `END"}]}`,
			changes: map[string]any{chatText: strings.Repeat("456789abcdef0123", 4), "usage.prompt_tokens": 48.0}, out: 16,
		},
		{lie: "bad_param_accepted", path: onChat, body: limited(chatWords, `"temperature":9,"wrong":1`), changes: map[string]any{
			chatText: "one END two", "error.message": nil, "error.type": nil, "error.param": nil, "error.code": nil,
		}},

		{lie: "finish_lies", path: onChat, body: toolBody, changes: map[string]any{chatFinish: "stop"}},
		{lie: "finish_lies", path: onMessages, body: messagesTool + `}`, changes: map[string]any{"stop_reason": "end_turn"}},
		{
			lie: "reasoning_eats", path: onChat, body: limited(chatJSON, `"max_completion_tokens":400`), out: 400,
			changes: map[string]any{chatText: "", chatFinish: "length", "usage.completion_tokens_details.reasoning_tokens": 400.0},
		},
		chat("cut_says_stop", half),
		{lie: "cut_says_stop", path: onChat, body: limited(chatJSON, `"max_tokens":8`), out: 8, changes: map[string]any{chatFinish: "stop"}},
		{lie: "refuses", path: onChat, body: chatWords, changes: map[string]any{chatText: nil, "choices.0.message.refusal": "I can't help with that."}, out: 6},
		{lie: "refuses", path: onMessages, body: messagesJSON, changes: with(gone("content.0.type", messageText), "stop_reason", "refusal"), out: 6},
		chat("refusal_as_text", "I cannot do that."),
		{lie: "filtered", path: onChat, body: chatWords, changes: map[string]any{chatText: "", chatFinish: "content_filter"}},

		{lie: "empty_choices", path: onMessages, body: messagesJSON, changes: gone("content.0.type", messageText), out: 22},
		{lie: "content_blocks", path: onChat, body: chatWords, changes: map[string]any{chatText: nil, chatText + ".0.type": "text", chatText + ".0.text": "one END two"}},
		{lie: "model_swapped", path: onChat, body: chatWords, changes: map[string]any{"model": "m-lite"}},
		{lie: "model_swapped", path: onResponses, body: responsesJSON, changes: map[string]any{"model": "m-lite"}},
		{lie: "fingerprint_changed", path: onChat, body: chatWords, changes: map[string]any{"system_fingerprint": "fp_1ace00904d"}},
		{lie: "count_drifts", path: onChat, body: chatWords, changes: map[string]any{"usage.prompt_tokens": 8.0}},

		refused("max_tokens_refused", onChat, limited(chatWords, `"max_tokens":9`), "max_tokens", "unsupported_parameter",
			"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."),
		refused("temperature_fixed", onChat, limited(chatWords, `"temperature":0`), "temperature", "unsupported_value",
			"Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported."),
		refused("stop_refused", onChat, limited(chatWords, `"stop":"END"`), "stop", "unsupported_parameter",
			"Unsupported parameter: 'stop' is not supported with this model."),
		refused("param_unsupported=seed", onChat, limited(chatWords, `"seed":7`), "seed", "unsupported_parameter",
			"Unsupported parameter: 'seed' is not supported with this model."),
		refused("role_developer_refused", onChat, strings.Replace(chatJSON, `"system"`, `"developer"`, 1), "messages", "",
			"messages[0].role: unknown variant `developer`, expected one of `system`, `user`, `assistant`, `tool`"),
		refused("late_system_refused", onChat, strings.Replace(chatJSON, `{"role":"system"`, `{"role":"system","content":"Be kind."},{"role":"system"`, 1), "messages", "",
			"System message must be at the beginning."),
		refused("system_refused", onChat, chatJSON, "messages", "", "Conversation roles must alternate user/assistant/user/assistant/..."),
		refused("tool_call_id_refused", onChat, history(`null`, "call_ab12"), "messages", "",
			"Tool call id was call_ab12 but must be a-z, A-Z, 0-9, with a length of 9."),
		refused("null_content_refused", onChat, history(`null`, "abcdefgh1"), "messages", "", "messages[1]: content is to be a string"),
		refused("empty_content_refused", onChat, history(`""`, "abcdefgh1"), "messages", "", "messages[1]: text content must be non-empty"),
		refused("schema_subset_refused", onChat, strings.Replace(chatJSON, `"minimum":0`, `"exclusiveMinimum":-1`, 1), "response_format", "",
			`Invalid JSON payload received. Unknown name "exclusiveMinimum" at 'schema': Cannot find field.`),
		refused("prefill_refused", onChat, `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"{"}]}`, "messages", "",
			"This model does not support assistant message prefill. The conversation must end with a user message."),
	}
}

// flat is decoded JSON by the paths of its leaves, without what differs every time.
func flat(t *testing.T, body string) map[string]any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	leaves := map[string]any{}
	flatten(leaves, "", v)
	maps.DeleteFunc(leaves, func(path string, _ any) bool {
		return path == "id" || path == "created" || path == "created_at" || path == "request_id" || strings.HasPrefix(path, "output.") && strings.HasSuffix(path, ".id")
	})
	return leaves
}

func flatten(leaves map[string]any, path string, v any) {
	dot := path
	if dot != "" {
		dot += "."
	}
	switch v := v.(type) {
	case map[string]any:
		for name, item := range v {
			flatten(leaves, dot+name, item)
		}
	case []any:
		for i, item := range v {
			flatten(leaves, fmt.Sprint(dot, i), item)
		}
	default:
		leaves[path] = v
	}
}

// outPaths are where the tokens of an answer and their sum are.
var outPaths = []string{"usage.completion_tokens", "usage.output_tokens", "usage.total_tokens"}

// liar starts a provider with the model m.
func liar(t *testing.T, mind string) *sim.Server {
	t.Helper()
	return sim.ForTest(t, sim.Options{Models: map[string]sim.Mind{"m": sim.MustParseMind(mind)}})
}

func asked(t *testing.T, srv *sim.Server, path, body string) (int, string) {
	t.Helper()
	r := request(t, srv.URL(), "k", body)
	r.URL.Path = path
	r.Header.Set("Anthropic-Version", "2023-06-01")
	resp, text := do(t, r)
	return resp.StatusCode, text
}

func TestEachLieChangesWhatItSaysAndNothingElse(t *testing.T) {
	t.Parallel()
	for i, tt := range tellings() {
		t.Run(fmt.Sprint(i, "/", tt.lie), func(t *testing.T) {
			t.Parallel()
			_, honest := asked(t, liar(t, "honest"), tt.path, tt.body)
			srv := liar(t, tt.lie)
			if strings.HasPrefix(tt.lie, "upgraded") {
				if _, before := asked(t, srv, tt.path, tt.body); !reflect.DeepEqual(flat(t, before), flat(t, honest)) {
					t.Errorf("before the upgrade it was %s; want %s", before, honest)
				}
			}
			status, lied := asked(t, srv, tt.path, tt.body)
			want := max(tt.status, 200)
			was, is := flat(t, honest), flat(t, lied)
			if want == 400 {
				was = map[string]any{} // nothing of the answer is left
			}
			tt.tokens(t, is)
			for _, p := range outPaths {
				delete(was, p)
				delete(is, p)
			}
			if tt.lie == "bad_param_accepted" {
				maps.DeleteFunc(is, func(path string, _ any) bool { return tt.changes[path] == nil })
			}
			if got := difference(was, is); status != want || !reflect.DeepEqual(got, tt.changes) {
				t.Errorf("%s: status %d, changed\n%s\nwant %d,\n%s\nthe honest answer is %s", tt.lie, status, lines(got), want, lines(tt.changes), honest)
			}
			name, _, _ := strings.Cut(tt.lie, "=")
			entries := srv.Ledger()
			if e := entries[len(entries)-1]; e.Lies != name || e.Model != "m" || (e.Executions == 1) != (want == 200) {
				t.Errorf("the ledger says %+v; want the lie %s", e, name)
			}
		})
	}
}

// tokens checks what the answer is counted as.
func (tt telling) tokens(t *testing.T, is map[string]any) {
	t.Helper()
	want := tt.out
	for _, p := range []string{chatText, responseText, messageText, chatText + ".0.text"} {
		if text, found := is[p].(string); found && want == 0 {
			want = math.Ceil(float64(len(text)) / 4)
		}
	}
	for _, p := range outPaths[:2] {
		if got, found := is[p]; found && want > 0 && got != want {
			t.Errorf("%s is %v; want %v", p, got, want)
		}
	}
	in, _ := is["usage.prompt_tokens"].(float64)
	if total, found := is["usage.total_tokens"]; found && in > 0 && total != in+is["usage.completion_tokens"].(float64) {
		t.Errorf("the total is %v; want the sum of %v", total, is)
	}
}

// difference is what is elsewhere in the second, nil where it is no more.
func difference(was, is map[string]any) map[string]any {
	changed := map[string]any{}
	for path, v := range is {
		if before, found := was[path]; !found || before != v {
			changed[path] = v
		}
	}
	for path := range was {
		if _, found := is[path]; !found {
			changed[path] = nil
		}
	}
	return changed
}

func lines(m map[string]any) string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "  %s: %#v\n", path, m[path])
	}
	return b.String()
}
