package sim_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

// It counts goroutines, so it does not run beside other tests.
func TestCloseEndsWhatIsHeldAndLeavesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	var told atomic.Int64
	srv, err := sim.Start("", sim.Options{EntryFunc: func(sim.Entry) {
		<-time.After(20 * time.Millisecond) // the handlers are slow to end; Close is to wait for them
		told.Add(1)
	}})
	if err != nil {
		t.Fatal(err)
	}
	held := []string{"silent", "ignore", "hold", "late=1h", "slow=1h", "drip=1h", "huge"}
	srv.Script(sim.MustParse(held...)...)
	var clients []*client
	for range held {
		c := dial(t, srv)
		c.send()
		clients = append(clients, c)
	}
	wait(t, srv.Provider, func() bool { return srv.Requests() == int64(len(held)) && srv.Unscripted() })
	if err := srv.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if got := told.Load(); got != int64(len(held)) {
		t.Errorf("Close returned after %d of %d handlers", got, len(held))
	}
	for _, e := range srv.Ledger() {
		if e.FinishedAt.IsZero() || e.ClientGone {
			t.Errorf("entry %+v; want it finished by us", e)
		}
	}
	for _, c := range clients {
		_, _ = c.rest()
	}
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines before, %d after", before, runtime.NumGoroutine())
		}
	}
	if err := srv.Listen(); !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("Listen after Close: %v", err)
	}
}

func TestDialsAreRefusedWhileTheServerDoesNotListen(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{})
	url := srv.URL()
	open := dial(t, srv)
	open.send()
	open.receive()
	if err := srv.StopListening(); err != nil {
		t.Fatal(err)
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dialling gave %v; want refused", err)
	}
	open.send()
	open.receive()
	if err := srv.Listen(); err != nil {
		t.Fatal(err)
	}
	if got := statusOf(t, srv, "k", ""); got != 200 || srv.URL() != url {
		t.Errorf("got %d at %s; want 200 at %s", got, srv.URL(), url)
	}
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{})
	c := dial(t, srv)
	c.send()
	c.receive()
	deadline := time.Now().Add(patience)
	for { // the connection becomes idle a moment after its answer
		srv.CloseIdleConnections()
		_ = c.conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		got, err := c.rest()
		if got == "" && err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("read %q, %v; want the end", got, err)
		}
	}
}

func TestAProviderServesInAnotherServerToo(t *testing.T) {
	t.Parallel()
	p := sim.New(sim.Options{})
	mounted := httptest.NewUnstartedServer(p)
	mounted.Config.ConnContext = p.ConnContext
	mounted.Start()
	t.Cleanup(mounted.Close)
	if resp, _ := do(t, request(t, mounted.URL, "k", `{}`)); resp.StatusCode != 200 || p.Executions("k") != 1 || p.Ledger()[0].Conn != 1 {
		t.Errorf("got %d, %+v; want one execution on connection 1", resp.StatusCode, p.Report())
	}
}

func TestLatencyComesAfterTheExecution(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{Latency: 50 * time.Millisecond})
	statusOf(t, srv, "k", "")
	if got := finished(t, srv.Provider, 1); got.FinishedAt.Sub(got.ExecutedAt) < 50*time.Millisecond {
		t.Errorf("entry %+v; want 50 ms between execution and end", got)
	}
}
