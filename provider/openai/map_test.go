package openai_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/provider/openai"
)

// echo answers each request with what it was sent.
func echo(t *testing.T, status int) (url string, sent chan string) {
	t.Helper()
	sent = make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent <- string(body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"data":[{"embedding":[1],"url":"x"}],"status":"completed","output":[{"type":"message"}],"choices":[{"finish_reason":"stop","message":{"content":"hi"}}]}`)
	}))
	t.Cleanup(server.Close)
	return server.URL, sent
}

func mapped(t *testing.T, url string, api openai.API, m map[string]string) *openai.Provider {
	t.Helper()
	p, err := openai.New(openai.Options{BaseURL: url, Model: "m", API: api, Map: m})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func TestATargetsMapIsOfACallersOwnBodyToo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		api       openai.API
		m         map[string]string
		body      string
		sent      string
		dropped   string
		wasMadeUp bool
	}{
		{
			"Chat", openai.APIChat,
			map[string]string{"max_completion_tokens": "max_tokens", "seed": "drop", "user": "drop"},
			`{"model":"x", "user":"u", "messages":[ ],"seed":7,"max_completion_tokens": 9,"odd":{"seed":1}}`,
			`{"model":"m", "messages":[ ],"max_tokens": 9,"odd":{"seed":1}}`, "seed,user", false,
		},
		{
			"Embeddings", openai.APIEmbeddings,
			map[string]string{"dimensions": "drop"},
			`{"model":"x","input":"a","dimensions":8}`, `{"model":"m","input":"a"}`, "dimensions", false,
		},
		{
			"Images", openai.APIImages,
			map[string]string{"size": "extra.size"},
			`{"model":"x","prompt":"a","size":"1x1"}`, `{"extra":{"size":"1x1"},"model":"m","prompt":"a"}`, "", false,
		},
		{"Background", openai.APIResponses, map[string]string{"background": "drop"}, `{"model":"x","background":true}`, `{"model":"m"}`, "background", false},
		{
			"NotOfWhatWasRendered", openai.APIChat,
			map[string]string{"temperature": "top_p", "top_p": "drop"},
			`{"model":"x","messages":[],"top_p":0.5}`, `{"model":"m","messages":[],"top_p":0.5}`, "", true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url, sent := echo(t, http.StatusOK)
			p := mapped(t, url, c.api, c.m)
			answer, err := p.Call(t.Context(), onejob.Request{Input: []byte(c.body), Rendered: c.wasMadeUp})
			if err != nil {
				t.Fatal(err)
			}
			if got := <-sent; got != c.sent {
				t.Errorf("sent %s; want %s", got, c.sent)
			}
			if answer.Evidence.DroppedParams != c.dropped {
				t.Errorf("dropped %q; want %q", answer.Evidence.DroppedParams, c.dropped)
			}
		})
	}
}

func TestWhatWasDroppedIsSaidOfAFailureToo(t *testing.T) {
	t.Parallel()
	url, sent := echo(t, http.StatusBadRequest)
	_, err := mapped(t, url, openai.APIChat, map[string]string{"seed": "drop"}).Call(t.Context(), onejob.Request{Input: []byte(`{"seed":1}`)})
	<-sent
	var told *onejob.CallError
	if !errors.As(err, &told) || told.Evidence.DroppedParams != "seed" {
		t.Errorf("%+v; want it to say that seed was dropped", err)
	}
}

func TestABodyThatATargetsMapCannotFitIsForAnother(t *testing.T) {
	t.Parallel()
	url, sent := echo(t, http.StatusOK)
	p := mapped(t, url, openai.APIChat, map[string]string{"max_completion_tokens": "max_tokens"})
	_, err := p.Call(t.Context(), onejob.Request{Input: []byte(`{"max_tokens":1,"max_completion_tokens":2}`)})
	var told *onejob.CallError
	if !errors.As(err, &told) || told.Proof != onejob.ErrNotSent || told.Next != onejob.NextElsewhere || told.Failure.Code != "input_refused" || len(sent) > 0 {
		t.Errorf("%+v; want it not sent, and another target to be tried", err)
	}
}

func TestAMapMayNotTouchWhatTheAdapterSays(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"store", "background"} {
		_, err := openai.New(openai.Options{BaseURL: "http://x.example", Model: "m", Background: true, Map: map[string]string{name: "drop"}})
		if onejob.CodeOf(err) != onejob.CodeInvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}
