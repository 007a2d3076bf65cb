package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/onejob-dev/onejob/store/internal/schema"
)

//go:embed migration/*.sql
var migrations embed.FS

// steps are the migrations, as they are applied.
var steps = sync.OnceValues(func() (schema.Steps, error) {
	folder, err := fs.Sub(migrations, "migration")
	if err != nil {
		return schema.Steps{}, err
	}
	return schema.Read(folder, "with the server stopped, `mkdir old && mv FILE* old/`, which takes what lies beside it along; a new one is made when the server starts")
})

// migrateTries is how often a program comes back that met another one migrating
// the same file: each step is one transaction, and the loser of a step fails. Nor
// is a file waited for that is just being turned to write-ahead logging.
const (
	migrateTries = 10
	migratePause = 20 * time.Millisecond
)

// Migrate brings the database at path up to date and makes it when there is none.
// Any number of programs may do so at once, and doing it again changes nothing.
// After an error the migrations before the failed one are in place. A database whose
// schema was made by another build is refused, and left as it is.
func Migrate(ctx context.Context, path string) error {
	known, err := steps()
	if err != nil {
		return err
	}
	return withDB(path, func(db *sql.DB) error {
		var err error
		for range migrateTries {
			var found schema.Found
			found, err = readSchema(ctx, db)
			if err == nil {
				if err := known.Known(found); err != nil || found.Version == known.Current() {
					return err
				}
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
	// Foreign says that it was applied by another build, as another step.
	Foreign bool
}

// Status lists the steps of the schema, oldest first. It changes nothing but for
// the table that remembers them, which it makes if there is none. Of a schema that
// [Open] refuses for good it returns the steps, and why.
func Status(ctx context.Context, path string) (list []Migration, err error) {
	known, err := steps()
	if err != nil {
		return nil, err
	}
	err = withDB(path, func(db *sql.DB) error {
		p, err := provider(db)
		if err != nil {
			return err
		}
		status, err := p.Status(ctx)
		if err != nil {
			return fmt.Errorf("read the state of the schema: %w", err)
		}
		found, err := readSchema(ctx, db)
		if err != nil {
			return err
		}
		for i, s := range status {
			applied := !s.AppliedAt.IsZero()
			list = append(list, Migration{Version: s.Source.Version, Name: s.Source.Path, AppliedAt: s.AppliedAt.UTC(), Foreign: applied && !known.Same(found, i)})
		}
		return known.Known(found)
	})
	return list, err
}

// Print returns the SQL of every step, oldest first, for who applies it by hand.
func Print() string {
	var out strings.Builder
	known, _ := steps() // the migrations are a part of this program
	for i := range int(known.Current()) {
		name, text, _ := known.Text(i)
		fmt.Fprintf(&out, "-- %s\n%s\n", name, text)
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
	known, err := steps()
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectSQLite3, db, known, goose.WithDisableGlobalRegistry(true))
}

const (
	sqlTableExists = `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?`
	// Zero when there is no schema.
	sqlSchemaVersion = `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`
	sqlSchemaSteps   = `SELECT coalesce(group_concat(digest, ' '), '') FROM (SELECT digest FROM schema_steps ORDER BY version)`
)

// readSchema finds out what there is of a schema. Another program may be making it: what
// a step remembers is looked for after it was seen that the step is applied.
func readSchema(ctx context.Context, db *sql.DB) (found schema.Found, err error) {
	var there bool
	if err := db.QueryRowContext(ctx, sqlTableExists, "goose_db_version").Scan(&there); err != nil || !there {
		return found, err
	}
	if err := db.QueryRowContext(ctx, sqlSchemaVersion).Scan(&found.Version); err != nil {
		return found, err
	}
	if err := db.QueryRowContext(ctx, sqlTableExists, "schema_steps").Scan(&there); err != nil || !there {
		return found, err
	}
	var digests string
	err = db.QueryRowContext(ctx, sqlSchemaSteps).Scan(&digests)
	found.Digests = strings.Fields(digests)
	return found, err
}

// checkSchema refuses a schema that is not this program's any more.
func (x *tx) checkSchema() error {
	known, err := steps()
	if err != nil {
		return err
	}
	var found schema.Found
	if err := x.query(sqlSchemaVersion, func(r *row) error { found.Version = r.Int64(); return nil }); err != nil {
		return err
	}
	if err := x.query(sqlSchemaSteps, func(r *row) error { found.Digests = strings.Fields(r.String()); return nil }); err != nil {
		return err
	}
	return known.Check(found)
}
