package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// calls are chat completions, all alike but for their keys: over a number of
// connections in a closed loop or, with a rate, so many a second whether or not
// earlier ones were answered.
type calls struct {
	URL         string // of the route
	Header      map[string]string
	Model       string
	Connections int
	Rate        int
	For         time.Duration
	Prefix      string // of idempotency keys
}

// maxOpen is how many connections an open loop keeps for later.
const maxOpen = 512

// apart makes the calls in a process of its own.
func (c calls) apart(ctx context.Context) (done loaded, err error) {
	err = inChild(ctx, roleCalls, c, &done)
	if err == nil && done.Requests == 0 {
		err = errors.New("not one call was answered")
	}
	return done, err
}

func (c calls) run(ctx context.Context) (loaded, error) {
	body := c.body()
	if c.Rate > 0 {
		client := clientOf(maxOpen)
		return openLoop(ctx, c.Rate, c.For, func(ctx context.Context, n int) error { return c.one(ctx, client, n, body) })
	}
	client := clientOf(c.Connections)
	return closedLoop(ctx, c.Connections, c.For, func(ctx context.Context, _, n int) error { return c.one(ctx, client, n, body) })
}

// body is a request of a kilobyte.
func (c calls) body() []byte {
	return fmt.Appendf(nil, `{"model":%q,"messages":[{"role":"system","content":"You answer in one sentence."},{"role":"user","content":%q}],"max_tokens":100,"temperature":0}`,
		c.Model, repeated("What is a cat, and why? ", 38))
}

func (c calls) one(ctx context.Context, client *http.Client, n int, body []byte) error {
	status, answer, err := c.send(ctx, client, n, body)
	if err == nil && (status != http.StatusOK || !bytes.Contains(answer, []byte("does as it likes"))) {
		err = fmt.Errorf("%s answers %d: %.300s", c.URL, status, answer)
	}
	return err
}

// send makes the nth call.
func (c calls) send(ctx context.Context, client *http.Client, n int, body []byte) (status int, answer []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.GetBody = nil // one call is one request
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", fmt.Sprintf("%s-%d", c.Prefix, n))
	for name, value := range c.Header {
		r.Header.Set(name, value)
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// openLoop asks one thing after another, the nth of all, at a steady rate for d, and
// waits for the last answer.
func openLoop(ctx context.Context, rate int, d time.Duration, ask func(ctx context.Context, n int) error) (loaded, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	took := make([]time.Duration, max(1, int(d.Seconds()*float64(rate))))
	began := time.Now()
	var all sync.WaitGroup
	for n := range took {
		due := began.Add(time.Duration(n) * time.Second / time.Duration(rate))
		time.Sleep(time.Until(due))
		if ctx.Err() != nil {
			break
		}
		all.Go(func() {
			if err := ask(ctx, n); err != nil {
				cancel(err)
			}
			took[n] = time.Since(due)
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return loaded{}, err
	}
	return loadedIn(took, time.Since(began)), nil
}
