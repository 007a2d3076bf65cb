package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/sqlite"
)

// What a clock in doubt says of leases would give a waiting caller's job away, and
// forget who waits.
func TestClockTakesNothingOverFromWhoMayStillWait(t *testing.T) {
	t.Parallel()

	c := steppingClock{newWallClock(), &wallClock{}}
	s := open(t, filepath.Join(t.TempDir(), "onejob.db"), sqlite.Options{NowFunc: c.wall.Now, ElapsedFunc: c.Elapsed})
	wait := func(key string) onejob.Waiter {
		p := intent(t, "alice", key)
		p.Part, p.Fingerprint = 7, []byte("the same")
		p.ID = onejob.NewJobID(p.Part, time.UnixMilli(0))
		p.Waiter = &onejob.WaiterCreateParams{Route: "chat", Token: onejob.NewToken(), Lease: 30 * time.Second}
		mustCreate(t, s, p)
		return onejob.Waiter{JobRef: onejob.JobRef{Part: p.Part, ID: p.ID}, Token: p.Waiter.Token}
	}
	take := func() string {
		ref, _, err := s.WaiterTake(t.Context(), onejob.WaiterTakeParams{
			Part: 7, Owner: "alice", Route: "chat", Fingerprint: []byte("the same"), Token: onejob.NewToken(), Lease: time.Hour, Within: 1000 * time.Hour,
		})
		must(t, err)
		return ref.ID
	}
	held, left := wait("k1"), wait("k2")
	_, err := s.WaiterEnd(t.Context(), []onejob.WaiterEndParams{{Waiter: left}})
	must(t, err)
	c.wall.Advance(100 * time.Hour)
	if n, err := s.JobPurge(t.Context(), onejob.JobPurgeParams{WaiterAge: 24 * time.Hour, Limit: 10}); err != nil || n != 0 {
		t.Errorf("while the clock was in doubt %d waiters were forgotten, %v; want none", n, err)
	}
	if got := take(); got != left.ID {
		t.Errorf("while the clock was in doubt job %q was taken over; want %q, whose caller had left", got, left.ID)
	}
	if got := take(); got != "" {
		t.Errorf("while the clock was in doubt job %q was taken over; want none", got)
	}
	c.advance(time.Minute)
	if got := take(); got != held.ID {
		t.Errorf("once the clock had settled job %q was taken over; want %q", got, held.ID)
	}
}
