package main

import (
	"cmp"
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
	begun func(input []byte) // may be nil
}

func (w riverWorker) Work(ctx context.Context, job *river.Job[riverArgs]) error {
	if w.begun != nil {
		w.begun(job.Args.Input)
	}
	return river.RecordOutput(ctx, map[string]bool{"ok": true})
}

// riverTuning is what is set apart from River's defaults. Zero: nothing.
type riverTuning struct {
	workers        int // zero means 100, as in its documentation
	cooldown, poll time.Duration
}

func riverDefaults() riverTuning { return riverTuning{} }

// riverTuned has the fetch cooldown at its least: "throughput is limited by this
// value", its documentation says.
func riverTuned() riverTuning {
	return riverTuning{cooldown: river.FetchCooldownMin, poll: 10 * time.Millisecond}
}

// riverLife is River, and whoever waits for its jobs.
type riverLife struct {
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]

	mu      sync.Mutex
	waiting map[int64]chan struct{}
	early   map[int64]bool // completed before anybody waited
	events  <-chan *river.Event
	stop    func()
}

func openRiver(ctx context.Context, s *services, callers int) (entrant, error) {
	tuning := riverTuned()
	tuning.workers = max(callers, 100)
	return startedRiver(ctx, s, tuning, nil)
}

func startRiver(tuning riverTuning) openStart {
	return func(ctx context.Context, s *services, begun func([]byte)) (submitter, error) {
		return startedRiver(ctx, s, tuning, begun)
	}
}

// openRiverBatch inserts many jobs in one call and waits for all of them.
func openRiverBatch(ctx context.Context, s *services, _ int) (entrant, error) {
	tuning := riverTuned()
	tuning.workers = 500
	r, err := startedRiver(ctx, s, tuning, nil)
	return riverBatch{r, 2000}, err
}

func startedRiver(ctx context.Context, s *services, tuning riverTuning, begun func([]byte)) (*riverLife, error) {
	r, err := newRiver(ctx, s, tuning, begun)
	if err != nil {
		return nil, err
	}
	return r, r.client.Start(context.WithoutCancel(ctx))
}

// newRiver does not start its workers.

func newRiver(ctx context.Context, s *services, tuning riverTuning, begun func([]byte)) (*riverLife, error) {
	pool, err := s.newPool(ctx, 32)
	if err != nil {
		return nil, err
	}
	r := &riverLife{pool: pool, waiting: map[int64]chan struct{}{}, early: map[int64]bool{}}
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	registry := river.NewWorkers()
	river.AddWorker(registry, riverWorker{begun: begun})
	r.client, err = river.NewClient(driver, &river.Config{
		Queues:        map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: cmp.Or(tuning.workers, 100)}},
		Workers:       registry,
		FetchCooldown: tuning.cooldown, FetchPollInterval: tuning.poll,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	r.events, r.stop = r.client.SubscribeConfig(&river.SubscribeConfig{Kinds: []river.EventKind{river.EventKindJobCompleted}, ChanSize: 100_000})
	go r.listen()
	return r, nil
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

// submit creates a job whose end nobody waits for.
func (r *riverLife) submit(ctx context.Context, key string) error {
	_, err := r.client.Insert(ctx, riverArgs{Key: key, Input: inputWith(key)}, &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}})
	return err
}

type riverBatch struct {
	*riverLife
	size int
}

func (r riverBatch) batch() int { return r.size }

func (r riverBatch) liveBatch(ctx context.Context, first string) error {
	keys := make([]string, r.size)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s-%d", first, i)
	}
	ids, err := r.insertAll(ctx, keys)
	if err != nil {
		return err
	}
	return r.awaitAll(ctx, ids)
}

func (r *riverLife) insertAll(ctx context.Context, keys []string) (ids []int64, err error) {
	params := make([]river.InsertManyParams, len(keys))
	for i, key := range keys {
		params[i] = river.InsertManyParams{
			Args:       riverArgs{Key: key, Input: input},
			InsertOpts: &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}},
		}
	}
	inserted, err := r.client.InsertMany(ctx, params)
	for _, one := range inserted {
		ids = append(ids, one.Job.ID)
	}
	return ids, err
}

func (r *riverLife) awaitAll(ctx context.Context, ids []int64) error {
	for _, id := range ids {
		if err := r.await(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// riverBacklog is River whose workers begin when the jobs are there.
type riverBacklog struct {
	*riverLife
	ids []int64
}

func backlogRiver(ctx context.Context, s *services) (backlog, error) {
	tuning := riverTuned()
	tuning.workers = 2000
	r, err := newRiver(ctx, s, tuning, nil)
	return &riverBacklog{riverLife: r}, err
}

func (r *riverBacklog) add(ctx context.Context, keys []string) error {
	ids, err := r.insertAll(ctx, keys)
	r.ids = append(r.ids, ids...)
	return err
}

func (r *riverBacklog) drain(ctx context.Context, _ int) error {
	if err := r.client.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	return r.awaitAll(ctx, r.ids)
}
