package e2e_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

// A job that takes the process down with it was recovered and ran again for ever, and
// took every other job down with it.
func TestAJobWhoseAttemptsKillTheProcessThreeTimesIsParkedAndCanBeLetGo(t *testing.T) {
	onBothStores(t, func(t *testing.T, storeURL string) {
		s := newSite(t, storeURL, "{effect: external, targets: [acme], timeout: 5s, linger: 5s, send_within: 1s, per_target: 1}", sim.Options{})
		s.addLines("    idempotency_header:", `    max_execution: 200ms
    lookup: {url: "`+s.provider.URL()+`/v1/charges/{attempt_id}", authoritative: true, every: 100ms, succeeded: "body.status == 'succeeded'"}
`)
		const deaths = 3
		s.provider.ScriptFor("deadly", sim.MustParse("ignore", "ignore", "ignore")...)
		n := s.newNode()
		n.start()
		r, err := n.submit(t.Context(), "deadly")
		if err != nil {
			t.Fatal(err)
		}
		for death := range deaths {
			if !eventually(20*time.Second, func() bool { return requestsFor(s, "deadly") == death+1 }) {
				now, err := n.get(t.Context(), r.job.ID)
				t.Fatalf("after %d deaths the provider was asked %d times; the job is %+v, %v", death, requestsFor(s, "deadly"), now.job, err)
			}
			n.kill() // the request has arrived; nothing else is known
			n.start()
		}
		parked := n.wantState(r.job.ID, "blocked")
		if !eventually(20*time.Second, func() bool {
			parked, err = n.get(t.Context(), r.job.ID)
			return err == nil && parked.job.Blocked != nil && parked.job.Blocked.Reason == "parked"
		}) {
			t.Fatalf("after %d deaths the job is %+v, %+v; want it parked", deaths, parked.job, parked.job.Blocked)
		}
		for _, a := range parked.job.Attempts {
			if a.State != "failed" {
				t.Errorf("attempt %s is %s; want it proven not executed", a.ID, a.State)
			}
		}
		listed := s.client(n, "jobs", "list", "--state", "blocked")
		if !strings.Contains(listed, r.job.ID) || !strings.Contains(listed, "parked") {
			t.Errorf("the list of blocked jobs is\n%s\nwant the parked one", listed)
		}
		if other, err := n.submit(t.Context(), "harmless"); err != nil || n.wantState(other.job.ID, "succeeded").status != http.StatusOK {
			t.Errorf("beside a parked job another was answered %+v, %v", other, err)
		}
		if got := requestsFor(s, "deadly"); got != deaths {
			t.Errorf("the parked job was sent %d times; want %d", got, deaths)
		}
		s.client(n, "jobs", "unblock", r.job.ID, "--reason", "the parser is mended")
		done := n.wantState(r.job.ID, "succeeded")
		t.Logf("%d deaths: parked (%s); unblocked: %s after %d attempts, %d execution", deaths, parked.job.Blocked.Detail, done.job.State, len(done.job.Attempts), s.provider.Executions("deadly"))
		if s.provider.Executions("deadly") != 1 {
			t.Errorf("it was executed %d times; want once", s.provider.Executions("deadly"))
		}
	})
}

// requestsFor counts what was sent for an order.
func requestsFor(s *site, order string) int {
	sent := 0
	for _, e := range s.provider.Ledger() {
		if e.Intent == order {
			sent++
		}
	}
	return sent
}

// client runs a command against a node.
func (s *site) client(n *node, args ...string) string {
	s.t.Helper()
	cmd := s.command(args...)
	cmd.Env = append(cmd.Env, "ONEJOB_SERVER=http://"+n.addr, "ONEJOB_API_KEY="+s.key, "no_proxy=*")
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("onejob %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
