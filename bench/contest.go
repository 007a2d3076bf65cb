package main

import (
	"context"
	"fmt"
	"time"
)

// ground is what contestants of one group run on. They share it and take turns.
type ground string

const (
	onPostgres ground = "PostgreSQL"
	onSQLite   ground = "SQLite"
	onRedis    ground = "Redis"
)

// contestant is one way of getting jobs done durably.
type contestant struct {
	name    string
	ground  ground
	callers int // who submit and wait, each for one job at a time
	// durable says what is on disk before a caller is answered, where that is less
	// than everything, or different.
	durable string
	open    func(ctx context.Context, s *services, callers int) (entrant, error)
}

// entrant is a contestant that has been set up.
type entrant interface {
	// live does one job from submission to its visible end. key is new.
	live(ctx context.Context, key string) error
	close() error
}

// batcher is an entrant that does many jobs in one call instead: live is not used.
type batcher interface {
	entrant
	// batch is how many jobs one call does.
	batch() int
	liveBatch(ctx context.Context, first string) error
}

// figures are what one round of one contestant came to.
type figures struct {
	Jobs     int           `json:"jobs"`
	PerSec   float64       `json:"jobs_per_s"`
	P50      time.Duration `json:"p50_ns"`
	P99      time.Duration `json:"p99_ns"`
	Client   float64       `json:"client_cpu_us_per_job"`
	Database float64       `json:"database_cpu_us_per_job"`
	WAL      float64       `json:"wal_bytes_per_job"`
}

func (f figures) cpu() float64 { return f.Client + f.Database }

// round opens a contestant, warms it up, measures it for about d, and closes it.
func round(ctx context.Context, c contestant, s *services, d time.Duration) (_ figures, err error) {
	e, err := c.open(ctx, s, c.callers)
	if err != nil {
		return figures{}, fmt.Errorf("%s: open: %w", c.name, err)
	}
	defer func() {
		if closed := e.close(); err == nil && closed != nil {
			err = fmt.Errorf("%s: close: %w", c.name, closed)
		}
	}()
	if _, err := measure(ctx, c, e, s, d/5, "warm"); err != nil {
		return figures{}, fmt.Errorf("%s: warm up: %w", c.name, err)
	}
	f, err := measure(ctx, c, e, s, d, "run")
	if err != nil {
		return figures{}, fmt.Errorf("%s: %w", c.name, err)
	}
	return f, nil
}
