package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"
)

// load submits orders until stopped, each until it is acknowledged, and remembers
// what was acknowledged.
type load struct {
	t      *testing.T
	nodes  []*node
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu    sync.Mutex
	acked map[string]string // job id by order
	next  int
}

// startLoad submits from the given number of callers, spread over nodes.
func startLoad(t *testing.T, callers int, nodes ...*node) *load {
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{t: t, nodes: nodes, cancel: cancel, acked: map[string]string{}}
	for range callers {
		l.done.Go(func() {
			for ctx.Err() == nil {
				l.submitOne(ctx, l.order())
			}
		})
	}
	return l
}

func (l *load) order() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	return fmt.Sprintf("order-%06d", l.next)
}

// submitOne sends one order, with the same key each time, until some node
// acknowledges it or the load ends.
func (l *load) submitOne(ctx context.Context, order string) {
	for try := 0; ctx.Err() == nil; try++ {
		n := l.nodes[(len(order)+int(order[len(order)-1])+try)%len(l.nodes)]
		r, err := n.submit(ctx, order)
		switch {
		case err == nil && (r.status == http.StatusAccepted || r.status == http.StatusOK):
			l.ack(order, r.job.ID)
			return
		case err == nil && r.status < 500 && r.status != http.StatusTooManyRequests:
			l.t.Errorf("%s was answered %d %s", order, r.status, r.job.Code)
			return
		}
		pause(ctx, 20*time.Millisecond)
	}
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (l *load) ack(order, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked[order] = id
}

func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// stop ends the load and returns what was acknowledged.
func (l *load) stop() map[string]string {
	l.cancel()
	l.done.Wait()
	return maps.Clone(l.acked)
}

// audit holds what was acknowledged against what is there and against what the
// provider did.
func audit(t *testing.T, n *node, acked map[string]string) (succeeded, blocked int) {
	t.Helper()
	checkSameIDs(t, n, acked)
	jobs := settled(t, n, acked)
	for order, id := range acked {
		j, executions := jobs[id], n.site.provider.Executions(order)
		switch {
		case executions > 1:
			t.Errorf("%s was executed %d times", order, executions)
		case j.State == "succeeded" && executions != 1:
			t.Errorf("%s succeeded with %d executions", order, executions)
		case j.State == "succeeded":
			succeeded++
		case j.State == "blocked" && j.Blocked.Reason == "attempt_unknown" && j.Blocked.Detail != "":
			blocked++
		case j.State == "blocked" && j.Blocked.Reason == "parked" && executions == 0:
			blocked++ // a kill met each of its attempts before it was sent
		default:
			t.Errorf("%s is %s (%+v)", order, j.State, j.Blocked)
		}
	}
	return succeeded, blocked
}

// checkSameIDs sends every intent again.
func checkSameIDs(t *testing.T, n *node, acked map[string]string) {
	t.Helper()
	eachOf(acked, func(order, id string) {
		r, err := n.submit(t.Context(), order)
		if err != nil || r.job.ID != id || !r.replayed {
			t.Errorf("%s, acknowledged as %s, is now %s (replayed %t, %d, %v)", order, id, r.job.ID, r.replayed, r.status, err)
		}
	})
}

// settled waits until no acknowledged job is queued or running.
func settled(t *testing.T, n *node, acked map[string]string) map[string]job {
	t.Helper()
	var mu sync.Mutex
	jobs := map[string]job{}
	eachOf(acked, func(order, id string) {
		ok := eventually(60*time.Second, func() bool {
			r, err := n.get(t.Context(), id)
			if err != nil || r.status != http.StatusOK {
				return false
			}
			mu.Lock()
			defer mu.Unlock()
			jobs[id] = r.job
			return r.job.State != "queued" && r.job.State != "running"
		})
		if !ok {
			t.Errorf("%s (%s) has not settled: %+v", order, id, jobs[id])
		}
	})
	return jobs
}

// eachOf calls do for every entry, sixteen at a time.
func eachOf(entries map[string]string, do func(key, value string)) {
	work := make(chan [2]string)
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for e := range work {
				do(e[0], e[1])
			}
		})
	}
	for k, v := range entries {
		work <- [2]string{k, v}
	}
	close(work)
	workers.Wait()
}
