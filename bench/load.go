package main

import (
	"bytes"
	"context"
	"errors"
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
	client := clientOf(l.Connections)
	body := fmt.Appendf(nil, `{"kind":%q,"input":{"prompt":%q}}`, kind, repeated("a picture of a cat ", max(1, (l.Bytes-50)/19)))
	return closedLoop(ctx, l.Connections, l.For, func(ctx context.Context, connection, n int) error {
		if l.Count > 0 && n > l.Count {
			return errDone
		}
		return l.one(ctx, client, l.URLs[connection%len(l.URLs)], fmt.Sprintf("%s-%d", l.Prefix, n), body)
	})
}

// clientOf keeps so many connections open.
func clientOf(connections int) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
}

// errDone says that there is nothing more to ask.
var errDone = errors.New("done")

// closedLoop has each connection ask one thing after another, the nth of all, for d.
func closedLoop(ctx context.Context, connections int, d time.Duration, ask func(ctx context.Context, connection, n int) error) (loaded, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	took := make([][]time.Duration, connections)
	var next atomic.Int64
	began := time.Now()
	var all sync.WaitGroup
	for i := range connections {
		all.Go(func() {
			for time.Since(began) < d && ctx.Err() == nil {
				start := time.Now()
				err := ask(ctx, i, int(next.Add(1)))
				if errors.Is(err, errDone) {
					return
				}
				if err != nil {
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
	return loadedIn(slices.Concat(took...), time.Since(began)), nil
}

func loadedIn(times []time.Duration, elapsed time.Duration) loaded {
	done := loaded{Requests: len(times), Elapsed: elapsed}
	done.P50, done.P99 = quantiles(times)
	return done
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
