package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// result is what a load came to.
type result struct {
	Capacity  float64     `json:"capacity_per_s"`
	Offered   float64     `json:"offered_per_s"`
	Accepted  float64     `json:"accepted_per_s"`
	Acked     int         `json:"accepted"`
	Refused   map[int]int `json:"refused"`
	Unadvised int         `json:"refused_without_retry_after"`
	NoAnswer  int         `json:"no_answer"`
	NotSent   int         `json:"not_sent"`
	P50       float64     `json:"accepted_p50_ms"`
	P99       float64     `json:"accepted_p99_ms"`
	Memory    *memory     `json:"memory_mib,omitempty"`
	Thirds    []float64   `json:"memory_mib_thirds,omitempty"`
	Lost      int64       `json:"lost"`
	Intents   int         `json:"intents_executed"`
	Executed  int64       `json:"executions"`
	Twice     int         `json:"twice"`
}

// memory is that of the server's process after the first sixth, which warms up.
type memory struct {
	Min, Median, Max float64
	Spread           float64 // the farthest from the median, in percent of it
}

func (o *offered) result(s *site, p plan, lost int64) *result {
	slices.Sort(o.took)
	seen := s.provider.Report()
	r := &result{
		Capacity: p.capacity(), Offered: p.times * p.capacity(),
		Accepted: float64(len(o.accepted)) / p.length.Seconds(), Acked: len(o.accepted),
		Refused: o.refused, Unadvised: o.unwise, NoAnswer: o.failed, NotSent: o.skipped, Lost: lost,
		Intents: len(seen.Intents), Executed: seen.Executions, Twice: len(s.provider.Duplicates()),
	}
	if n := len(o.took); n > 0 {
		r.P50, r.P99 = millis(o.took[n/2]), millis(o.took[n*99/100])
	}
	if steady := slices.Sorted(slices.Values(o.steady())); len(steady) > 0 {
		m := &memory{Min: steady[0], Median: steady[len(steady)/2], Max: steady[len(steady)-1]}
		m.Spread = 100 * max(m.Max-m.Median, m.Median-m.Min) / m.Median
		r.Memory, r.Thirds = m, thirds(o.steady())
	}
	return r
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

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

func (r *result) print(w io.Writer, p plan) {
	line := func(name, format string, args ...any) {
		_, _ = fmt.Fprintf(w, "%-22s "+format+"\n", append([]any{name}, args...)...)
	}
	line("capacity", "%.0f jobs/s (%d slots, %s at the provider)", r.Capacity, p.slots, p.latency)
	line("offered", "%.0f/s for %s", r.Offered, p.length)
	line("accepted", "%d (%.0f/s)", r.Acked, r.Accepted)
	for _, status := range slices.Sorted(maps.Keys(r.Refused)) {
		line("refused", "%d with %d", r.Refused[status], status)
	}
	line("without Retry-After", "%d of the refused", r.Unadvised)
	line("no answer", "%d", r.NoAnswer)
	line("not sent", "%d (the client had %d calls open)", r.NotSent, openCalls)
	line("acknowledged after", "p50 %.2f ms, p99 %.2f ms", r.P50, r.P99)
	if m := r.Memory; m != nil {
		line("memory of the server", "min %.1f, median %.1f, max %.1f MiB (±%.1f %% of the median); median of each third %.1f", m.Min, m.Median, m.Max, m.Spread, r.Thirds)
	}
	line("lost", "%d of %d acknowledged", r.Lost, r.Acked)
	if r.Intents > 0 {
		line("executions per intent", "%.4f (%d intents, %d executions, %d intents twice)", float64(r.Executed)/float64(r.Intents), r.Intents, r.Executed, r.Twice)
	}
}

func (r *result) encode(w io.Writer) error { return json.NewEncoder(w).Encode(r) }
