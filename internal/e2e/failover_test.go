package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

// certifiable is a kind with a contract that an honest model of sim meets.
const certifiable = `apiVersion: onejob/contract.v1
kind: sort_ticket
input_schema:
  type: object
  additionalProperties: false
  required: [severity, body]
  properties: {severity: {type: string, maxLength: 10}, body: {type: string, maxLength: 1000}}
output:
  media: json
  schema:
    type: object
    additionalProperties: false
    required: [severity, summary]
    properties: {severity: {enum: [low, medium, high]}, summary: {type: string, minLength: 1, maxLength: 240}}
prompt:
  user: "{{ input.body }}\nSeverity: {{ input.severity }}"
  untrusted: [input.body, input.severity]
params:
  required: {response_schema: output.schema, max_output_tokens: 200}
  temperature: low
render: {special_tokens_in_untrusted: allow, context: {reserve_output_tokens: 200}}
cases: {files: [cases.jsonl], min_distinct: 30}
sampling: {repeats: 1}
gates: {structure: {min_rate: 0.90, max_failures: 0}}
side_effects: none
failover: {automatic: true}
verify: {max_calls: 100}
`

// newTickets makes a site whose primary turns every request away, and whose fallback
// is a model that can be made to lie.
func newTickets(t *testing.T, storeURL string) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), store: storeURL, provider: sim.ForTest(t, sim.Options{Models: map[string]sim.Mind{"backup": {}}})}
	busy := sim.ForTest(t, sim.Options{Default: sim.MustParse("status=429")[0]})
	var cases strings.Builder
	for i := range 30 {
		tags := ""
		if i == 0 {
			tags = `,"tags":["hostile"]`
		}
		fmt.Fprintf(&cases, `{"id":"c%d","input":{"severity":"low","body":"ticket %d"}%s}`+"\n", i, i, tags)
	}
	for name, text := range map[string]string{"sorting.yaml": certifiable, "cases.jsonl": cases.String()} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.setUp(fmt.Sprintf(`
targets:
  acme: {provider: openai, base_url: "%s/v1", model: large}
  backup: {provider: openai, base_url: "%s/v1", model: backup}
kinds:
  sort_ticket: {effect: none, contract: sorting.yaml, targets: [acme, backup], timeout: 10s, per_target: 1}
workers: {slots: 4, lease: 5s, drain: 5s}
secret: "a secret that all nodes share"
`, busy.URL(), s.provider.URL()))
	return s
}

func (n *node) ticket(t *testing.T, key, target string) string {
	t.Helper()
	asked := ""
	if target != "" {
		asked = fmt.Sprintf(`,"target":%q`, target)
	}
	body := fmt.Sprintf(`{"kind":"sort_ticket","input":{"severity":"high","body":%q}%s}`, key, asked)
	r, err := n.send(t.Context(), http.MethodPost, "/v1/jobs", body, "Idempotency-Key", key)
	if err != nil || r.job.ID == "" {
		t.Fatalf("submit %s: %d %+v, %v", key, r.status, r.job, err)
	}
	return r.job.ID
}

func (n *node) waitState(t *testing.T, id, states string) job {
	t.Helper()
	var last job
	if !eventually(20*time.Second, func() bool {
		r, err := n.get(t.Context(), id)
		last = r.job
		return err == nil && last.states() == states
	}) {
		t.Fatalf("job %s is %s (%+v); want %s", id, last.states(), last.Blocked, states)
	}
	return last
}

// ends runs a command and returns what it wrote and its exit code.
func (s *site) ends(args ...string) (out string, code int) {
	s.t.Helper()
	raw, err := s.command(args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return string(raw), exit.ExitCode()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return string(raw), 0
}

func (s *site) canFailOver(want string, code int) {
	s.t.Helper()
	out, got := s.ends("contract", "can-failover", "sort_ticket", "--to", "backup", "--config", s.config(), "--store", s.store)
	if got != code || !strings.Contains(out, want) {
		s.t.Errorf("can-failover says %q with exit code %d; want %q and %d", out, got, want, code)
	}
}

func TestOnlyACertifiedTargetTakesOverUntilProductionShowsOtherwise(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, storeURL string) {
		s := newTickets(t, storeURL)
		n := s.newNode()
		n.start()

		// Nothing was shown yet: the job waits, and so does whoever presses the button.
		held := n.ticket(t, "t-1", "")
		waiting := n.waitState(t, held, "blocked: failed")
		if waiting.Blocked.Reason != "failover_not_certified" {
			t.Fatalf("it waits for %+v", waiting.Blocked)
		}
		s.canFailOver("no_certificate", 6)
		button, err := n.send(t.Context(), http.MethodPost, "/v1/jobs/"+held+"/attempts", `{"target":"backup"}`, "Idempotency-Key", "b-1")
		if err != nil || button.status != http.StatusConflict || button.job.Code != "failover-not-certified" {
			t.Fatalf("the button answers %d %s, %v", button.status, button.job.Code, err)
		}

		// Certified, the job goes on by itself.
		out, code := s.ends("contract", "verify", "sort_ticket", "--target", "backup", "--config", s.config(), "--store", s.store)
		if code != 0 {
			t.Fatalf("verify ends with %d:\n%s", code, out)
		}
		s.canFailOver("YES", 0)
		n.waitState(t, held, "succeeded: failed succeeded")

		// Two broken outputs in production take the certificate away; neither wins.
		if err := s.provider.SetModel("backup", sim.MustParseMind("fence")); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"t-2", "t-3"} {
			n.waitState(t, n.ticket(t, key, "backup"), "blocked: failed") // acme has no certificate either
		}
		if !eventually(10*time.Second, func() bool {
			out, _ := s.ends("contract", "can-failover", "sort_ticket", "--to", "backup", "--config", s.config(), "--store", s.store)
			return strings.Contains(out, "suspended_violations")
		}) {
			t.Error("two violations did not suspend the certificate")
		}
		after := n.waitState(t, n.ticket(t, "t-4", ""), "blocked: failed")
		if after.Blocked.Reason != "failover_not_certified" {
			t.Errorf("it waits for %+v", after.Blocked)
		}
	})
}

func TestAnInputThatTheContractDoesNotTakeLeavesTheKeyFree(t *testing.T) {
	t.Parallel()
	s := newTickets(t, newSQLite(t))
	n := s.newNode()
	n.start()
	for _, input := range []string{`{"severity":"high"}`, `{"severity":"high","body":"x"}`} {
		r, err := n.send(t.Context(), http.MethodPost, "/v1/jobs", `{"kind":"sort_ticket","input":`+input+`}`, "Idempotency-Key", "k-1")
		want := http.StatusAccepted
		if !strings.Contains(input, "body") {
			want = http.StatusUnprocessableEntity
		}
		if err != nil || r.status != want {
			t.Errorf("%s is answered %d %s, %v; want %d", input, r.status, r.job.Code, err, want)
		}
	}
}
