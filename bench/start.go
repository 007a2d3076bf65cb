package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

const totalCPU figure = "cpu_us_per_job"

// startRate is how many jobs are created a second, come what may: one every 15 ms.
const startRate = 67

// start is about how soon a job is in hand after it was asked for, when there is
// little to do.
func start() contest {
	return contest{
		name: "start", title: "From the call that creates a job to its work",
		about: fmt.Sprintf("%d jobs a second, whether or not earlier ones have begun: from the call that creates a job until the code that does the work has it "+
			"(onejob: until the call to the provider, by then marked durably). CPU is that of client, workers and database, polling included.", startRate),
		columns: []column{
			{p50, "p50 ms", "%.1f"},
			{p99, "p99 ms", "%.1f"},
			{totalCPU, "CPU µs a job", "%.0f"},
		},
		entries: func(settings) []contestant {
			return []contestant{
				beginning(contestant{name: "onejob", on: onPostgres}, startOnPostgres),
				beginning(contestant{name: "River, defaults", on: onPostgres}, startRiver(riverDefaults())),
				beginning(contestant{name: "River, tuned", on: onPostgres}, startRiver(riverTuned())),
				beginning(contestant{name: "DBOS", on: onPostgres}, startDBOS),
				beginning(contestant{name: "onejob", on: onSQLite}, startOnSQLite),
				beginning(contestant{name: "goqite, defaults", on: onSQLite}, startGoqite(0)),
				beginning(contestant{name: "goqite, polling every 10 ms", on: onSQLite}, startGoqite(10*time.Millisecond)),
				beginning(contestant{name: "Asynq, defaults", on: onRedis}, startAsynq(0)),
				beginning(contestant{name: "Asynq, polling every 50 ms", on: onRedis}, startAsynq(50*time.Millisecond)),
			}
		},
	}
}

// submitter creates jobs and has somebody do them, who calls begun.
type submitter interface {
	submit(ctx context.Context, key string) error
	close() error
}

// openStart sets a submitter up. begun is to be called with the job's input as soon
// as the work has it.
type openStart func(ctx context.Context, s *services, begun func(input []byte)) (submitter, error)

func beginning(c contestant, open openStart) contestant {
	c.turn = func(ctx context.Context, s *services, d time.Duration) (_ sample, err error) {
		b := &beginnings{created: map[string]time.Time{}}
		sub, err := open(ctx, s, b.begun)
		if err != nil {
			return nil, fmt.Errorf("open: %w", err)
		}
		defer func() { err = errors.Join(err, sub.close()) }()
		if err := b.pace(ctx, sub, d/5, "warm"); err != nil {
			return nil, fmt.Errorf("warm up: %w", err)
		}
		b.reset()
		before, err := s.spent(ctx, c.on)
		if err != nil {
			return nil, err
		}
		if err := b.pace(ctx, sub, d, fmt.Sprintf("run-%d", time.Now().UnixNano())); err != nil {
			return nil, err
		}
		f, err := s.costs(ctx, c.on, before, len(b.took))
		if err != nil {
			return nil, err
		}
		f = sample{totalCPU: f[clientCPU] + f[databaseCPU]}
		f[p50], f[p99] = quantiles(slices.Clone(b.took))
		return f, nil
	}
	return c
}

// beginnings is when jobs were created, and how long it took until their work began.
type beginnings struct {
	mu      sync.Mutex
	created map[string]time.Time // and not begun
	took    []time.Duration
}

// pace creates jobs open loop for d, and waits until the last has begun.
func (b *beginnings) pace(ctx context.Context, sub submitter, d time.Duration, prefix string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var open sync.WaitGroup
	began := time.Now()
	for n := range int(d.Seconds()*startRate) + 1 {
		time.Sleep(time.Until(began.Add(time.Duration(n) * time.Second / startRate)))
		open.Go(func() {
			key := fmt.Sprintf("%s-%d", prefix, n)
			b.creates(key)
			if err := sub.submit(ctx, key); err != nil {
				cancel(err)
			}
		})
	}
	open.Wait()
	for deadline := time.Now().Add(30 * time.Second); b.waiting() > 0 && ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%d jobs have not begun after 30 s", b.waiting())
		}
	}
	return context.Cause(ctx)
}

func (b *beginnings) creates(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.created[key] = time.Now()
}

func (b *beginnings) begun(input []byte) {
	now := time.Now()
	key := keyIn(input)
	b.mu.Lock()
	defer b.mu.Unlock()
	if at, ok := b.created[key]; ok { // else it was begun before
		b.took = append(b.took, now.Sub(at))
		delete(b.created, key)
	}
}

// reset forgets what the warm-up took.
func (b *beginnings) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.took = nil
}

func (b *beginnings) waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.created)
}

// inputWith is an input of a kilobyte that names the job's key first.
func inputWith(key string) []byte {
	return fmt.Appendf(nil, `{"key":%q,"prompt":%q}`, key, repeated("a picture of a cat ", 48))
}

func keyIn(input []byte) string {
	_, rest, _ := bytes.Cut(input, []byte(`"key":"`))
	key, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(key)
}
