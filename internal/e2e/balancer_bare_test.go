package e2e_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Between onejob and a provider there is no database that knows the key. So the
// configurations must not replay a POST, and the test must be able to see it.
func TestBalancerNeverPassesAPostOnTwice(t *testing.T) {
	misdeeds := map[string]http.HandlerFunc{
		"Dropped": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"Silent":  func(_ http.ResponseWriter, r *http.Request) { pause(r.Context(), time.Second) },
		"Refused": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
	}
	for _, p := range balancerPrograms() {
		for name, misdeed := range misdeeds {
			t.Run(p.name+name, func(t *testing.T) {
				shipped := executions(t, p, misdeed, p.hasty...)
				replaying := executions(t, p, misdeed, append(p.hasty, p.replays...)...)
				t.Logf("one POST, %s: %d executions as shipped, %d with the configuration we warn of", strings.ToLower(name), shipped, replaying)
				if shipped != 1 || replaying < 2 {
					t.Errorf("%d and %d executions of one POST; want 1 as shipped, and more than 1 otherwise", shipped, replaying)
				}
			})
		}
	}
}

// executions counts how often two bad servers get one POST from the balancer.
func executions(t *testing.T, p balancerProgram, misdeed http.HandlerFunc, changes ...change) int64 {
	t.Helper()
	var posts atomic.Int64
	bad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			return // its health is excellent
		}
		_, _ = io.Copy(io.Discard, r.Body)
		posts.Add(1)
		misdeed(w, r)
	}))
	t.Cleanup(bad.Close)
	addr := strings.TrimPrefix(bad.URL, "http://")
	f := p.start(t, addr, addr, changes...)
	if _, err := (&node{site: &site{}, addr: f.addr}).submit(t.Context(), "one"); err == nil {
		t.Error("a bad server's answer was understood")
	}
	return posts.Load()
}

// A small event must not wait for the next to fill a buffer; here each is sent only
// when the one before has been read, and nothing but the path says what it is.
func TestBalancerPassesEachEventOnByItself(t *testing.T) {
	for _, p := range balancerPrograms() {
		t.Run(p.name, func(t *testing.T) {
			read := make(chan struct{}, 1)
			const events = 3
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !strings.HasSuffix(r.URL.Path, "/events") {
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				for i := range events {
					_, _ = fmt.Fprintf(w, "data: {\"id\":\"%d\"}\n\n", i)
					_ = http.NewResponseController(w).Flush()
					select {
					case <-read:
					case <-r.Context().Done():
					}
				}
			}))
			t.Cleanup(srv.Close)
			addr := strings.TrimPrefix(srv.URL, "http://")
			through := &node{site: &site{}, addr: p.start(t, addr, addr).addr}
			resp := through.open(t, "/v1/jobs/job_1/events")
			defer func() { _ = resp.Body.Close() }()
			stream := bufio.NewReader(resp.Body)
			for i := range events {
				if got := nextEvent(t, stream).ID; got != strconv.Itoa(i) {
					t.Errorf("event %d is %q", i, got)
				}
				read <- struct{}{}
			}
		})
	}
}

var fenced = regexp.MustCompile("(?s)```(nginx|haproxy)\n(.*?)```")

func TestBalancerLinesInTheDocumentsAreThoseThatAreShipped(t *testing.T) {
	document := readFile(t, "docs", "identity.md")
	shipped := map[string]string{"nginx": readFile(t, "deploy", "nginx.conf"), "haproxy": readFile(t, "deploy", "haproxy.cfg")}
	blocks := fenced.FindAllStringSubmatch(document, -1)
	if len(blocks) < 4 {
		t.Errorf("identity.md shows %d pieces of configuration; want the two promises for both programs", len(blocks))
	}
	for _, block := range blocks {
		for line := range strings.Lines(block[2]) {
			if !strings.Contains(shipped[block[1]], strings.TrimSpace(line)) {
				t.Errorf("identity.md shows %q, which the configuration of %s does not have", strings.TrimSpace(line), block[1])
			}
		}
	}
}

func readFile(t *testing.T, path ...string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
