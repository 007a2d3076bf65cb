package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/internal/pgtest"
	"github.com/onejob-dev/onejob/sim"
)

// fault is what happens to one of two nodes in the middle of a load.
type fault struct {
	name   string
	strike func(*testing.T, *node)
	heal   func(*testing.T, *node)
}

func nodeFaults() []fault {
	return []fault{
		{"Killed", func(_ *testing.T, n *node) { n.kill() }, func(_ *testing.T, n *node) { n.start() }},
		{"Hung", func(t *testing.T, n *node) { signal(t, n, syscall.SIGSTOP) }, func(t *testing.T, n *node) { signal(t, n, syscall.SIGCONT) }},
		{"Restarted", func(t *testing.T, n *node) {
			if err := n.terminate(); err != nil {
				t.Errorf("the node ended with %v; want exit 0", err)
			}
		}, func(_ *testing.T, n *node) { n.start() }},
	}
}

func signal(t *testing.T, n *node, s syscall.Signal) {
	t.Helper()
	if err := n.cmd.Process.Signal(s); err != nil {
		t.Error(err)
	}
}

// A site of two nodes behind each of the two programs. One site serves all, as it
// takes longer to build than most of what is shown on it.
func TestBehindABalancer(t *testing.T) {
	s := newSite(t, pgtest.URL(t), external, sim.Options{Latency: 5 * time.Millisecond})
	nodes := [2]*node{s.newNode(), s.newNode()}
	for _, n := range nodes {
		n.start()
	}
	for _, p := range balancerPrograms() {
		t.Run(p.name, func(t *testing.T) {
			f := p.start(t, nodes[0].addr, nodes[1].addr)
			through := &node{site: s, addr: f.addr}
			t.Run("AKeyStaysOnOneNode", func(t *testing.T) { keyStaysOnOneNode(t, through, nodes) })
			t.Run("EventsComeWhileTheJobRuns", func(t *testing.T) { eventsComeWhileTheJobRuns(t, through) })
			t.Run("WhoAsksToBeHeldIsHeld", func(t *testing.T) { whoAsksToBeHeldIsHeld(t, through) })
			t.Run("MetricsStayWithTheNodes", func(t *testing.T) { metricsStayWithTheNodes(t, through) })
			oneJobAKeyWhileANodeFails(t, f, nodes, "AsShipped")

			replaying := p.start(t, nodes[0].addr, nodes[1].addr, append(p.hasty, p.replays...)...)
			oneJobAKeyWhileANodeFails(t, replaying, nodes, "Replaying")
		})
	}
}

// The balancer's own repeats (nginx before 1.9.13, HAProxy with
// all-retryable-errors) and the caller's come on top of each other when a node
// fails. Neither makes a second job, with our configurations or with those we warn of.
func oneJobAKeyWhileANodeFails(t *testing.T, f *front, nodes [2]*node, mode string) {
	for _, broken := range nodeFaults() {
		name := "OneKeyIsOneJob" + mode + "WhileANodeIs" + broken.name
		t.Run(name, func(t *testing.T) { oneJobAKey(t, f, nodes, broken, f.program.name+mode+broken.name) })
	}
	posts, passes := f.passed()
	t.Logf("%s %s: %d POSTs came to the balancer, which tried to pass them on %d times", f.program.name, mode, posts, passes)
}

const keysPerFault = 200

func oneJobAKey(t *testing.T, f *front, nodes [2]*node, broken fault, prefix string) {
	through := &node{site: nodes[0].site, addr: f.addr}
	awaitTraffic(t, through, nodes[1], prefix)
	l := startClicks(t, through, prefix)
	if !l.reached(keysPerFault / 4) {
		t.Fatal("the load stands still")
	}
	broken.strike(t, nodes[1])
	struck := l.count()
	whole := eventually(4*time.Second, func() bool { return l.count() > keysPerFault*3/4 })
	meanwhile := l.count() - struck
	broken.heal(t, nodes[1])
	acked := l.wait()
	if len(acked) != keysPerFault {
		t.Errorf("%d keys were acknowledged; want all %d", len(acked), keysPerFault)
	}
	succeeded, blocked := audit(t, nodes[0], acked)
	executions := 0
	for order := range acked {
		executions += through.site.provider.Executions(order)
	}
	if twice := through.site.provider.Duplicates(); len(twice) != 0 {
		t.Errorf("executed more than once: %v", twice)
	}
	t.Logf("%d keys, asked for %d times: %d acknowledged while the node was away (three quarters before it came back: %t); %d succeeded, %d unknown; %d executions",
		len(acked), l.tries.Load(), meanwhile, whole, succeeded, blocked, executions)
}

// awaitTraffic waits until the balancer has the node back after the fault before.
func awaitTraffic(t *testing.T, through, n *node, prefix string) {
	t.Helper()
	before, next := n.submissions(t), 0
	if !eventually(20*time.Second, func() bool {
		next++
		_, _ = through.submit(t.Context(), fmt.Sprintf("%s-warm-%d", prefix, next))
		return n.submissions(t) > before
	}) {
		t.Fatal("the balancer does not come back to the node")
	}
}

// clicks are keyed POSTs through a balancer, each repeated with its key by its
// caller until acknowledged.
type clicks struct {
	load
	tries atomic.Int64
	done  chan struct{}
}

func startClicks(t *testing.T, through *node, prefix string) *clicks {
	c := &clicks{load: load{t: t, acked: map[string]string{}}, done: make(chan struct{})}
	orders := map[string]string{}
	for i := range keysPerFault {
		orders[fmt.Sprintf("%s-%03d", prefix, i)] = ""
	}
	go func() {
		defer close(c.done)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		eachOf(orders, func(order, _ string) { c.click(ctx, through, order) })
	}()
	return c
}

// click gives each try a second: callers do not wait for ever, and the answer that
// they did not wait for may well have been a yes.
func (c *clicks) click(ctx context.Context, through *node, order string) {
	for ctx.Err() == nil {
		c.tries.Add(1)
		try, cancel := context.WithTimeout(ctx, time.Second)
		r, err := through.submit(try, order)
		cancel()
		switch {
		case err == nil && r.status/100 == 2:
			c.ack(order, r.job.ID)
			pause(ctx, 30*time.Millisecond)
			return
		case err == nil && r.status < 500 && r.status != http.StatusTooManyRequests:
			c.t.Errorf("%s was answered %d %s", order, r.status, r.job.Code)
			return
		}
		pause(ctx, 50*time.Millisecond)
	}
}

func (c *clicks) reached(n int) bool {
	return eventually(20*time.Second, func() bool { return c.count() >= n })
}

func (c *clicks) wait() map[string]string {
	<-c.done
	return c.acked
}

func keyStaysOnOneNode(t *testing.T, through *node, nodes [2]*node) {
	const keys, repeats = 20, 5
	perNode := [2]int{}
	seen := [2]int{nodes[0].submissions(t), nodes[1].submissions(t)}
	for i := range keys {
		order := fmt.Sprintf("%s-affine-%02d", through.addr, i)
		for range repeats - 1 {
			clickOnce(t, through, order)
		}
		clickOnce(t, through, order, "Prefer", "wait=5")
		now := [2]int{nodes[0].submissions(t), nodes[1].submissions(t)}
		switch got := [2]int{now[0] - seen[0], now[1] - seen[1]}; got {
		case [2]int{repeats, 0}:
			perNode[0]++
		case [2]int{0, repeats}:
			perNode[1]++
		default:
			t.Errorf("key %d came %v times to the two nodes; want %d times to one", i, got, repeats)
		}
		seen = now
	}
	t.Logf("%d keys asked for %d times each: %d keys on one node, %d on the other, none on both", keys, repeats, perNode[0], perNode[1])
	if perNode[0] == 0 || perNode[1] == 0 {
		t.Errorf("all %d keys are on one node (%v); the balancer does not balance", keys, perNode)
	}
}

func clickOnce(t *testing.T, through *node, order string, header ...string) {
	t.Helper()
	header = append(header, "Idempotency-Key", "key-"+order)
	r, err := through.send(t.Context(), http.MethodPost, "/v1/jobs", fmt.Sprintf(`{"kind":"charge","input":{"order":%q,"amount":42}}`, order), header...)
	if err != nil || r.status/100 != 2 {
		t.Errorf("%s was answered %d %s, %v", order, r.status, r.job.Code, err)
	}
}

var created = regexp.MustCompile(`(?m)^onejob_jobs_created_total\{.*\} (\d+)$`)

// submissions is how many this node has answered, new and replayed.
func (n *node) submissions(t *testing.T) int {
	t.Helper()
	status, body := n.read(t, "/metrics")
	if status != http.StatusOK {
		t.Fatalf("the metrics were answered %d", status)
	}
	total := 0
	for _, m := range created.FindAllStringSubmatch(body, -1) {
		count, _ := strconv.Atoi(m[1])
		total += count
	}
	return total
}

func (n *node) read(t *testing.T, path string) (status int, body string) {
	t.Helper()
	resp := n.open(t, path)
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

// open begins to read; the end of the test ends it.
func (n *node) open(t *testing.T, path string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+n.addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+n.site.key)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func eventsComeWhileTheJobRuns(t *testing.T, through *node) {
	provider, order := through.site.provider, through.addr+"-held"
	provider.ScriptFor(order, sim.MustParse("hold")...)
	r, err := through.submit(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}
	resp := through.open(t, "/v1/jobs/"+r.job.ID+"/events")
	defer func() { _ = resp.Body.Close() }()
	events := bufio.NewReader(resp.Body)
	if first := nextEvent(t, events); first.State != "running" && first.State != "queued" {
		t.Errorf("the first event says %q; want the job under way, as the provider still holds it", first.State)
	}
	released, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { // the request may still be on its way there
		for released.Err() == nil {
			provider.Release()
			pause(released, 50*time.Millisecond)
		}
	}()
	last := nextEvent(t, events)
	for last.State == "queued" || last.State == "running" {
		last = nextEvent(t, events)
	}
	if last.State != "succeeded" {
		t.Errorf("the last event says %q; want succeeded", last.State)
	}
}

// nextEvent reads to the end of one event. The client's own timeout bounds it.
func nextEvent(t *testing.T, events *bufio.Reader) job {
	t.Helper()
	for {
		line, err := events.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ended: %v", err)
		}
		if event, ok := strings.CutPrefix(line, "data: "); ok {
			var j job
			if err := json.Unmarshal([]byte(event), &j); err != nil {
				t.Fatal(err)
			}
			return j
		}
	}
}

func whoAsksToBeHeldIsHeld(t *testing.T, through *node) {
	order := through.addr + "-late"
	through.site.provider.ScriptFor(order, sim.MustParse("late=1s")...)
	r, err := through.send(t.Context(), http.MethodPost, "/v1/jobs", fmt.Sprintf(`{"kind":"charge","input":{"order":%q}}`, order), "Idempotency-Key", order, "Prefer", "wait=8")
	if err != nil || r.status != http.StatusOK || r.job.State != "succeeded" {
		t.Errorf("after a wait: %d %q, %v; want 200 and the result of a second later", r.status, r.job.State, err)
	}
}

func metricsStayWithTheNodes(t *testing.T, through *node) {
	for path, want := range map[string]int{"/metrics": http.StatusNotFound, "/readyz": http.StatusOK} {
		if got, _ := through.read(t, path); got != want {
			t.Errorf("%s through the balancer was answered %d; want %d", path, got, want)
		}
	}
}
