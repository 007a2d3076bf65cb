package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// ground is what contestants of one group run on. They share it and take turns.
type ground string

const (
	onPostgres ground = "PostgreSQL"
	onSQLite   ground = "SQLite"
	onRedis    ground = "Redis"
	onNothing  ground = ""
)

// contest is one question, and everybody who answers it. It is one table.
type contest struct {
	name    string // for -contest
	title   string
	about   string // what is measured, in a sentence or two
	columns []column
	entries func(settings) []contestant
	// once: one long turn instead of rounds.
	once bool
	// run measures instead of the usual turns. Nil: takeTurns.
	run func(context.Context, *bench) ([]row, error)
	// after adds figures that take more than one row. Nil: there are none.
	after func([]row)
}

// column is one figure of a table.
type column struct {
	figure figure
	head   string
	format string // of a float64
}

// figure names something measured; it carries its unit.
type figure string

// sample is what one turn of one contestant came to. A figure that is missing does
// not apply.
type sample map[figure]float64

// contestant is one way of doing what the contest asks for.
type contestant struct {
	name    string
	on      ground
	callers int // who submit and wait at the same time; zero: not the point
	// durable says what is on disk before a caller is answered, where that is less
	// than everything, or different.
	durable string
	// needs are programs without which it is left out, the ground's apart.
	needs []string
	// prepare gets what it is made of, before the contest; what cannot be had leaves it
	// out. Nil: there is nothing to get.
	prepare func(context.Context, *services) error
	// alone: its turns are done in a network namespace of its own.
	alone bool
	turn  func(ctx context.Context, s *services, d time.Duration) (sample, error)
}

func (c contestant) label() string {
	label := c.name
	if c.on != onNothing {
		label += " on " + string(c.on)
	}
	if c.callers > 0 {
		label += fmt.Sprintf(", %d callers", c.callers)
	}
	return label
}

// row is one contestant's medians.
type row struct {
	Name    string   `json:"name"`
	On      ground   `json:"on,omitempty"`
	Callers int      `json:"callers,omitempty"`
	Durable string   `json:"durable,omitempty"`
	Figures sample   `json:"figures"`
	Rounds  []sample `json:"rounds"`
}

// takeTurns has each contestant measured once a round, so that what disturbs one
// disturbs all.
func (b *bench) takeTurns(ctx context.Context, contest string, contestants []contestant, rounds int) ([]row, error) {
	turns := make([][]sample, len(contestants))
	for range rounds {
		for i, c := range contestants {
			b.progress.step(c.label())
			turn := c.turn
			if c.alone {
				turn = func(ctx context.Context, s *services, d time.Duration) (sample, error) {
					return s.turnAlone(ctx, contest, c, d)
				}
			}
			f, err := turn(ctx, b.services, b.settings.length)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.label(), err)
			}
			turns[i] = append(turns[i], f)
		}
	}
	rows := make([]row, len(contestants))
	for i, c := range contestants {
		rows[i] = row{Name: c.name, On: c.on, Callers: c.callers, Durable: c.durable, Figures: medians(turns[i]), Rounds: turns[i]}
	}
	return rows, nil
}

// medians takes the median of every figure by itself.
func medians(rounds []sample) sample {
	values := map[figure][]float64{}
	for _, r := range rounds {
		for f, v := range r {
			values[f] = append(values[f], v)
		}
	}
	m := sample{}
	for f, v := range values {
		slices.Sort(v)
		m[f] = v[len(v)/2]
	}
	return m
}

// quantiles are the median and the 99th percentile in milliseconds.
func quantiles(took []time.Duration) (p50, p99 float64) {
	if len(took) == 0 {
		return 0, 0
	}
	slices.SortFunc(took, cmp.Compare)
	return milliseconds(took[len(took)/2]), milliseconds(took[len(took)*99/100])
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
