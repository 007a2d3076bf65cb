package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// offered is what was offered and what became of it.
type offered struct {
	pad string

	mu       sync.Mutex
	accepted map[string]string // job id by order
	took     []time.Duration   // until an acceptance
	refused  map[int]int       // by status
	unwise   int               // refusals that did not say when to come again
	failed   int               // no answer
	skipped  int               // the client itself could not keep up
	memory   []float64         // MiB, once a second
}

// openCalls bounds the client: an open loop must not become a fork bomb.
const openCalls = 1024

// offer sends orders at a steady rate for the length of the plan.
func offer(ctx context.Context, s *site, p plan) *offered {
	o := &offered{pad: strings.Repeat("x", p.bytes), accepted: map[string]string{}, refused: map[int]int{}}
	ctx, cancel := context.WithTimeout(ctx, p.length)
	defer cancel()
	var calls sync.WaitGroup
	calls.Go(func() { o.watchMemory(ctx, s) })
	open := make(chan struct{}, openCalls)
	began, rate := time.Now(), p.times*p.capacity()
	for n := 0; ctx.Err() == nil; n++ {
		due := began.Add(time.Duration(float64(n) / rate * float64(time.Second)))
		if wait := time.Until(due); wait > 0 {
			time.Sleep(wait)
		}
		select {
		case open <- struct{}{}:
		default:
			o.skip()
			continue
		}
		calls.Go(func() {
			defer func() { <-open }()
			o.one(context.WithoutCancel(ctx), s, fmt.Sprintf("order-%09d", n))
		})
	}
	calls.Wait()
	return o
}

func (o *offered) one(ctx context.Context, s *site, order string) {
	start := time.Now()
	got, err := s.send(ctx, order, o.pad)
	took := time.Since(start)
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err != nil:
		o.failed++
	case got.status == http.StatusAccepted || got.status == http.StatusOK:
		o.accepted[order] = got.id
		o.took = append(o.took, took)
	default:
		o.refused[got.status]++
		if got.advice == "" {
			o.unwise++
		}
	}
}

func (o *offered) skip() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.skipped++
}

func (o *offered) watchMemory(ctx context.Context, s *site) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		m := s.memory()
		o.mu.Lock()
		o.memory = append(o.memory, m)
		o.mu.Unlock()
	}
}
