package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

// raced is what a test of races reads of a job.
type raced struct {
	State       string `json:"state"`
	Version     int64  `json:"version"`
	CompletedBy string `json:"completed_by"`
	Result      struct {
		ID string `json:"id"`
	} `json:"result"`
	Cost []struct {
		Currency string `json:"currency"`
		Micros   int64  `json:"micros"`
		AtLeast  bool   `json:"at_least"`
	} `json:"cost"`
	Attempts []struct {
		ID     string `json:"id"`
		Lane   int    `json:"lane"`
		Target string `json:"target"`
		State  string `json:"state"`
	} `json:"attempts"`
}

func (r *raced) attempts() string {
	text := ""
	for _, a := range r.Attempts {
		text += fmt.Sprintf("%s/%d=%s ", a.Target, a.Lane, a.State)
	}
	return text
}

func getRaced(t *testing.T, n *node, id string) (r raced) {
	t.Helper()
	if err := json.Unmarshal(body(t, n, "/v1/jobs/"+id), &r); err != nil {
		t.Error(err)
	}
	return r
}

// Of two lanes the second answers first: a gateway that takes whatever came last
// overwrites the winner's result, and books one of the two costs.
func TestTheLaneThatAnswersLastIsDiscardedAndBothCostsAreBooked(t *testing.T) {
	onBothStores(t, func(t *testing.T, storeURL string) {
		slow := sim.ForTest(t, sim.Options{CostMicros: 700, Default: sim.MustParse("hold")[0]})
		fast := sim.ForTest(t, sim.Options{CostMicros: 50})
		s := &site{t: t, dir: t.TempDir(), store: storeURL}
		s.setUp(fmt.Sprintf(`
targets:
  slow: {provider: http, request: {url: "%s/v1/images"}, cost: "body.cost_micros"}
  fast: {provider: http, request: {url: "%s/v1/images"}, cost: "body.cost_micros"}
kinds:
  charge:
    effect: none
    contract: charge.yaml
    targets: [slow, fast]
    timeout: 30s
    race: {after: 200ms, lanes: 2}
    failover: {declared: "both draw the same picture"}
secret: "a secret that all nodes share"
`, slow.URL(), fast.URL()))
		s.waive("fast")
		told := newReceiver(t, accepts)
		s.tell("50ms", told.URL+"/hooks")
		n := s.newNode()
		n.start()
		r, err := n.submit(t.Context(), "one")
		if err != nil {
			t.Fatal(err)
		}
		n.wantState(r.job.ID, "succeeded")
		won := getRaced(t, n, r.job.ID)
		if got, want := won.attempts(), "slow/0=running fast/1=succeeded "; got != want || won.CompletedBy != won.Attempts[1].ID {
			t.Fatalf("won as %q, completed by %s; want %q, by the second lane", got, won.CompletedBy, want)
		}
		told.wantHooks(t, "/hooks", r.job.ID, 1)
		slow.Release()
		after := won
		if !eventually(20*time.Second, func() bool {
			after = getRaced(t, n, r.job.ID)
			return after.attempts() == "slow/0=discarded fast/1=succeeded "
		}) {
			t.Errorf("the late lane ended as %q; want it discarded", after.attempts())
		}
		if after.State != "succeeded" || after.Version != won.Version || after.CompletedBy != won.CompletedBy || after.Result != won.Result {
			t.Errorf("after the late answer the job is %+v; want it as it was: %+v", after, won)
		}
		if len(after.Cost) != 1 || after.Cost[0].Micros != 750 {
			t.Errorf("the job cost %+v; want 750, the sum of both", after.Cost)
		}
		pause(t.Context(), 500*time.Millisecond) // more than a sender's poll
		told.wantHooks(t, "/hooks", r.job.ID, 1)
		if slow.TotalExecutions() != 1 || fast.TotalExecutions() != 1 {
			t.Errorf("%d and %d executions; want one in each lane", slow.TotalExecutions(), fast.TotalExecutions())
		}
	})
}

// anyAnswer is a contract that every answer keeps.
const anyAnswer = `apiVersion: onejob/contract.v1
kind: charge
input_schema:
  type: object
  additionalProperties: false
  required: [order, amount]
  properties: {order: {type: string, maxLength: 100}, amount: {type: integer, minimum: 0}}
output: {media: binary}
cases: {files: [cases.jsonl], min_distinct: 5}
gates: {structure: {min_rate: 0.5, max_failures: 0}}
side_effects: none
failover: {automatic: true}
`

// waive writes the contract charge.yaml, and a person's word that a target may stand
// in under it: a racing lane needs that, or a certificate.
func (s *site) waive(target string) {
	s.t.Helper()
	cases := `{"id":"c-0","input":{"order":"","amount":0},"tags":["hostile"]}` + "\n"
	for i := 1; i < 5; i++ {
		cases += fmt.Sprintf(`{"id":"c-%d","input":{"order":"o-%d","amount":%d}}`+"\n", i, i, i)
	}
	for name, text := range map[string]string{"charge.yaml": anyAnswer, "cases.jsonl": cases} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	s.run("contract", "waive", "charge", "--target", target, "--reason", "both draw the same picture", "--until", "1h", "--config", s.config(), "--store", s.store)
}
