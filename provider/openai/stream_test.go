package openai_test

import (
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/openai"
	"github.com/onejob-dev/onejob/provider/providertest"
)

func chunk(choices, more string) string {
	return `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt-5-2026","choices":[` + choices + `]` + more + "}\n\n"
}

var chatEvents = []string{
	chunk(`{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}`, ""),
	chunk(`{"index":0,"delta":{"content":"hel"},"finish_reason":null}`, `,"usage":null`),
	chunk(`{"index":0,"delta":{"content":"lo"},"finish_reason":null}`, ""),
	chunk(`{"index":0,"delta":{},"finish_reason":"stop"}`, ""),
	chunk(``, `,"usage":{"prompt_tokens":10,"completion_tokens":3,"total_tokens":13}`),
	"data: [DONE]\n\n",
}

var responseEvents = []string{
	"event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"status\":\"in_progress\",\"output\":[]}}\n\n",
	"event: response.in_progress\ndata: {\"type\":\"response.in_progress\",\"response\":{\"id\":\"resp_1\",\"status\":\"in_progress\",\"output\":[]}}\n\n",
	"event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"message\"}}\n\n",
	"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"hello\"}\n\n",
	"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_1\",\"status\":\"completed\",\"model\":\"gpt-5-2026\"," +
		`"output":[{"type":"message","content":[{"type":"output_text","text":"hello"}]}],"usage":{"input_tokens":10,"output_tokens":3}}}` + "\n\n",
}

func TestStreams(t *testing.T) {
	t.Parallel()
	t.Run("chat", func(t *testing.T) {
		t.Parallel()
		providertest.RunStreams(t, providertest.StreamOptions{
			Open: open, Input: `{"stream":true,"messages":[]}`, Events: chatEvents, First: 1,
			Failed: `data: {"error":{"message":"overloaded"}}` + "\n\n", Error: `{"error":{"message":"overloaded"}}`, Whole: completion, MaxResponseBytes: 64 << 10,
		})
	})
	t.Run("responses", func(t *testing.T) {
		t.Parallel()
		providertest.RunStreams(t, providertest.StreamOptions{
			Open: func(t testing.TB, url string) onejob.Provider {
				t.Helper()
				return openResponses(t, url)
			},
			Input: `{"stream":true,"input":"hi"}`, Events: responseEvents, First: 2,
			Failed: "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"overloaded\"}\n\n",
			Error:  `{"error":{"message":"overloaded"}}`, Whole: response("completed", said), MaxResponseBytes: 64 << 10,
		})
	})
}

func openResponses(t testing.TB, url string) onejob.Provider {
	t.Helper()
	p, err := openai.New(openai.Options{BaseURL: url + "/v1", Model: "gpt-5", APIKey: providertest.Canary, API: openai.APIResponses, MaxResponseBytes: 64 << 10})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return p
}

// What a stream adds up to is read as the whole answer would be.
func TestAStreamIsReadAsTheWholeAnswer(t *testing.T) {
	t.Parallel()
	events := chunk(`{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}`, "") +
		chunk(`{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"grade","arguments":""}}]},"finish_reason":null}`, "") +
		chunk(`{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"grade\":"}}]},"finish_reason":null}`, "") +
		chunk(`{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"A\"}"}}]},"finish_reason":null}`, "") +
		chunk(`{"index":0,"delta":{},"finish_reason":"tool_calls"}`, `,"usage":{"prompt_tokens":10,"completion_tokens":3}`) + "data: [DONE]\n\n"
	p, err := openai.New(openai.Options{Model: "gpt-5", APIKey: providertest.Canary})
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.ReadOutput([]byte(events))
	if err != nil || out.ToolName != "grade" || string(out.Content) != `{"grade":"A"}` || out.Finish != onejob.OutputTool || out.Model != "gpt-5-2026" || out.OutputTokens != 3 {
		t.Errorf("output = %+v, %v", out, err)
	}
	for name, events := range map[string]string{
		"without its end":        chatEvents[0] + chatEvents[1] + chatEvents[3],
		"a call without a place": chunk(`{"index":0,"delta":{"tool_calls":[{"function":{"arguments":"{}"}}]},"finish_reason":"tool_calls"}`, "") + "data: [DONE]\n\n",
		"a choice out of bounds": chunk(`{"index":100000,"delta":{"content":"x"},"finish_reason":"stop"}`, "") + "data: [DONE]\n\n",
		"no JSON":                "data: {\n\n" + "data: [DONE]\n\n",
	} {
		if out, err := p.ReadOutput([]byte(events)); err == nil {
			t.Errorf("%s: output = %+v; want an error", name, out)
		}
	}
}

func TestATargetThatMakesNoStreamSaysSoBeforeItIsAsked(t *testing.T) {
	t.Parallel()
	for _, opts := range []openai.Options{{API: openai.APIEmbeddings}, {API: openai.APIImages}, {Background: true}} {
		srv := providertest.Serve(t, func(x *providertest.Exchange) { x.Answer(200, completion) })
		opts.BaseURL, opts.Model, opts.APIKey = srv.URL, "m", providertest.Canary
		p, err := openai.New(opts)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		if _, err := p.Call(t.Context(), onejob.Request{Input: []byte(`{"stream":true,"input":"x"}`)}); err == nil || srv.Executions() != 0 {
			t.Errorf("%+v: error %v, %d executions; want an error and none", opts.API, err, srv.Executions())
		}
	}
}

// Servers write an empty error for none, as in whole answers.
func TestAChunkWithAnEmptyErrorHasNotFailed(t *testing.T) {
	t.Parallel()
	p, err := openai.New(openai.Options{Model: "gpt-5", APIKey: providertest.Canary})
	if err != nil {
		t.Fatal(err)
	}
	for _, none := range []string{"null", `""`, "{}", "false", "[]", "0"} {
		events := chunk(`{"index":0,"delta":{"content":"hello"},"finish_reason":"stop"}`, `,"error":`+none) + chatEvents[5]
		if out, err := p.ReadOutput([]byte(events)); err != nil || string(out.Content) != "hello" {
			t.Errorf("with the error %s: output = %+v, %v; want hello", none, out, err)
		}
	}
}
