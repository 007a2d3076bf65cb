package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
)

// dbosLife is a workflow of one step through a queue, its id the key.
type dbosLife struct {
	ctx   dbos.Context
	queue dbos.Queue
}

func dbosWorkflow(ctx dbos.Context, in []byte) (string, error) {
	return dbos.RunAsStep(ctx, func(context.Context) (string, error) { return string(result), nil })
}

func openDBOS(ctx context.Context, s *services, callers int) (entrant, error) {
	url, err := s.newDatabase(ctx)
	if err != nil {
		return nil, err
	}
	d := &dbosLife{}
	d.ctx, err = dbos.NewContext(context.WithoutCancel(ctx), dbos.Config{
		AppName: "bench", DatabaseURL: url, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	dbos.RegisterWorkflow(d.ctx, dbosWorkflow)
	if err := dbos.Launch(d.ctx); err != nil {
		return nil, err
	}
	d.queue, err = dbos.RegisterQueue(d.ctx, "bench", dbos.WithQueueBasePollingInterval(10*time.Millisecond))
	return d, err
}

func (d *dbosLife) live(_ context.Context, key string) error {
	handle, err := dbos.RunWorkflow(d.ctx, dbosWorkflow, input, dbos.WithWorkflowID(key), dbos.WithQueue(d.queue))
	if err != nil {
		return err
	}
	_, err = handle.GetResult()
	return err
}

func (d *dbosLife) close() error { return dbos.Shutdown(d.ctx, 10*time.Second) }
