package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/config"
	"github.com/onejob-dev/onejob/store/postgres"
	"github.com/onejob-dev/onejob/store/sqlite"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "crash:", err)
		os.Exit(1)
	}
}

// asked is the command line.
type asked struct {
	do, config, store, listen, at, deed string
	spare, times                        int64
}

func parse(args []string) (a asked, err error) {
	flags := flag.NewFlagSet("crash", flag.ContinueOnError)
	flags.StringVar(&a.do, "do", "serve", "serve, migrate, purge or show")
	flags.StringVar(&a.config, "config", "onejob.yaml", "the configuration")
	flags.StringVar(&a.store, "store", "", "the store's URL")
	flags.StringVar(&a.listen, "listen", "", "the address to listen at")
	flags.StringVar(&a.at, "at", "", "the point")
	flags.StringVar(&a.deed, "deed", string(kill), "kill, stop or doubt")
	flags.Int64Var(&a.spare, "spare", 0, "how many commits within the call come before the one to die at")
	flags.Int64Var(&a.times, "times", 1, "how often the deed is done, if the process survives it")
	return a, flags.Parse(args)
}

func run(ctx context.Context, args []string) error {
	a, err := parse(args)
	if err != nil {
		return err
	}
	p, err := parsePoint(a.at, a.deed)
	if err != nil {
		return err
	}
	p.spared.Store(a.spare)
	p.left.Store(a.times)
	cfg, err := config.Load(config.LoadParams{Path: a.config, Flags: map[string]string{"store": a.store, "listen": a.listen}})
	if err != nil {
		return err
	}
	at, err := config.ParseStore(cfg.Store.Value.Reveal())
	if err != nil {
		return err
	}
	watch, err := watchSQLite(p)
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(watch)
	if at.Postgres != "" {
		if at.Postgres, err = proxyPostgres(ctx, at.Postgres, p); err != nil {
			return err
		}
	}
	if a.do == "migrate" {
		return migrate(ctx, at, p)
	}
	return runOn(ctx, a.do, cfg, at, p)
}

func migrate(ctx context.Context, at config.StoreURL, p *point) error {
	_, err := around(p, "migrate", func() (bool, error) {
		if at.Postgres != "" {
			return true, postgres.Migrate(ctx, at.Postgres)
		}
		return true, sqlite.Migrate(ctx, at.SQLite)
	}, func(bool) bool { return true })
	return err
}

// realStore is a store as the program has it.
type realStore interface {
	onejob.Store
	onejob.ProbeStore
	onejob.KeyStore
}

func open(ctx context.Context, at config.StoreURL) (realStore, error) {
	if at.Postgres != "" {
		return postgres.Open(ctx, at.Postgres, postgres.Options{})
	}
	return sqlite.Open(ctx, at.SQLite, sqlite.Options{})
}

func runOn(ctx context.Context, do string, cfg *config.Config, at config.StoreURL, p *point) (err error) {
	opened, err := open(ctx, at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	s := &store{Store: opened, ProbeStore: opened, point: p, starts: p.call == "start"}
	switch do {
	case "serve":
		return serve(ctx, cfg, s, opened)
	case "show":
		return show(ctx, opened)
	case "purge":
		n, err := s.JobPurge(ctx, onejob.JobPurgeParams{PayloadAge: time.Nanosecond, Limit: 100})
		_, _ = fmt.Fprintln(os.Stdout, n) // nobody may listen
		return err
	}
	return fmt.Errorf("there is no such thing to do: %q", do)
}

// show writes what is in the store.
func show(ctx context.Context, s onejob.Store) error {
	page, err := s.JobList(ctx, onejob.JobListParams{Limit: 200})
	if err != nil {
		return err
	}
	shown := []any{}
	for _, job := range page.Jobs {
		r, err := s.JobGet(ctx, []onejob.JobGetParams{{ID: job.ID}})
		if err != nil {
			return err
		}
		if r[0].Err != nil {
			return r[0].Err
		}
		shown = append(shown, shownOf(r[0].Job))
	}
	return json.NewEncoder(os.Stdout).Encode(shown)
}

func shownOf(job *onejob.Job) any {
	attempts := []map[string]any{}
	for i := range job.Attempts {
		a := &job.Attempts[i]
		attempts = append(attempts, map[string]any{"id": a.ID, "state": a.State, "outcome": a.Outcome})
	}
	return map[string]any{"id": job.ID, "state": job.State, "attempts": attempts}
}
