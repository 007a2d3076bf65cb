package doorbell_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/engine"
	"github.com/onejob-dev/onejob/internal/pgtest"
	"github.com/onejob-dev/onejob/store/doorbell"
	"github.com/onejob-dev/onejob/store/grouped"
	"github.com/onejob-dev/onejob/store/postgres"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// poll is how often a node looks by itself: what is seen sooner was heard.
const poll = 10 * time.Second

// node is a client and an engine on a PostgreSQL that it shares with others.
type node struct {
	signals *onejob.Signals
	client  *onejob.Client
	log     *text
}

// provider answers when it is told to, and says when it is asked to give up.
type provider struct {
	began, release, gaveUp chan struct{}
}

func newProvider() *provider {
	return &provider{began: make(chan struct{}, 10), release: make(chan struct{}), gaveUp: make(chan struct{}, 10)}
}

func (p *provider) Call(ctx context.Context, r onejob.Request) (onejob.Answer, error) {
	r.Sent()
	p.began <- struct{}{}
	select {
	case <-p.release:
		return onejob.Answer{Body: []byte(`1`)}, nil
	case <-ctx.Done():
		return onejob.Answer{}, ctx.Err()
	}
}

func (p *provider) Cancel(context.Context, onejob.ProbeRequest) error {
	p.gaveUp <- struct{}{}
	return nil
}

func schema(t *testing.T) string {
	t.Helper()
	url := pgtest.URL(t)
	exec(t, url, postgres.Print())
	return url
}

func exec(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// newNode starts a node, with an engine if it has a provider.
func newNode(t *testing.T, url string, p onejob.Provider, interval time.Duration) *node {
	t.Helper()
	store, err := postgres.Open(t.Context(), url, postgres.Options{MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	shared, err := grouped.New(store, grouped.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{signals: &onejob.Signals{}, log: &text{}}
	bell := doorbell.New(store, n.signals, doorbell.Options{Logger: slog.New(slog.NewTextHandler(n.log, nil))})
	n.client, err = onejob.New(shared, onejob.Options{
		Secret: []byte("a secret of sixteen"), Signals: n.signals, PollInterval: interval,
		Kinds: map[string]onejob.Kind{"k": {Policy: onejob.Policy{Effect: onejob.EffectExternal, Targets: []string{"a"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var done sync.WaitGroup
	done.Go(func() { bell.Run(ctx) })
	if p != nil {
		e, err := engine.New(shared, []onejob.Target{{Name: "a", Provider: p}}, engine.Options{Signals: n.signals, PollInterval: interval, Drain: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		done.Go(func() { _ = e.Run(ctx) }) // it returns nothing but nil
	}
	t.Cleanup(func() {
		stop()
		done.Wait()
		_ = shared.Close()
	})
	return n
}

// hearing waits until every node hears the others, or none does.
func hearing(t *testing.T, want bool, nodes ...*node) {
	t.Helper()
	for _, n := range nodes {
		until(t, "the nodes to hear each other", func() bool { return n.hears() == want })
	}
}

// hears shows in the pauses: those who hear others look less often by themselves.
func (n *node) hears() bool { return n.signals.PauseAfter(100, time.Millisecond) > time.Millisecond }

func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still waiting for %s", what)
		}
	}
}

func (n *node) submit(t *testing.T, key string) *onejob.Job {
	t.Helper()
	job, _, err := n.client.Submit(t.Context(), onejob.SubmitParams{Owner: "o", Key: key, Kind: "k", Input: []byte(`1`)})
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// awaiting waits for the end of a job at a node, and returns when that was known.
func (n *node) awaiting(t *testing.T, id string) <-chan time.Time {
	t.Helper()
	told := make(chan time.Time, 1)
	go func() {
		job, err := n.client.WatchUntil(t.Context(), "o", id, func(j *onejob.Job) bool { return j.State.Terminal() })
		if err != nil || job.State != onejob.JobSucceeded {
			t.Errorf("the job is %+v, %v; want it succeeded", job, err)
		}
		told <- time.Now()
	}()
	return told
}

// receive returns what comes from a channel, within the poll at the latest.
func receive[T any](t *testing.T, ch <-chan T, what string, within time.Duration) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(within):
		t.Errorf("%s: nothing within %s", what, within)
	}
	return v
}

// soon is far less than a poll, and generous on a busy machine.
const soon = 5 * time.Second

func TestANodeIsToldOfWorkAndOfItsEndByAnother(t *testing.T) {
	t.Parallel()
	url, p := schema(t), newProvider()
	a, b := newNode(t, url, p, poll), newNode(t, url, nil, poll)
	hearing(t, true, a, b)

	best := time.Hour
	for _, key := range []string{"1", "2", "3", "4", "5"} {
		job := b.submit(t, key) // B has no engine, and A has looked just now
		receive(t, p.began, "the job of B at A's provider", soon)
		told := b.awaiting(t, job.ID)
		released := time.Now()
		p.release <- struct{}{}
		best = min(best, receive(t, told, "the end of the job at B", soon).Sub(released))
	}
	if best > 100*time.Millisecond {
		t.Errorf("the quickest of five was told after %s; want it within 100 ms", best)
	}
}

func TestACancelReachesTheProviderCallOfAnotherNode(t *testing.T) {
	t.Parallel()
	url, p := schema(t), newProvider()
	a, b := newNode(t, url, p, poll), newNode(t, url, nil, poll)
	hearing(t, true, a, b)

	job := b.submit(t, "1")
	receive(t, p.began, "the job of B at A's provider", soon)
	if _, err := b.client.Cancel(t.Context(), onejob.JobCancelParams{ID: job.ID, Owner: "o"}); err != nil {
		t.Fatal(err)
	}
	receive(t, p.gaveUp, "A asking its provider to give up", soon) // leases are renewed every 10 s
	close(p.release)
}

// What is lost costs one poll, and no more.
func TestWithoutItsConnectionANodePollsAndThenHearsAgain(t *testing.T) {
	t.Parallel()
	const short = 300 * time.Millisecond
	url, p := schema(t), newProvider()
	a, b := newNode(t, url, p, short), newNode(t, url, nil, short)
	hearing(t, true, a, b)

	exec(t, url, `CREATE FUNCTION deaf() RETURNS void LANGUAGE sql AS $$
		SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		 WHERE pid <> pg_backend_pid() AND query = format('LISTEN "onejob_%s"', md5(current_schema())) $$`)
	exec(t, url, "SELECT deaf()")
	job := b.submit(t, "1")
	told := b.awaiting(t, job.ID)
	exec(t, url, "SELECT deaf()")
	receive(t, p.began, "the job of B at A's provider", soon)
	exec(t, url, "SELECT deaf()")
	close(p.release)
	receive(t, told, "the end of the job at B", soon)
	for _, n := range []*node{a, b} {
		until(t, "the loss to be logged", func() bool { return strings.Contains(n.log.String(), "are not heard; looking") })
	}
	hearing(t, true, a, b)
	until(t, "the return to be logged", func() bool { return strings.Contains(a.log.String(), "heard again") })
}

// text is a log.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *text) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *text) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
