package httpapi_test

import (
	"fmt"
	"net/http"
	"path"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/onejob-dev/onejob"
	contracts "github.com/onejob-dev/onejob/contract"
	"github.com/onejob-dev/onejob/internal/certify"
	"github.com/onejob-dev/onejob/internal/httpapi"
	"github.com/onejob-dev/onejob/provider/openai"
	"github.com/onejob-dev/onejob/sim"
	"github.com/onejob-dev/onejob/store/memory"
	"github.com/onejob-dev/onejob/verification"
)

const gradeContract = `apiVersion: onejob/contract.v1
kind: grade
input_schema:
  type: object
  additionalProperties: false
  required: [severity]
  properties: {severity: {type: string, maxLength: 10}}
output:
  media: json
  schema:
    type: object
    additionalProperties: false
    required: [severity]
    properties: {severity: {enum: [low, medium, high]}}
prompt: {user: "Severity: {{ input.severity }}", untrusted: [input.severity]}
params: {required: {response_schema: output.schema, max_output_tokens: 200}, temperature: low}
render: {special_tokens_in_untrusted: allow, context: {reserve_output_tokens: 200}}
cases: {files: [cases.jsonl], min_distinct: 4}
sampling: {repeats: 1, confidence: 0.9}
gates: {structure: {min_rate: 0.5, max_failures: 0}}
side_effects: none
failover: {automatic: true}
verify: {max_calls: 30}
`

const gradeCases = `{"id":"a","input":{"severity":"low"},"tags":["hostile"]}
{"id":"b","input":{"severity":"medium"}}
{"id":"c","input":{"severity":"high"}}
{"id":"d","input":{"severity":"HIGH"}}
`

// newContractWorld is a server that knows the kind grade: acme first, then good, which
// answers right, bad, which puts its JSON in a fence, and pool, which workers pull.
func newContractWorld(t *testing.T) *world {
	t.Helper()
	c, err := contracts.Parse("grade.yaml", []byte(gradeContract), fstest.MapFS{"cases.jsonl": {Data: []byte(gradeCases)}})
	if err != nil {
		t.Fatal(err)
	}
	digest, err := contracts.Digest(c)
	if err != nil {
		t.Fatal(err)
	}
	body, err := c.Body()
	if err != nil {
		t.Fatal(err)
	}
	opts := certify.Options{
		Environment: "prod", Targets: map[string]verification.Target{}, Digests: map[string]string{"pool": "v1:pool"},
		Kinds: map[string]certify.Kind{"grade": {Contract: c, Policy: onejob.Policy{
			Effect: onejob.EffectNone, Targets: []string{"acme", "good", "bad", "pool"}, Failover: onejob.FailoverCertified,
			Contract: &onejob.ContractTerms{Digest: digest},
		}}},
	}
	srv := sim.ForTest(t, sim.Options{Models: map[string]sim.Mind{"acme": {}, "good": {}, "bad": sim.MustParseMind("fence")}})
	for _, name := range []string{"acme", "good", "bad"} {
		p, err := openai.New(openai.Options{BaseURL: srv.URL() + "/v1", Model: name, APIKey: canaryKey})
		if err != nil {
			t.Fatal(err)
		}
		opts.Digests[name] = p.Digest()
		opts.Targets[name] = verification.Target{Target: onejob.Target{Name: name, Provider: p, Digest: p.Digest()}, Model: name}
	}
	store := memory.Open(memory.Options{})
	opts.Store = store
	store.UseGate(onejob.GateTerms{Environment: "prod", Targets: opts.Digests})
	if err := store.ContractPut(t.Context(), onejob.ContractVersion{Digest: digest, Kind: "grade", Body: body}); err != nil {
		t.Fatal(err)
	}
	for name, d := range opts.Digests {
		if err := store.TargetPut(t.Context(), onejob.TargetVersion{Digest: d, Name: name, Body: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
	office := certify.New(opts)
	t.Cleanup(office.Close)
	return newWorld(t, func(_ *onejob.Options, api *httpapi.Options) { api.Contracts = office })
}

// canaryKey must not come back in any answer.
const canaryKey = "sk-canary-of-the-targets"

const gradePath = "/v1/contracts/grade"

// verify has a target verified and returns the verification when it has ended.
func (w *world) verify(target string) map[string]any {
	w.t.Helper()
	began := w.post(w.operator, gradePath+"/verify", fmt.Sprintf(`{"target":%q}`, target)).wantStatus(w.t, http.StatusAccepted)
	at := began.header.Get("Location")
	if id := began.text(w.t, "id"); at != "/v1/verifications/"+id || began.text(w.t, "state") != "running" {
		w.t.Fatalf("it began at %q: %s", at, began.body)
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		now := w.get(at).wantStatus(w.t, http.StatusOK)
		if now.text(w.t, "state") != "running" {
			w.secretStays(now)
			return now.object(w.t)
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("it does not end: %s", now.body)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (w *world) secretStays(a answer) {
	w.t.Helper()
	if strings.Contains(string(a.body), "canary") {
		w.t.Errorf("an answer has the key of a target: %s", a.body)
	}
}

// standing reads where a target stands as a fallback of acme.
func (w *world) standing(target string) map[string]any {
	w.t.Helper()
	got := w.get(gradePath+"/can-failover?from=acme&to="+target).wantStatus(w.t, http.StatusOK)
	w.secretStays(got)
	return got.object(w.t)
}

func TestContractsAreListedAsNewJobsPinThem(t *testing.T) {
	t.Parallel()
	w := newContractWorld(t)
	items := w.items("/v1/contracts", w.viewer)
	if len(items) != 1 || items[0]["kind"] != "grade" || items[0]["environment"] != "prod" || items[0]["cases"] != 4.0 || items[0]["automatic"] != true {
		t.Errorf("listed are %v", items)
	}
	if digest, _ := items[0]["digest"].(string); !strings.HasPrefix(digest, "v1:") {
		t.Errorf("its digest is %v", items[0]["digest"])
	}
	if bare := newWorld(t, nil); len(bare.items("/v1/contracts", bare.viewer))+len(bare.items("/v1/certificates", bare.viewer))+len(bare.items("/v1/waivers", bare.viewer)) != 0 {
		t.Error("a server without contracts lists some")
	} else {
		bare.get(gradePath+"/matrix").wantProblem(t, 404, onejob.CodeNotFound)
	}
}

func TestWhatAVerificationShowsOpensTheGateOrDoesNot(t *testing.T) {
	t.Parallel()
	w := newContractWorld(t)
	if s := w.standing("good"); s["allowed"] != false || s["reason"] != "no_certificate" {
		t.Errorf("before anything was shown it stands %v", s)
	}
	if run := w.verify("good"); run["state"] != "certified" || run["report"] == nil || run["calls"] == 0.0 {
		t.Fatalf("the good one is %v", run)
	}
	run := w.verify("bad")
	if run["state"] != "refused" {
		t.Fatalf("the bad one is %v", run)
	}
	good, bad := w.standing("good"), w.standing("bad")
	if good["allowed"] != true || good["automatic"] != true || good["certificate"] == nil || good["expires_at"] == nil {
		t.Errorf("the good one stands %v", good)
	}
	if detail, _ := bad["detail"].(string); bad["allowed"] != false || bad["reason"] != "refused_by_verification" || !strings.Contains(detail, "fence") {
		t.Errorf("the bad one stands %v", bad)
	}
	if m := w.get(gradePath+"/matrix").wantStatus(t, 200).object(t); m["primary"] != "acme" || len(m["items"].([]any)) != 4 {
		t.Errorf("the matrix is %v", m)
	}
	live := w.items("/v1/certificates?kind=grade&live=true", w.viewer)
	if len(live) != 1 || live[0]["target"] != "good" || live[0]["verdict"] != "certified" || live[0]["bounds"] == nil {
		t.Errorf("live are %v", live)
	}
	if of := w.items("/v1/certificates?target=bad", w.viewer); len(of) != 1 || of[0]["verification_id"] != run["id"] {
		t.Errorf("of the bad one there are %v", of)
	}
}

func TestARevokedCertificateClosesTheGate(t *testing.T) {
	t.Parallel()
	w := newContractWorld(t)
	w.verify("good")
	id, _ := w.standing("good")["certificate"].(string)
	revoke := "/v1/certificates/" + id + "/revoke"
	w.post(w.alice, revoke, `{"reason":"x"}`).wantProblem(t, 403, onejob.CodeForbidden)
	w.post(w.operator, revoke, `{"reason":""}`).wantProblem(t, 400, onejob.CodeInvalidRequest)
	for range 2 { // safe to repeat
		if got := w.post(w.operator, revoke, `{"reason":"a person saw nonsense"}`).wantStatus(t, 200).object(t); got["status"] != "revoked" || got["detail"] != "a person saw nonsense" {
			t.Errorf("revoked it is %v", got)
		}
	}
	if s := w.standing("good"); s["allowed"] != false {
		t.Errorf("it stands %v", s)
	}
	w.post(w.operator, "/v1/certificates/cert_none/revoke", `{"reason":"x"}`).wantProblem(t, 404, onejob.CodeNotFound)
}

func TestAWaiverIsAPersonsWordAndIsTakenBack(t *testing.T) {
	t.Parallel()
	w := newContractWorld(t)
	until := time.Now().Add(72 * time.Hour).UTC().Format(time.RFC3339)
	waive := func(target, reason, until string) answer {
		return w.post(w.operator, "/v1/waivers", fmt.Sprintf(`{"kind":"grade","target":%q,"reason":%q,"until":%q}`, target, reason, until))
	}
	w.post(w.alice, "/v1/waivers", `{}`).wantProblem(t, 403, onejob.CodeForbidden)
	waive("bad", "", until).wantProblem(t, 400, onejob.CodeInvalidRequest)
	waive("bad", "an outage", "2020-01-01T00:00:00Z").wantProblem(t, 400, onejob.CodeInvalidRequest)
	waive("bad", "an outage", time.Now().AddDate(1, 0, 0).Format(time.RFC3339)).wantProblem(t, 400, onejob.CodeInvalidRequest)
	waive("nobody", "an outage", until).wantProblem(t, 404, onejob.CodeNotFound)

	granted := waive("bad", "an outage", until).wantStatus(t, 200).object(t)
	if actor, _ := granted["actor"].(string); !strings.HasPrefix(actor, "alice") || granted["expires_at"] != until || granted["reason"] != "an outage" {
		t.Errorf("granted is %v", granted)
	}
	if s := w.standing("bad"); s["allowed"] != true || s["waiver"] != granted["id"] || s["certificate"] != nil {
		t.Errorf("waived it stands %v", s)
	}
	waiver := "/v1/waivers/" + granted["id"].(string)
	for range 2 { // safe to repeat
		if got := w.do(request{method: "DELETE", path: waiver, key: w.operator}).wantStatus(t, 200).object(t); got["revoked_at"] == nil {
			t.Errorf("taken back it is %v", got)
		}
	}
	if s := w.standing("bad"); s["allowed"] != false {
		t.Errorf("taken back it stands %v", s)
	}
	if all, live := w.items("/v1/waivers?target=bad", w.viewer), w.items("/v1/waivers?live=true", w.viewer); len(all) != 1 || len(live) != 0 {
		t.Errorf("there are %v, and live %v", all, live)
	}
	w.do(request{method: "DELETE", path: "/v1/waivers/waiv_none", key: w.operator}).wantProblem(t, 404, onejob.CodeNotFound)
}

func TestWhatIsAskedWrongOfContractsSaysWhatToDo(t *testing.T) {
	t.Parallel()
	w := newContractWorld(t)
	for query, want := range map[string]string{
		"":                        "from and to are required",
		"?to=good":                "from and to are required",
		"?from=acme&to=acme":      "the same target",
		"?from=acme&to=good&at=1": "is not known",
	} {
		got := w.get(gradePath+"/can-failover"+query).wantProblem(t, 400, onejob.CodeInvalidRequest)
		if !strings.Contains(got.text(t, "detail"), want) {
			t.Errorf("%q is answered %s", query, got.body)
		}
	}
	if got := w.get(gradePath+"/can-failover?from=acme&to=nobody").wantProblem(t, 404, onejob.CodeNotFound); !strings.Contains(got.text(t, "detail"), "good") {
		t.Errorf("who there is is not said: %s", got.body)
	}
	w.get("/v1/contracts/nothing/matrix").wantProblem(t, 404, onejob.CodeNotFound)
	w.get("/v1/verifications/run_none").wantProblem(t, 404, onejob.CodeNotFound)
	w.get("/v1/certificates?live=maybe").wantProblem(t, 400, onejob.CodeInvalidRequest)
	w.post(w.alice, gradePath+"/verify", `{"target":"good"}`).wantProblem(t, 403, onejob.CodeForbidden)
	for body, code := range map[string]onejob.Code{
		`{}`:                onejob.CodeInvalidRequest,
		`{"target":"pool"}`: onejob.CodeInvalidRequest,
		`{"target":"good","max_spend_micros":-1}`:  onejob.CodeInvalidRequest,
		`{"target":"good","max_spend_dollars":10}`: onejob.CodeInvalidRequest,
		`{"target":"nobody"}`:                      onejob.CodeNotFound,
	} {
		status := map[onejob.Code]int{onejob.CodeInvalidRequest: 400, onejob.CodeNotFound: 404}[code]
		w.post(w.operator, gradePath+"/verify", body).wantProblem(t, status, code)
	}
}

func TestAJobThatWaitsForACertificateNamesTheCallsThatHelp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		contract *onejob.ContractTerms
		want     string
	}{
		"NoContract": {nil, "attempts cancel"},
		"AContract":  {&onejob.ContractTerms{Digest: "v1:none"}, "attempts verify waivers cancel"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(o *onejob.Options, _ *httpapi.Options) {
				k := o.Kinds["summarise"]
				k.Policy.Contract = c.contract
				o.Kinds["summarise"] = k
			})
			id := w.submit("k1", ticket)
			a := w.claim()
			done, err := w.store.AttemptFinish(t.Context(), []onejob.AttemptFinishParams{{
				Ref: refOf(a), ClaimToken: a.ClaimToken, Outcome: onejob.OutcomeNotExecuted, Phase: onejob.PhaseAnswered, Next: onejob.NextElsewhere,
				Failure: &onejob.Failure{Code: "status_429", Message: "the provider is full"},
			}})
			if err != nil || done[0].Err != nil {
				t.Fatalf("AttemptFinish: %v, %v", err, done)
			}
			blocked, _ := w.get("/v1/jobs/"+id).wantStatus(t, 200).object(t)["blocked"].(map[string]any)
			if blocked["reason"] != "failover_not_certified" {
				t.Fatalf("blocked %v", blocked)
			}
			var last []string
			for _, action := range blocked["actions"].([]any) {
				last = append(last, path.Base(fmt.Sprint(action.(map[string]any)["href"])))
			}
			if got := strings.Join(last, " "); got != c.want {
				t.Errorf("what helps is %s; want %s", got, c.want)
			}
		})
	}
}
