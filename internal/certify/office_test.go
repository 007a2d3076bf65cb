package certify_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
	"github.com/onejob-dev/onejob/internal/certify"
	"github.com/onejob-dev/onejob/provider/openai"
	"github.com/onejob-dev/onejob/sim"
	"github.com/onejob-dev/onejob/store/memory"
	"github.com/onejob-dev/onejob/verification"
)

const sorting = `apiVersion: onejob/contract.v1
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
failover: {automatic: AUTOMATIC}
verify: {max_calls: 100}
`

// world is an office with a primary, a good fallback, a bad one, and workers.
type world struct {
	t      *testing.T
	office *certify.Office
	store  onejob.CertificateStore
}

func open(t *testing.T, automatic bool) *world {
	t.Helper()
	var cases strings.Builder
	for i := range 30 {
		tags := ""
		if i == 0 {
			tags = `,"tags":["hostile"]`
		}
		fmt.Fprintf(&cases, `{"id":"c%d","input":{"severity":"low","body":"ticket %d"}%s}`+"\n", i, i, tags)
	}
	text := strings.Replace(sorting, "AUTOMATIC", fmt.Sprint(automatic), 1)
	c, err := contract.Parse("sorting.yaml", []byte(text), fstest.MapFS{"cases.jsonl": {Data: []byte(cases.String())}})
	if err != nil {
		t.Fatal(err)
	}
	digest, err := contract.Digest(c)
	if err != nil {
		t.Fatal(err)
	}
	srv := sim.ForTest(t, sim.Options{Models: map[string]sim.Mind{"acme": {}, "good": {}, "bad": sim.MustParseMind("fence")}})
	opts := certify.Options{Targets: map[string]verification.Target{}, Digests: map[string]string{"pool": "v1:pool"}}
	for _, name := range []string{"acme", "good", "bad"} {
		p, err := openai.New(openai.Options{BaseURL: srv.URL() + "/v1", Model: name})
		if err != nil {
			t.Fatal(err)
		}
		opts.Digests[name] = p.Digest()
		opts.Targets[name] = verification.Target{Target: onejob.Target{Name: name, Provider: p, Digest: p.Digest()}, Model: name}
	}
	var store onejob.Store = memory.Open(memory.Options{})
	w := &world{t: t, store: store.(onejob.CertificateStore)}
	w.store.UseGate(onejob.GateTerms{Targets: opts.Digests})
	body, err := c.Body()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.store.ContractPut(t.Context(), onejob.ContractVersion{Digest: digest, Kind: "sort_ticket", Body: body}); err != nil {
		t.Fatal(err)
	}
	for name, d := range opts.Digests {
		if err := w.store.TargetPut(t.Context(), onejob.TargetVersion{Digest: d, Name: name, Body: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
	opts.Store = w.store
	opts.Kinds = map[string]certify.Kind{"sort_ticket": {Contract: c, Policy: onejob.Policy{
		Effect: onejob.EffectNone, Targets: []string{"acme", "good", "bad", "pool"}, Failover: onejob.FailoverCertified,
		Contract: &onejob.ContractTerms{Digest: digest, Manual: !automatic},
	}}}
	w.office = certify.New(opts)
	t.Cleanup(w.office.Close)
	return w
}

func (w *world) verify(target string) verification.Result {
	w.t.Helper()
	r, err := w.office.Verify(w.t.Context(), certify.VerifyParams{Kind: "sort_ticket", Target: target, Actor: "olga", Keep: true})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) standing(target string) certify.Standing {
	w.t.Helper()
	f, err := w.office.CanFailover(w.t.Context(), "sort_ticket", "acme", target)
	if err != nil {
		w.t.Fatal(err)
	}
	return f.Standing
}

func TestWhoMayStandInFollowsWhatWasShown(t *testing.T) {
	t.Parallel()
	w := open(t, true)
	for _, target := range []string{"good", "bad", "pool"} {
		if s := w.standing(target); s.Allowed || s.Reason != onejob.GateNoCertificate {
			t.Errorf("before anything was shown %s stands %+v", target, s)
		}
	}
	if r := w.verify("good"); r.State != onejob.RunCertified {
		t.Fatalf("the good one is %s: %s %s", r.State, r.Reason, r.Detail)
	}
	if r := w.verify("bad"); r.State != onejob.RunRefused {
		t.Fatalf("the bad one is %s: %s %s", r.State, r.Reason, r.Detail)
	}
	if s := w.standing("good"); !s.Allowed || !s.Automatic || s.Certificate == "" || s.ExpiresAt.IsZero() || s.RenewalDue {
		t.Errorf("the good one stands %+v", s)
	}
	if s := w.standing("bad"); s.Allowed || s.Reason != onejob.GateRefused || !strings.Contains(s.Detail, "fence") {
		t.Errorf("the bad one stands %+v", s)
	}
	m, err := w.office.Matrix(t.Context(), "sort_ticket")
	if err != nil || len(m.Items) != 4 || !m.Items[0].Primary || !m.Items[1].Allowed || m.Items[3].Allowed {
		t.Errorf("the matrix is %+v, %v", m, err)
	}
}

func TestARevokedCertificateOpensNothing(t *testing.T) {
	t.Parallel()
	w := open(t, true)
	id := w.verify("good").Certificate.ID
	for range 2 { // safe to repeat
		c, err := w.office.Revoke(t.Context(), id, "olga", "it was a mistake")
		if err != nil || c.Status != onejob.CertificateRevoked || c.Detail != "it was a mistake" {
			t.Fatalf("revoked it is %+v, %v", c, err)
		}
	}
	if s := w.standing("good"); s.Allowed {
		t.Errorf("it stands %+v", s)
	}
	if _, err := w.office.Revoke(t.Context(), "cert_none", "olga", "x"); onejob.CodeOf(err) != onejob.CodeNotFound {
		t.Errorf("one that is not there is answered %v", err)
	}
}

func TestAWaiverStandsInUntilItIsTakenBack(t *testing.T) {
	t.Parallel()
	w := open(t, true)
	p := certify.WaiveParams{Kind: "sort_ticket", Target: "pool", Actor: "olga", Reason: "an outage", Until: time.Now().Add(time.Hour)}
	granted, err := w.office.Waive(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if s := w.standing("pool"); !s.Allowed || s.Waiver != granted.ID {
		t.Errorf("waived it stands %+v", s)
	}
	if _, err := w.office.Unwaive(t.Context(), granted.ID, "olga"); err != nil {
		t.Fatal(err)
	}
	if s := w.standing("pool"); s.Allowed {
		t.Errorf("taken back it stands %+v", s)
	}
	for name, bad := range map[string]func(*certify.WaiveParams){
		"NoReason": func(p *certify.WaiveParams) { p.Reason = "" }, "Past": func(p *certify.WaiveParams) { p.Until = time.Now() },
		"TooLong": func(p *certify.WaiveParams) { p.Until = time.Now().AddDate(1, 0, 0) }, "NoTarget": func(p *certify.WaiveParams) { p.Target = "nobody" },
		"NoKind": func(p *certify.WaiveParams) { p.Kind = "nothing" },
	} {
		wrong := p
		bad(&wrong)
		if _, err := w.office.Waive(t.Context(), wrong); err == nil {
			t.Errorf("%s is granted", name)
		}
	}
}

func TestWithoutAutomaticACertifiedTargetIsForWhoAsks(t *testing.T) {
	t.Parallel()
	w := open(t, false)
	w.verify("good")
	if s := w.standing("good"); !s.Allowed || s.Automatic || s.Reason != onejob.GateAutomaticOff {
		t.Errorf("it stands %+v", s)
	}
}

func TestAVerificationInTheBackgroundIsOneATarget(t *testing.T) {
	t.Parallel()
	w := open(t, true)
	p := certify.VerifyParams{Kind: "sort_ticket", Target: "good", Actor: "olga", Keep: true}
	run, err := w.office.VerifyLater(p)
	if err != nil || run.ID == "" || run.TargetName != "good" {
		t.Fatalf("it began as %+v, %v", run, err)
	}
	if _, err := w.office.VerifyLater(p); onejob.CodeOf(err) != onejob.CodeRequestInProgress && err != nil {
		t.Errorf("a second one is answered %v", err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		now, err := w.office.Run(t.Context(), run.ID)
		if err != nil {
			t.Fatal(err)
		}
		if now.State != onejob.RunUnderWay {
			if now.State != onejob.RunCertified || len(now.Report) == 0 {
				t.Errorf("it ended %+v", now)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it did not end")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if _, err := w.office.VerifyLater(certify.VerifyParams{Kind: "sort_ticket", Target: "pool"}); onejob.CodeOf(err) != onejob.CodeInvalidRequest {
		t.Errorf("what workers pull is answered %v", err)
	}
}
