package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/onejob-dev/onejob"
)

//go:embed migration/*.sql
var migrations embed.FS

// schemaCurrent is the version of the last file in migration.
const schemaCurrent = 2

// migrateTries is how often a program comes back that met another one migrating
// the same file: each step is one transaction, and the loser of a step fails. Nor
// is a file waited for that is just being turned to write-ahead logging.
const (
	migrateTries = 10
	migratePause = 20 * time.Millisecond
)

// Migrate brings the database at path up to date and makes it when there is none.
// Any number of programs may do so at once, and doing it again changes nothing.
// After an error the migrations before the failed one are in place.
func Migrate(ctx context.Context, path string) error {
	return withDB(path, func(db *sql.DB) error {
		var err error
		for range migrateTries {
			var version int64
			version, err = schemaVersion(ctx, db)
			if err == nil && version >= schemaCurrent {
				return checkSchema(version)
			}
			if err == nil {
				err = up(ctx, db)
			}
			if err == nil {
				return nil
			}
			select {
			case <-time.After(migratePause):
			case <-ctx.Done():
			}
		}
		return fmt.Errorf("migrate the schema: %w", err)
	})
}

func up(ctx context.Context, db *sql.DB) error {
	p, err := provider(db)
	if err != nil {
		return err
	}
	_, err = p.Up(ctx)
	return err
}

// Migration is one step of the schema.
type Migration struct {
	Version   int64
	Name      string
	AppliedAt time.Time // zero: not applied
}

// Status lists the steps of the schema, oldest first. It changes nothing but for
// the table that remembers them, which it makes if there is none.
func Status(ctx context.Context, path string) (steps []Migration, err error) {
	err = withDB(path, func(db *sql.DB) error {
		p, err := provider(db)
		if err != nil {
			return err
		}
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

func withDB(path string, use func(*sql.DB) error) (err error) {
	path, err = checkPath(path)
	if err != nil {
		return err
	}
	db, err := OpenDB(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return use(db)
}

func provider(db *sql.DB) (*goose.Provider, error) {
	folder, err := fs.Sub(migrations, "migration")
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectSQLite3, db, folder, goose.WithDisableGlobalRegistry(true))
}

const (
	sqlSchemaExists = `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'goose_db_version'`
	// Zero when there is no schema.
	sqlSchemaVersion = `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`
)

func schemaVersion(ctx context.Context, db *sql.DB) (version int64, err error) {
	var exists bool
	if err := db.QueryRowContext(ctx, sqlSchemaExists).Scan(&exists); err != nil || !exists {
		return 0, err
	}
	err = db.QueryRowContext(ctx, sqlSchemaVersion).Scan(&version)
	return version, err
}

func (x *tx) checkSchema() error {
	var version int64
	err := x.query(sqlSchemaVersion, func(r *row) error { version = r.Int64(); return nil })
	if err != nil {
		return err
	}
	return checkSchema(version)
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
