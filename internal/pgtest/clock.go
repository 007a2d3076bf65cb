package pgtest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// VirtualClock is a database's clock that a test can move.
type VirtualClock struct {
	t testing.TB

	mu   sync.Mutex
	conn *pgx.Conn
}

// The function in whose place the test's own comes is made by the migrations.
const sqlReplaceClock = `
CREATE TABLE onejob_clock (ahead interval NOT NULL);
INSERT INTO onejob_clock VALUES ('0');
CREATE OR REPLACE FUNCTION onejob_now() RETURNS timestamptz LANGUAGE sql STABLE
    AS 'SELECT now() + (SELECT ahead FROM onejob_clock)';`

// Clock puts a clock of the test's in the place of the database's, in the
// migrated schema of url. It runs on, and [VirtualClock.Advance] moves it.
func Clock(t testing.TB, url string) *VirtualClock {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	if _, err := conn.Exec(t.Context(), sqlReplaceClock); err != nil {
		t.Fatal("replace the clock:", err)
	}
	return &VirtualClock{t: t, conn: conn}
}

// Advance moves the clock by d, which may be negative.
func (c *VirtualClock) Advance(d time.Duration) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	const ahead = "UPDATE onejob_clock SET ahead = ahead + $1::bigint * interval '1 microsecond'"
	if _, err := c.conn.Exec(c.t.Context(), ahead, d.Microseconds()); err != nil {
		c.t.Fatal("move the clock:", err)
	}
}
