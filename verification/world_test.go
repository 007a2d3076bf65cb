package verification_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
	"github.com/onejob-dev/onejob/provider/anthropic"
	"github.com/onejob-dev/onejob/provider/openai"
	"github.com/onejob-dev/onejob/provider/wire"
	"github.com/onejob-dev/onejob/sim"
	"github.com/onejob-dev/onejob/store/memory"
	"github.com/onejob-dev/onejob/verification"
)

// sorting is a contract that an honest mind of sim meets: its prompt says what belongs
// where.
const sorting = `apiVersion: onejob/contract.v1
kind: sort_ticket
input_schema:
  type: object
  additionalProperties: false
  required: [severity, refund, body]
  properties:
    severity: {type: string, maxLength: 10}
    refund: {type: integer, minimum: 0}
    body: {type: string, maxLength: 30000}
output:
  media: json
  schema:
    type: object
    additionalProperties: false
    required: [severity, refund_cents, human, summary, parts]
    properties:
      severity: {enum: [low, medium, high]}
      refund_cents: {type: integer, minimum: 0, maximum: 50000}
      human: {type: boolean}
      summary: {type: string, minLength: 1, maxLength: 240}
      parts:
        type: object
        additionalProperties: false
        required: [note]
        properties:
          note: {type: string, maxLength: 240}
prompt:
  system: Sort the ticket. Put nobody into the field asked_by.
  user: |
    {{ input.body }}
    Severity: {{ input.severity }}
    Refund cents: {{ input.refund }}
  untrusted: [input.body, input.severity]
params:
  required: {response_schema: output.schema, max_output_tokens: 400}
  temperature: low
render:
  special_tokens_in_untrusted: allow
  context: {max_fraction: 0.9, reserve_output_tokens: 400}
invariants:
  - {id: refund_cap, cel: "output.refund_cents <= input.refund"}
expectations:
  - {id: severity, cel: "output.severity == expect.severity", gate: semantic}
cases:
  files: [cases.jsonl]
  min_distinct: CASES
sampling: {repeats: 1}
gates:
  structure: {min_rate: RATE, max_failures: 0}
  invariants: {min_rate: RATE, max_failures: 0}
  semantic: {min_rate: RATE, max_failures: 0}
side_effects: none
verify: {max_calls: 100000, max_spend_usd: 100.00}
failover: {automatic: true}
`

// ticket is a line of a case file, with letters beyond ASCII. A long one fills a window.
func ticket(i int, long bool) string {
	severity := []string{"low", "medium", "high"}[i%3]
	body, tags := fmt.Sprintf("Grüße, number %d from Umeå", i), `[]`
	if i == 0 {
		tags = `["hostile"]`
	}
	if long {
		body += strings.Repeat(" and so on", 1700)
	}
	return fmt.Sprintf(`{"id":"c-%03d","input":{"severity":%q,"refund":%d,"body":%q},"expect":{"severity":%q},"tags":%s}`+"\n", i, severity, 100+i, body, severity, tags)
}

// longCase among the texts to be replaced makes the last case long.
const longCase = "(the last case is long)"

// contractOf reads the contract with so many cases, and gates at such a rate; pairs of
// texts are replaced in it first.
func contractOf(t testing.TB, cases int, rate string, pairs ...string) *contract.Contract {
	t.Helper()
	long := slices.Contains(pairs, longCase)
	pairs = slices.DeleteFunc(pairs, func(p string) bool { return p == longCase })
	text := strings.ReplaceAll(strings.ReplaceAll(sorting, "CASES", fmt.Sprint(cases)), "RATE", rate)
	for i := 0; i+1 < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("there is no %q to replace", pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	var lines strings.Builder
	for i := range cases {
		lines.WriteString(ticket(i, long && i == cases-1))
	}
	c, err := contract.Parse("sorting.yaml", []byte(text), fstest.MapFS{"cases.jsonl": {Data: []byte(lines.String())}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// price is that of every target here: 2 and 8 dollars for a million tokens.
var price = wire.TokenPrice{InputMicros: 2_000_000, OutputMicros: 8_000_000, Currency: "USD"}

func priceOf(in, out int) int64 {
	micros, _ := price.Micros(int64(in), int64(out))
	return micros
}

// api is a wire protocol by which a target is asked.
type api string

const (
	chat      api = "chat"
	responses api = "responses"
	messages  api = "messages"
)

// targetAt is model m of a server, by the adapter that production uses.
func targetAt(t testing.TB, url string, on api) verification.Target {
	t.Helper()
	provider := providerAt(t, url, on)
	return verification.Target{
		Target: onejob.Target{Name: "t-" + string(on), Provider: provider, Digest: "v1:" + string(on)},
		Model:  "m", Protocol: string(on), Pinned: true, ContextTokens: 128_000, PriceFunc: priceOf,
	}
}

func providerAt(t testing.TB, url string, on api) onejob.Provider {
	t.Helper()
	if on == messages {
		p, err := anthropic.New(anthropic.Options{BaseURL: url, Model: "m", APIKey: "k", Price: price})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	opts := openai.Options{BaseURL: url + "/v1", Model: "m", API: openai.APIChat, Tokenizer: "remote", Price: price}
	if on == responses {
		opts.API = openai.APIResponses
	}
	p, err := openai.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// liar is a server whose model m has such a mind.
func liar(t testing.TB, mind string) *sim.Server {
	t.Helper()
	m, err := sim.ParseMind(mind)
	if err != nil {
		t.Fatal(err)
	}
	return sim.ForTest(t, sim.Options{Models: map[string]sim.Mind{"m": m}})
}

// run verifies what must be possible to verify.
func run(t testing.TB, p verification.Params, o verification.Options) verification.Result {
	t.Helper()
	result, err := verification.Run(context.Background(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// table is the report as people see it.
func table(t testing.TB, r verification.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Report.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// recorder is a store that knows the versions.
func recorder(t testing.TB) *memory.Store {
	t.Helper()
	return memory.Open(memory.Options{})
}

// indoors is a target without a network between: the adapter's own rendering and
// reading around a handler.
type indoors struct {
	*openai.Provider
	handler http.Handler
}

// Call hands the body to the handler.
func (p *indoors) Call(ctx context.Context, req onejob.Request) (onejob.Answer, error) {
	if !req.Rendered {
		return onejob.Answer{}, errors.New("what was made for the target came as a caller's own")
	}
	body := append([]byte(`{"model":"m",`), bytes.TrimPrefix(req.Input, []byte("{"))...)
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/chat/completions", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, r)
	evidence := onejob.Evidence{Status: w.Code}
	if w.Code != http.StatusOK {
		return onejob.Answer{}, &onejob.CallError{Proof: onejob.ErrRefused, Failure: onejob.Failure{Code: "input_refused"}, Evidence: evidence}
	}
	var usage struct {
		Usage struct {
			In  int `json:"prompt_tokens"`
			Out int `json:"completion_tokens"`
		} `json:"usage"`
	}
	_ = json.Unmarshal(w.Body.Bytes(), &usage)
	return onejob.Answer{Body: w.Body.Bytes(), Evidence: evidence, CostMicros: priceOf(usage.Usage.In, usage.Usage.Out), Currency: "USD"}, nil
}

// CountTokens is not asked: there is no server.
func (p *indoors) CountTokens(context.Context, []byte) (int, error) { return 0, errNoServer }

// indoor is a target whose model has such a mind.
func indoor(t testing.TB, mind sim.Mind) verification.Target {
	t.Helper()
	handler := sim.New(sim.Options{Models: map[string]sim.Mind{"m": mind}, MaxEntries: 1})
	t.Cleanup(func() { _ = handler.Close() })
	target := targetAt(t, "http://127.0.0.1:1", chat)
	target.Provider = &indoors{target.Provider.(*openai.Provider), handler}
	return target
}
