package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

// A schedule that was recorded in three steps lost its work, or did it twice, when
// the process died between two of them (hatchet-dev/hatchet#4129).
func TestAScheduledJobOutlivesAnyCrashAndStartsOnceAndNotEarly(t *testing.T) {
	onBothStores(t, func(t *testing.T, storeURL string) {
		s := newSite(t, storeURL, external, sim.Options{Latency: 5 * time.Millisecond})
		n := s.newNode()
		n.start()

		const rounds, callers = 6, 8
		acked, due, mu := map[string]string{}, map[string]time.Time{}, sync.Mutex{}
		for round := range rounds {
			at := time.Now().Add(1500 * time.Millisecond).Truncate(time.Millisecond)
			var all sync.WaitGroup
			for i := range callers {
				order := fmt.Sprintf("scheduled-%d-%d", round, i)
				all.Go(func() {
					id := submitAt(t, n, order, at)
					mu.Lock()
					defer mu.Unlock()
					acked[order], due[order] = id, at
				})
			}
			// Once while it is recorded, once about when it is due.
			for _, wait := range []int{rand.IntN(60), 1300 + rand.IntN(300)} {
				pause(t.Context(), time.Duration(wait)*time.Millisecond)
				n.kill()
				n.start()
			}
			all.Wait()
		}
		jobs := settled(t, n, acked)
		succeeded, blocked := 0, 0
		for order, id := range acked {
			j, executions := jobs[id], s.provider.Executions(order)
			switch {
			case executions > 1:
				t.Errorf("%s was executed %d times", order, executions)
			case j.State == "succeeded" && executions == 1:
				succeeded++
			case j.State == "blocked" && j.Blocked.Reason == "attempt_unknown":
				blocked++
			default:
				t.Errorf("%s is %s with %d executions", order, j.State, executions)
			}
			if again := submitAt(t, n, order, due[order]); again != id {
				t.Errorf("%s, acknowledged as %s, is now %s", order, id, again)
			}
		}
		for _, e := range s.provider.Ledger() {
			if early := due[e.Intent].Sub(e.ReceivedAt); early > 0 {
				t.Errorf("%s was sent %s early", e.Intent, early)
			}
		}
		t.Logf("%d kills around %d scheduled jobs: %d succeeded, %d unknown, 0 lost", 2*rounds, len(acked), succeeded, blocked)
		if succeeded == 0 {
			t.Error("no job succeeded")
		}
	})
}

// submitAt repeats the same intent with the same key until it is acknowledged.
func submitAt(t *testing.T, n *node, order string, at time.Time) string {
	body := fmt.Sprintf(`{"kind":"charge","input":{"order":%q},"run_after":%q}`, order, at.UTC().Format(time.RFC3339Nano))
	for {
		r, err := n.send(t.Context(), http.MethodPost, "/v1/jobs", body, "Idempotency-Key", "key-"+order)
		switch {
		case err == nil && r.status/100 == 2:
			return r.job.ID
		case t.Context().Err() != nil:
			t.Errorf("%s was never acknowledged: %v", order, err)
			return ""
		case err == nil && r.status < 500 && r.status != http.StatusTooManyRequests:
			t.Errorf("%s was answered %d %s", order, r.status, r.job.Code)
			return ""
		}
		pause(t.Context(), 20*time.Millisecond)
	}
}
