package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/engine"
	"github.com/onejob-dev/onejob/internal/apikey"
	"github.com/onejob-dev/onejob/internal/config"
	"github.com/onejob-dev/onejob/internal/httpapi"
	"github.com/onejob-dev/onejob/store/grouped"
)

// serve serves until ctx ends or the point comes.
func serve(ctx context.Context, cfg *config.Config, s *store, keys onejob.KeyStore) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	gathered, err := grouped.New(s, grouped.Options{})
	if err != nil {
		return err
	}
	e, handler, err := wire(cfg, gathered, s, keys, log)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return err
	}
	server := httpapi.Server(withPointsAround(handler, s), log)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	err = e.Run(ctx)
	return errors.Join(err, server.Close(), ignoreClosed(<-served))
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// wire joins engine, client and API as the program does.
func wire(cfg *config.Config, gathered *grouped.Store, s *store, keys onejob.KeyStore, log *slog.Logger) (*engine.Engine, http.Handler, error) {
	secret, err := cfg.InstanceSecret()
	if err != nil {
		return nil, nil, err
	}
	targets, err := cfg.Targets(secret)
	if err != nil {
		return nil, nil, err
	}
	if targets, err = withPoints(targets, s.point); err != nil {
		return nil, nil, err
	}
	signals := &onejob.Signals{}
	e, err := engine.New(gathered, targets, engine.Options{
		Slots: cfg.Workers.Slots, Lease: time.Duration(cfg.Workers.Lease), Drain: time.Duration(cfg.Workers.Drain),
		Signals: signals, Logger: log,
	})
	if err != nil {
		return nil, nil, err
	}
	options := onejob.Options{Secret: []byte(secret.Reveal()), Kinds: cfg.Kinds(), Signals: signals}
	if s.starts {
		options.Starter = e
	}
	client, err := onejob.New(gathered, options)
	if err != nil {
		return nil, nil, err
	}
	handler, err := httpapi.New(httpapi.Options{Client: client, Keys: apikey.NewAuthenticator(keys, apikey.Options{})})
	return e, handler, err
}

// withPointsAround puts points around the creation of jobs over HTTP.
func withPointsAround(handler http.Handler, s *store) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/v1/jobs" {
			handler.ServeHTTP(w, r)
			return
		}
		_ = s.at("request", before)
		handler.ServeHTTP(w, r)
		_ = http.NewResponseController(w).Flush() // the answer has left
		_ = s.at("respond", after)
		s.answered.Store(true)
	})
}
