package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	addRate   figure = "add_jobs_per_s"
	addCPU    figure = "add_cpu_us_per_job"
	drainRate figure = "drain_jobs_per_s"
	drainCPU  figure = "drain_cpu_us_per_job"
)

// batchSize is how many jobs are added in one call.
const batchSize = 500

// batchRate is how many jobs there are for each second of a turn's length.
const batchRate = 2000

// batches is about a backlog: added in large batches while nobody works, and then
// drained by one process. No caller waits for a job of his own.
func batches() contest {
	return contest{
		name: "batches", title: "A backlog, added in batches and drained",
		about: fmt.Sprintf("%d jobs of a kilobyte for each second of a turn, added %d a call, then drained by one process that does nothing with them. "+
			"CPU is that of client, workers and database.", batchRate, batchSize),
		columns: []column{
			{addRate, "added/s", "%.0f"},
			{addCPU, "CPU µs each", "%.0f"},
			{drainRate, "drained/s", "%.0f"},
			{drainCPU, "CPU µs each", "%.0f"},
		},
		entries: func(settings) []contestant {
			return []contestant{
				backlogged(contestant{name: "onejob", on: onPostgres}, backlogOnPostgres),
				backlogged(contestant{name: "River", on: onPostgres}, backlogRiver),
				nodeJS(contestant{name: "graphile-worker", on: onPostgres, durable: "the job and its key are gone once it is done, no result kept"}, "graphile-worker.mjs"),
				nodeJS(contestant{name: "pg-boss", on: onPostgres, durable: "no key"}, "pg-boss.mjs"),
				backlogged(contestant{name: "onejob", on: onSQLite}, backlogOnSQLite),
				nodeJS(contestant{name: "BullMQ", on: onRedis}, "bullmq.mjs"),
			}
		},
	}
}

// backlog is somewhere jobs are added while nobody works, and then drained.
type backlog interface {
	add(ctx context.Context, keys []string) error
	// drain has all of so many jobs done, and returns when their ends are durable.
	drain(ctx context.Context, jobs int) error
	close() error
}

func backlogged(c contestant, open func(context.Context, *services) (backlog, error)) contestant {
	c.turn = func(ctx context.Context, s *services, d time.Duration) (_ sample, err error) {
		b, err := open(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("open: %w", err)
		}
		defer func() { err = errors.Join(err, b.close()) }()
		jobs := jobsFor(d)
		addition, err := s.phase(ctx, c.on, jobs, func() error { return addAll(ctx, b, jobs) })
		if err != nil {
			return nil, fmt.Errorf("add: %w", err)
		}
		drainage, err := s.phase(ctx, c.on, jobs, func() error { return b.drain(ctx, jobs) })
		if err != nil {
			return nil, fmt.Errorf("drain: %w", err)
		}
		return both(addition, drainage), nil
	}
	return c
}

// jobsFor is how many jobs a turn has: whole batches, two at least.
func jobsFor(d time.Duration) int { return batchSize * max(2, int(d.Seconds()*batchRate/batchSize)) }

func addAll(ctx context.Context, b backlog, jobs int) error {
	for first := 0; first < jobs; first += batchSize {
		keys := make([]string, batchSize)
		for i := range keys {
			keys[i] = fmt.Sprintf("job-%d", first+i)
		}
		if err := b.add(ctx, keys); err != nil {
			return err
		}
	}
	return nil
}

// phase measures one half.
func (s *services) phase(ctx context.Context, g ground, jobs int, act func() error) (sample, error) {
	before, err := s.spent(ctx, g)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := act(); err != nil {
		return nil, err
	}
	elapsed := time.Since(began)
	f, err := s.costs(ctx, g, before, jobs)
	if err != nil {
		return nil, err
	}
	return sample{perSecond: float64(jobs) / elapsed.Seconds(), totalCPU: f[clientCPU] + f[databaseCPU]}, nil
}

func both(addition, drainage sample) sample {
	return sample{
		addRate: addition[perSecond], addCPU: addition[totalCPU],
		drainRate: drainage[perSecond], drainCPU: drainage[totalCPU],
	}
}
