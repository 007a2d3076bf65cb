package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	perSecond   figure = "jobs_per_s"
	p50         figure = "p50_ms"
	p99         figure = "p99_ms"
	clientCPU   figure = "client_cpu_us_per_job"
	databaseCPU figure = "database_cpu_us_per_job"
	wal         figure = "wal_bytes_per_job"
)

// lives is about whole lives of jobs: submitted, tried, and their end visible to
// who submitted, everything durable.
func lives() contest {
	return contest{
		name: "lives", title: "Whole lives of jobs",
		about: "Callers who each submit a job of one kilobyte, wait until its end is visible, and submit the next. CPU is that of client and workers " +
			"(one process) and of the database.",
		columns: []column{
			{perSecond, "jobs/s", "%.0f"},
			{p50, "p50 ms", "%.1f"},
			{p99, "p99 ms", "%.1f"},
			{clientCPU, "CPU µs a job: client", "%.0f"},
			{databaseCPU, "database", "%.0f"},
			{wal, "WAL bytes a job", "%.0f"},
		},
		entries: func(settings) []contestant { return livesEntries() },
	}
}

func livesEntries() []contestant {
	return []contestant{
		life(contestant{name: "raw SQL, a transaction a step", on: onPostgres, callers: 64}, openNaive),
		life(contestant{name: "raw SQL, grouped", on: onPostgres, callers: 64}, openRawGrouped),
		life(contestant{name: "onejob", on: onPostgres, callers: 64}, openOnPostgres),
		life(contestant{name: "River", on: onPostgres, callers: 64}, openRiver),
		life(contestant{name: "DBOS", on: onPostgres, callers: 64}, openDBOS),
		life(contestant{name: "raw SQL, grouped", on: onPostgres, callers: 256}, openRawGrouped),
		life(contestant{name: "onejob", on: onPostgres, callers: 256}, openOnPostgres),
		life(contestant{name: "River", on: onPostgres, callers: 256}, openRiver),
		life(contestant{name: "River, batches of 2,000", on: onPostgres, callers: 1, durable: "nobody waits for one job"}, openRiverBatch),
		life(contestant{name: "raw SQL, grouped", on: onSQLite, callers: 64}, openRawSQLite),
		life(contestant{name: "onejob", on: onSQLite, callers: 64}, openOnSQLite),
		life(contestant{name: "goqite", on: onSQLite, callers: 64, durable: "no key, no result kept"}, openGoqite),
		life(contestant{name: "Asynq", on: onRedis, callers: 64, durable: "told before the end is on disk"}, openAsynq),
	}
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

type openFunc func(ctx context.Context, s *services, callers int) (entrant, error)

// life has a turn open the entrant, warm it up, measure it, and close it.
func life(c contestant, open openFunc) contestant {
	c.turn = func(ctx context.Context, s *services, d time.Duration) (_ sample, err error) {
		e, err := open(ctx, s, c.callers)
		if err != nil {
			return nil, fmt.Errorf("open: %w", err)
		}
		defer func() { err = errors.Join(err, e.close()) }()
		if _, err := c.measure(ctx, e, s, d/5, "warm"); err != nil {
			return nil, fmt.Errorf("warm up: %w", err)
		}
		return c.measure(ctx, e, s, d, "run")
	}
	return c
}

// measure has callers do jobs in a closed loop for d.
func (c contestant) measure(ctx context.Context, e entrant, s *services, d time.Duration, prefix string) (sample, error) {
	before, err := s.spent(ctx, c.on)
	if err != nil {
		return nil, err
	}
	l := loop{entrant: e, prefix: prefix, until: time.Now().Add(d)}
	began := time.Now()
	took, err := l.run(ctx, c.callers)
	elapsed := time.Since(began)
	if err != nil {
		return nil, err
	}
	if len(took) == 0 {
		return nil, errors.New("not one job was done")
	}
	jobs := len(took)
	if b, ok := e.(batcher); ok {
		jobs *= b.batch()
	}
	f, err := s.costs(ctx, c.on, before, jobs)
	if err != nil {
		return nil, err
	}
	f[perSecond] = float64(jobs) / elapsed.Seconds()
	f[p50], f[p99] = quantiles(took)
	return f, nil
}

// loop is a number of callers, each doing one job after another.
type loop struct {
	entrant
	prefix string
	until  time.Time
	next   atomic.Int64
}

func (l *loop) run(ctx context.Context, callers int) ([]time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	times := make([][]time.Duration, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			var err error
			if times[i], err = l.caller(ctx); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return slices.Concat(times...), nil
}

func (l *loop) caller(ctx context.Context) (took []time.Duration, err error) {
	for time.Now().Before(l.until) && ctx.Err() == nil {
		key := fmt.Sprintf("%s-%d", l.prefix, l.next.Add(1))
		began := time.Now()
		if b, ok := l.entrant.(batcher); ok {
			err = b.liveBatch(ctx, key)
		} else {
			err = l.live(ctx, key)
		}
		if err != nil {
			return took, err
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}
