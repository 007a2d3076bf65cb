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
	begun func(input []byte) // may be nil
}

func (d *dbosLife) workflow(ctx dbos.Context, in []byte) (string, error) {
	return dbos.RunAsStep(ctx, func(context.Context) (string, error) {
		if d.begun != nil {
			d.begun(in)
		}
		return string(result), nil
	})
}

func openDBOS(ctx context.Context, s *services, _ int) (entrant, error) { return newDBOS(ctx, s, nil) }

func startDBOS(ctx context.Context, s *services, begun func([]byte)) (submitter, error) {
	return newDBOS(ctx, s, begun)
}

func newDBOS(ctx context.Context, s *services, begun func([]byte)) (*dbosLife, error) {
	url, err := s.newDatabase(ctx)
	if err != nil {
		return nil, err
	}
	d := &dbosLife{begun: begun}
	d.ctx, err = dbos.NewContext(context.WithoutCancel(ctx), dbos.Config{
		AppName: "bench", DatabaseURL: url, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	dbos.RegisterWorkflow(d.ctx, d.workflow)
	if err := dbos.Launch(d.ctx); err != nil {
		return nil, err
	}
	d.queue, err = dbos.RegisterQueue(d.ctx, "bench", dbos.WithQueueBasePollingInterval(10*time.Millisecond))
	return d, err
}

// submit creates a workflow whose end nobody waits for.
func (d *dbosLife) submit(_ context.Context, key string) error {
	_, err := dbos.RunWorkflow(d.ctx, d.workflow, inputWith(key), dbos.WithWorkflowID(key), dbos.WithQueue(d.queue))
	return err
}

func (d *dbosLife) live(_ context.Context, key string) error {
	handle, err := dbos.RunWorkflow(d.ctx, d.workflow, input, dbos.WithWorkflowID(key), dbos.WithQueue(d.queue))
	if err != nil {
		return err
	}
	_, err = handle.GetResult()
	return err
}

func (d *dbosLife) close() error { return dbos.Shutdown(d.ctx, 10*time.Second) }
