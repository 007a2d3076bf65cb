package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

// A worker's process that stands still for three leases: nobody else gets its job,
// and what it says after it wakes is the one result.
func TestAWorkerThatFreezesForThreeLeasesLeavesOneAttemptAndOneResult(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 for examples/worker.py")
	}
	onBothStores(t, func(t *testing.T, storeURL string) {
		s := newSite(t, storeURL, "{effect: external, targets: [pool], timeout: 30s}", sim.Options{})
		told := newReceiver(t, accepts)
		s.tell("50ms", told.URL+"/hooks")
		n := s.newNode()
		n.start()
		frozen := n.startWorker(python)
		r, err := n.submit(t.Context(), "one")
		if err != nil {
			t.Fatal(err)
		}
		n.wantState(r.job.ID, "running")
		if err := frozen.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		n.startWorker(python) // would take the job, if it were to be had
		pause(t.Context(), 3*time.Second)
		if got, err := n.get(t.Context(), r.job.ID); err != nil || got.job.State != "blocked" || len(got.job.Attempts) != 1 {
			t.Errorf("after three leases the job is %+v, %v; want it blocked with its one attempt", got.job, err)
		}
		if err := frozen.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		n.wantState(r.job.ID, "succeeded")
		n.wantOneResult(r.job.ID, "succeeded: succeeded", 0)
		told.wantHooks(t, "/hooks", r.job.ID, 1)
	})
}

// The same, but a person ruled meanwhile that nothing had happened, and was wrong:
// another worker has the result, and what the first says when it wakes is kept
// beside it, as an incident, and changes nothing.
func TestAWorkerThatWakesAfterItsAttemptWasRuledAndDoneAgainIsDiscarded(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 for examples/worker.py")
	}
	onBothStores(t, func(t *testing.T, storeURL string) {
		s := newSite(t, storeURL, "{effect: external, targets: [pool], timeout: 30s, send_within: 100ms, backoff: {initial: 10ms, max: 10ms}}", sim.Options{})
		told := newReceiver(t, accepts)
		s.tell("50ms", told.URL+"/hooks")
		n := s.newNode()
		n.start()
		frozen := n.startWorker(python)
		r, err := n.submit(t.Context(), "one")
		if err != nil {
			t.Fatal(err)
		}
		running := n.wantState(r.job.ID, "running")
		if err := frozen.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		n.wantState(r.job.ID, "blocked")
		ruling := `{"outcome":"failed","proves":"not_executed","evidence":"not on the statement"}`
		if !eventually(20*time.Second, func() bool { // quarantine ends
			ruled, err := n.send(t.Context(), http.MethodPost, "/v1/attempts/"+running.job.Attempts[0].ID+"/resolve", ruling)
			return err == nil && ruled.status == http.StatusOK
		}) {
			t.Fatal("the attempt was not ruled")
		}
		n.startWorker(python)
		n.wantState(r.job.ID, "succeeded")
		n.wantOneResult(r.job.ID, "succeeded: failed succeeded", 0)
		if err := frozen.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		n.wantOneResult(r.job.ID, "succeeded: discarded succeeded", 1)
		pause(t.Context(), 500*time.Millisecond) // more than a sender's poll
		told.wantHooks(t, "/hooks", r.job.ID, 1)
	})
}

// filledOnce is a job's version once its result slot was filled: it begins at 1.
const filledOnce = 2

// wantOneResult holds a job to its one result, whatever else was said of it: the
// result slot was filled once, by the last attempt, and the losers are incidents.
func (n *node) wantOneResult(id, states string, incidents int) {
	t := n.site.t
	t.Helper()
	var last reply
	if !eventually(20*time.Second, func() bool {
		got, err := n.get(t.Context(), id)
		last = got
		return err == nil && got.job.states() == states
	}) {
		t.Errorf("the job is %q; want %q", last.job.states(), states)
	}
	var slot struct {
		Version     int64  `json:"version"`
		CompletedBy string `json:"completed_by"`
	}
	if err := json.Unmarshal(body(t, n, "/v1/jobs/"+id), &slot); err != nil {
		t.Fatal(err)
	}
	if winner := last.job.Attempts[len(last.job.Attempts)-1].ID; slot.Version != filledOnce || slot.CompletedBy != winner {
		t.Errorf("the result slot is at version %d, filled by %s; want version %d, by %s", slot.Version, slot.CompletedBy, filledOnce, winner)
	}
	counted := func() bool { // a moment after the commit
		return strings.Count(string(body(t, n, "/metrics")), `onejob_incidents_total{kind="duplicate_effect"} 1`) == incidents
	}
	if !eventually(5*time.Second, counted) {
		t.Errorf("the incidents that are counted are not %d", incidents)
	}
}

// startWorker starts examples/worker.py for charges with a lease of one second and
// work of two.
func (n *node) startWorker(python string) *exec.Cmd {
	t := n.site.t
	t.Helper()
	script, err := filepath.Abs(filepath.Join("..", "..", "examples", "worker.py"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, script, "charge")
	cmd.Env = append(os.Environ(), "ONEJOB_SERVER=http://"+n.addr, "ONEJOB_API_KEY="+n.site.key, "LEASE_MS=1000", "WORK_SECONDS=2", "no_proxy=*")
	cmd.Stdout, cmd.Stderr = n.log, n.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

func (n *node) wantState(id, state string) reply {
	n.site.t.Helper()
	var last reply
	if !eventually(20*time.Second, func() bool {
		got, err := n.send(n.site.t.Context(), http.MethodGet, "/v1/jobs/"+id, "")
		last = got
		return err == nil && got.job.State == state
	}) {
		n.site.t.Fatalf("the job is %+v; want it %s", last.job, state)
	}
	return last
}
