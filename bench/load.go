package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// load is requests to POST /v1/jobs over a number of connections, closed loop.
type load struct {
	URLs        []string // of servers; connections are spread over them
	Key         string   // the credential
	Connections int
	For         time.Duration
	Count       int    // requests in all; zero: as many as there is time for
	Bytes       int    // of each body, about
	Prefix      string // of idempotency keys
	Wait        bool   // for the end of the job
}

// loaded is what became of it.
type loaded struct {
	Requests int
	Elapsed  time.Duration
	P50, P99 float64 // milliseconds
}

func (l load) run(ctx context.Context) (loaded, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: l.Connections}}
	body := fmt.Appendf(nil, `{"kind":%q,"input":{"prompt":%q}}`, kind, repeated("a picture of a cat ", max(1, (l.Bytes-50)/19)))
	took := make([][]time.Duration, l.Connections)
	var next atomic.Int64
	began := time.Now()
	var all sync.WaitGroup
	for i := range l.Connections {
		all.Go(func() {
			for time.Since(began) < l.For && ctx.Err() == nil {
				n := next.Add(1)
				if l.Count > 0 && n > int64(l.Count) {
					return
				}
				start := time.Now()
				if err := l.one(ctx, client, l.URLs[i%len(l.URLs)], fmt.Sprintf("%s-%d", l.Prefix, n), body); err != nil {
					cancel(err)
					return
				}
				took[i] = append(took[i], time.Since(start))
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return loaded{}, err
	}
	times := slices.Concat(took...)
	done := loaded{Requests: len(times), Elapsed: time.Since(began)}
	done.P50, done.P99 = quantiles(times)
	return done, nil
}

func (l load) one(ctx context.Context, client *http.Client, url, key string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/jobs", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.GetBody = nil // one request is one request
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	req.Header.Set("Authorization", "Bearer "+l.Key)
	want := http.StatusAccepted
	if l.Wait {
		req.Header.Set("Prefer", "wait=60")
		want = http.StatusOK
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != want {
		err = fmt.Errorf("answered %d, want %d: %.300s", resp.StatusCode, want, answer)
	}
	return err
}
