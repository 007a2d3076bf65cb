package e2e_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
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
		if got := n.wantState(r.job.ID, "succeeded"); len(got.job.Attempts) != 1 || got.job.Attempts[0].State != "succeeded" {
			t.Errorf("the late answer left %+v; want one attempt, succeeded", got.job.Attempts)
		}
	})
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
