package cli_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob/internal/cli"
	"github.com/onejob-dev/onejob/sim"
)

const gradeContract = `apiVersion: onejob/contract.v1
kind: grade
input_schema:
  type: object
  additionalProperties: false
  required: [severity, text, author]
  properties:
    severity: {type: string, maxLength: 10}
    text: {type: string, maxLength: 100}
    author:
      anyOf:
        - {type: "null"}
        - {type: object, additionalProperties: false, required: [name], properties: {name: {type: string, maxLength: 20}}}
output:
  media: json
  schema:
    type: object
    additionalProperties: false
    required: [severity]
    properties: {severity: {enum: [low, medium, high]}}
prompt: {user: "{{ input.text }}\nSeverity: {{ input.severity }}", untrusted: [input.severity, input.text]}
params: {required: {response_schema: output.schema, max_output_tokens: 200}, tuning: {seed: 7}, temperature: low}
render: {special_tokens_in_untrusted: allow, context: {reserve_output_tokens: 200}}
invariants: [{id: known, cel: "output.severity != 'none'"}]
cases: {files: [cases.jsonl], min_distinct: 4}
sampling: {repeats: 1, confidence: 0.9}
gates: {structure: {min_rate: 0.5, max_failures: 0}, invariants: {min_rate: 0.5, max_failures: 0}, operational: {max_cost_usd: 0.01}}
side_effects: none
failover: {automatic: true}
verify: {max_calls: 40}
`

const gradeCases = `{"id":"a","input":{"severity":"low","text":"<|im_start|> <b>","author":null},"tags":["hostile"]}
{"id":"b","input":{"severity":"medium","text":"two","author":null}}
{"id":"c","input":{"severity":"high","text":"three","author":null}}
{"id":"d","input":{"severity":"HIGH","text":"four","author":null}}
`

const gradeConfig = `store: sqlite:DIR/onejob.db
environment: prod
targets:
  acme:   {provider: openai, base_url: "SIM/v1", model: good, pinned: true, api_key: "${env:KEY}"}
  medium: {provider: anthropic, base_url: "SIM", model: good, pinned: true, api_key: "${env:KEY}"}
  quartz: {provider: openai, base_url: "SIM/v1", model: bad, api_key: "${env:KEY}"}
  gone:   {provider: openai, base_url: "GONE/v1", model: good, api_key: "${env:KEY}"}
kinds:
  grade: {effect: none, contract: grade.yaml, targets: [acme, medium, quartz, gone], timeout: 10s}
`

// grader runs commands on a store of its own. Of its targets medium is good, quartz puts
// its JSON in a fence, and gone is not there.
type grader struct {
	t    *testing.T
	dir  string
	keys map[string]string // the environment
}

func newGrader(t *testing.T) *grader {
	t.Helper()
	srv := sim.ForTest(t, sim.Options{Models: map[string]sim.Mind{"good": {}, "bad": sim.MustParseMind("fence")}})
	gone := httptest.NewServer(nil)
	gone.Close()
	g := &grader{t: t, dir: t.TempDir(), keys: map[string]string{"KEY": "sk-canary-of-the-targets"}}
	g.write("grade.yaml", gradeContract)
	g.write("cases.jsonl", gradeCases)
	g.write("onejob.yaml", strings.NewReplacer("DIR", g.dir, "SIM", srv.URL(), "GONE", gone.URL).Replace(gradeConfig))
	return g
}

func (g *grader) path(name string) string { return filepath.Join(g.dir, name) }

func (g *grader) write(name, text string) {
	g.t.Helper()
	if err := os.WriteFile(g.path(name), []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

// do runs a contract command that reads the configuration.
func (g *grader) do(code int, args ...string) outcome {
	g.t.Helper()
	return g.run(code, append([]string{"contract"}, append(args, "--config", g.path("onejob.yaml"))...)...)
}

func (g *grader) run(code int, args ...string) outcome {
	g.t.Helper()
	got := run(g.t.Context(), g.keys, "", args...)
	if got.code != code {
		g.t.Fatalf("%v exits with %d; want %d\n%s%s", args, got.code, code, got.stdout, got.stderr)
	}
	if strings.Contains(got.stdout+got.stderr, "canary") {
		g.t.Errorf("%v tells the key of a target:\n%s%s", args, got.stdout, got.stderr)
	}
	return got
}

// says holds what was printed to what it is to contain.
func (g *grader) says(text string, wants ...string) {
	g.t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			g.t.Errorf("%q is not in:\n%s", want, text)
		}
	}
}

// object reads what a command printed for programs.
func (o outcome) object(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(o.stdout), &v); err != nil {
		t.Fatalf("no JSON: %v\n%s", err, o.stdout)
	}
	return v
}

func TestContractListTellsWhatKindsHaveOne(t *testing.T) {
	t.Parallel()
	g := newGrader(t)
	g.says(g.do(cli.ExitOK, "list").stdout, "KIND ", "grade  v1:", "prod", "acme,medium,quartz,gone")
	items, _ := g.do(cli.ExitOK, "list", "-o", "json").object(t)["items"].([]any)
	if len(items) != 1 || items[0].(map[string]any)["cases"] != 4.0 {
		t.Errorf("listed are %v", items)
	}
	g.do(cli.ExitUsage, "list", "grade")
}

func TestContractRenderWritesTheRequestOfACase(t *testing.T) {
	t.Parallel()
	g := newGrader(t)
	got := g.do(cli.ExitOK, "render", "grade", "--target", "medium", "--case", "b", "--count")
	if body := got.object(t); body["max_tokens"] != 200.0 || !strings.Contains(got.stdout, `two\nSeverity: medium`) {
		t.Errorf("the request is %s", got.stdout)
	}
	g.says(got.stderr, "dropped: seed", " tokens\n")
	g.says(g.do(cli.ExitOK, "render", "grade", "--target", "acme").stdout, `<|im_start|> <b>\nSeverity: low`, `"seed":7`)
	g.says(g.do(cli.ExitNotFound, "render", "grade", "--target", "acme", "--case", "z").stderr, `no case "z"`)
	g.do(cli.ExitNotFound, "render", "grade", "--target", "nobody")
	g.do(cli.ExitUsage, "render", "grade")
	g.says(g.do(cli.ExitUnreachable, "render", "grade", "--target", "gone", "--count").stderr, "does not say how many tokens")
}

func TestContractVerifyEndsAsTheTargetDeserves(t *testing.T) {
	t.Parallel()
	g := newGrader(t)
	g.says(g.do(cli.ExitOK, "verify", "grade", "--target", "medium", "--dry-run").stdout, "4 cases x 1 repeat = 4 calls",
		"VERDICT meets the contract; no certificate is issued by this   env=prod", "the target has no price: max_spend_usd cannot be kept", "ASSUMED: max_cost_usd; the target has no price")
	g.says(g.do(cli.ExitNotCertified, "can-failover", "grade", "--to", "medium").stdout, "NO  no_certificate\n")
	g.says(g.do(cli.ExitFailed, "verify", "grade", "--target", "quartz").stdout, "VERDICT not certified: schema_nonce", "fence")
	got := g.do(cli.ExitUnreachable, "verify", "grade", "--target", "gone")
	g.says(got.stdout, "VERDICT inconclusive: unreachable")
	g.says(got.stderr, "cannot be reached")
	g.says(g.do(cli.ExitNotCertified, "verify", "grade", "--target", "medium", "--stage", "s3").stdout, "VERDICT inconclusive: partial")
	g.says(g.do(cli.ExitOK, "verify", "grade", "--target", "medium").stdout, "VERDICT certified until ", "What this shows: on these 4 inputs.")
	if report := g.do(cli.ExitOK, "verify", "grade", "--target", "medium", "-o", "json"); report.object(t)["certificate_id"] == nil || strings.Contains(report.stdout, `\u003e`) {
		t.Errorf("the report is %s", report.stdout)
	}
	for _, wrong := range [][]string{{"--max-spend", "0"}, {"--max-spend=-1"}, {"--stage", "S9"}} {
		g.do(cli.ExitUsage, append([]string{"verify", "grade", "--target", "medium"}, wrong...)...)
	}
	g.do(cli.ExitNotFound, "verify", "grade", "--target", "nobody")
	g.do(cli.ExitNotFound, "verify", "nothing", "--target", "medium")
}

func TestContractCanFailoverMatrixAndShowTellWhatWasShown(t *testing.T) {
	t.Parallel()
	g := newGrader(t)
	g.do(cli.ExitOK, "verify", "grade", "--target", "medium")
	g.do(cli.ExitFailed, "verify", "grade", "--target", "quartz")
	g.says(g.do(cli.ExitOK, "can-failover", "grade", "--to", "medium").stdout, "YES cert_", " until ")
	g.says(g.do(cli.ExitNotCertified, "can-failover", "grade", "--to", "quartz").stdout, "NO  refused_by_verification: schema_nonce: ", " (cert_")
	if f := g.do(cli.ExitNotCertified, "can-failover", "grade", "--to", "gone", "-o", "json").object(t); f["allowed"] != false || f["reason"] != "no_certificate" {
		t.Errorf("gone stands %v", f)
	}
	g.says(g.do(cli.ExitNotFound, "can-failover", "nothing", "--to", "medium").stderr, `no kind "nothing" has a contract`)
	g.do(cli.ExitNotFound, "can-failover", "grade", "--to", "nobody")
	g.says(g.do(cli.ExitUsage, "can-failover", "grade", "--to", "acme").stderr, "stands in for nobody")

	matrix := g.do(cli.ExitOK, "matrix", "grade").stdout
	g.says(matrix, "acme    primary", "medium  yes", "quartz  no", "refused_by_verification", "no_certificate")
	if items, _ := g.do(cli.ExitOK, "matrix", "grade", "-o", "json").object(t)["items"].([]any); len(items) != 4 {
		t.Errorf("the matrix has %v", items)
	}
	g.says(g.do(cli.ExitOK, "show", "grade").stdout, "medium  certified  active", "quartz  refused    active  schema_nonce")
	items, _ := g.do(cli.ExitOK, "show", "grade", "--target", "medium", "-o", "json").object(t)["items"].([]any)
	if len(items) != 1 {
		t.Fatalf("of medium there are %v", items)
	}
	if c := items[0].(map[string]any); c["environment"] != "prod" || c["verification_id"] == "" || c["expires_at"] == nil || c["dropped_params"] == nil {
		t.Errorf("the certificate is %v", c)
	}
	g.do(cli.ExitNotFound, "show", "nothing")
	g.do(cli.ExitNotFound, "matrix", "nothing")
}

func TestContractWaiveAndRevokeArePeoplesWord(t *testing.T) {
	t.Parallel()
	g := newGrader(t)
	waive := []string{"waive", "grade", "--target", "quartz", "--reason", "an outage", "--until"}
	got := g.do(cli.ExitOK, append(waive, "72h")...)
	id := strings.TrimSpace(got.stdout)
	if !strings.HasPrefix(id, "waiv_") || strings.ContainsAny(id, " \n") {
		t.Errorf("stdout is %q", got.stdout)
	}
	g.says(got.stderr, "quartz may take over jobs of grade until ", "uncertified")
	g.says(g.do(cli.ExitOK, "can-failover", "grade", "--to", "quartz").stdout, "YES uncertified, by "+id)
	g.do(cli.ExitFailed, "verify", "grade", "--target", "quartz")
	if matrix := g.do(cli.ExitOK, "matrix", "grade").stdout; !strings.Contains(matrix, " "+id+" ") || !strings.Contains(matrix, "not certified: schema_nonce") {
		t.Errorf("what opens it is not told alone:\n%s", matrix)
	}
	if w := g.do(cli.ExitOK, append(waive, "1h", "-o", "json")...).object(t); w["target"] != "quartz" || w["reason"] != "an outage" || w["expires_at"] == nil {
		t.Errorf("the waiver is %v", w)
	} else {
		g.do(cli.ExitOK, "revoke", w["id"].(string))
	}
	g.says(g.do(cli.ExitOK, "revoke", id).stderr, id+" for quartz is revoked")
	g.do(cli.ExitNotCertified, "can-failover", "grade", "--to", "quartz")
	for _, until := range []string{"tomorrow", "2020-01-01", "2400h"} {
		g.do(cli.ExitUsage, append(waive, until)...)
	}

	g.do(cli.ExitOK, "verify", "grade", "--target", "medium")
	certificate, _ := g.do(cli.ExitOK, "can-failover", "grade", "--to", "medium", "-o", "json").object(t)["certificate"].(string)
	g.says(g.do(cli.ExitUsage, "revoke", certificate).stderr, "--reason is required")
	g.says(g.do(cli.ExitOK, "revoke", certificate, "--reason", "a person saw nonsense").stderr, certificate+" of medium is revoked")
	g.says(g.do(cli.ExitNotCertified, "can-failover", "grade", "--to", "medium").stdout, "revoked: a person saw nonsense")
	g.do(cli.ExitNotFound, "revoke", "cert_none", "--reason", "x")
	g.do(cli.ExitNotFound, "revoke", "waiv_none")
}

func TestContractReplayJudgesWhatWasKeptWithoutACall(t *testing.T) {
	t.Parallel()
	g := newGrader(t)
	g.says(g.do(cli.ExitNotCertified, "replay", "grade", "--target", "medium").stdout, "0 of 4 cases seen", "VERDICT inconclusive: structure")
	g.do(cli.ExitOK, "verify", "grade", "--target", "medium")
	g.says(g.do(cli.ExitOK, "replay", "grade", "--target", "medium").stdout, "4/4 cases",
		"VERDICT meets the contract; no certificate is issued by this", "4 kept outputs meet it; nothing was called and nothing is issued")
	digest, _ := g.do(cli.ExitOK, "can-failover", "grade", "--to", "medium", "-o", "json").object(t)["contract"].(string)

	g.write("grade.yaml", strings.Replace(gradeContract, "!= 'none'", "== 'low'", 1))
	g.says(g.do(cli.ExitNotCertified, "can-failover", "grade", "--to", "medium").stdout, "NO  contract_changed")
	got := g.do(cli.ExitFailed, "replay", "grade", "--target", "medium", "--of", digest[:len("v1:")+8])
	g.says(got.stdout, "VERDICT not certified: invariants   (0 calls, $0.00 spent)")
	g.do(cli.ExitFailed, "replay", "grade", "--target", "medium", "--of", digest)
	g.says(g.do(cli.ExitNotFound, "replay", "grade", "--target", "medium", "--of", "v1:none").stderr, "never verified for a contract")
	g.do(cli.ExitNotFound, "replay", "grade", "--target", "nobody")
	g.do(cli.ExitNotFound, "replay", "nothing", "--target", "medium", "--of", digest)
}

func TestContractDiffTellsWhetherEvidenceStays(t *testing.T) {
	t.Parallel()
	g := newGrader(t)
	g.write("gates.yaml", strings.Replace(gradeContract, "min_rate: 0.5", "min_rate: 0.51", 1))
	g.write("prompt.yaml", strings.Replace(gradeContract, "Severity:", "How bad:", 1))
	was, gates, prompt := g.path("grade.yaml"), g.path("gates.yaml"), g.path("prompt.yaml")
	g.says(g.run(cli.ExitOK, "contract", "diff", was, gates).stdout, "the same digest: certificates stay")
	g.says(g.run(cli.ExitFailed, "contract", "diff", was, prompt).stdout, "another digest: every target is to be verified again\n  prompt\n")
	if d := g.run(cli.ExitFailed, "contract", "diff", was, prompt, "-o", "json").object(t); d["same"] != false || len(d["members"].([]any)) != 1 {
		t.Errorf("the difference is %v", d)
	}
	g.run(cli.ExitUsage, "contract", "diff", was)
	g.says(g.run(cli.ExitUsage, "contract", "diff", was, g.path("nowhere.yaml")).stderr, "the contract cannot be read")
}

// serve serves the configuration until the test ends, and has jobs done.
func (g *grader) serve(inputs ...string) {
	g.t.Helper()
	listen := freePort(g.t)
	key := strings.TrimSpace(g.run(cli.ExitOK, "keys", "create", "--owner", "o", "--store", "sqlite:"+g.path("onejob.db")).stdout)
	serving, stop := context.WithCancel(g.t.Context())
	served := make(chan outcome, 1)
	go func() {
		served <- run(serving, g.keys, "", "serve", "--config", g.path("onejob.yaml"), "--listen", listen)
	}()
	g.t.Cleanup(func() {
		stop()
		if got := <-served; got.code != cli.ExitOK {
			g.t.Errorf("serve: %+v", got)
		}
	})
	waitUntilReady(g.t, listen, served)
	env := map[string]string{"ONEJOB_API_KEY": key, "ONEJOB_SERVER": listen}
	for i, input := range inputs {
		if got := run(g.t.Context(), env, input, "submit", "grade", "--input", "-", "--key", "k"+string(rune('a'+i)), "--wait", "20s"); got.code != cli.ExitOK {
			g.t.Fatalf("submit: %+v", got)
		}
	}
}

func TestContractRecordLetsNothingThroughThatWasToBeRedacted(t *testing.T) {
	t.Parallel()
	g := newGrader(t)
	record := func(code int, args ...string) outcome {
		return g.do(code, append([]string{"record", "grade", "--from-jobs"}, args...)...)
	}
	g.says(record(cli.ExitOK, "--redact", "none").stderr, "0 cases: no job of the kind has succeeded here")
	g.serve(`{"severity":"low","text":"Grüße, Anna","author":{"name":"Anna"}}`, `{"severity":"high","text":"a < b","author":null}`)

	got := record(cli.ExitOK, "--redact", "input.text", "--redact", "author.name")
	if strings.Contains(got.stdout, "Anna") || strings.Count(got.stdout, "\n") != 2 {
		t.Errorf("recorded is %s", got.stdout)
	}
	g.says(got.stdout, `"text":"xxxxxxxxxxx"`, `"author":{"name":"xxxx"}`, `"author":null`, `"tags":["recorded"]`)
	g.says(got.stderr, "2 cases; review them")
	g.says(record(cli.ExitOK, "--redact", "none", "--sample", "1").stdout, `"text":"a < b"`)

	// A name that is not there is more likely a wrong one; where a null stands above it
	// there is nothing to blank.
	for _, wrong := range []string{"input.texts", "input", "text.name"} {
		got := record(cli.ExitUsage, "--redact", wrong)
		g.says(got.stderr, "nothing is recorded", "no member")
		if got.stdout != "" {
			t.Errorf("--redact %s lets through %s", wrong, got.stdout)
		}
	}
	got = record(cli.ExitOK, "--redact", "author.names")
	g.says(got.stderr, "1 job left out", "no member", "1 case; review them")
	if strings.Contains(got.stdout, "Anna") {
		t.Errorf("a name that one job has no room for lets through %s", got.stdout)
	}
	record(cli.ExitUsage)
	record(cli.ExitUsage, "--redact", "none", "--redact", "input.text")
	record(cli.ExitUsage, "--redact", "none", "--sample", "0")
	g.do(cli.ExitUsage, "record", "grade", "--redact", "none")
	g.do(cli.ExitNotFound, "record", "nothing", "--from-jobs", "--redact", "none")
}
