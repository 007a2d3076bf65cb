package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/engine"
	"github.com/onejob-dev/onejob/store/grouped"
)

// onejobBacklog is onejob whose engine begins when the jobs are there.
type onejobBacklog struct {
	store  onejob.Store
	client *onejob.Client
}

func backlogOnPostgres(ctx context.Context, s *services) (backlog, error) {
	store, err := s.newPostgresStore(ctx)
	if err != nil {
		return nil, err
	}
	return newBacklog(store)
}

func backlogOnSQLite(ctx context.Context, s *services) (backlog, error) {
	store, err := s.newSQLiteStore(ctx)
	if err != nil {
		return nil, err
	}
	return newBacklog(store)
}

func newBacklog(store onejob.Store) (*onejobBacklog, error) {
	shared, err := grouped.New(store, grouped.Options{})
	if err != nil {
		return nil, err
	}
	client, err := onejob.New(shared, onejob.Options{Secret: []byte("a secret for the benchmark"), Kinds: kinds()})
	return &onejobBacklog{shared, client}, err
}

// kinds is the one kind of all contestants, with the target "t".
func kinds() map[string]onejob.Kind {
	return map[string]onejob.Kind{kind: {Policy: onejob.Policy{Effect: onejob.EffectNone, Targets: []string{"t"}}}}
}

func (b *onejobBacklog) add(ctx context.Context, keys []string) error {
	params := make([]onejob.SubmitParams, len(keys))
	for i, key := range keys {
		params[i] = onejob.SubmitParams{Owner: owner, Key: key, Kind: kind, Input: input}
	}
	for _, r := range b.client.SubmitBatch(ctx, params) {
		if r.Err != nil {
			return r.Err
		}
	}
	return nil
}

// drain ends the engine once the last job is at the provider: Run then returns when
// every answer is committed.
func (b *onejobBacklog) drain(ctx context.Context, jobs int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var calls atomic.Int64
	provider := instant{func([]byte) {
		if calls.Add(1) == int64(jobs) {
			cancel()
		}
	}}
	e, err := engine.New(b.store, []onejob.Target{{Name: "t", Provider: provider}}, engine.Options{Slots: 512})
	if err != nil {
		return err
	}
	if err := e.Run(ctx); err != nil {
		return err
	}
	return b.check(context.WithoutCancel(ctx), jobs)
}

// check looks for jobs that have not ended.
func (b *onejobBacklog) check(ctx context.Context, jobs int) error {
	stats, err := b.client.Stats(ctx)
	for state, n := range stats.Jobs {
		if err == nil && n > 0 {
			err = fmt.Errorf("%d of %d jobs are %s", n, jobs, state)
		}
	}
	return err
}

func (b *onejobBacklog) close() error { return b.store.Close() }
