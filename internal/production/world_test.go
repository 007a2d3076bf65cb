package production_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
	"github.com/onejob-dev/onejob/internal/production"
)

// triage is the contract of the example.
func triage(t *testing.T) *contract.Contract {
	t.Helper()
	const folder = "../../examples/triage"
	text, err := os.ReadFile(folder + "/triage.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := contract.Parse("triage.yaml", text, os.DirFS(folder))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func digestOf(t *testing.T, c *contract.Contract) string {
	t.Helper()
	digest, err := contract.Digest(c)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

const (
	ticket = `{"ticket_id":"T-000001","subject":"s","body":"b","order_total_cents":100}`
	good   = `{"severity":"low","needs_human":false,"refund_cents":50,"summary":"fine"}`
	bad    = `{"severity":"low","needs_human":false,"refund_cents":500,"summary":"more than was paid"}`
)

// store is the part of a store that production speaks to.
type store struct {
	onejob.CertificateStore

	mu       sync.Mutex
	down     bool
	live     []onejob.Certificate
	observed []onejob.CertificateObserveParams
	ended    []onejob.CertificateEndParams
	versions map[string]json.RawMessage
	reads    int
}

var errDown = errors.New("down")

func (s *store) ContractGet(_ context.Context, p onejob.ContractGetParams) (onejob.ContractVersion, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, kept := s.versions[p.Digest]
	switch {
	case s.down:
		return onejob.ContractVersion{}, errDown
	case !kept:
		return onejob.ContractVersion{}, onejob.ErrNotFound
	}
	s.reads++
	return onejob.ContractVersion{Digest: p.Digest, Body: body}, nil
}

func (s *store) CertificateList(context.Context, onejob.CertificateListParams) ([]onejob.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.live), nil
}

func (s *store) CertificateObserve(_ context.Context, params []onejob.CertificateObserveParams) ([]onejob.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, errDown
	}
	s.observed = append(s.observed, params...)
	return nil, nil
}

func (s *store) CertificateEnd(_ context.Context, p onejob.CertificateEndParams) ([]onejob.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = append(s.ended, p)
	ended := s.live
	for i := range ended {
		ended[i].Status, ended[i].Reason, ended[i].Detail = p.Status, p.Reason, p.Detail
	}
	s.live = nil
	return ended, nil
}

func (s *store) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// look returns what was told so far.
func (s *store) look() (observed []onejob.CertificateObserveParams, ended []onejob.CertificateEndParams) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.observed), slices.Clone(s.ended)
}

// model answers with the output as its body, and says that another model made it when
// the body says so.
type model struct{ onejob.Provider }

func (model) Render(onejob.Prompt) (onejob.Rendered, error) { return onejob.Rendered{}, nil }

// answer is the shape of what a model answers.
type answer struct {
	Output, Model, Fingerprint string
}

func (model) ReadOutput(body []byte) (onejob.Output, error) {
	var a answer
	if err := json.Unmarshal(body, &a); err != nil || a.Output == "" {
		return onejob.Output{}, errors.New("no answer")
	}
	return onejob.Output{Content: []byte(a.Output), Finish: onejob.OutputComplete, Model: a.Model, Fingerprint: a.Fingerprint}, nil
}

func body(a answer) *onejob.Result {
	raw, _ := json.Marshal(a) // strings
	return &onejob.Result{Body: raw, ContentType: "application/json"}
}

// noted counts what an observer is told.
type noted struct {
	mu                            sync.Mutex
	violated, ended, asked, stand []string
}

func (n *noted) add(to *[]string, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	*to = append(*to, text)
}

func (n *noted) list(of *[]string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(*of)
}

func (n *noted) ContractViolated(kind, target, class string) {
	n.add(&n.violated, kind+" "+target+" "+class)
}

func (n *noted) CertificateEnded(kind, target, reason string) {
	n.add(&n.ended, kind+" "+target+" "+reason)
}

func (n *noted) ReverificationAsked(kind, target, signal string) {
	n.add(&n.asked, kind+" "+target+" "+signal)
}

func (n *noted) CertificatesStand(live []onejob.Certificate) {
	for i := range live {
		n.add(&n.stand, live[i].ID)
	}
}

// world is a line with a store that is watched.
type world struct {
	t      *testing.T
	line   *production.Line
	store  *store
	noted  *noted
	digest string
	n      int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c := triage(t)
	w := &world{t: t, store: &store{versions: map[string]json.RawMessage{}}, noted: &noted{}, digest: digestOf(t, c)}
	var err error
	w.line, err = production.New(production.Options{
		Contracts: map[string]*contract.Contract{"triage_ticket": c}, Store: w.store, Observer: w.noted, NowFunc: time.Now,
		Targets: []production.Target{{Target: onejob.Target{Name: "gpt", Digest: "v1:gpt", Provider: model{}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// certify has a certificate stand.
func (w *world) certify(observed onejob.Observed) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	now := time.Now()
	w.store.live = []onejob.Certificate{{
		ID: "cert_1", Kind: "triage_ticket", ContractDigest: w.digest, TargetDigest: "v1:gpt", TargetName: "gpt",
		Verdict: onejob.RunCertified, Status: onejob.CertificateActive, Observed: observed, RenewAt: now.Add(time.Hour), ExpiresAt: now.Add(2 * time.Hour),
	}}
}

// judge judges one output of a new attempt.
func (w *world) judge(r *onejob.Result) *onejob.Failure {
	w.t.Helper()
	w.n++
	job, a := w.job(), w.attempt(w.n)
	failure, err := w.line.JudgeOutput(w.t.Context(), job, a, r)
	if err != nil {
		w.t.Fatal(err)
	}
	return failure
}

func (w *world) job() *onejob.Job {
	return &onejob.Job{ID: "job_1", Kind: "triage_ticket", Input: []byte(ticket), Policy: onejob.Policy{Contract: &onejob.ContractTerms{Digest: w.digest}}}
}

func (w *world) attempt(n int) *onejob.Attempt {
	return &onejob.Attempt{ID: "att_" + string(rune('a'+n/26%26)) + string(rune('a'+n%26)), Target: "gpt", TargetDigest: "v1:gpt"}
}

// run runs the line until the returned function is called.
func (w *world) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.line.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}
