package sim_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

// patience bounds every wait of these tests.
const patience = 10 * time.Second

// client is a raw HTTP/1.1 client: nothing is retried, hidden or made up.
type client struct {
	t    *testing.T
	conn net.Conn
	read *bufio.Reader
}

func dial(t *testing.T, srv *sim.Server) *client {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(srv.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return &client{t, conn, bufio.NewReader(conn)}
}

// request builds a POST of body to /v1/charges under a key; no key if empty.
func request(t *testing.T, url, key, body string) *http.Request {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/charges", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	return r
}

// send writes a whole request for a charge under key "k".
func (c *client) send() {
	c.t.Helper()
	if err := request(c.t, "http://sim", "k", `{"amount":7}`).Write(c.conn); err != nil {
		c.t.Fatal(err)
	}
}

// rest reads to the end of the connection.
func (c *client) rest() (string, error) {
	all, err := io.ReadAll(c.read)
	return string(all), err
}

// receive reads one response, its body included.
func (c *client) receive() (*http.Response, string) {
	c.t.Helper()
	resp, err := http.ReadResponse(c.read, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp, string(body)
}

// wait waits for the ledger to come to a state.
func wait(t *testing.T, p *sim.Provider, until func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := p.Wait(ctx, until); err != nil {
		t.Fatalf("%v; ledger: %+v", err, p.Report())
	}
}

// finished waits until request number n is over and returns its entry.
func finished(t *testing.T, p *sim.Provider, n int) sim.Entry {
	t.Helper()
	wait(t, p, func() bool {
		entries := p.Ledger()
		return len(entries) >= n && !entries[n-1].FinishedAt.IsZero()
	})
	return p.Ledger()[n-1]
}

// do sends a request with an ordinary client on a connection of its own.
func do(t *testing.T, r *http.Request) (*http.Response, string) {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func charge(t *testing.T, srv *sim.Server, key, body string) (*http.Response, string) {
	t.Helper()
	return do(t, request(t, srv.URL(), key, body))
}

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, r)
}

func decode(t *testing.T, body string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(body), &object); err != nil {
		t.Fatalf("%v in %q", err, body)
	}
	return object
}

func isReset(err error) bool { return errors.Is(err, syscall.ECONNRESET) }
