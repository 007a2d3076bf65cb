package httpapi_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/httpapi"
)

// served tells of every request that has ended.
type served struct {
	httpapi.Observer
	paths chan string
}

func (s served) RequestServed(_, route string, _ int, _ time.Duration) {
	select {
	case s.paths <- route:
	default:
	}
}
func (served) JobSubmitted(string, string) {}

// A caller that waits and then does not read would keep its answer in memory, and
// a goroutine with it, for ever, and nothing would count it.
func TestAWaitThatIsNotReadKeepsItsPlaceAndIsCutOff(t *testing.T) {
	t.Parallel()
	seen := served{paths: make(chan string, 10_000)}
	w := newWorld(t, func(_ *onejob.Options, api *httpapi.Options) {
		api.MaxHolding, api.Observer = 1, seen
	})
	const writeTimeout = 3 * time.Second
	base, _ := w.listen(func(s *http.Server) { s.WriteTimeout = writeTimeout })
	large := w.submit("k1", ticket)
	attempt := w.claim()
	other := w.submit("k2", ticket)

	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(4 << 10)
	}
	if _, err := io.WriteString(conn, "GET /v1/jobs/"+large+" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+w.alice+"\r\nPrefer: wait=60\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	holds := func() bool { // a stream takes a place, for a moment only
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		return w.serve(request{method: "GET", path: "/v1/jobs/" + other + "/events", key: w.alice}.http(ctx)).status == http.StatusTooManyRequests
	}
	_ = conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
	if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || !holds() {
		t.Fatalf("the request does not hold: %d bytes, %v", n, err)
	}
	// No socket takes so much unread.
	w.finish(attempt, onejob.OutcomeSucceeded, jsonResult(`"`+strings.Repeat("x", 8<<20)+`"`))
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatalf("no answer began: %v", err)
	}
	began := time.Now()
	if !holds() {
		t.Error("the place was given back before the answer was written")
	}
	for {
		select {
		case route := <-seen.paths:
			if route == "/v1/jobs/{id}" && !holds() {
				if took := time.Since(began); took > 4*writeTimeout {
					t.Errorf("the caller was cut off after %s; want %s", took, writeTimeout)
				}
				return
			}
		case <-time.After(20 * time.Second):
			t.Fatal("the answer is still being written")
		}
	}
}

// A connection that is used again after a wait has the server's deadlines again.
func TestAWaitIsAnsweredOnAConnectionThatLivesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	base, _ := w.listen(nil)
	id := w.submit("k1", ticket)
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	for range 3 {
		r := request{method: "GET", path: "/v1/jobs/" + id, key: w.alice, headers: []string{"Prefer", "wait=1"}}.http(t.Context())
		ask, err := http.NewRequestWithContext(t.Context(), r.Method, base+r.URL.Path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		ask.Header = r.Header
		resp, err := client.Do(ask)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), id) {
			t.Errorf("%d %s, %v", resp.StatusCode, body, err)
		}
	}
}
