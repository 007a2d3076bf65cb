package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/internal/pgtest"
	"github.com/onejob-dev/onejob/sim"
)

// program is the binary under test and crasher the one that dies at a point of
// internal/crash, each built once.
var program, crasher string

// parallel is how many of the tests that mostly wait go on at once. More of them, and
// two cores take longer than a lease.
const parallel = "6"

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "onejob-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program, crasher = filepath.Join(dir, "onejob"), filepath.Join(dir, "crash")
	build := exec.Command("go", "build", "-o", dir, "./cmd/onejob", "./internal/crash")
	build.Dir, build.Env = filepath.Join("..", ".."), append(os.Environ(), "CGO_ENABLED=0") // as it is released
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		return 1
	}
	if err := flag.Set("test.parallel", parallel); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return pgtest.Main(m)
}

// full asks for the full size of tests that have one, which take minutes.
func full() bool { return os.Getenv("ONEJOB_E2E_FULL") != "" }

// onBothStores runs a test on both stores at once.
func onBothStores(t *testing.T, test func(t *testing.T, storeURL string)) {
	onBothStoresAtOnce(t, func(t *testing.T, store func(*testing.T) string) { test(t, store(t)) })
}

// onEachStore runs a test that measures, or has little time, on one store after the other.
func onEachStore(t *testing.T, test func(t *testing.T, storeURL string)) {
	t.Run("SQLite", func(t *testing.T) { test(t, newSQLite(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, newPostgres(t)) })
}

func newSQLite(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "onejob.db") }

func newPostgres(t *testing.T) string { return pgtest.URL(t) }

// site is one configuration, one provider and one credential; nodes run on it.
type site struct {
	t        *testing.T
	dir      string
	store    string
	key      string
	provider *sim.Server
}

// newSite makes a site whose kind charge has the given YAML.
func newSite(t *testing.T, storeURL, kind string, provider sim.Options) *site {
	t.Helper()
	provider.IntentFunc = sim.IntentMember("order")
	s := &site{t: t, dir: t.TempDir(), store: storeURL, provider: sim.ForTest(t, provider)}
	s.setUp(fmt.Sprintf(`
targets:
  acme:
    provider: http
    request: {url: "%s/v1/charges", headers: {Authorization: "Bearer ${env:ACME_KEY}"}}
    idempotency_header: Idempotency-Key
  pool: {provider: worker, max_execution: 200ms}
kinds:
  charge: %s
workers: {slots: 16, lease: 1s, drain: 10s}
secret: "a secret that all nodes share"
`, s.provider.URL(), kind))
	return s
}

// setUp writes the site's configuration and makes its store and credential.
func (s *site) setUp(config string) {
	s.t.Helper()
	s.configure(config)
	s.prepare()
}

func (s *site) configure(config string) {
	s.t.Helper()
	if err := os.WriteFile(s.config(), []byte(config), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// prepare makes the store, as far as it is not there, and a credential.
func (s *site) prepare() {
	s.t.Helper()
	if s.onPostgres() {
		s.run("migrate", "up", "--store", s.store)
	}
	s.key = s.run("keys", "create", "--owner", "shop", "--role", "operator", "--store", s.store)
}

func (s *site) onPostgres() bool { return strings.HasPrefix(s.store, "postgres:") }

// canary is a provider's credential that must appear nowhere.
const canary = "CANARY-4f1c9a-SECRET"

// addLines adds lines to the configuration, after the line that begins with at.
func (s *site) addLines(at, lines string) {
	s.t.Helper()
	text, err := os.ReadFile(s.config())
	if err != nil {
		s.t.Fatal(err)
	}
	before, after, found := strings.Cut(string(text), at)
	rest, tail, whole := strings.Cut(after, "\n")
	if !found || !whole {
		s.t.Fatalf("the configuration has no line %q", at)
	}
	if err := os.WriteFile(s.config(), []byte(before+at+rest+"\n"+lines+tail), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) config() string { return filepath.Join(s.dir, "onejob.yaml") }

func (s *site) command(args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "ACME_KEY="+canary)
	return cmd
}

func (s *site) run(args ...string) string {
	s.t.Helper()
	var stderr bytes.Buffer
	cmd := s.command(args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("onejob %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return strings.TrimSpace(string(out))
}

// node is one serving process.
type node struct {
	site *site
	addr string
	cmd  *exec.Cmd
	log  *syncBuffer
}

func (s *site) newNode() *node {
	s.t.Helper()
	n := &node{site: s, addr: freeAddr(s.t), log: &syncBuffer{}}
	s.t.Cleanup(func() {
		n.kill()
		if s.t.Failed() {
			s.t.Logf("the end of the log of %s:\n%s", n.addr, n.log.tail(4000))
		}
	})
	return n
}

// ports counts the ports given out, below those that the system gives to clients:
// between its choice and its use a port from there may be somebody else's.
var ports atomic.Int64

const firstPort, numPorts = 10_000, 20_000

func freeAddr(t *testing.T) string {
	t.Helper()
	for range numPorts {
		port := firstPort + (int64(os.Getpid())*64+ports.Add(1))%numPorts
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		defer func() { _ = l.Close() }()
		return l.Addr().String()
	}
	t.Fatal("there is no free port")
	return ""
}

// start starts the process and waits until it is ready to work.
func (n *node) start() {
	n.site.t.Helper()
	n.launch()
	if !eventually(20*time.Second, n.ready) {
		n.site.t.Fatalf("the node is not ready:\n%s", n.log.tail(4000))
	}
}

// launch starts the process and waits for nothing.
func (n *node) launch() {
	n.site.t.Helper()
	n.cmd = n.site.command("serve", "--config", n.site.config(), "--store", n.site.store, "--listen", n.addr)
	n.cmd.Stderr, n.cmd.Stdout = n.log, n.log
	if err := n.cmd.Start(); err != nil {
		n.site.t.Fatal(err)
	}
}

func (n *node) ready() bool {
	resp, err := http.Get("http://" + n.addr + "/readyz")
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// kill is kill -9; safe to repeat.
func (n *node) kill() {
	if n.cmd == nil {
		return
	}
	_ = n.cmd.Process.Signal(syscall.SIGKILL)
	_ = n.cmd.Wait()
	n.cmd = nil
}

// terminate sends SIGTERM and returns how the process ended.
func (n *node) terminate() error {
	_ = n.cmd.Process.Signal(syscall.SIGTERM)
	err := n.cmd.Wait()
	n.cmd = nil
	return err
}

// eventually polls until ok says so, or reports false after d.
func eventually(d time.Duration, ok func() bool) bool {
	deadline := time.After(d)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok() {
			return true
		}
		select {
		case <-tick.C:
		case <-deadline:
			return false
		}
	}
}

// syncBuffer is a log that a process writes while a test reads.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) tail(n int) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.buf.Bytes()
	return string(all[max(0, len(all)-n):])
}

// job is what a test reads of an answer.
type job struct {
	ID      string `json:"id"`
	State   string `json:"state"`
	Code    string `json:"code"`
	Blocked *struct {
		Reason string `json:"reason"`
		Detail string `json:"detail"`
	} `json:"blocked"`
	Attempts []tried `json:"attempts"`
}

type tried struct {
	ID    string `json:"id"`
	State string `json:"state"`
	Phase string `json:"phase"`
}

// states is the job's state and its attempts', as in "succeeded: failed succeeded".
func (j *job) states() string {
	if j.ID == "" {
		return "nothing"
	}
	text := j.State + ":"
	for _, a := range j.Attempts {
		text += " " + a.State
	}
	return text
}

// standsAs reports whether the job's states are want. A machine that stands still for
// longer than send_within or a lease takes an attempt from its node before a byte was
// sent; any number of those besides say nothing of the job.
func (j *job) standsAs(want string) bool {
	left := *j
	for left.states() != want {
		unsent := func(a tried) bool { return a.State == "failed" && a.Phase == "not_sent" }
		at := slices.IndexFunc(left.Attempts, unsent)
		if at < 0 {
			return false
		}
		left.Attempts = slices.Delete(slices.Clone(left.Attempts), at, at+1)
	}
	return true
}

type reply struct {
	status   int
	replayed bool
	job      job
}

var client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 256}}

func (n *node) send(ctx context.Context, method, path, body string, header ...string) (reply, error) {
	var r reply
	req, err := http.NewRequestWithContext(ctx, method, "http://"+n.addr+path, strings.NewReader(body))
	if err != nil {
		return r, err
	}
	req.GetBody = nil
	req.Header.Set("Authorization", "Bearer "+n.site.key)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return r, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return r, err
	}
	r.status, r.replayed = resp.StatusCode, resp.Header.Get("Idempotent-Replayed") == "true"
	return r, json.Unmarshal(raw, &r.job)
}

// submit asks for the charge of one order under its own key.
func (n *node) submit(ctx context.Context, order string) (reply, error) {
	return n.submitKind(ctx, "charge", order)
}

// submitKind asks for a job of a kind, for one order under its own key.
func (n *node) submitKind(ctx context.Context, kind, order string) (reply, error) {
	return n.send(ctx, http.MethodPost, "/v1/jobs", fmt.Sprintf(`{"kind":%q,"input":{"order":%q,"amount":42}}`, kind, order), "Idempotency-Key", "key-"+order)
}

func (n *node) get(ctx context.Context, id string) (reply, error) {
	return n.send(ctx, http.MethodGet, "/v1/jobs/"+id, "")
}
