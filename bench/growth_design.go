package main

import (
	"context"
	"errors"
)

// design changes something that a grown store may cost more for. It is measured at
// full size, in both stores, in turns.
type design struct {
	name     string
	settings []string // of the server, for each turn: the store opens with none that lose data
	anew     bool     // each turn begins with a checkpoint, after which pages are logged whole
	// before is done to the grown store once. Nil: nothing.
	before func(context.Context, *generator) error
	schema []string // done to both stores, and not taken back: such a design comes last
	// start are settings that the server is started with. They stay.
	start []string
}

func (d design) contestant() contestant { return contestant{name: d.name, on: onPostgres} }

// jobsUntilLogged are creations after which most pages of the index over keys were
// logged since the last checkpoint.
const jobsUntilLogged = 300_000

func designs() []design {
	return []design{
		{name: "full, a checkpoint before each turn", anew: true},
		{name: "full, the same, wal_compression = lz4", anew: true, settings: []string{"wal_compression = lz4"}},
		{name: "full, no page logged whole (a bound)", anew: true, settings: []string{"full_page_writes = off"}},
		{name: "full, long after a checkpoint", before: func(ctx context.Context, g *generator) error {
			return g.fillAll(ctx, templateFinished, jobsUntilLogged, func(int) {})
		}},
		{name: "full, the index over keys packed anew", anew: true, before: func(ctx context.Context, g *generator) error {
			return g.exec(ctx, "REINDEX INDEX jobs_one_per_key")
		}},
		{
			name: "full, no page logged whole, 6 GB of shared buffers", settings: []string{"full_page_writes = off"}, start: []string{"shared_buffers=6GB"},
			before: func(ctx context.Context, g *generator) error {
				return g.exec(ctx, "CREATE EXTENSION pg_prewarm", "SELECT pg_prewarm(indexrelid) FROM pg_index WHERE indrelid IN ('jobs'::regclass, 'job_states'::regclass, 'attempts'::regclass)")
			},
		},
		{
			name: "full, the same without the indexes of lists (a bound)", settings: []string{"full_page_writes = off"},
			schema: []string{"DROP INDEX jobs_by_owner, jobs_by_time"},
		},
	}
}

// try measures a design.
func (b *bench) try(ctx context.Context, g *generator, d design) (turns []sample, err error) {
	b.progress.say(d.name)
	if d.start != nil {
		if err := g.restart(ctx, d.start...); err != nil {
			return nil, err
		}
	}
	if d.before != nil {
		if err := d.before(ctx, g); err != nil {
			return nil, err
		}
	}
	if err := g.exec(ctx, d.schema...); err != nil {
		return nil, err
	}
	return b.beside(ctx, g, d)
}

// restart starts the server with more settings, and connects to it again.
func (g *generator) restart(ctx context.Context, settings ...string) error {
	if err := errors.Join(g.exec(ctx, "CHECKPOINT"), g.close(), g.services.restartPostgres(ctx, settings...)); err != nil {
		return err
	}
	return g.connect(ctx)
}
