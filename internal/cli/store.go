package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v3"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/config"
	"github.com/onejob-dev/onejob/store/generation"
	"github.com/onejob-dev/onejob/store/postgres"
	"github.com/onejob-dev/onejob/store/sqlite"
)

// realStore is a store that also keeps API keys, the outbox and the audit, and can
// be found to have been restored.
type realStore interface {
	onejob.Store
	onejob.KeyStore
	onejob.DeliveryStore
	onejob.AuditStore
	onejob.RestoreStore
}

func configFlag() cli.Flag {
	return &cli.StringFlag{Name: "config", Aliases: []string{"c"}, Usage: "configuration `FILE` (ONEJOB_CONFIG; default " + config.DefaultPath + " if it is there)"}
}

func storeFlag() cli.Flag {
	return &cli.StringFlag{Name: "store", Usage: "`URL` of the store, sqlite:FILE or postgres://… (ONEJOB_STORE, DATABASE_URL)"}
}

// loadParams takes a command's flags together.
func loadParams(env Env, c *cli.Command, flags ...string) config.LoadParams {
	p := config.LoadParams{Path: c.String("config"), Getenv: env.Getenv, Flags: map[string]string{}}
	if p.Path == "" {
		p.Path = env.Getenv("ONEJOB_CONFIG")
	}
	for _, flag := range flags {
		if value := c.String(flag); value != "" {
			p.Flags[flag] = value
		}
	}
	return p
}

// loadForStore reads what commands need that only open the store.
func loadForStore(env Env, c *cli.Command) (*config.Config, error) {
	p := loadParams(env, c, "store")
	p.StoreOnly = true
	return config.Load(p)
}

// openStore opens the configured store. The instance secret comes first: a new
// SQLite store gets its own before it has a row.
func openStore(ctx context.Context, cfg *config.Config, migrate bool, log *slog.Logger) (realStore, error) {
	url, err := config.ParseStore(cfg.Store.Value.Reveal())
	if err != nil {
		return nil, err
	}
	mark, err := markOf(cfg)
	if err != nil {
		return nil, err
	}
	if url.Postgres != "" {
		s, err := postgres.Open(ctx, url.Postgres, postgres.Options{
			Migrate: migrate, Durability: postgres.Durability(cfg.Durability), Seen: mark, Logger: log,
		})
		if err != nil {
			return nil, fmt.Errorf("the store %s cannot be opened: %w", url, err)
		}
		return s, nil
	}
	if _, err := cfg.InstanceSecret(); err != nil {
		return nil, err
	}
	s, err := sqlite.Open(ctx, url.SQLite, sqlite.Options{Logger: log})
	if err != nil {
		if cause := unwritable(url.SQLite); cause != nil {
			err = cause // SQLite says no more than that it cannot
		}
		return nil, fmt.Errorf("the store %s cannot be opened: %w", url, err)
	}
	return s, nil
}

// unwritable says why the file of a store cannot be written, if that is so.
func unwritable(path string) error {
	f, err := os.OpenFile(filepath.Clean(path), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// markOf reads the highest number of the store's generation that this node has seen.
func markOf(cfg *config.Config) (int64, error) {
	path, err := cfg.GenerationPath()
	if err != nil {
		return 0, err
	}
	return generation.ReadMark(path)
}
