package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/loadgen"
	"github.com/onejob-dev/onejob/sim"
)

// benchReport is what a load came to, as -o json prints it.
type benchReport struct {
	Mode           loadgen.Mode `json:"mode"`
	Kind           string       `json:"kind"`
	Callers        int          `json:"callers"`
	Rate           float64      `json:"rate,omitempty"`
	RepeatFraction float64      `json:"repeat_fraction,omitempty"`
	KeyPrefix      string       `json:"key_prefix"`
	ElapsedMS      int64        `json:"elapsed_ms"`

	Submitted int64         `json:"submitted"`
	Accepted  int64         `json:"accepted"`
	Replayed  int64         `json:"replayed"`
	Refused   map[int]int64 `json:"refused"`
	Errors    int64         `json:"errors"`
	Error     string        `json:"error,omitempty"`
	NotSent   int64         `json:"not_sent"`
	Late      int64         `json:"late"`
	JobsPerS  float64       `json:"jobs_per_second"`

	Acknowledgement *latencies                `json:"acknowledgement,omitempty"`
	Result          *latencies                `json:"result,omitempty"`
	Ended           map[onejob.JobState]int64 `json:"ended,omitempty"`
	Unfinished      int64                     `json:"unfinished"`

	Checked    *benchCheck  `json:"checked,omitempty"`
	Otherwise  int64        `json:"repeats_with_another_job"`
	Executions *benchLedger `json:"executions,omitempty"`
	MemoryMiB  []float64    `json:"memory_mib,omitempty"`
}

// latencies are told in milliseconds.
type latencies struct {
	Count int64        `json:"count"`
	P50   float64      `json:"p50_ms"`
	P90   float64      `json:"p90_ms"`
	P99   float64      `json:"p99_ms"`
	Max   float64      `json:"max_ms"`
	Bars  []latencyBar `json:"histogram"`

	quantiles loadgen.Quantiles
}

type latencyBar struct {
	UpTo  float64 `json:"up_to_ms"`
	Count int64   `json:"count"`
}

// benchCheck is whether acknowledged jobs are there.
type benchCheck struct {
	Asked    int64  `json:"asked"`
	Lost     int64  `json:"lost"`
	NotAsked int64  `json:"not_asked"`
	Error    string `json:"error,omitempty"`
}

// benchLedger is what the fake provider counted.
type benchLedger struct {
	Intents int64 `json:"intents"`
	Total   int64 `json:"total"`
	Twice   int64 `json:"intents_executed_more_than_once"`
}

func reportOf(p *loadgen.Plan, load *loadgen.Load) *benchReport {
	n, elapsed := load.Counts()
	r := &benchReport{
		Mode: p.Mode, Kind: p.Kind, Callers: p.Callers, Rate: p.Rate, RepeatFraction: p.RepeatFraction, KeyPrefix: p.KeyPrefix,
		ElapsedMS: elapsed.Milliseconds(),
		Submitted: n.Submitted, Accepted: n.Accepted, Replayed: n.Replayed, Refused: n.Refused,
		Errors: n.Errors, Error: n.Error, NotSent: n.NotSent, Late: n.Late,
		Ended: n.Ended, Unfinished: n.Unfinished, Otherwise: n.Otherwise,
		Acknowledgement: latenciesOf(&load.Acknowledgement), Result: latenciesOf(&load.Result),
	}
	if s := elapsed.Seconds(); s > 0 {
		r.JobsPerS = float64(n.Accepted) / s
	}
	return r
}

func latenciesOf(h *loadgen.Histogram) *latencies {
	q := h.Quantiles()
	if q.Count == 0 {
		return nil
	}
	l := &latencies{Count: q.Count, P50: millis(q.P50), P90: millis(q.P90), P99: millis(q.P99), Max: millis(q.Max), quantiles: q}
	for _, b := range h.Bars() {
		l.Bars = append(l.Bars, latencyBar{millis(b.UpTo), b.Count})
	}
	return l
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (r *benchReport) addSearch(s loadgen.Search) {
	r.Checked = &benchCheck{Asked: s.Asked, Lost: s.Lost, NotAsked: s.Spare, Error: s.Error}
}

func (r *benchReport) addLedger(provider *sim.Server) {
	seen := provider.Report()
	l := &benchLedger{Intents: int64(len(seen.Intents)), Total: seen.Executions}
	for _, n := range seen.Intents {
		if n > 1 {
			l.Twice++
		}
	}
	r.Executions = l
}

// broken says what must never happen and did.
func (r *benchReport) broken() (what []string) {
	if r.Checked != nil && r.Checked.Lost > 0 {
		what = append(what, fmt.Sprintf("%d acknowledged jobs are not there", r.Checked.Lost))
	}
	if r.Otherwise > 0 {
		what = append(what, fmt.Sprintf("%d repeats were answered with another job", r.Otherwise))
	}
	if r.Executions != nil && r.Executions.Twice > 0 {
		what = append(what, fmt.Sprintf("%d intents were executed more than once", r.Executions.Twice))
	}
	return what
}

// exit ends the command as what was found asks for.
func (r *benchReport) exit(ctx context.Context) error {
	switch broken := r.broken(); {
	case len(broken) > 0:
		return &exitError{code: ExitFracture, message: strings.Join(broken, "; ")}
	case ctx.Err() != nil:
		return &exitError{code: ExitInterrupted, message: "interrupted; what is said is of the part that was done"}
	case r.Accepted+r.Replayed == 0 && r.Errors > 0:
		return &exitError{code: ExitUnreachable, message: "the server cannot be reached: " + clean(r.Error)}
	case r.Accepted+r.Replayed == 0:
		return &exitError{code: ExitFailed, message: "nothing was accepted"}
	}
	return nil
}
