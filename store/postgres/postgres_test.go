package postgres_test

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob/internal/pgtest"
	"github.com/onejob-dev/onejob/store/postgres"
	"github.com/onejob-dev/onejob/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.MainOnly(m)) }

func TestStore(t *testing.T) {
	t.Parallel()

	storetest.Run(t, func(t *testing.T, handles int) storetest.Opened {
		url := schema(t)
		o := storetest.Opened{}
		for range handles {
			o.Stores = append(o.Stores, open(t, url))
		}
		o.Advance = pgtest.Clock(t, url).Advance
		o.Exec = func(sql string) error { return execute(t, url, sql) }
		return o
	})
}

// schema returns the URL of a migrated schema. The SQL is applied as one text,
// which is several times faster than migrating; TestMigrate does that.
func schema(t testing.TB) string {
	t.Helper()
	url := pgtest.URL(t)
	if err := execute(t, url, postgres.Print()); err != nil {
		t.Fatal(err)
	}
	return url
}

// open opens the schema of url until the test ends.
func open(t testing.TB, url string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), url, postgres.Options{MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// execute runs one statement around the store.
func execute(t testing.TB, url, sql string, args ...any) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	_, err = conn.Exec(t.Context(), sql, args...)
	return err
}

var _ storetest.EventReader = (*postgres.Store)(nil)
