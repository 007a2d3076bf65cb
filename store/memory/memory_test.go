package memory_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/memory"
	"github.com/onejob-dev/onejob/store/storetest"
)

func TestStore(t *testing.T) {
	t.Parallel()

	storetest.Run(t, func(t *testing.T, handles int) storetest.Opened {
		t.Helper()
		c := &clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		s := memory.Open(memory.Options{NowFunc: c.Now})
		t.Cleanup(func() { _ = s.Close() })
		opened := storetest.Opened{Advance: c.Advance}
		for range handles {
			opened.Stores = append(opened.Stores, s)
		}
		return opened
	})
}

// clock is a clock that stands still until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// TestTheZeroOptionsTellABubblesTime shows that a lease ends by the fake clock of
// testing/synctest, with nothing running in the background.
func TestTheZeroOptionsTellABubblesTime(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		s := memory.Open(memory.Options{})
		policy, err := onejob.Policy{Effect: onejob.EffectExternal, Targets: []string{"a"}}.WithDefaults()
		if err != nil {
			t.Fatal(err)
		}
		start := onejob.StartParams{Worker: "w", Lease: time.Hour, Targets: map[string]onejob.TargetPins{"a": {}}}
		created, err := s.JobCreate(t.Context(), []onejob.JobCreateParams{{
			ID: onejob.NewJobID(0, time.Now()), Owner: "alice", KeyHash: []byte("k"), Fingerprint: []byte("f"),
			Token: "t", Kind: "charge", Input: []byte("{}"), Policy: policy, Start: &start,
		}})
		if err != nil || created[0].Started == nil {
			t.Fatalf("creating answered %+v, %v; want a started job", created, err)
		}
		time.Sleep(time.Hour - time.Second)
		if refs, err := s.AttemptExpired(t.Context(), 10); err != nil || len(refs) != 0 {
			t.Errorf("a second early, %v are expired, %v; want none", refs, err)
		}
		time.Sleep(time.Second)
		if refs, err := s.AttemptExpired(t.Context(), 10); err != nil || len(refs) != 1 {
			t.Errorf("after an hour, %v are expired, %v; want the one attempt", refs, err)
		}
	})
}
