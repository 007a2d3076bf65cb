package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/onejob-dev/onejob"
)

//go:embed migration/*.sql
var migrations embed.FS

// schemaCurrent is the version of the last file in migration.
const schemaCurrent = 1

// Two programs that migrate at once take turns: so often one asks, so many times.
const (
	lockInterval = 200 * time.Millisecond
	lockTries    = 1500
)

// Migrate brings the schema named by url's search_path up to date. Any number of
// programs may do so at once, and doing it again changes nothing. After an error
// the migrations before the failed one are in place.
func Migrate(ctx context.Context, url string) error {
	return withProvider(url, func(p *goose.Provider) error {
		if _, err := p.Up(ctx); err != nil {
			return fmt.Errorf("migrate the schema: %w", err)
		}
		return nil
	})
}

// Migration is one step of the schema.
type Migration struct {
	Version   int64
	Name      string
	AppliedAt time.Time // zero: not applied
}

// Status lists the steps of the schema, oldest first. It changes nothing but for
// the table that remembers them, which it makes if there is none.
func Status(ctx context.Context, url string) (steps []Migration, err error) {
	err = withProvider(url, func(p *goose.Provider) error {
		status, err := p.Status(ctx)
		if err != nil {
			return fmt.Errorf("read the state of the schema: %w", err)
		}
		for _, s := range status {
			steps = append(steps, Migration{Version: s.Source.Version, Name: s.Source.Path, AppliedAt: s.AppliedAt.UTC()})
		}
		return nil
	})
	return steps, err
}

// Print returns the SQL of every step, oldest first, for who applies it by hand.
func Print() string {
	var out strings.Builder
	names, _ := fs.Glob(migrations, "migration/*.sql") // the pattern is well formed
	for _, name := range names {
		body, _ := migrations.ReadFile(name) // it was listed
		fmt.Fprintf(&out, "-- %s\n%s\n", name, body)
	}
	return out.String()
}

func withProvider(url string, use func(*goose.Provider) error) (err error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return &onejob.Error{Code: onejob.CodeInvalidArgument, Message: "the URL of the database is not valid", Err: err}
	}
	db := stdlib.OpenDB(*config)
	defer func() { err = errors.Join(err, db.Close()) }()
	p, err := provider(db)
	if err != nil {
		return err
	}
	return use(p)
}

func provider(db *sql.DB) (*goose.Provider, error) {
	folder, err := fs.Sub(migrations, "migration")
	if err != nil {
		return nil, err
	}
	locker, err := lock.NewPostgresTableLocker(lock.WithTableLockTimeout(lockInterval, lockTries))
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, db, folder,
		goose.WithLocker(locker), goose.WithDisableGlobalRegistry(true))
}

// Zero when there is no schema.
const sqlSchemaVersion = `SELECT coalesce(max(version_id) FILTER (WHERE is_applied), 0) FROM goose_db_version`

func schemaVersion(ctx context.Context, db querier) (version int64, err error) {
	var exists bool
	if err := db.QueryRow(ctx, `SELECT to_regclass('goose_db_version') IS NOT NULL`).Scan(&exists); err != nil || !exists {
		return 0, err
	}
	err = db.QueryRow(ctx, sqlSchemaVersion).Scan(&version)
	return version, err
}

func checkSchema(version int64) error {
	switch {
	case version < schemaCurrent:
		return &onejob.Error{
			Code:    onejob.CodeStoreUnavailable,
			Message: fmt.Sprintf("the schema is at version %d and this program needs %d: run `onejob migrate up`", version, schemaCurrent),
		}
	case version > schemaCurrent:
		return &onejob.Error{
			Code:    onejob.CodeStoreUnavailable,
			Message: fmt.Sprintf("the schema is at version %d, made by a newer program; this one knows %d", version, schemaCurrent),
		}
	}
	return nil
}
