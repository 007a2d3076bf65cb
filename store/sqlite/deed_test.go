package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/sqlite"
)

// ticking is a store whose clock shows another millisecond each time it is read,
// so that rows of one transaction can be told from those of two.
func ticking(t *testing.T) *sqlite.Store {
	t.Helper()
	var mu sync.Mutex
	now := time.Now()
	return open(t, filepath.Join(t.TempDir(), "onejob.db"), sqlite.Options{NowFunc: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Millisecond)
		return now
	}})
}

func TestWritesThatWaitShareOneTransaction(t *testing.T) {
	t.Parallel()

	s := ticking(t)
	const writes = sqlite.MaxDeeds
	created := make([]onejob.JobCreateResult, writes)
	release := s.Hold()
	var all sync.WaitGroup
	for i := range created {
		all.Go(func() { created[i] = mustCreate(t, s, intent(t, "alice", fmt.Sprint("k", i))) })
	}
	untilWaiting(t, s, writes)
	release()
	all.Wait()
	for i, r := range created {
		if !r.Job.CreatedAt.Equal(created[0].Job.CreatedAt) {
			t.Errorf("job %d was created at %s, job 0 at %s; want one transaction", i, r.Job.CreatedAt, created[0].Job.CreatedAt)
		}
	}
}

// One that fails undoes what they share; the others then have transactions of their own.
func TestAWriteThatFailsNeverFailsThoseItShares(t *testing.T) {
	t.Parallel()

	s := ticking(t)
	release := s.Hold()
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() { mustCreate(t, s, intent(t, "alice", fmt.Sprint("before", i))) })
	}
	untilWaiting(t, s, 3)
	var failed error
	all.Go(func() { failed = s.KeyRevoke(t.Context(), onejob.KeyRevokeParams{ID: "none"}) })
	untilWaiting(t, s, 4)
	for i := range 3 {
		all.Go(func() { mustCreate(t, s, intent(t, "alice", fmt.Sprint("after", i))) })
	}
	untilWaiting(t, s, 7)
	release()
	all.Wait()
	if !errors.Is(failed, onejob.ErrNotFound) {
		t.Errorf("revoking a key that does not exist answered %v; want not-found", failed)
	}
	stats, err := s.Stats(t.Context())
	if err != nil || stats.Jobs[onejob.JobQueued] != 6 {
		t.Errorf("%d jobs exist, %v; want all 6", stats.Jobs[onejob.JobQueued], err)
	}
}

func TestAWriteWhoseCallerLeavesBeforeItBeginsNeverHappens(t *testing.T) {
	t.Parallel()

	s := ticking(t)
	release := s.Hold()
	ctx, leave := context.WithCancel(t.Context())
	answered := make(chan error)
	go func() {
		_, err := s.JobCreate(ctx, []onejob.JobCreateParams{intent(t, "alice", "left")})
		answered <- err
	}()
	untilWaiting(t, s, 1)
	leave()
	if err := <-answered; !errors.Is(err, onejob.ErrStoreUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("who left was answered %v; want store-unavailable, caused by the cancellation", err)
	}
	release()
	mustCreate(t, s, intent(t, "alice", "stayed"))
	stats, err := s.Stats(t.Context())
	if err != nil || stats.Jobs[onejob.JobQueued] != 1 {
		t.Errorf("%d jobs exist, %v; want only the one whose caller stayed", stats.Jobs[onejob.JobQueued], err)
	}
}

// A deed that panics must not leave the others waiting, nor the store without a writer.
func TestAPanicInATransactionLeavesTheStoreUsable(t *testing.T) {
	t.Parallel()

	s := ticking(t)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		s.PanicInTransaction(t.Context())
	}()
	mustCreate(t, s, intent(t, "alice", "k1"))
}

// untilWaiting returns once n writes wait for their turn.
func untilWaiting(t *testing.T, s *sqlite.Store, n int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); s.Waiting() != n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d writes wait; want %d", s.Waiting(), n)
		}
	}
}
