package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/onejob-dev/onejob/internal/config"
	"github.com/onejob-dev/onejob/store/postgres"
	"github.com/onejob-dev/onejob/store/sqlite"
)

func migrateCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "migrate", Usage: "bring the store's schema up to date",
		Description: "A SQLite store migrates itself whenever it is opened. On PostgreSQL this is the\nstep before a new version is started; any number of programs may do it at once.",
		Commands: []*cli.Command{
			{
				Name: "up", Usage: "apply what is missing", Flags: []cli.Flag{storeFlag(), configFlag()},
				Action: func(ctx context.Context, c *cli.Command) error { return runMigrateUp(ctx, env, c) },
			},
			{
				Name: "status", Usage: "list the steps and when they were applied; exit code 1 if any is missing",
				Flags:  []cli.Flag{storeFlag(), configFlag(), outputFlag()},
				Action: func(ctx context.Context, c *cli.Command) error { return runMigrateStatus(ctx, env, c) },
			},
			{
				Name: "print", Usage: "write the SQL for PostgreSQL to stdout, for who applies it by hand",
				Action: func(_ context.Context, c *cli.Command) error {
					if err := noArguments(c); err != nil {
						return err
					}
					_, err := io.WriteString(env.Stdout, postgres.Print())
					return err
				},
			},
		},
	}
}

func storeOf(env Env, c *cli.Command) (*config.Config, config.StoreURL, error) {
	if err := noArguments(c); err != nil {
		return nil, config.StoreURL{}, err
	}
	cfg, err := loadForStore(env, c)
	if err != nil {
		return nil, config.StoreURL{}, err
	}
	url, err := config.ParseStore(cfg.Store.Value.Reveal())
	return cfg, url, err
}

func runMigrateUp(ctx context.Context, env Env, c *cli.Command) error {
	cfg, url, err := storeOf(env, c)
	if err != nil {
		return err
	}
	if url.Postgres != "" {
		if err := postgres.Migrate(ctx, url.Postgres); err != nil {
			return fmt.Errorf("the store %s: %w", url, err)
		}
	} else {
		store, err := openStore(ctx, cfg, true, nil)
		if err != nil {
			return err
		}
		if err := store.Close(); err != nil {
			return err
		}
	}
	say(env, "%s is up to date", url)
	return nil
}

// stepView is one step of a schema as it is printed.
type stepView struct {
	Version   int64     `json:"version"`
	Name      string    `json:"name"`
	AppliedAt time.Time `json:"applied_at,omitzero"`
	// Foreign says that another build applied it, as another step.
	Foreign bool `json:"foreign,omitzero"`
}

func runMigrateStatus(ctx context.Context, env Env, c *cli.Command) error {
	_, url, err := storeOf(env, c)
	if err != nil {
		return err
	}
	if url.SQLite != "" {
		return sqliteStatus(ctx, env, url)
	}
	steps, refusal := postgres.Status(ctx, url.Postgres)
	if refusal != nil {
		refusal = fmt.Errorf("the store %s: %w", url, refusal)
	}
	if len(steps) == 0 {
		return refusal
	}
	list := rows{headings: []string{"VERSION", "NAME", "APPLIED"}}
	views := make([]stepView, len(steps))
	missing := 0
	for i, s := range steps {
		views[i] = stepView{s.Version, s.Name, s.AppliedAt, s.Foreign}
		applied := when(s.AppliedAt)
		switch {
		case s.AppliedAt.IsZero():
			applied = "missing"
			missing++
		case s.Foreign:
			applied += ", by another build"
		}
		item, err := json.Marshal(views[i])
		if err != nil {
			return err
		}
		list.items = append(list.items, item)
		list.cells = append(list.cells, []string{strconv.FormatInt(s.Version, 10), s.Name, applied})
	}
	if list.envelope, err = json.Marshal(map[string]any{"items": views}); err != nil {
		return err
	}
	if err := list.print(env, c); err != nil {
		return err
	}
	if refusal == nil && missing > 0 {
		return errors.New("the schema is not up to date: run onejob migrate up")
	}
	return refusal
}

// sqliteStatus says whether a file can be opened. One that is not there is not made.
func sqliteStatus(ctx context.Context, env Env, url config.StoreURL) error {
	if _, err := os.Stat(url.SQLite); err == nil {
		if _, err := sqlite.Status(ctx, url.SQLite); err != nil {
			return fmt.Errorf("the store %s: %w", url, err)
		}
	}
	say(env, "%s migrates itself whenever it is opened", url)
	return nil
}
