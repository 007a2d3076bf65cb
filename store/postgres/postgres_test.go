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
		o.Behind = func(sql string, do func()) error { return behind(t, url, sql, do) }
		return o
	})
}

// schema returns the URL of a migrated database. The SQL is applied as one text, and
// copied; TestMigrate migrates.
func schema(t testing.TB) string {
	t.Helper()
	return pgtest.Copy(t, postgres.Print())
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

// behind runs one statement in a transaction of its own, then do, and commits once do
// has ended or a lock that the transaction holds is waited for.
func behind(t *testing.T, url, sql string, do func()) error {
	t.Helper()
	tx := begin(t, url)
	var pid int
	if err := tx.QueryRow(t.Context(), sql+" RETURNING pg_backend_pid()").Scan(&pid); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		do()
	}()
	watch, err := pgx.Connect(t.Context(), url)
	if err != nil {
		return err
	}
	defer func() { _ = watch.Close(context.WithoutCancel(t.Context())) }()
	for waited := false; !waited; {
		select {
		case <-ended:
			waited = true
		default:
			const isBlocked = `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))`
			if err := watch.QueryRow(t.Context(), isBlocked, pid).Scan(&waited); err != nil {
				return err
			}
		}
	}
	err = tx.Commit(t.Context())
	<-ended
	return err
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
