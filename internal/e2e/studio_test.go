package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/onejob-dev/onejob/sim"
)

// studio is a provider that takes work and answers later: by a look-up, by a report
// to the hook that it was given, or both. The test says what it does.
type studio struct {
	t    *testing.T
	srv  *httptest.Server
	deep *sim.Provider // the responses API

	mu     sync.Mutex
	orders []order
	state  map[string]string // of the work, by id: what a look-up says
	gate   chan struct{}     // look-ups of work that succeeded wait for it; nil: they do not
	atGate int               // how many do

	// beforeAnswer runs when an order has been taken and is not answered yet.
	beforeAnswer func(order)
	// beforeResponse runs when a response was made and is not answered yet.
	beforeResponse func()
}

// order is one request for work.
type order struct {
	ID    string
	Order string `json:"order"`
	Hook  string `json:"hook"`
}

func newStudio(t *testing.T) *studio {
	t.Helper()
	st := &studio{t: t, deep: sim.New(sim.Options{IntentFunc: sim.IntentMember("input")}), state: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/pictures", st.take)
	mux.HandleFunc("GET /v1/pictures/{id}", st.tell)
	mux.HandleFunc("/v1/responses", st.respond)
	mux.Handle("/v1/responses/", st.deep)
	st.srv = httptest.NewServer(mux)
	t.Cleanup(func() {
		_ = st.deep.Close()
		st.srv.CloseClientConnections()
		st.srv.Close()
	})
	return st
}

// respond lets the simulated provider do the work, then the test act before the
// answer leaves.
func (st *studio) respond(w http.ResponseWriter, r *http.Request) {
	rec := httptest.NewRecorder()
	st.deep.ServeHTTP(rec, r)
	if st.beforeResponse != nil {
		st.beforeResponse()
	}
	for name, values := range rec.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}

func (st *studio) take(w http.ResponseWriter, r *http.Request) {
	var o order
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		st.t.Errorf("the request: %v", err)
	}
	st.mu.Lock()
	o.ID = fmt.Sprintf("pic_%d", len(st.orders)+1)
	st.orders = append(st.orders, o)
	if st.state[o.ID] == "" {
		st.state[o.ID] = "processing"
	}
	before := st.beforeAnswer
	st.mu.Unlock()
	if before != nil {
		before(o)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_, _ = fmt.Fprintf(w, `{"id":%q,"status":"processing"}`, o.ID)
}

func (st *studio) tell(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	st.mu.Lock()
	state, gate := st.state[id], st.gate
	if state == "succeeded" && gate != nil {
		st.atGate++
	}
	st.mu.Unlock()
	if state == "succeeded" && gate != nil {
		<-gate
	}
	w.Header().Set("Content-Type", "application/json")
	if state == "" {
		w.WriteHeader(http.StatusNotFound)
	}
	_, _ = fmt.Fprintf(w, `{"id":%q,"status":%q,"url":"looked up %s"}`, id, state, id)
}

// hold makes look-ups of the work wait that would say that it succeeded, until one is
// waiting, and returns what lets them go.
func (st *studio) hold(id string) (release func()) {
	st.t.Helper()
	gate := make(chan struct{})
	st.mu.Lock()
	st.gate, st.atGate, st.state[id] = gate, 0, "succeeded"
	st.mu.Unlock()
	if !eventually(waitFor, func() bool {
		st.mu.Lock()
		defer st.mu.Unlock()
		return st.atGate > 0
	}) {
		st.t.Fatal("nobody looks the work up")
	}
	return func() { close(gate) }
}

// count is how many orders came for one name.
func (st *studio) count(name string) int {
	st.mu.Lock()
	defer st.mu.Unlock()
	n := 0
	for _, o := range st.orders {
		if o.Order == name {
			n++
		}
	}
	return n
}

// last waits for the order of that name.
func (st *studio) last(name string) order {
	st.t.Helper()
	var found order
	if !eventually(waitFor, func() bool {
		st.mu.Lock()
		defer st.mu.Unlock()
		for _, o := range st.orders {
			if o.Order == name {
				found = o
			}
		}
		return found.ID != ""
	}) {
		st.t.Fatalf("no order of %s came", name)
	}
	return found
}

const (
	sharedSecret = "a secret that all nodes share"
	hookSecret   = "a secret that the studio signs with"
)

// newStudioSite makes a site whose targets work without a connection. Reports go to
// the node at addr.
func newStudioSite(t *testing.T, storeURL, addr string, st *studio) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), store: storeURL}
	picture := func(callback string) string {
		return fmt.Sprintf(`
    provider: http
    request: {url: "%[1]s/v1/pictures", body: '{"order": {{ input.order }}, "hook": {{ callback_url }}}'}
    max_execution: 1m
    accepted: {id: body.id}
    lookup: {url: "%[1]s/v1/pictures/{id}", every: 200ms, running: "body.status == 'processing'", succeeded: "body.status == 'succeeded'", failed: "body.status == 'failed'", result: body.url}
    callback:
      succeeded: "body.status == 'succeeded'"
      failed: "body.status == 'failed'"
      result: body.url
%s`, st.srv.URL, callback)
	}
	config := fmt.Sprintf(`
public_url: "http://%s"
targets:
  studio: %s
  signing: %s
  deep: {provider: openai, base_url: "%s/v1", model: gpt-x, api_key: "${env:ACME_KEY}", background: true, lookup: {every: 200ms}}
kinds:
  picture: {effect: external, targets: [studio], timeout: 5s, linger: 5s}
  signed: {effect: external, targets: [signing], timeout: 5s, linger: 5s}
  essay: {effect: none, targets: [deep], timeout: 5s, linger: 5s}
workers: {slots: 16, lease: 1s, drain: 10s}
limits: {max_body_bytes: 65536}
secret: %q
`, addr, picture(""), picture("      signature: {header: X-Signature, secret: \""+hookSecret+"\"}"), st.srv.URL, sharedSecret)
	if err := os.WriteFile(s.config(), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(storeURL, "postgres:") {
		s.run("migrate", "up", "--store", storeURL)
	}
	s.key = s.run("keys", "create", "--owner", "shop", "--role", "operator", "--store", storeURL)
	return s
}

// newNodeAt is a node that listens where reports go.
func (s *site) newNodeAt(addr string) *node {
	n := s.newNode()
	n.addr = addr
	return n
}

// ask submits a job of a kind about one order.
func (n *node) ask(ctx context.Context, kind, name string) reply {
	n.site.t.Helper()
	input := fmt.Sprintf(`{"order":%q}`, name)
	if kind == "essay" {
		input = fmt.Sprintf(`{"input":%q}`, name)
	}
	r, err := n.send(ctx, http.MethodPost, "/v1/jobs", fmt.Sprintf(`{"kind":%q,"input":%s}`, kind, input), "Idempotency-Key", kind+"-"+name)
	if err != nil || r.status >= 300 {
		n.site.t.Fatalf("submit: %d %+v, %v", r.status, r.job, err)
	}
	return r
}

// attempt is what a test reads of one.
type attempt struct {
	ID          string          `json:"id"`
	State       string          `json:"state"`
	Outcome     string          `json:"outcome"`
	ProviderID  string          `json:"provider_id"`
	AcceptedAt  string          `json:"accepted_at"`
	NextProbeAt string          `json:"next_probe_at"`
	Result      json.RawMessage `json:"result"`
}

// attemptOf reads the job's only attempt.
func (n *node) attemptOf(jobID string) attempt {
	n.site.t.Helper()
	var list struct {
		Items []attempt `json:"items"`
	}
	if !eventually(waitFor, func() bool { // a job may wait for its turn
		n.show("/v1/jobs/"+jobID+"/attempts", &list)
		return len(list.Items) > 0
	}) || len(list.Items) != 1 {
		n.site.t.Fatalf("the job has %d attempts; want 1", len(list.Items))
	}
	var a attempt
	n.show("/v1/attempts/"+list.Items[0].ID, &a)
	return a
}

// show gets JSON.
func (n *node) show(path string, into any) {
	n.site.t.Helper()
	req, err := http.NewRequestWithContext(n.site.t.Context(), http.MethodGet, "http://"+n.addr+path, nil)
	if err != nil {
		n.site.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+n.site.key)
	resp, err := client.Do(req)
	if err != nil {
		n.site.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		n.site.t.Fatalf("GET %s: %d, %v", path, resp.StatusCode, err)
	}
}
