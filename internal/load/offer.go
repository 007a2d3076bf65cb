package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
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
	status, id, err := s.send(ctx, order, o.pad)
	took := time.Since(start)
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err != nil:
		o.failed++
	case status == http.StatusAccepted || status == http.StatusOK:
		o.accepted[order] = id
		o.took = append(o.took, took)
	default:
		o.refused[status]++
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

func (o *offered) print(w io.Writer, s *site, p plan, lost int64) {
	seconds := p.length.Seconds()
	slices.Sort(o.took)
	line := func(name, format string, args ...any) {
		_, _ = fmt.Fprintf(w, "%-22s "+format+"\n", append([]any{name}, args...)...)
	}
	line("capacity", "%.0f jobs/s (%d slots, %s at the provider)", p.capacity(), p.slots, p.latency)
	line("offered", "%.0f/s for %s", p.times*p.capacity(), p.length)
	line("accepted", "%d (%.0f/s)", len(o.accepted), float64(len(o.accepted))/seconds)
	for _, status := range slices.Sorted(maps.Keys(o.refused)) {
		line("refused", "%d with %d", o.refused[status], status)
	}
	line("no answer", "%d", o.failed)
	line("not sent", "%d (the client had %d calls open)", o.skipped, openCalls)
	if n := len(o.took); n > 0 {
		line("acknowledged after", "p50 %s, p99 %s", o.took[n/2].Round(10*time.Microsecond), o.took[n*99/100].Round(10*time.Microsecond))
	}
	if steady := o.steady(); len(steady) > 0 {
		low, high := slices.Min(steady), slices.Max(steady)
		middle := (low + high) / 2
		line("memory", "%.1f to %.1f MiB (±%.1f %%); median of each third %.1f", low, high, 100*(high-low)/2/middle, thirds(steady))
	}
	line("lost", "%d of %d acknowledged", lost, len(o.accepted))
	line("executed at provider", "%d, %d of them twice", s.provider.TotalExecutions(), len(s.provider.Duplicates()))
}

// steady is the memory after the first sixth, which warms up.
func (o *offered) steady() []float64 { return o.memory[len(o.memory)/6:] }

// thirds are the medians of three thirds. They show whether something grows: a
// garbage collector's ups and downs do not move them.
func thirds(values []float64) (medians []float64) {
	for i := range 3 {
		third := slices.Sorted(slices.Values(values[i*len(values)/3 : (i+1)*len(values)/3]))
		if len(third) > 0 {
			medians = append(medians, third[len(third)/2])
		}
	}
	return medians
}

// encode says what the benchmark reads.
func (o *offered) encode(w io.Writer, s *site, p plan, lost int64) error {
	return json.NewEncoder(w).Encode(map[string]any{
		"accepted_per_s":    float64(len(o.accepted)) / p.length.Seconds(),
		"memory_mib_thirds": thirds(o.steady()),
		"lost":              lost,
		"twice":             len(s.provider.Duplicates()),
	})
}
