package pgtest_test

import (
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob/internal/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func TestURLGivesEachTestItsOwnSchema(t *testing.T) {
	t.Parallel()

	first, second := connect(t, pgtest.URL(t)), connect(t, pgtest.URL(t))
	for _, conn := range []*pgx.Conn{first, second} {
		if _, err := conn.Exec(t.Context(), "CREATE TABLE same_name (n integer)"); err != nil {
			t.Errorf("create a table in the test's schema: %v", err)
		}
	}
}

func TestKilledClusterStartsAgainWithWhatWasCommitted(t *testing.T) {
	t.Parallel()

	c, err := pgtest.New(t.Context())
	if err != nil {
		t.Skip("no cluster:", err)
	}
	t.Cleanup(func() { _ = c.Remove() })
	start(t, c)
	if _, err := connect(t, c.URL()).Exec(t.Context(), "CREATE TABLE kept AS SELECT 1 AS n"); err != nil {
		t.Fatal(err)
	}
	c.Kill()
	start(t, c)

	var got int
	if err := connect(t, c.URL()).QueryRow(t.Context(), "SELECT n FROM kept").Scan(&got); err != nil || got != 1 {
		t.Errorf("after the kill: %d, %v; want 1", got, err)
	}
}

func TestClockMovesAsTold(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	conn := connect(t, url)
	if _, err := conn.Exec(t.Context(), "CREATE FUNCTION onejob_now() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT now()'"); err != nil {
		t.Fatal(err)
	}
	clock := pgtest.Clock(t, url)
	before := now(t, conn)
	clock.Advance(time.Hour)
	if moved := now(t, conn).Sub(before); moved < time.Hour || moved > time.Hour+time.Minute {
		t.Errorf("the clock moved by %s, want an hour", moved)
	}
}

func start(t *testing.T, c *pgtest.Cluster) {
	t.Helper()
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

func now(t *testing.T, conn *pgx.Conn) time.Time {
	t.Helper()
	var at time.Time
	if err := conn.QueryRow(t.Context(), "SELECT onejob_now()").Scan(&at); err != nil {
		t.Fatal(err)
	}
	return at
}
