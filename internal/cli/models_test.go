package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/internal/cli"
)

// serveModels serves one model of each API that streams. Their provider breaks off.
func serveModels(t *testing.T) (url, key string) {
	t.Helper()
	provider := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(provider.Close)
	listen, dir := freePort(t), t.TempDir()
	path, store := filepath.Join(dir, "onejob.yaml"), "sqlite:"+filepath.Join(dir, "onejob.db")
	text := fmt.Sprintf(`
targets:
  gpt: {provider: openai, base_url: "%[1]s/v1", model: m}
  responder: {provider: openai, api: responses, base_url: "%[1]s/v1", model: m}
  claude: {provider: anthropic, base_url: "%[1]s", model: m, api_key: k, max_tokens: 10}
kinds:
  chat: {effect: none, targets: [gpt]}
  respond: {effect: none, targets: [responder]}
  letter: {effect: none, targets: [claude]}
workers: {drain: 1s}
`, provider.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	key = strings.TrimSpace(run(t.Context(), nil, "", "keys", "create", "--owner", "o", "--role", "operator", "--store", store).stdout)
	serving, stop := context.WithCancel(t.Context())
	served := make(chan outcome, 1)
	go func() {
		served <- run(serving, nil, "", "serve", "--config", path, "--store", store, "--listen", listen)
	}()
	t.Cleanup(func() {
		stop()
		if got := <-served; got.code != cli.ExitOK {
			t.Errorf("serve: %+v", got)
		}
	})
	waitUntilReady(t, listen, served)
	return "http://" + listen, key
}

// A ruling supplies an answer whole.
func TestEveryModelThatStreamsToldDoubtAtOnceStreamsWhatIsRuled(t *testing.T) {
	t.Parallel()

	url, key := serveModels(t)
	for _, tt := range []struct{ path, body, ruled, first, last string }{
		{
			"/openai/v1/chat/completions", `{"model":"chat","stream":true,"stream_options":{"include_usage":true},"messages":[]}`,
			`{"id":"c1","object":"chat.completion","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"hi"}}],"usage":{"total_tokens":5}}`,
			`data: {"id":"c1","object":"chat.completion.chunk"`, `"usage":{"total_tokens":5}}` + "\n\ndata: [DONE]\n\n",
		},
		{
			"/openai/v1/responses", `{"model":"respond","stream":true,"input":"hello"}`,
			`{"id":"r1","object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]}],"usage":{"total_tokens":5}}`,
			"event: response.created\n", `"usage":{"total_tokens":5}}}` + "\n\n",
		},
		{
			"/anthropic/v1/messages", `{"model":"letter","stream":true,"max_tokens":5,"messages":[]}`,
			`{"id":"m1","type":"message","role":"assistant","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":4,"output_tokens":1}}`,
			"event: message_start\n", `data: {"type":"message_stop"}` + "\n\n",
		},
	} {
		t.Run(tt.path, func(t *testing.T) {
			t.Parallel()
			status, header, got := callModel(t, url+tt.path, key, tt.body)
			var doubt struct {
				Code      string
				AttemptID string `json:"attempt_id"`
			}
			if err := json.Unmarshal([]byte(got), &doubt); err != nil || status != http.StatusConflict || doubt.Code != "outcome-unknown" || header.Get("Location") == "" {
				t.Fatalf("%d %v: %s; want 409 outcome-unknown with the job's address", status, header, got)
			}
			status, _, got = callModel(t, url+"/v1/attempts/"+doubt.AttemptID+"/resolve", key, `{"outcome":"succeeded","evidence":"seen","result":`+tt.ruled+`}`)
			if status != http.StatusOK {
				t.Fatalf("resolve: %d %s", status, got)
			}
			status, header, got = callModel(t, url+tt.path, key, tt.body)
			if status != http.StatusOK || header.Get("Content-Type") != "text/event-stream" || !strings.HasPrefix(got, tt.first) || !strings.HasSuffix(got, tt.last) {
				t.Errorf("%d %v\n%s", status, header, got)
			}
		})
	}
}

// callModel makes a call that is not held for as long as a call may be.
func callModel(t *testing.T, url, key, body string) (status int, header http.Header, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", "k1 "+url)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(all)
}
