package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverArgs is a job of River's with the same input.
type riverArgs struct {
	Key   string `json:"key" river:"unique"`
	Input []byte `json:"input"`
}

func (riverArgs) Kind() string { return "bench" }

type riverWorker struct {
	river.WorkerDefaults[riverArgs]
}

func (riverWorker) Work(ctx context.Context, _ *river.Job[riverArgs]) error {
	return river.RecordOutput(ctx, map[string]bool{"ok": true})
}

// riverLife is River with the poll interval and fetch cooldown at their least and
// room for every caller.
type riverLife struct {
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
	size   int // of a batch; zero: closed loop

	mu      sync.Mutex
	waiting map[int64]chan struct{}
	early   map[int64]bool // completed before anybody waited
	events  <-chan *river.Event
	stop    func()
}

func openRiver(ctx context.Context, s *services, callers int) (entrant, error) {
	return newRiver(ctx, s, callers, 0)
}

// openRiverBatch inserts many jobs in one call and waits for all of them.
func openRiverBatch(ctx context.Context, s *services, _ int) (entrant, error) {
	r, err := newRiver(ctx, s, 500, 2000)
	return riverBatch{r}, err
}

func newRiver(ctx context.Context, s *services, workers, size int) (*riverLife, error) {
	pool, err := s.newPool(ctx, 32)
	if err != nil {
		return nil, err
	}
	r := &riverLife{pool: pool, size: size, waiting: map[int64]chan struct{}{}, early: map[int64]bool{}}
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	registry := river.NewWorkers()
	river.AddWorker(registry, riverWorker{})
	r.client, err = river.NewClient(driver, &river.Config{
		Queues:        map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: max(workers, 100)}},
		Workers:       registry,
		FetchCooldown: river.FetchCooldownMin, FetchPollInterval: 10 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	r.events, r.stop = r.client.SubscribeConfig(&river.SubscribeConfig{Kinds: []river.EventKind{river.EventKindJobCompleted}, ChanSize: 100_000})
	go r.listen()
	return r, r.client.Start(context.WithoutCancel(ctx))
}

func (r *riverLife) listen() {
	for e := range r.events {
		r.mu.Lock()
		if ch := r.waiting[e.Job.ID]; ch != nil {
			close(ch)
			delete(r.waiting, e.Job.ID)
		} else {
			r.early[e.Job.ID] = true
		}
		r.mu.Unlock()
	}
}

func (r *riverLife) await(ctx context.Context, id int64) error {
	r.mu.Lock()
	if r.early[id] {
		delete(r.early, id)
		r.mu.Unlock()
		return nil
	}
	ch := make(chan struct{})
	r.waiting[id] = ch
	r.mu.Unlock()
	select {
	case <-ch:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Minute):
		return errors.New("a job was not completed within a minute")
	}
}

func (r *riverLife) live(ctx context.Context, key string) error {
	inserted, err := r.client.Insert(ctx, riverArgs{Key: key, Input: input}, &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}})
	if err != nil {
		return err
	}
	return r.await(ctx, inserted.Job.ID)
}

func (r *riverLife) close() error {
	err := r.client.Stop(context.Background())
	r.stop()
	r.pool.Close()
	return err
}

type riverBatch struct{ *riverLife }

func (r riverBatch) batch() int { return r.size }

func (r riverBatch) liveBatch(ctx context.Context, first string) error {
	params := make([]river.InsertManyParams, r.size)
	for i := range params {
		params[i] = river.InsertManyParams{
			Args:       riverArgs{Key: fmt.Sprintf("%s-%d", first, i), Input: input},
			InsertOpts: &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}},
		}
	}
	inserted, err := r.client.InsertMany(ctx, params)
	if err != nil {
		return err
	}
	for _, one := range inserted {
		if err := r.await(ctx, one.Job.ID); err != nil {
			return err
		}
	}
	return nil
}
