package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	createCPU   figure = "create_cpu_us_per_job"
	claimCPU    figure = "claim_cpu_us_per_job"
	createRatio figure = "create_beside_empty"
	claimRatio  figure = "claim_beside_empty"
	finishedAt  figure = "finished_jobs"
)

// growth is about what history costs: creating and claiming in a store that holds
// much, beside an empty one, in turns.
func growth() contest {
	return contest{
		name: "growth", title: "Creating and claiming in a store that has grown",
		about: "CPU of client and database for each job that is created (64 a commit) and claimed (64 a claim, 1,000 owners), in a PostgreSQL that holds " +
			"finished and queued jobs and in an empty one, in turns; and the ratio of the two, round by round.",
		columns: []column{
			{createCPU, "CPU µs: created", "%.1f"},
			{claimCPU, "claimed", "%.1f"},
			{createRatio, "created beside empty", "%.2f"},
			{claimRatio, "claimed beside empty", "%.2f"},
		},
		entries: func(s settings) (all []contestant) {
			for _, z := range s.sizes() {
				all = append(all, z.contestant())
			}
			return all
		},
		run: runGrowth,
	}
}

// size is what a store holds.
type size struct{ finished, queued int }

func (z size) String() string {
	if z == (size{}) {
		return "empty"
	}
	return fmt.Sprintf("%s finished, %s queued", thousands(z.finished), thousands(z.queued))
}

func (z size) contestant() contestant { return contestant{name: z.String(), on: onPostgres} }

// sizes go from nothing to all in steps of ten.
func (s settings) sizes() []size {
	sizes := []size{{}}
	for _, part := range []int{100, 10, 1} {
		if z := (size{s.finished / part, s.queued / part}); z.finished > 0 {
			sizes = append(sizes, z)
		}
	}
	return sizes
}

// thousands writes a number for people.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

func runGrowth(ctx context.Context, b *bench) (rows []row, err error) {
	g := &generator{services: b.services}
	if err := g.open(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	for _, z := range b.settings.sizes() {
		if !b.settings.takes(z.contestant()) {
			continue
		}
		if err := g.grow(ctx, z, b.progress); err != nil {
			return nil, fmt.Errorf("fill with %s: %w", z, err)
		}
		turns, err := b.beside(ctx, g, z)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", z, err)
		}
		m := medians(turns)
		m[finishedAt] = float64(z.finished)
		rows = append(rows, row{Name: z.String(), On: onPostgres, Figures: m, Rounds: turns})
	}
	if b.settings.curves != "" {
		err = drawGrowth(b.settings.curves, rows)
	}
	return rows, err
}

// beside measures the grown store and an empty one in turns, now the one first, now
// the other.
func (b *bench) beside(ctx context.Context, g *generator, z size) (turns []sample, err error) {
	for n := range b.settings.rounds {
		b.progress.step(z.String())
		var base, grown sample
		acts := []func() error{
			func() (err error) { base, err = b.measureEmpty(ctx); return err },
			func() (err error) { grown, err = g.measure(ctx, b.settings.length); return err },
		}
		if n%2 == 1 {
			slices.Reverse(acts)
		}
		for _, act := range acts {
			if err := act(); err != nil {
				return nil, err
			}
		}
		grown[createRatio], grown[claimRatio] = grown[createCPU]/base[createCPU], grown[claimCPU]/base[claimCPU]
		turns = append(turns, grown)
	}
	return turns, nil
}

func (b *bench) measureEmpty(ctx context.Context) (_ sample, err error) {
	empty := &generator{services: b.services}
	if err := empty.open(ctx); err != nil {
		return nil, fmt.Errorf("an empty store: %w", err)
	}
	defer func() { err = errors.Join(err, empty.close()) }()
	return empty.measure(ctx, b.settings.length)
}

// measure creates and claims for about d, half of it each, and takes back what it
// added, but for the rows of jobs that have ended.
func (g *generator) measure(ctx context.Context, d time.Duration) (sample, error) {
	if _, err := g.spend(ctx, d/10, g.create); err != nil {
		return nil, fmt.Errorf("warm up: %w", err)
	}
	if _, err := g.spend(ctx, d/10, g.claim); err != nil {
		return nil, fmt.Errorf("warm up: %w", err)
	}
	created, err := g.spend(ctx, d/2, g.create)
	if err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	claimed, err := g.spend(ctx, d/2, g.claim)
	if err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	return sample{createCPU: created, claimCPU: claimed}, g.finishClaimed(ctx)
}

// spend repeats act for about d, or until it does nothing more, and returns the
// CPU µs of each job.
func (g *generator) spend(ctx context.Context, d time.Duration, act func(context.Context) (jobs int, err error)) (float64, error) {
	before, err := g.services.spent(ctx, onPostgres)
	if err != nil {
		return 0, err
	}
	all := 0
	for until := time.Now().Add(d); time.Now().Before(until); {
		n, err := act(ctx)
		if err != nil {
			return 0, err
		}
		if n == 0 {
			break
		}
		all += n
	}
	if all == 0 {
		return 0, errors.New("there was nothing to do")
	}
	f, err := g.services.costs(ctx, onPostgres, before, all)
	return f[clientCPU] + f[databaseCPU], err
}
