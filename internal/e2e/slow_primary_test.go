package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

// What gateways are tried with in docs/benchmarks.md: the primary answers after 2.5 s, a
// call may take 1 s, and another provider, which is certified, would answer at once.

// completions is a contract for chat completions as their callers make them, without
// what the effect says.
const completions = `apiVersion: onejob/contract.v1
kind: chat
input_schema:
  type: object
  additionalProperties: false
  required: [model, messages]
  properties:
    model: {type: string, maxLength: 20}
    messages:
      type: array
      maxItems: 10
      items:
        type: object
        additionalProperties: false
        required: [role, content]
        properties: {role: {type: string, maxLength: 10}, content: {type: string, maxLength: 1000}}
output: {media: text}
cases: {files: [cases.jsonl], min_distinct: 29}
sampling: {repeats: 1}
gates: {structure: {min_rate: 0.90, max_failures: 0}}
failover: {automatic: true}
`

// slowPrimary is a site with a primary that takes 2.5 s, and a certified backup.
type slowPrimary struct {
	*site
	*node
	primary, backup *sim.Server
}

// newSlowPrimary starts one, whose kind chat has the given YAML.
func newSlowPrimary(t *testing.T, storeURL, effect, kind string) *slowPrimary {
	t.Helper()
	return newSlowPrimaryBeside(t, storeURL, beside{
		backup: `provider: openai, base_url: "%s/v1"`, contract: completions, inputFunc: prompted,
	}, effect, kind)
}

// beside is what is beside a slow primary.
type beside struct {
	backup    string // the target, as YAML with a place for its URL
	models    map[string]sim.Mind
	contract  string
	inputFunc func(text string) string // of its cases
}

func newSlowPrimaryBeside(t *testing.T, storeURL string, b beside, effect, kind string) *slowPrimary {
	t.Helper()
	s := &slowPrimary{
		site:    &site{t: t, dir: t.TempDir(), store: storeURL},
		primary: sim.ForTest(t, sim.Options{Default: sim.MustParse("late=2500ms")[0], Models: b.models}),
		backup:  sim.ForTest(t, sim.Options{Models: b.models}),
	}
	terms, sandbox := "side_effects: none\n", "false"
	if effect != "none" { // a certificate for an effect is had where nothing is real
		terms, sandbox = "side_effects: "+effect+"\nverify: {mode: sandbox}\n", "true"
	}
	var cases strings.Builder
	for i := range 29 {
		tags := ""
		if i == 0 {
			tags = `,"tags":["hostile"]`
		}
		fmt.Fprintf(&cases, `{"id":"c-%d","input":%s%s}`+"\n", i, b.inputFunc(fmt.Sprintf("case %d", i)), tags)
	}
	for name, text := range map[string]string{"chat.yaml": b.contract + terms, "cases.jsonl": cases.String()} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.setUp(fmt.Sprintf(`
targets:
  primary: {provider: openai, base_url: "%[1]s/v1", model: large, price: {input_micros: 3000000, output_micros: 3000000, currency: USD}, sandbox: %[2]s}
  backup:  {%[3]s, model: medium, price: {input_micros: 1000000, output_micros: 1000000, currency: USD}, sandbox: %[2]s}
kinds:
  chat: {effect: %[4]s, contract: chat.yaml, targets: [primary, backup], timeout: 1s, %[5]s}
workers: {drain: 5s}
secret: "a secret that all nodes share"
`, s.primary.URL(), sandbox, fmt.Sprintf(b.backup, s.backup.URL()), effect, kind))
	s.run("contract", "verify", "chat", "--target", "backup", "--config", s.config(), "--store", s.store)
	s.backup.Reset()
	s.node = s.newNode()
	s.start()
	return s
}

func prompted(text string) string {
	return fmt.Sprintf(`{"model":"chat","messages":[{"role":"user","content":%q}]}`, text)
}

// completed is what a caller of the front door got.
type completed struct {
	status int
	header http.Header
	body   []byte
	took   time.Duration
}

func (s *slowPrimary) complete(key string, header ...string) completed {
	s.t.Helper()
	return s.completeAs(prompted("hello"), key, header...)
}

func (s *slowPrimary) completeAs(text, key string, header ...string) completed {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, "http://"+s.addr+"/openai/v1/chat/completions", strings.NewReader(text))
	if err != nil {
		s.t.Fatal(err)
	}
	req.GetBody = nil
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	req.Header.Set("Authorization", "Bearer "+s.key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	began := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return completed{resp.StatusCode, resp.Header, body, time.Since(began)}
}

func (s *slowPrimary) wantExecutions(primary, backup int64) {
	s.t.Helper()
	if p, b := s.primary.TotalExecutions(), s.backup.TotalExecutions(); p != primary || b != backup {
		s.t.Errorf("%d executions by the primary and %d by the backup; want %d and %d", p, b, primary, backup)
	}
}

func (c completed) want(t *testing.T, status int, headers map[string]string) {
	t.Helper()
	if c.status != status {
		t.Errorf("answered %d after %s: %s; want %d", c.status, c.took, c.body, status)
	}
	for name, want := range headers {
		if got := c.header.Get(name); got != want {
			t.Errorf("%s: %s; want %s", name, got, want)
		}
	}
}

func TestASlowPrimaryIsWaitedForAndNotDoubledByItsFallback(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, storeURL string) {
		s := newSlowPrimary(t, storeURL, "external", "linger: 10s")
		got := s.complete("k1")
		got.want(t, http.StatusOK, map[string]string{"Onejob-Attempts": "1", "Onejob-Target": "primary", "Onejob-Certificate": ""})
		s.wantExecutions(1, 0)
	})
}

func TestASlowPrimaryThatIsNotWaitedForIsInDoubtAndNotDoubled(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, storeURL string) {
		s := newSlowPrimary(t, storeURL, "external", "linger: 200ms")
		got := s.complete("k1", "Prefer", "wait=4") // by then the primary has finished
		job := got.header.Get("Onejob-Job-Id")
		got.want(t, http.StatusConflict, map[string]string{
			"Onejob-Attempts": "1", "Onejob-Target": "", "X-Should-Retry": "false", "Location": "/v1/jobs/" + job,
		})
		if !strings.Contains(string(got.body), `"outcome-unknown"`) {
			t.Errorf("answered %s; want outcome-unknown", got.body)
		}
		s.waitState(t, job, "blocked: unknown")
		s.wantExecutions(1, 0)
		again := s.complete("k1", "Prefer", "wait=1")
		again.want(t, http.StatusConflict, map[string]string{"Onejob-Job-Id": job, "Onejob-Attempts": "1", "Idempotent-Replayed": "true"})
		s.wantExecutions(1, 0)
	})
}

func TestARaceWithASlowPrimaryIsTwoExecutionsAndSaysSo(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, storeURL string) {
		s := newSlowPrimary(t, storeURL, "none", "race: {after: 500ms, lanes: 2}")
		got := s.complete("k1")
		got.want(t, http.StatusOK, map[string]string{"Onejob-Attempts": "2", "Onejob-Target": "backup"})
		if certificate := got.header.Get("Onejob-Certificate"); !strings.HasPrefix(certificate, "cert_") {
			t.Errorf("Onejob-Certificate: %q; want the backup's", certificate)
		}
		job := got.header.Get("Onejob-Job-Id")
		var after raced
		if !eventually(20*time.Second, func() bool {
			after = getRaced(t, s.node, job)
			return after.attempts() == "primary/0=discarded backup/1=succeeded "
		}) {
			t.Errorf("the attempts ended as %q; want the primary's late answer discarded", after.attempts())
		}
		if after.State != "succeeded" || after.CompletedBy != after.Attempts[1].ID {
			t.Errorf("the job is %s, completed by %s; want the backup's attempt", after.State, after.CompletedBy)
		}
		// 19 tokens at 3 millionths, and 19 at 1.
		if len(after.Cost) != 1 || after.Cost[0].Micros != 76 {
			t.Errorf("the job cost %+v; want 76, the sum of both", after.Cost)
		}
		again := s.complete("k1")
		again.want(t, http.StatusOK, map[string]string{"Onejob-Attempts": "2", "Onejob-Target": "backup", "Idempotent-Replayed": "true"})
		if string(again.body) != string(got.body) {
			t.Errorf("a repeat got %s; want %s", again.body, got.body)
		}
		s.wantExecutions(1, 1)
	})
}
