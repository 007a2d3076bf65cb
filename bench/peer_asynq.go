package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hibiken/asynq"
)

// asynqLife is a task under the key as its id, with its result kept, on a Redis
// that synchronises its file before every answer. A caller is told by the handler,
// in this process, as soon as it returns: earlier than the end is on disk.
type asynqLife struct {
	client  *asynq.Client
	server  *asynq.Server
	begun   func(input []byte) // may be nil
	waiting sync.Map           // key → chan struct{}
}

func openAsynq(ctx context.Context, s *services, callers int) (entrant, error) {
	return newAsynq(ctx, s, asynq.Config{Concurrency: callers, TaskCheckInterval: 50 * time.Millisecond}, nil)
}

// startAsynq has idle workers look again after an interval; zero is its default.
func startAsynq(interval time.Duration) openStart {
	return func(ctx context.Context, s *services, begun func([]byte)) (submitter, error) {
		return newAsynq(ctx, s, asynq.Config{Concurrency: 100, TaskCheckInterval: interval}, begun)
	}
}

func newAsynq(ctx context.Context, s *services, cfg asynq.Config, begun func([]byte)) (*asynqLife, error) {
	at := asynq.RedisClientOpt{Addr: s.redisAt, PoolSize: 128}
	cfg.LogLevel = asynq.FatalLevel
	cfg.BaseContext = func() context.Context { return context.WithoutCancel(ctx) }
	a := &asynqLife{client: asynq.NewClient(at), server: asynq.NewServer(at, cfg), begun: begun}
	return a, a.server.Start(asynq.HandlerFunc(a.handle))
}

func (a *asynqLife) handle(_ context.Context, t *asynq.Task) error {
	if a.begun != nil {
		a.begun(t.Payload())
	}
	if _, err := t.ResultWriter().Write(result); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if ch, ok := a.waiting.LoadAndDelete(t.ResultWriter().TaskID()); ok {
		close(ch.(chan struct{}))
	}
	return nil
}

// submit creates a task whose end nobody waits for.
func (a *asynqLife) submit(ctx context.Context, key string) error {
	id := fmt.Sprintf("%s-%d", key, time.Now().UnixNano())
	_, err := a.client.EnqueueContext(ctx, asynq.NewTask(kind, inputWith(key)), asynq.TaskID(id), asynq.Retention(time.Hour))
	return err
}

func (a *asynqLife) live(ctx context.Context, key string) error {
	done := make(chan struct{})
	key = fmt.Sprintf("%s-%d", key, time.Now().UnixNano()) // Redis is shared by the rounds
	a.waiting.Store(key, done)
	_, err := a.client.EnqueueContext(ctx, asynq.NewTask(kind, input), asynq.TaskID(key), asynq.Retention(time.Hour))
	if err != nil {
		return err
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Minute):
		return errors.New("a task was not done within a minute")
	}
}

func (a *asynqLife) close() error {
	a.server.Shutdown()
	return a.client.Close()
}
