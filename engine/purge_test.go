package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/engine"
)

// slowPurge is a store whose purging takes a while, and is written down.
type slowPurge struct {
	onejob.Store
	takes time.Duration

	mu      sync.Mutex
	batches []purgeBatch
}

type purgeBatch struct {
	began, ended time.Time
	limit        int
	purged       int
}

func (s *slowPurge) JobPurge(ctx context.Context, p onejob.JobPurgeParams) (int, error) {
	b := purgeBatch{began: time.Now(), limit: p.Limit}
	time.Sleep(s.takes)
	n, err := s.Store.JobPurge(ctx, p)
	b.ended, b.purged = time.Now(), n
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = append(s.batches, b)
	return n, err
}

func TestJobsThatAreOldAllAtOnceArePurgedInSmallBatchesWithPauses(t *testing.T) {
	const jobs, takes = 1000, 40 * time.Millisecond
	slow := &slowPurge{takes: takes}
	in(t, setting{
		targets: map[string]behaviour{"a": answers(`1`)}, engine: engine.Options{KeepPayloads: time.Hour},
		wrap: func(s onejob.Store) onejob.Store { slow.Store = s; return slow },
	}, func(w *world) {
		var last string
		for i := range jobs {
			last = w.submit(fmt.Sprint(i)).ID
		}
		w.until(last, onejob.JobSucceeded)
		time.Sleep(59 * time.Minute)
		slow.mu.Lock()
		slow.batches = nil
		slow.mu.Unlock()
		time.Sleep(5 * time.Minute)
		slow.mu.Lock()
		defer slow.mu.Unlock()
		purged := 0
		for i, b := range slow.batches {
			purged += b.purged
			if b.limit > 100 {
				t.Errorf("batch %d asks for %d jobs; want 100 at most", i, b.limit)
			}
			if i > 0 && b.began.Sub(slow.batches[i-1].ended) < 2*takes {
				t.Errorf("batch %d began %s after the last had ended; want %s at least", i, b.began.Sub(slow.batches[i-1].ended), 2*takes)
			}
		}
		if purged != jobs {
			t.Errorf("%d jobs were purged; want %d", purged, jobs)
		}
	})
}
