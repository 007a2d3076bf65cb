package e2e_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

// hookKey is what webhooks are signed with, and hookCanary how the configuration has it.
const (
	hookKey    = "CANARY-hook-key-of-32-bytes-long"
	hookCanary = "Q0FOQVJZLWhvb2sta2V5LW9mLTMyLWJ5dGVzLWxvbmc="
)

// hook is one webhook as it was received.
type hook struct {
	path, id string
	raw      string // its headers and its body
	genuine  bool
	event    struct {
		Type string `json:"type"`
		Data job    `json:"data"`
	}
}

// receiver takes webhooks. It verifies them by its own lights: with a keyed hash, and
// not with the program's package.
type receiver struct {
	*httptest.Server

	mu     sync.Mutex
	hooks  []hook
	answer func(w http.ResponseWriter, r *http.Request, n int) // n counts the requests of a path, from 1
}

func newReceiver(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, n int)) *receiver {
	t.Helper()
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	h := hook{path: req.URL.Path, id: req.Header.Get("webhook-id"), genuine: genuine(req.Header, body), raw: fmt.Sprint(req.Header) + string(body)}
	_ = json.Unmarshal(body, &h.event)
	r.mu.Lock()
	r.hooks = append(r.hooks, h)
	r.mu.Unlock()
	r.answer(w, req, len(r.at(h.path)))
}

// accepts is a receiver's answer to everything.
func accepts(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(http.StatusNoContent) }

// genuine verifies a signature as the specification of Standard Webhooks says.
func genuine(h http.Header, body []byte) bool {
	mac := hmac.New(sha256.New, []byte(hookKey))
	_, _ = fmt.Fprintf(mac, "%s.%s.%s", h.Get("webhook-id"), h.Get("webhook-timestamp"), body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	return slices.Contains(strings.Fields(h.Get("webhook-signature")), want)
}

// at returns what a path has received.
func (r *receiver) at(path string) []hook {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.hooks), func(h hook) bool { return h.path != path })
}

// wantHooks checks that a path received so many webhooks of one job's success, all
// genuine, and under how many ids.
func (r *receiver) wantHooks(t *testing.T, path, jobID string, deliveries int) {
	t.Helper()
	if !eventually(30*time.Second, func() bool { return len(r.of(path, jobID)) >= deliveries }) {
		t.Fatalf("%s received %d webhooks of the job; want %d", path, len(r.of(path, jobID)), deliveries)
	}
	hooks, ids := r.of(path, jobID), map[string]bool{}
	for _, h := range hooks {
		ids[h.id] = true
		if !h.genuine || h.event.Type != "job.succeeded" || h.event.Data.State != "succeeded" || h.event.Data.Attempts != nil {
			t.Errorf("%s received %+v; want the job's success, signed", path, h)
		}
	}
	t.Logf("%s: %d deliveries, %d webhook-id", path, len(hooks), len(ids))
	if len(hooks) != deliveries || len(ids) != 1 {
		t.Errorf("%s received %d webhooks under %d ids; want %d under one", path, len(hooks), len(ids), deliveries)
	}
}

func (r *receiver) of(path, jobID string) []hook {
	return slices.DeleteFunc(r.at(path), func(h hook) bool { return h.event.Data.ID != jobID })
}

// tell adds endpoints to the site's configuration, which are tried again after pause.
func (s *site) tell(pause string, urls ...string) {
	s.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "webhooks:\n  allow: [127.0.0.0/8]\n  timeout: 500ms\n  schedule: [%s]\n  endpoints:\n", strings.TrimSuffix(strings.Repeat(pause+", ", 20), ", "))
	for _, url := range urls {
		fmt.Fprintf(&b, "    - {url: '%s', secret: 'whsec_%s', owner: shop}\n", url, hookCanary)
	}
	f, err := os.OpenFile(s.config(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := f.WriteString(b.String()); err != nil {
		s.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		s.t.Fatal(err)
	}
}

// charge submits an order and waits until it succeeded.
func (n *node) charge(order string) string {
	n.site.t.Helper()
	r, err := n.submit(n.site.t.Context(), order)
	if err != nil || r.job.ID == "" {
		n.site.t.Fatalf("submit: %+v, %v", r, err)
	}
	n.wantState(r.job.ID, "succeeded")
	return r.job.ID
}

// One end, one webhook-id, whatever its receiver does at first (promise 22).
func TestAWebhookArrivesUnderOneIDWhateverItsReceiverDoesAtFirst(t *testing.T) {
	onBothStores(t, func(t *testing.T, storeURL string) {
		r := newReceiver(t, func(w http.ResponseWriter, r *http.Request, n int) {
			switch {
			case r.URL.Path == "/gone":
				w.WriteHeader(http.StatusGone)
			case n > 1:
				w.WriteHeader(http.StatusNoContent)
			case r.URL.Path == "/broken":
				w.WriteHeader(http.StatusInternalServerError)
			case r.URL.Path == "/silent":
				<-r.Context().Done()
			case r.URL.Path == "/moved":
				http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
			}
		})
		s := newSite(t, storeURL, external, sim.Options{})
		var urls []string
		for _, path := range []string{"/fine", "/broken", "/silent", "/moved", "/gone"} {
			urls = append(urls, r.URL+path)
		}
		s.tell("100ms", urls...)
		n := s.newNode()
		n.start()
		first := n.charge("order-1")
		told := map[string]int{"/fine": 1, "/broken": 2, "/silent": 2, "/moved": 2, "/gone": 1}
		for path, deliveries := range told {
			r.wantHooks(t, path, first, deliveries)
		}
		second := n.charge("order-2")
		for _, path := range []string{"/fine", "/broken", "/silent", "/moved"} {
			r.wantHooks(t, path, second, 1)
		}
		for path, deliveries := range told { // and no more since
			r.wantHooks(t, path, first, deliveries)
		}
		if followed, gone := r.at("/elsewhere"), r.of("/gone", second); len(followed) != 0 || len(gone) != 0 {
			t.Errorf("%d redirects were followed, %d webhooks were sent to an endpoint that is gone; want none", len(followed), len(gone))
		}
		if err := n.terminate(); err != nil {
			t.Errorf("the node ended with %v", err)
		}
		n.start()
		if log := n.log.tail(4000); !strings.Contains(log, "webhook endpoint is disabled") || !strings.Contains(log, "410") {
			t.Error("a start says nothing of the endpoint that is disabled")
		}
		if log := n.log.tail(1 << 20); strings.Contains(log, hookCanary) || strings.Contains(log, hookKey) {
			t.Error("the log tells what webhooks are signed with")
		}
	})
}

// Crash rows 7a and 7b: delivered and not written down is delivered again, under the
// same id; written down is not.
func TestAKillBetweenADeliveryAndItsRecordDeliversAgainUnderTheSameID(t *testing.T) {
	onBothStores(t, func(t *testing.T, storeURL string) {
		var n *node
		killed := make(chan struct{})
		r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, times int) {
			if times == 1 { // it has it, and has acted on it
				_ = n.cmd.Process.Kill()
				close(killed)
			}
			w.WriteHeader(http.StatusNoContent)
		})
		s := newSite(t, storeURL, external, sim.Options{})
		s.tell("100ms", r.URL+"/hooks")
		n = s.newNode()
		n.start()
		reply, err := n.submit(t.Context(), "order-1")
		if err != nil {
			t.Fatal(err)
		}
		<-killed
		n.kill()
		n.start() // the dead sender's lease is over after the timeout and 10 s
		r.wantHooks(t, "/hooks", reply.job.ID, 2)
		if !eventually(10*time.Second, func() bool {
			return strings.Contains(metric(t, n, "onejob_webhook_tries_total"), `result="delivered"} 1`)
		}) {
			t.Fatal("the second delivery was not written down")
		}
		n.kill()
		n.start()
		r.wantHooks(t, "/hooks", n.charge("order-2"), 1)
		r.wantHooks(t, "/hooks", reply.job.ID, 2)
		if twice := s.provider.Duplicates(); len(twice) != 0 {
			t.Errorf("executed more than once: %v", twice)
		}
	})
}

// Crash row 6b: the job has ended, and nobody was told yet.
func TestAKillBeforeAnyDeliveryLosesNoWebhook(t *testing.T) {
	onBothStores(t, func(t *testing.T, storeURL string) {
		r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(http.StatusNoContent) })
		addr := freeAddr(t) // nobody listens there yet
		s := newSite(t, storeURL, external, sim.Options{})
		s.tell("300ms", "http://"+addr+"/hooks")
		n := s.newNode()
		n.start()
		id := n.charge("order-1")
		n.kill()
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		late := &http.Server{Handler: r, ReadHeaderTimeout: time.Second}
		go func() { _ = late.Serve(l) }()
		defer func() { _ = late.Close() }()
		n.start()
		r.wantHooks(t, "/hooks", id, 1)
	})
}

// A stop takes the webhooks of what ended last along.
func TestASigtermSendsTheWebhooksOfWhatEndsWhileItDrains(t *testing.T) {
	onBothStores(t, func(t *testing.T, storeURL string) {
		r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(http.StatusNoContent) })
		s := newSite(t, storeURL, external, sim.Options{Latency: time.Second})
		s.tell("10s", r.URL+"/hooks")
		n := s.newNode()
		n.start()
		reply, err := n.submit(t.Context(), "order-1")
		if err != nil {
			t.Fatal(err)
		}
		n.wantState(reply.job.ID, "running")
		if err := n.terminate(); err != nil {
			t.Errorf("the node ended with %v", err)
		}
		if got := len(r.of("/hooks", reply.job.ID)); got != 1 {
			t.Errorf("%d webhooks had arrived when the process was gone; want 1", got)
		}
	})
}

// metric returns the lines of a metric.
func metric(t *testing.T, n *node, name string) string {
	t.Helper()
	_, text := n.read(t, "/metrics")
	var found []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, name) {
			found = append(found, line)
		}
	}
	return strings.Join(found, "")
}
