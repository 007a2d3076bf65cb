package e2e_test

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

// A worker that stands still for longer than its lease, then goes on as if nothing
// had been: queues hand its job to another meanwhile, and it runs twice
// (taskforcesh/bullmq#3183, taskforcesh/bullmq#439, OptimalBits/bull#1310).
func TestANodeThatFreezesBeyondItsLeaseLeavesOneExecutionAndOneResult(t *testing.T) {
	onBothStores(t, func(t *testing.T, storeURL string) {
		s := newSite(t, storeURL, "{effect: external, targets: [acme], timeout: 30s, linger: 30s}", sim.Options{Default: sim.MustParse("hold")[0]})
		frozen := s.newNode()
		frozen.start()
		r, err := frozen.submit(t.Context(), "one")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.provider.Wait(t.Context(), func() bool { return s.provider.Executions("one") == 1 }); err != nil {
			t.Fatal(err)
		}
		if err := frozen.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(storeURL, "postgres:") {
			other := s.newNode()
			other.start()
			wantBlocked(t, other, r.job.ID)
		} else {
			pause(t.Context(), 3*time.Second) // three leases; nobody else is there to look
		}
		s.provider.Release()
		pause(t.Context(), 200*time.Millisecond)
		if err := frozen.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		var last reply
		if !eventually(20*time.Second, func() bool {
			last, err = frozen.get(t.Context(), r.job.ID)
			return err == nil && last.job.State == "succeeded"
		}) {
			t.Errorf("the job is %+v, %v; want succeeded by the late answer", last.job, err)
		}
		again, err := frozen.submit(t.Context(), "one")
		if err != nil || again.job.ID != r.job.ID || !again.replayed || len(again.job.Attempts) != 1 {
			t.Errorf("asked again: %+v, %v; want the same job with its one attempt", again, err)
		}
		if n := s.provider.Executions("one"); n != 1 || s.provider.Requests() != 1 {
			t.Errorf("%d executions of %d requests; want 1 of 1", n, s.provider.Requests())
		}
	})
}

// wantBlocked waits until another node has seen that the lease is over, and holds
// it to starting nothing, whoever asks.
func wantBlocked(t *testing.T, n *node, id string) {
	t.Helper()
	var last reply
	if !eventually(20*time.Second, func() bool {
		var err error
		last, err = n.get(t.Context(), id)
		return err == nil && last.job.State == "blocked"
	}) {
		t.Fatalf("the job is %+v; want it blocked once the lease is over", last.job)
	}
	if last.job.Blocked.Reason != "attempt_unknown" {
		t.Errorf("blocked for %s; want attempt_unknown", last.job.Blocked.Reason)
	}
	var press reply
	var err error
	eventually(20*time.Second, func() bool { // a busy machine may have no place for it at once
		press, err = n.send(t.Context(), http.MethodPost, "/v1/jobs/"+id+"/attempts", "", "Idempotency-Key", "button")
		return err != nil || press.status != http.StatusTooManyRequests
	})
	if err != nil || press.status != http.StatusConflict || press.job.Code != "attempt-unresolved" {
		t.Errorf("the button: %d %s, %v; want 409 attempt-unresolved", press.status, press.job.Code, err)
	}
}
