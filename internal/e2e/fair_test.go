package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

// Figures of the two owners' load. The provider takes 20 ms in each of 16 slots: 800
// jobs a second at the very most.
const (
	fairLatency = 20 * time.Millisecond
	fairJobs    = 150                   // of the small owner, in each half
	fairPace    = 25 * time.Millisecond // between two of them
	fairTimes   = 10                    // as many of the big owner at each of them, and a backlog before
	fairBacklog = 5000
	// On a machine that does something else besides, commits and not turns decide the
	// slowest percent. Behind the backlog it would be more than ten times this.
	fairFloor = 500 * time.Millisecond
)

// One owner's load may at most double the slowest percent of another's; beyond that
// a job waits for one slot.
func TestABigOwnerDoesNotSlowASmallOneDown(t *testing.T) {
	onEachStore(t, func(t *testing.T, storeURL string) {
		s := newSite(t, storeURL, external, sim.Options{Latency: fairLatency, MaxIntents: 1_000_000})
		n := s.newNode()
		n.start()
		bigs := *s
		bigs.key = s.run("keys", "create", "--owner", "big", "--role", "operator", "--store", storeURL)
		big := &node{site: &bigs, addr: n.addr}

		smallLoad(t, n, "warm-up", 20)
		aloneP50, alone := percentiles(smallLoad(t, n, "alone", fairJobs))
		l := startBigLoad(t, big)
		besideP50, beside := percentiles(smallLoad(t, n, "beside", fairJobs))
		queued := l.stop(20 + 2*fairJobs)
		t.Logf("p50 / p99 of the small owner: alone %s / %s; beside %d times as much of another, with %d jobs waiting at the end, %s / %s: p99 times %.1f",
			aloneP50, alone, fairTimes, queued, besideP50, beside, float64(beside)/float64(alone))
		if queued < 16 {
			t.Errorf("%d jobs of the big owner waited at the end; there was no backlog to stand behind", queued)
		}
		if limit := max(2*alone+fairLatency, fairFloor); beside > limit {
			t.Errorf("beside a big owner the small one's p99 is %s; want at most %s, of %s alone", beside, limit, alone)
		}
	})
}

// smallLoad submits one job every fairPace, each waited for, and returns how long
// each took from the click to its result.
func smallLoad(t *testing.T, n *node, name string, jobs int) []time.Duration {
	t.Helper()
	took := make([]time.Duration, jobs)
	tick := time.NewTicker(fairPace)
	defer tick.Stop()
	var waiting sync.WaitGroup
	for i := range took {
		<-tick.C
		waiting.Go(func() {
			began := time.Now()
			r, err := n.order(t.Context(), fmt.Sprint("small-", name, "-", i), "wait=30")
			if err != nil || r.job.State != "succeeded" {
				t.Errorf("job %d was answered %d %s, %v; want it done", i, r.status, r.job.State, err)
			}
			took[i] = time.Since(began)
		})
	}
	waiting.Wait()
	return took
}

// order submits one order under a preference.
func (n *node) order(ctx context.Context, order, prefer string) (reply, error) {
	return n.send(ctx, http.MethodPost, "/v1/jobs", fmt.Sprintf(`{"kind":"charge","input":{"order":%q,"amount":42}}`, order),
		"Idempotency-Key", "key-"+order, "Prefer", prefer)
}

func percentiles(took []time.Duration) (p50, p99 time.Duration) {
	slices.Sort(took)
	return took[len(took)/2], took[len(took)*99/100-1]
}

// bigLoad is an owner who has more to do than the slots can.
type bigLoad struct {
	t      *testing.T
	n      *node
	cancel context.CancelFunc
	done   sync.WaitGroup
	made   atomic.Int64
}

// startBigLoad makes a backlog, and then adds to it fairTimes as fast as the small
// owner works, until stopped.
func startBigLoad(t *testing.T, n *node) *bigLoad {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &bigLoad{t: t, n: n, cancel: cancel}
	work := map[string]string{}
	for i := range fairBacklog {
		work[fmt.Sprint("backlog-", i)] = ""
	}
	eachOf(work, func(order, _ string) { l.submit(ctx, order) })
	l.done.Go(func() {
		tick := time.NewTicker(fairPace / fairTimes)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-tick.C:
				l.done.Go(func() { l.submit(ctx, fmt.Sprint("more-", i)) })
			case <-ctx.Done():
				return
			}
		}
	})
	return l
}

func (l *bigLoad) submit(ctx context.Context, order string) {
	r, err := l.n.order(ctx, "big-"+order, "respond-async")
	if ctx.Err() == nil && (err != nil || r.status != http.StatusAccepted && r.status != http.StatusOK) {
		l.t.Errorf("%s was answered %d %s, %v", order, r.status, r.job.Code, err)
	}
	l.made.Add(1)
}

// stop ends the load and returns how many of its jobs had not been begun by then.
func (l *bigLoad) stop(others int) (queued int) {
	l.cancel()
	l.done.Wait()
	return int(l.made.Load()-l.n.site.provider.TotalExecutions()) + others
}
