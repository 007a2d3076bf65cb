package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"
)

// completion is what the provider of the gateways answers, whoever asks; only the id
// is each time another.
const completion = `{"id":"chatcmpl-%d","object":"chat.completion","created":1790000000,"model":"gpt-bench","choices":[{"index":0,"message":` +
	`{"role":"assistant","content":"A cat is a small animal that sleeps for most of the day and does as it likes for the rest of it.","refusal":null},` +
	`"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":210,"completion_tokens":24,"total_tokens":234}}`

// model is what the provider of the gateways calls its only one.
const model = "gpt-bench"

// canned is a provider that takes its time over each call and gives the same answer.
// It finishes what it has begun, as providers do, whether or not anybody still waits.
type canned struct {
	takes atomic.Int64 // nanoseconds

	began    sync.WaitGroup
	finished atomic.Int64
}

// runProvider serves a [canned] provider. It prints its address.
func runProvider(ctx context.Context, _ []string) error {
	c := &canned{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", c.complete)
	mux.HandleFunc("GET /v1/models", c.models)
	mux.HandleFunc("PUT /takes/{duration}", c.slow)
	mux.HandleFunc("GET /executions", c.executions)
	return announce(ctx, mux)
}

func (c *canned) complete(w http.ResponseWriter, r *http.Request) {
	c.began.Add(1)
	defer c.began.Done()
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return // it has not been asked
	}
	time.Sleep(time.Duration(c.takes.Load()))
	n := c.finished.Add(1)
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, completion, n)
}

func (c *canned) models(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"object":"list","data":[{"id":%q,"object":"model","created":1790000000,"owned_by":"bench"}]}`, model)
}

func (c *canned) slow(w http.ResponseWriter, r *http.Request) {
	d, err := time.ParseDuration(r.PathValue("duration"))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.takes.Store(int64(d))
}

// executions tells how many calls were finished, once all are.
func (c *canned) executions(w http.ResponseWriter, _ *http.Request) {
	c.began.Wait()
	_, _ = fmt.Fprint(w, c.finished.Load())
}

// provider is a [canned] one in a process of its own.
type provider struct {
	url string
	cmd *exec.Cmd
}

func startProvider(ctx context.Context) (*provider, error) {
	cmd, err := child(ctx, roleProvider)
	if err != nil {
		return nil, err
	}
	url, err := announced(cmd)
	return &provider{url, cmd}, err
}

// take has it take so long over each call from now on.
func (p *provider) take(ctx context.Context, d time.Duration) error {
	_, err := p.ask(ctx, http.MethodPut, "/takes/"+d.String())
	return err
}

// executions is how many calls it has finished. It waits for those under way.
func (p *provider) executions(ctx context.Context) (n int, err error) {
	text, err := p.ask(ctx, http.MethodGet, "/executions")
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscan(text, &n)
	return n, err
}

func (p *provider) ask(ctx context.Context, method, path string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, method, p.url+path, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New("the provider answers " + resp.Status)
	}
	return string(text), err
}
