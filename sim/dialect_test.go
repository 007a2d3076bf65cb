package sim_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob/sim"
)

const (
	openAIBody    = `{"model":"gpt-x","messages":[{"role":"user","content":"hello"}]}`
	anthropicBody = `{"model":"claude-x","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"hello"}]}]}`
)

// post sends a body to a path with the header the messages API asks for.
func post(t *testing.T, srv *sim.Server, path, body string) (*http.Response, map[string]any) {
	t.Helper()
	r := request(t, srv.URL(), "k", body)
	r.URL.Path = path
	r.Header.Set("Anthropic-Version", "2023-06-01")
	resp, text := do(t, r)
	return resp, decode(t, text)
}

// at follows names and indexes into decoded JSON; nil where there is nothing.
func at(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			object, _ := v.(map[string]any)
			v = object[step]
		case int:
			list, _ := v.([]any)
			if step >= len(list) {
				return nil
			}
			v = list[step]
		}
	}
	return v
}

func TestAnyPathIsAPlainJSONAPI(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{CostMicros: 30})
	for _, path := range []string{"/v1/charges", "/send/email"} {
		resp, got := post(t, srv, path, `{"amount":7,"to":"bob"}`)
		id, _ := got["id"].(string)
		if resp.StatusCode != 200 || !strings.HasPrefix(id, "ch_") || got["status"] != "succeeded" ||
			got["amount"] != 7.0 || at(got, "echo", "to") != "bob" || got["cost_micros"] != 30.0 {
			t.Errorf("%s: got %d %v", path, resp.StatusCode, got)
		}
	}
}

func TestABodylessPostIsExecuted(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{})
	resp, got := post(t, srv, "/v1/charges", "")
	if resp.StatusCode != 200 || got["echo"] != nil || srv.Executions("k") != 1 {
		t.Errorf("got %d %v; want a charge of nothing", resp.StatusCode, got)
	}
}

func TestChatCompletionsAnswerAsTheVendorDoes(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{})
	resp, got := post(t, srv, "/v1/chat/completions", openAIBody)
	if resp.Header.Get("X-Request-Id") == "" || got["object"] != "chat.completion" || got["model"] != "gpt-x" ||
		at(got, "choices", 0, "message", "content") != "hello" || at(got, "choices", 0, "finish_reason") != "stop" ||
		at(got, "usage", "total_tokens") == nil || got["created"] == nil || !strings.HasPrefix(got["id"].(string), "chatcmpl-") {
		t.Errorf("got %v %v", resp.Header, got)
	}
	srv.Script(sim.MustParse("status=429", "status=429,code=insufficient_quota")...)
	if _, got := post(t, srv, "/v1/chat/completions", openAIBody); at(got, "error", "type") != "requests" || at(got, "error", "code") != "rate_limit_exceeded" {
		t.Errorf("got %v; want a rate limit", got)
	}
	if _, got := post(t, srv, "/v1/chat/completions", openAIBody); at(got, "error", "code") != "insufficient_quota" {
		t.Errorf("got %v; want a spent quota", got)
	}
}

func TestMessagesAnswerAsTheVendorDoes(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{ReplyFunc: func(model, prompt string) string { return model + " " + prompt }})
	resp, got := post(t, srv, "/v1/messages", anthropicBody)
	if resp.Header.Get("Request-Id") == "" || got["type"] != "message" || got["role"] != "assistant" ||
		at(got, "content", 0, "text") != "claude-x hello" || got["stop_reason"] != "end_turn" ||
		at(got, "usage", "output_tokens") == nil || !strings.HasPrefix(got["id"].(string), "msg_") {
		t.Errorf("got %v %v", resp.Header, got)
	}
	srv.Script(sim.MustParse("status=529")...)
	if resp, got := post(t, srv, "/v1/messages", anthropicBody); resp.StatusCode != 529 || got["type"] != "error" || at(got, "error", "type") != "overloaded_error" {
		t.Errorf("got %d %v; want overloaded", resp.StatusCode, got)
	}
}

func TestABadRequestIsRefusedInTheDialectsOwnShapeAndNotExecuted(t *testing.T) {
	t.Parallel()
	tests := []struct {
		path, body string
		where      []any
		want       string
	}{
		{"/v1/charges", `{`, []any{"error", "code"}, "bad_request"},
		{"/v1/chat/completions", `{"messages":[]}`, []any{"error", "type"}, "invalid_request_error"},
		{"/v1/chat/completions", strings.Replace(openAIBody, "{", `{"stream":true,`, 1), []any{"error", "type"}, "invalid_request_error"},
		{"/v1/messages", openAIBody, []any{"error", "type"}, "invalid_request_error"},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			t.Parallel()
			srv := sim.ForTest(t, sim.Options{})
			resp, got := post(t, srv, tt.path, tt.body)
			if resp.StatusCode != 400 || at(got, tt.where...) != tt.want || srv.TotalExecutions() != 0 {
				t.Errorf("%s %s: got %d %v, %d executions", tt.path, tt.body, resp.StatusCode, got, srv.TotalExecutions())
			}
		})
	}
}

func TestATooLargeBodyIsRefused(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{})
	c := dial(t, srv)
	r := request(t, "http://sim", "k", `"`+strings.Repeat("x", sim.MaxBodyBytes)+`"`)
	_ = r.Write(c.conn) // may be cut before its end
	resp, _ := c.receive()
	if resp.StatusCode != 413 || srv.TotalExecutions() != 0 {
		t.Errorf("got %d, %d executions; want 413 and none", resp.StatusCode, srv.TotalExecutions())
	}
}

func TestLookUpsFindChargesByIdAndIntent(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{})
	_, made := charge(t, srv, "k", `{"amount":7}`)
	id, _ := decode(t, made)["id"].(string)
	if resp, got := get(t, srv.URL()+"/v1/charges/"+id); resp.StatusCode != 200 || got != made {
		t.Errorf("by id: got %d %s; want %s", resp.StatusCode, got, made)
	}
	if _, got := get(t, srv.URL()+"/v1/charges?intent=k"); at(decode(t, got), "data", 0, "id") != id {
		t.Errorf("by intent: got %s; want %s in it", got, id)
	}
	if resp, _ := get(t, srv.URL()+"/v1/charges/ch_none"); resp.StatusCode != 404 {
		t.Errorf("an unknown id: got %d; want 404", resp.StatusCode)
	}
	if srv.TotalExecutions() != 1 {
		t.Errorf("%d executions; looking up is none", srv.TotalExecutions())
	}
}
