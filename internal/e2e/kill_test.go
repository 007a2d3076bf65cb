package e2e_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/internal/pgtest"
	"github.com/onejob-dev/onejob/sim"
)

const external = "{effect: external, targets: [acme], timeout: 5s, linger: 5s}"

// A process that dies in the middle of work is where queues lose jobs or run them
// twice, and where idempotency middleware leaves keys "in progress" for ever
// (VilledeMontreal/express-idempotency#32, ikyriak/IdempotentAPI#37).
func TestKillingANodeUnderLoadLosesNothingAndSendsNothingTwice(t *testing.T) {
	onBothStores(t, func(t *testing.T, storeURL string) {
		s := newSite(t, storeURL, external, sim.Options{Latency: 5 * time.Millisecond})
		n := s.newNode()
		n.start()
		l := startLoad(t, 16, n)
		const kills = 20
		for range kills {
			before := l.count()
			if !eventually(20*time.Second, func() bool { return l.count() >= before+10 }) {
				t.Fatal("a node acknowledged fewer than 10 jobs in 20 seconds; the load does not load")
			}
			pause(t.Context(), time.Duration(150+rand.IntN(250))*time.Millisecond)
			n.kill()
			n.start()
		}
		acked := l.stop()
		succeeded, blocked := audit(t, n, acked)
		t.Logf("%d kills: %d acknowledged, 0 lost; %d succeeded, %d unknown; %d executions at the provider, %d twice",
			kills, len(acked), succeeded, blocked, s.provider.TotalExecutions(), len(s.provider.Duplicates()))
		if twice := s.provider.Duplicates(); len(twice) != 0 {
			t.Errorf("executed more than once: %v", twice)
		}
	})
}

// Clicking fast made four transactions (dancerfly/django-brambling#658), and two
// calls with one id both did the work (dbos-inc/dbos-transact-py#544,
// square1-io/laravel-idempotency#1).
func TestTwoNodesAreOneDoubleClickGuard(t *testing.T) {
	s := newSite(t, pgtest.URL(t), external, sim.Options{Latency: 100 * time.Millisecond})
	nodes := []*node{s.newNode(), s.newNode()}
	for _, n := range nodes {
		n.start()
	}
	const clicks = 200
	replies := make(chan reply, clicks)
	clickers := map[string]string{}
	for i := range clicks {
		clickers[strings.Repeat("x", i+1)] = ""
	}
	eachOf(clickers, func(x, _ string) {
		r, err := nodes[len(x)%2].submit(t.Context(), "one-order")
		if err != nil {
			t.Error(err)
		}
		replies <- r
	})
	close(replies)
	ids, fresh := map[string]int{}, 0
	for r := range replies {
		ids[r.job.ID]++
		if !r.replayed {
			fresh++
		}
	}
	settled(t, nodes[0], map[string]string{"one-order": firstKey(ids)})
	t.Logf("%d clicks over two nodes: %d id, %d first, %d execution at the provider", clicks, len(ids), fresh, s.provider.Executions("one-order"))
	if len(ids) != 1 || fresh != 1 || s.provider.Executions("one-order") != 1 {
		t.Errorf("%d ids, %d answers not marked as replays, %d executions; want 1, 1, 1", len(ids), fresh, s.provider.Executions("one-order"))
	}
}

func firstKey(m map[string]int) string {
	for k := range m {
		return k
	}
	return ""
}

func TestASigtermUnderLoadDrainsWithoutAnUnknownAttempt(t *testing.T) {
	onBothStores(t, func(t *testing.T, storeURL string) {
		s := newSite(t, storeURL, external, sim.Options{Latency: 30 * time.Millisecond})
		n := s.newNode()
		n.start()
		l := startLoad(t, 8, n)
		const restarts = 5
		for range restarts {
			before := l.count()
			if !eventually(10*time.Second, func() bool { return l.count() > before+20 }) {
				t.Fatal("the load stands still")
			}
			if err := n.terminate(); err != nil {
				t.Errorf("the node ended with %v; want exit 0", err)
			}
			n.start()
		}
		acked := l.stop()
		succeeded, blocked := audit(t, n, acked)
		t.Logf("%d restarts: %d acknowledged, %d succeeded, %d unknown", restarts, len(acked), succeeded, blocked)
		if blocked != 0 {
			t.Errorf("%d attempts became unknown; want none with a drain longer than every call", blocked)
		}
	})
}

// A store that timed out let the request through, more than once
// (ikyriak/IdempotentAPI#23).
func TestADatabaseThatGoesAwayStopsTheSendingAndNothingIsLost(t *testing.T) {
	cluster := newCluster(t)
	s := newSite(t, cluster.URL(), external, sim.Options{Latency: 5 * time.Millisecond})
	n := s.newNode()
	n.start()
	l := startLoad(t, 8, n)
	const outages = 5
	for range outages {
		before := l.count()
		if !eventually(20*time.Second, func() bool { return l.count() > before+20 }) {
			t.Fatal("the load stands still")
		}
		if err := cluster.Stop(); err != nil {
			t.Fatal(err)
		}
		if !eventually(5*time.Second, func() bool { return !n.ready() }) {
			t.Error("the node says it is ready without its database")
		}
		pause(t.Context(), 500*time.Millisecond)
		if err := cluster.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !eventually(10*time.Second, n.ready) {
			t.Fatal("the node did not recover by itself")
		}
	}
	acked := l.stop()
	succeeded, blocked := audit(t, n, acked)
	t.Logf("%d outages: %d acknowledged, 0 lost; %d succeeded, %d unknown, %d executed twice", outages, len(acked), succeeded, blocked, len(s.provider.Duplicates()))
}

func newCluster(t *testing.T) *pgtest.Cluster {
	t.Helper()
	cluster, err := pgtest.New(t.Context())
	if err != nil {
		t.Skipf("no PostgreSQL: %v", err)
	}
	t.Cleanup(func() { _ = cluster.Remove() })
	if err := cluster.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return cluster
}
