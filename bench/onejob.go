package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/engine"
	"github.com/onejob-dev/onejob/store/grouped"
	"github.com/onejob-dev/onejob/store/postgres"
	"github.com/onejob-dev/onejob/store/sqlite"
)

// library is onejob as an application uses it: a client and an engine on one store.
type library struct {
	store  onejob.Store
	client *onejob.Client
	stop   context.CancelFunc
	done   sync.WaitGroup
}

func openOnPostgres(ctx context.Context, s *services, _ int) (entrant, error) {
	store, err := s.newPostgresStore(ctx)
	if err != nil {
		return nil, err
	}
	return newLibrary(ctx, store, instant{})
}

func (s *services) newPostgresStore(ctx context.Context) (*postgres.Store, error) {
	url, err := s.newDatabase(ctx)
	if err != nil {
		return nil, err
	}
	return postgres.Open(ctx, url, postgres.Options{Migrate: true, MaxConns: 16})
}

func openOnSQLite(ctx context.Context, s *services, _ int) (entrant, error) {
	store, err := s.newSQLiteStore(ctx)
	if err != nil {
		return nil, err
	}
	return newLibrary(ctx, store, instant{})
}

func (s *services) newSQLiteStore(ctx context.Context) (*sqlite.Store, error) {
	path, err := s.newFile()
	if err != nil {
		return nil, err
	}
	return sqlite.Open(ctx, path, sqlite.Options{})
}

func newLibrary(ctx context.Context, store onejob.Store, provider onejob.Provider) (*library, error) {
	shared, err := grouped.New(store, grouped.Options{})
	if err != nil {
		return nil, err
	}
	return newLibraryOn(ctx, shared, shared, provider)
}

// newLibraryOn is newLibrary on a store that is grouped; front is what the client is
// given of it.
func newLibraryOn(ctx context.Context, shared *grouped.Store, front onejob.Store, provider onejob.Provider) (*library, error) {
	signals := &onejob.Signals{}
	e, err := engine.New(shared, []onejob.Target{{Name: "t", Provider: provider}}, engine.Options{Slots: 512, Signals: signals})
	if err != nil {
		return nil, err
	}
	client, err := onejob.New(front, onejob.Options{
		Secret: []byte("a secret for the benchmark"), Signals: signals, Starter: e, Kinds: kinds(),
	})
	if err != nil {
		return nil, err
	}
	l := &library{store: shared, client: client}
	ctx, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	l.done.Go(func() { _ = e.Run(ctx) }) // it returns nothing but nil
	return l, nil
}

func (l *library) live(ctx context.Context, key string) error {
	_, _, watch, err := l.client.SubmitWatched(ctx, onejob.SubmitParams{Owner: owner, Key: key, Kind: kind, Input: input})
	if err != nil {
		return err
	}
	defer watch.Stop()
	job, err := watch.Until(ctx, func(j *onejob.Job) bool { return j.State.Terminal() })
	if err == nil && (job.State != onejob.JobSucceeded || string(job.Result.Body) != string(result)) {
		err = fmt.Errorf("job %s is %s", job.ID, job.State)
	}
	return err
}

func (l *library) close() error {
	l.stop()
	l.done.Wait()
	return errors.Join(l.store.Close())
}

func startOnPostgres(ctx context.Context, s *services, begun func([]byte)) (submitter, error) {
	store, err := s.newPostgresStore(ctx)
	if err != nil {
		return nil, err
	}
	return newLibrary(ctx, store, instant{begun})
}

func startOnSQLite(ctx context.Context, s *services, begun func([]byte)) (submitter, error) {
	store, err := s.newSQLiteStore(ctx)
	if err != nil {
		return nil, err
	}
	return newLibrary(ctx, store, instant{begun})
}

func (l *library) submit(ctx context.Context, key string) error {
	_, _, err := l.client.Submit(ctx, onejob.SubmitParams{Owner: owner, Key: key, Kind: kind, Input: inputWith(key)})
	return err
}

// instant is a provider that answers at once.
type instant struct {
	begun func(input []byte) // may be nil
}

func (i instant) Call(_ context.Context, r onejob.Request) (onejob.Answer, error) {
	if i.begun != nil {
		i.begun(r.Input)
	}
	r.Sent()
	return onejob.Answer{Body: result, ContentType: "application/json"}, nil
}
