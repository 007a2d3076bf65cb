package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

// This file is how a test has a node die at one exact point: internal/crash names
// the points, crash_test.go has the table of them.

// Two kinds of the crash site: at one target the provider can be asked about an
// attempt and its word counts, at the other nobody can ask.
const (
	asked = "asked"
	mute  = "mute"
)

// How long work may go on at the crash site, beyond the two seconds after the mark in
// which it may begin. For most tests that is short, since quarantine ends only then.
const (
	shortWork = "500ms"
	longWork  = "3s"
)

// newCrashSite makes a site with those two kinds and short work.
func newCrashSite(t *testing.T, storeURL string, provider sim.Options) *site {
	t.Helper()
	s := newBareCrashSite(t, storeURL, shortWork, provider)
	s.prepare()
	return s
}

// newBareCrashSite makes one whose store is not there yet.
func newBareCrashSite(t *testing.T, storeURL, work string, provider sim.Options) *site {
	t.Helper()
	provider.IntentFunc, provider.ReferenceFunc = sim.IntentMember("order"), sim.IntentMember("ref")
	s := &site{t: t, dir: t.TempDir(), store: storeURL, provider: sim.ForTest(t, provider)}
	s.configure(crashConfig(s.provider.URL(), work))
	return s
}

func crashConfig(provider, work string) string {
	return fmt.Sprintf(`
targets:
  asked:
    provider: http
    request: {url: "%[1]s/v1/charges", body: '{"order": {{ input.order }}, "ref": {{ attempt.id }} }'}
    max_execution: %[2]s
    lookup:
      url: "%[1]s/v1/charges/{attempt_id}"
      authoritative: true
      every: 200ms
      running: "body.status == 'processing'"
      succeeded: "body.status == 'succeeded'"
  mute:
    provider: http
    request: {url: "%[1]s/v1/charges"}
    max_execution: %[2]s
kinds:
  asked: {effect: external, targets: [asked], timeout: 5s, linger: 5s, send_within: 1s}
  mute: {effect: external, targets: [mute], timeout: 5s, linger: 5s, send_within: 1s}
workers: {slots: 4, lease: 2s, drain: 1s}
secret: "a secret that all nodes share"
`, provider, work)
}

// crash is the command line of the program that dies.
func (s *site) crash(args ...string) *exec.Cmd {
	cmd := s.command(append(args, "--config", s.config(), "--store", s.store)...)
	cmd.Path = crasher
	return cmd
}

// doomed is a node that dies, or stands still, by itself.
type doomed struct {
	*node
	process *os.Process
	ended   chan struct{} // closed when the process is gone
}

// doom starts a node that meets a deed at a point, and returns once it serves, or
// is gone already.
func (s *site) doom(at, deed string, more ...string) *doomed {
	s.t.Helper()
	n := s.newNode()
	cmd := s.crash(append(more, "--listen", n.addr, "--at", at, "--deed", deed)...)
	cmd.Stdout, cmd.Stderr = n.log, n.log
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	d := &doomed{node: n, process: cmd.Process, ended: make(chan struct{})}
	go func() {
		defer close(d.ended)
		_ = cmd.Wait()
	}()
	s.t.Cleanup(d.end)
	if !eventually(20*time.Second, func() bool { return d.gone() || d.still() || d.ready() }) {
		s.t.Fatalf("the doomed node is not ready:\n%s", n.log.tail(4000))
	}
	return d
}

func (d *doomed) gone() bool {
	select {
	case <-d.ended:
		return true
	default:
		return false
	}
}

// still reports whether the process has been stopped.
func (d *doomed) still() bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.process.Pid))
	return err == nil && bytes.Contains(status, []byte("State:\tT"))
}

func (d *doomed) wake() { _ = d.process.Signal(syscall.SIGCONT) }

// end is kill -9; safe to repeat.
func (d *doomed) end() {
	_ = d.process.Signal(syscall.SIGKILL)
	<-d.ended
}

// waitForPoint waits until the node has died of its point. It reports false, with
// the node killed all the same, if that does not come.
func (d *doomed) waitForPoint(within time.Duration) bool {
	defer d.end()
	return eventually(within, d.gone)
}

// onDisk is what a node that died has left: the one job, or none.
func (s *site) onDisk() job {
	s.t.Helper()
	var stderr bytes.Buffer
	cmd := s.crash("--do", "show")
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("crash --do show: %v\n%s", err, stderr.Bytes())
	}
	var jobs []job
	if err := json.Unmarshal(out, &jobs); err != nil || len(jobs) > 1 {
		s.t.Fatalf("on disk is %s, %v; want at most one job", out, err)
	}
	return append(jobs, job{})[0]
}

// settlesAs waits until a job stands as said and has been executed so often.
func (n *node) settlesAs(t *testing.T, id, states string, executions int) {
	t.Helper()
	var last reply
	stands := func() bool {
		var err error
		last, err = n.get(t.Context(), id)
		return err == nil && last.job.standsAs(states)
	}
	if !eventually(20*time.Second, stands) {
		t.Errorf("the job is %q (%+v); want %q", last.job.states(), last.job.Blocked, states)
	}
	if strings.HasPrefix(states, "blocked") { // and so it stays
		pause(t.Context(), 500*time.Millisecond)
		if !stands() {
			t.Errorf("the job is %q now; want it to stay %q", last.job.states(), states)
		}
	}
	executed := func() bool { return n.site.provider.TotalExecutions() == int64(executions) }
	if !eventually(5*time.Second, executed) { // the provider may still be at it
		t.Errorf("%d executions at the provider; want %d", n.site.provider.TotalExecutions(), executions)
	}
}
