// Package pgtest gives tests a PostgreSQL of their own: one throw-away cluster per
// test process, started when first asked for, and one schema or database per test.
//
// With ONEJOB_TEST_POSTGRES set to a URL, that server is used and none is
// started. Tests are skipped only when there is neither such a URL nor the
// programs of a server.
package pgtest

import (
	"context"
	"errors"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// EnvURL names the environment variable with the URL of a server to use.
const EnvURL = "ONEJOB_TEST_POSTGRES"

// The one server of this process: starting a cluster takes seconds. What tests have
// made and dropped goes through few connections, since each is a process.
var shared struct {
	sync.Mutex
	url     string
	cluster *Cluster // nil: somebody's
	manager *pgxpool.Pool
	err     error
}

// Main runs m's tests and stops the cluster they may have started. It returns
// the status to exit with.
func Main(m *testing.M) int {
	defer Stop()
	return m.Run()
}

// MainOnly is [Main] for a package all of whose tests need PostgreSQL. Where there
// is none it runs nothing, and `go test` says "[no tests to run]" beside the
// package, so that whoever reads the list sees which half was left out.
func MainOnly(m *testing.M) int {
	if _, err := findPrograms(); err != nil && os.Getenv(EnvURL) == "" {
		_, _ = os.Stdout.WriteString("testing: warning: no tests to run\n")
		return 0
	}
	return Main(m)
}

// Stop stops and removes the process's cluster, if one was started.
func Stop() {
	shared.Lock()
	defer shared.Unlock()
	if shared.manager != nil {
		shared.manager.Close()
	}
	if shared.cluster != nil {
		_ = shared.cluster.Remove()
	}
	shared.url, shared.manager, shared.cluster = "", nil, nil
}

// URL returns the URL of an empty schema, which is dropped when the test ends.
func URL(t testing.TB) string {
	t.Helper()
	server, schema := usable(t), newName()
	manage(t, t.Context(), "CREATE SCHEMA "+schema)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		manage(t, ctx, "DROP SCHEMA "+schema+" CASCADE")
	})
	return withSearchPath(t, server, schema)
}

// usable returns the URL of a server that runs, or skips the test for want of one.
func usable(t testing.TB) string {
	t.Helper()
	server, err := serverURL(t.Context())
	if errors.Is(err, ErrNoPrograms) {
		t.Skipf("no PostgreSQL: set %s, or install initdb and postgres", EnvURL)
	}
	if err != nil {
		t.Fatal("start a PostgreSQL:", err)
	}
	return server
}

func serverURL(ctx context.Context) (string, error) {
	shared.Lock()
	defer shared.Unlock()
	if shared.url == "" && shared.err == nil {
		shared.err = findServer(ctx)
	}
	return shared.url, shared.err
}

func findServer(ctx context.Context) error {
	url := os.Getenv(EnvURL)
	if url == "" {
		c, err := startCluster(ctx)
		if err != nil {
			return err
		}
		url, shared.cluster = c.URL(), c
	}
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		return err
	}
	c.MaxConns = 4
	shared.manager, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), c)
	shared.url = url
	return err
}

func startCluster(ctx context.Context) (*Cluster, error) {
	c, err := New(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.Start(ctx); err != nil {
		return nil, errors.Join(err, c.Remove())
	}
	return c, nil
}

func withSearchPath(t testing.TB, server, schema string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return u.String()
}

// manage runs one statement at the server.
func manage(t testing.TB, ctx context.Context, sql string) {
	t.Helper()
	if _, err := shared.manager.Exec(ctx, sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func execute(t testing.TB, ctx context.Context, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
