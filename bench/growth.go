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
	createWAL   figure = "create_wal_bytes_per_job"
	createPages figure = "create_wal_page_bytes_per_job"
	claimWAL    figure = "claim_wal_bytes_per_job"
	claimPages  figure = "claim_wal_page_bytes_per_job"
	finishedAt  figure = "finished_jobs" // of a size, not of a design
)

// growth is about what history costs: creating and claiming in a store that holds
// much, beside an empty one, in turns.
func growth() contest {
	return contest{
		name: "growth", title: "Creating and claiming in a store that has grown",
		about: "CPU of client and database for each job that is created (64 a commit) and claimed (64 a claim, 1,000 owners), in a PostgreSQL that holds " +
			"finished and queued jobs and in an empty one, in turns; the ratio of the two, round by round; and bytes of WAL, of it images of whole pages. " +
			"What was changed at full size, in both stores, is in the rows below the sizes.",
		columns: []column{
			{createCPU, "CPU µs: created", "%.1f"},
			{claimCPU, "claimed", "%.1f"},
			{createRatio, "created beside empty", "%.2f"},
			{claimRatio, "claimed beside empty", "%.2f"},
			{createWAL, "WAL bytes: created", "%.0f"},
			{createPages, "of it pages", "%.0f"},
			{claimWAL, "claimed", "%.0f"},
			{claimPages, "of it pages", "%.0f"},
		},
		entries: func(s settings) (all []contestant) {
			for _, z := range s.sizes() {
				all = append(all, z.contestant())
			}
			for _, d := range designs() {
				all = append(all, d.contestant())
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
		turns, err := b.beside(ctx, g, design{name: z.String()})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", z, err)
		}
		m := medians(turns)
		m[finishedAt] = float64(z.finished)
		rows = append(rows, row{Name: z.String(), On: onPostgres, Figures: m, Rounds: turns})
	}
	for _, d := range designs() {
		if !b.settings.takes(d.contestant()) {
			continue
		}
		turns, err := b.try(ctx, g, d)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.name, err)
		}
		rows = append(rows, row{Name: d.name, On: onPostgres, Figures: medians(turns), Rounds: turns})
	}
	if b.settings.curves != "" {
		err = drawGrowth(b.settings.curves, ofSizes(rows))
	}
	return rows, err
}

// ofSizes are the rows that are not of a design.
func ofSizes(rows []row) (sizes []row) {
	for _, r := range rows {
		if _, ok := r.Figures[finishedAt]; ok {
			sizes = append(sizes, r)
		}
	}
	return sizes
}

// beside measures the grown store and an empty one in turns, now the one first, now
// the other.
func (b *bench) beside(ctx context.Context, g *generator, d design) (turns []sample, err error) {
	for n := range b.settings.rounds {
		b.progress.step(d.name)
		var base, grown sample
		acts := []func() error{
			func() (err error) { base, err = b.measureEmpty(ctx, d); return err },
			func() (err error) { grown, err = g.measure(ctx, d, b.settings.length); return err },
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

func (b *bench) measureEmpty(ctx context.Context, d design) (_ sample, err error) {
	empty := &generator{services: b.services}
	if err := empty.open(ctx); err != nil {
		return nil, fmt.Errorf("an empty store: %w", err)
	}
	defer func() { err = errors.Join(err, empty.close()) }()
	if err := empty.exec(ctx, d.schema...); err != nil {
		return nil, err
	}
	return empty.measure(ctx, d, b.settings.length)
}

// measure creates and claims for about as long as told, half of it each, and takes
// back what it added, but for the rows of jobs that have ended.
func (g *generator) measure(ctx context.Context, d design, length time.Duration) (_ sample, err error) {
	if err := g.services.set(ctx, d.settings...); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.services.set(ctx)) }()
	for _, warm := range []func(context.Context) (int, error){g.create, g.claim} {
		if _, err := g.spend(ctx, length/10, warm); err != nil {
			return nil, fmt.Errorf("warm up: %w", err)
		}
	}
	if err := g.settle(ctx, d); err != nil {
		return nil, err
	}
	created, err := g.spend(ctx, length/2, g.create)
	if err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	claimed, err := g.spend(ctx, length/2, g.claim)
	if err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	return sample{
		createCPU: created.cpu, createWAL: created.wal, createPages: created.pages,
		claimCPU: claimed.cpu, claimWAL: claimed.wal, claimPages: claimed.pages,
	}, g.finishClaimed(ctx)
}

// settle is done once the store is warm: plans made for empty tables would stay with
// it for as long as it takes until autovacuum looks, a minute.
func (g *generator) settle(ctx context.Context, d design) error {
	if g.holds == (size{}) {
		if err := g.exec(ctx, "ANALYZE"); err != nil {
			return err
		}
	}
	if d.anew {
		return g.exec(ctx, "CHECKPOINT")
	}
	return nil
}

// price is what a job costs: CPU µs, and bytes of WAL, of it images of whole pages.
type price struct{ cpu, wal, pages float64 }

// spend repeats act for about d, or until it does nothing more.
func (g *generator) spend(ctx context.Context, d time.Duration, act func(context.Context) (jobs int, err error)) (price, error) {
	before, err := g.services.spent(ctx, onPostgres)
	if err != nil {
		return price{}, err
	}
	all := 0
	for until := time.Now().Add(d); time.Now().Before(until); {
		n, err := act(ctx)
		if err != nil {
			return price{}, err
		}
		if n == 0 {
			break
		}
		all += n
	}
	if all == 0 {
		return price{}, errors.New("there was nothing to do")
	}
	f, err := g.services.costs(ctx, onPostgres, before, all)
	if err != nil {
		return price{}, err
	}
	pages, err := g.services.pageImages(ctx, before.wal)
	return price{f[clientCPU] + f[databaseCPU], f[wal], float64(pages) / float64(all)}, err
}
