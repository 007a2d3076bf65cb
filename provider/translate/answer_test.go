package translate_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/provider/translate"
)

var update = flag.Bool("update", false, "write testdata anew")

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// answers are messages and the completions that say the same.
var answers = []struct{ name, message, completion string }{
	{
		"AText", `{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[{"type":"text","text":"a < b "},{"type":"thinking","thinking":"hm"},{"type":"text","text":"& c"}],"stop_reason":"end_turn","stop_sequence":null,` +
			`"usage":{"input_tokens":3,"cache_creation_input_tokens":2,"cache_read_input_tokens":5,"output_tokens":7,"service_tier":"standard"}}`,
		`{"id":"msg_1","object":"chat.completion","created":1767355200,"model":"claude-x","choices":[{"index":0,"message":{"role":"assistant","content":"a < b & c","refusal":null},"logprobs":null,"finish_reason":"stop"}],` +
			`"usage":{"prompt_tokens":10,"completion_tokens":7,"total_tokens":17,"prompt_tokens_details":{"cached_tokens":5}}}`,
	},
	{
		"Calls", `{"id":"msg_1","type":"message","model":"claude-x","content":[{"type":"text","text":"wait"},{"type":"tool_use","id":"t1","name":"f","input":{"a": 1.50}},{"type":"tool_use","id":"t2","name":"g","input":{}}],"stop_reason":"tool_use"}`,
		`{"id":"msg_1","object":"chat.completion","created":1767355200,"model":"claude-x","choices":[{"index":0,"message":{"role":"assistant","content":"wait","refusal":null,"tool_calls":[` +
			`{"id":"t1","type":"function","function":{"name":"f","arguments":"{\"a\":1.50}"}},{"id":"t2","type":"function","function":{"name":"g","arguments":"{}"}}]},"logprobs":null,"finish_reason":"tool_calls"}]}`,
	},
	{
		"ACallWithoutAWord", `{"type":"message","content":[{"type":"tool_use","id":"t1","name":"f","input":{}}],"stop_reason":"tool_use"}`,
		`{"id":"","object":"chat.completion","created":1767355200,"model":"","choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{}"}}]},"logprobs":null,"finish_reason":"tool_calls"}]}`,
	},
	{
		"ARefusal", `{"type":"message","content":[],"stop_reason":"refusal"}`,
		`{"id":"","object":"chat.completion","created":1767355200,"model":"","choices":[{"index":0,"message":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":"content_filter"}]}`,
	},
}

func TestAMessageIsToldAsACompletion(t *testing.T) {
	t.Parallel()
	for _, a := range answers {
		got, err := translate.ToCompletion([]byte(a.message), noon)
		if err != nil || string(got) != a.completion {
			t.Errorf("%s: %v\ngot  %s\nwant %s", a.name, err, got, a.completion)
		}
	}
}

func TestACompletionIsToldAsAMessage(t *testing.T) {
	t.Parallel()
	for _, a := range []struct{ name, completion, message string }{
		{
			"AText", answers[0].completion,
			`{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[{"type":"text","text":"a < b & c"}],"stop_reason":"end_turn","stop_sequence":null,` +
				`"usage":{"input_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":5,"output_tokens":7}}`,
		},
		{
			"CallsThatSayStop", strings.Replace(answers[1].completion, `"finish_reason":"tool_calls"`, `"finish_reason":"stop"`, 1),
			`{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[{"type":"text","text":"wait"},{"type":"tool_use","id":"t1","name":"f","input":{"a":1.50}},{"type":"tool_use","id":"t2","name":"g","input":{}}],` +
				`"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}`,
		},
		{
			"ACallThatWasCutOff", `{"choices":[{"finish_reason":"length","message":{"tool_calls":[{"id":"t1","function":{"name":"f","arguments":"{\"a\":"}}]}}]}`,
			`{"id":"","type":"message","role":"assistant","model":"","content":[{"type":"tool_use","id":"t1","name":"f","input":{}}],"stop_reason":"max_tokens","stop_sequence":null,"usage":{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}`,
		},
		{
			"ARefusal", `{"choices":[{"finish_reason":"stop","message":{"content":null,"refusal":"I will not"}}]}`,
			`{"id":"","type":"message","role":"assistant","model":"","content":[{"type":"text","text":"I will not"}],"stop_reason":"refusal","stop_sequence":null,"usage":{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}`,
		},
	} {
		got, err := translate.ToMessage([]byte(a.completion))
		if err != nil || string(got) != a.message {
			t.Errorf("%s: %v\ngot  %s\nwant %s", a.name, err, got, a.message)
		}
	}
}

func TestEndsHaveTheirWordsInBothAPIs(t *testing.T) {
	t.Parallel()
	for stop, finish := range map[string]string{
		"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "content_filter", "odd": "odd",
	} {
		got, err := translate.ToCompletion([]byte(`{"type":"message","content":[],"stop_reason":"`+stop+`"}`), noon)
		if err != nil || !strings.Contains(string(got), `"finish_reason":"`+finish+`"`) {
			t.Errorf("%s: %s, %v; want %s", stop, got, err, finish)
		}
	}
	for finish, stop := range map[string]string{"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal", "odd": "odd"} {
		got, err := translate.ToMessage([]byte(`{"choices":[{"finish_reason":"` + finish + `","message":{"content":"x"}}]}`))
		if err != nil || !strings.Contains(string(got), `"stop_reason":"`+stop+`"`) {
			t.Errorf("%s: %s, %v; want %s", finish, got, err, stop)
		}
	}
}

func TestAnAnswerThatTheOtherAPICannotSayIsAnError(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		``, `[]`, `{}`, `{"type":"error","content":[]}`, `{"type":"message","content":[{"type":"server_tool_use"}]}`, `{"type":"message","content":[{"type":"tool_use","input":"{}"}]}`,
	} {
		if got, err := translate.ToCompletion([]byte(body), noon); err == nil {
			t.Errorf("%s became %s", body, got)
		}
	}
	const one = `{"choices":[{"message":`
	for _, body := range []string{
		``, `{}`, `{"choices":[]}`, `{"choices":[{}]}`, `{"choices":[{"message":{}},{"message":{}}]}`, `{"error":{"message":"x"},"choices":[{"message":{"content":"x"}}]}`,
		one + `{"content":[{"type":"text"}]}}]}`, one + `{"audio":{}}}]}`, one + `{"function_call":{}}}]}`,
		one + `{"tool_calls":[{"function":{"arguments":"[1]"}}]}}]}`, one + `{"tool_calls":[{"function":{"arguments":"{\"a\":"}}]}}]}`,
	} {
		if got, err := translate.ToMessage([]byte(body)); err == nil {
			t.Errorf("%s became %s", body, got)
		}
	}
}

func TestAWholeAnswerIsToldAsItsStream(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, whole string
		made        func([]byte) ([]byte, error)
	}{
		{"completion", "completion.json", func(body []byte) ([]byte, error) { return translate.ChatEvents(body, false) }},
		{"completion_usage", "completion.json", func(body []byte) ([]byte, error) { return translate.ChatEvents(body, true) }},
		{"message", "message.json", translate.MessageEvents},
		{"response", "response.json", translate.ResponseEvents},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := tt.made(read(t, tt.whole))
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", tt.name+".events")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want := read(t, tt.name+".events"); string(got) != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
	if got, err := translate.ResponseEvents([]byte(`{"object":"response","status":"incomplete","output":[{"content":[{"text":7}]},{"type":"message","content":[{"type":"output_text"}]}]}`)); err != nil {
		t.Errorf("what a response need not say: %v; want %s told", err, got)
	}
	for _, body := range []string{
		`{"object":"response","status":"in_progress","output":[]}`, `{"object":"response","output":[]}`, `{"status":"completed","output":[]}`,
		`{"object":"response","status":"completed"}`, `{"object":"response","status":"completed","output":[1]}`,
		`{"object":"response","status":"completed","output":[{"type":"message","id":"m","content":[1]}]}`,
	} {
		if got, err := translate.ResponseEvents([]byte(body)); err == nil {
			t.Errorf("%s became %s", body, got)
		}
	}
	for _, body := range []string{``, `[]`, `{}`, `{"choices":[{}]}`, `{"content":{}}`, `{"content":[1]}`} {
		if got, err := translate.ChatEvents([]byte(body), true); err == nil {
			t.Errorf("%s became %s", body, got)
		}
		if got, err := translate.MessageEvents([]byte(body)); err == nil {
			t.Errorf("%s became %s", body, got)
		}
		if got, err := translate.ResponseEvents([]byte(body)); err == nil {
			t.Errorf("%s became %s", body, got)
		}
	}
}

// Stock clients put each bit where its item_id says, and read the probabilities of a text
// that has none.
func TestAStreamOfAResponseIsWhatItsClientsReadUnasked(t *testing.T) {
	t.Parallel()
	got, err := translate.ResponseEvents([]byte(`{"object":"response","status":"completed","output":[` +
		`{"type":"message","id":"m","content":[{"type":"output_text","text":"hi"},{"type":"output_text","text":"ho","logprobs":null}]},` +
		`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"more","id":"x","content":[{"type":"output_text","text":"what"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(got)) {
		if strings.Contains(line, `"type":"response.output_text.`) && !strings.Contains(line, `"logprobs":[]`) {
			t.Errorf("a client would look for the probabilities in %s", line)
		}
		if strings.Contains(line, `"item_id":""`) || strings.Contains(line, `"item_id":"x"`) {
			t.Errorf("a client would look for its item: %s", line)
		}
	}
	if whole := `"item":{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`; strings.Count(string(got), whole) != 2 {
		t.Errorf("want a call without an id whole, twice: %s", got)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func FuzzAnAnswerIsToldOrAnError(f *testing.F) {
	for _, a := range answers {
		f.Add([]byte(a.message))
		f.Add([]byte(a.completion))
	}
	f.Fuzz(func(_ *testing.T, body []byte) {
		_, _ = translate.ToCompletion(body, noon)
		_, _ = translate.ToMessage(body)
		_, _ = translate.ChatEvents(body, true)
		_, _ = translate.MessageEvents(body)
		_, _ = translate.ResponseEvents(body)
	})
}
