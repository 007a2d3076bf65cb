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
	waiting sync.Map // key → chan struct{}
}

func openAsynq(ctx context.Context, s *services, callers int) (entrant, error) {
	at := asynq.RedisClientOpt{Addr: s.redisAt, PoolSize: 128}
	a := &asynqLife{client: asynq.NewClient(at)}
	a.server = asynq.NewServer(at, asynq.Config{
		Concurrency: callers, LogLevel: asynq.FatalLevel, TaskCheckInterval: 50 * time.Millisecond,
		BaseContext: func() context.Context { return context.WithoutCancel(ctx) },
	})
	return a, a.server.Start(asynq.HandlerFunc(a.handle))
}

func (a *asynqLife) handle(_ context.Context, t *asynq.Task) error {
	if _, err := t.ResultWriter().Write(result); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if ch, ok := a.waiting.LoadAndDelete(t.ResultWriter().TaskID()); ok {
		close(ch.(chan struct{}))
	}
	return nil
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
