package pgtest

import (
	"testing"
	"time"
)

// VirtualClock is a database's clock that a test can move.
type VirtualClock struct {
	t   testing.TB
	url string
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
	execute(t, t.Context(), url, sqlReplaceClock)
	return &VirtualClock{t: t, url: url}
}

// Advance moves the clock by d, which may be negative.
func (c *VirtualClock) Advance(d time.Duration) {
	c.t.Helper()
	execute(c.t, c.t.Context(), c.url, "UPDATE onejob_clock SET ahead = ahead + $1::bigint * interval '1 microsecond'", d.Microseconds())
}
