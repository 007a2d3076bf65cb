package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

// simProcess is `onejob sim`, a provider in a process of its own whose ledger
// outlives it.
type simProcess struct {
	site    *site
	addr    string
	ledger  string
	stalled []string // orders that it executes and forgets to answer
	cmd     *exec.Cmd
}

func newSimProcess(t *testing.T, s *site, stalled []string) *simProcess {
	t.Helper()
	p := &simProcess{site: s, addr: freeAddr(t), ledger: filepath.Join(s.dir, "ledger.jsonl"), stalled: stalled}
	t.Cleanup(p.kill)
	return p
}

func (p *simProcess) url() string { return "http://" + p.addr }

// start starts the process, or starts it again on its ledger.
func (p *simProcess) start() {
	t := p.site.t
	t.Helper()
	p.cmd = p.site.command("sim", "--listen", p.addr, "--ledger", p.ledger, "--intent", "order", "--reference", "ref", "--latency", "20ms")
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if !eventually(20*time.Second, func() bool { _, err := p.report(t.Context()); return err == nil }) {
		t.Fatal("the provider does not answer")
	}
	for _, order := range p.stalled {
		p.script(order)
	}
}

func (p *simProcess) script(order string) {
	t := p.site.t
	t.Helper()
	body := fmt.Sprintf(`{"intent":%q,"steps":["silent"]}`, order)
	resp, err := http.Post(p.url()+"/sim/script", "application/json", bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusNoContent {
		t.Fatalf("the provider took no script: %d", resp.StatusCode)
	}
}

// kill is kill -9; safe to repeat.
func (p *simProcess) kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	_ = p.cmd.Wait()
	p.cmd = nil
}

func (p *simProcess) report(ctx context.Context) (r sim.Report, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url()+"/sim/ledger", http.NoBody)
	if err != nil {
		return r, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return r, err
	}
	defer func() { _ = resp.Body.Close() }()
	return r, json.NewDecoder(resp.Body).Decode(&r)
}

// ordersOfRun names the orders of a run, and those among them that stall: a fifth.
func ordersOfRun(n int) (all, stalled []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("order-%04d", i))
		if i%5 == 0 {
			stalled = append(stalled, all[i])
		}
	}
	return all, stalled
}

// newRunSite makes a site whose kind charge goes to a provider that is still to be
// started: one that can be asked, or not.
func newRunSite(t *testing.T, storeURL string, canBeAsked string, stalled []string) (*site, *simProcess) {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), store: storeURL}
	p := newSimProcess(t, s, stalled)
	lookup := ""
	if canBeAsked == asked {
		lookup = fmt.Sprintf(`
    lookup: {url: "%s/v1/charges/{attempt_id}", authoritative: true, every: 200ms, succeeded: "body.status == 'succeeded'"}`, p.url())
	}
	s.setUp(fmt.Sprintf(`
targets:
  acme:
    provider: http
    request: {url: "%s/v1/charges", body: '{"order": {{ input.order }}, "ref": {{ attempt.id }} }'}
    max_execution: 1s%s
kinds:
  charge:
    {effect: external, targets: [acme], timeout: 2s, linger: 10s, send_within: 1s, max_attempts: 500, per_target: 500, backoff: {initial: 50ms, max: 500ms}}
workers: {slots: 64, lease: 2s, drain: 1s}
secret: "a secret that all nodes share"
`, p.url(), lookup))
	return s, p
}
