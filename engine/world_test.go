package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/engine"
	"github.com/onejob-dev/onejob/store/memory"
)

// world is a store in memory, a client and an engine in one synctest bubble: time
// passes only when everybody waits.
type world struct {
	t      *testing.T
	store  onejob.Store
	client *onejob.Client
	engine *engine.Engine
	stop   func() // drains the engine; safe to repeat

	signals *onejob.Signals

	calls calls
}

// calls counts what providers were asked to do.
type calls struct {
	mu   sync.Mutex
	all  []onejob.Request
	busy int
	peak int

	cancelled atomic.Int32 // how often a provider was asked to give work up
}

func (c *calls) began(r onejob.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, r)
	c.busy++
	c.peak = max(c.peak, c.busy)
}

func (c *calls) ended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy--
}

func (c *calls) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all)
}

// behaviour is what a provider does with one call.
type behaviour func(ctx context.Context, r onejob.Request) (onejob.Answer, error)

// Call implements [onejob.Provider] through the world's counter.
type provider struct {
	calls *calls
	do    behaviour
}

func (p provider) Call(ctx context.Context, r onejob.Request) (onejob.Answer, error) {
	p.calls.began(r)
	defer p.calls.ended()
	return p.do(ctx, r)
}

// setting is what a world is made of; zero members have plain defaults.
type setting struct {
	policy  onejob.Policy
	targets map[string]behaviour
	engine  engine.Options
	// wrap puts something between engine and store.
	wrap    func(onejob.Store) onejob.Store
	signals *onejob.Signals // nil: the world's own
	// waived lets every target take over by a waiver, as all of a kind that races may.
	waived bool
	// direct hands new jobs to the engine in the commit that creates them.
	direct bool
	// probe answers questions about attempts at a target, asked as reconcile says.
	probe     map[string]probing
	reconcile map[string]onejob.Reconcile
}

// probing is what a provider says of an attempt.
type probing func(ctx context.Context, r onejob.ProbeRequest) (onejob.ProbeAnswer, error)

// prober is a provider that can be asked.
type prober struct {
	provider
	say probing
}

// Cancel says that it heard, which proves nothing.
func (p prober) Cancel(context.Context, onejob.ProbeRequest) error {
	p.calls.cancelled.Add(1)
	return nil
}

func (p prober) Probe(ctx context.Context, r onejob.ProbeRequest) (onejob.ProbeAnswer, error) {
	return p.say(ctx, r)
}

// in opens a world in a bubble of its own.
func in(t *testing.T, s setting, do func(w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := openWorld(t, s)
		defer w.stop()
		do(w)
	})
}

func openWorld(t *testing.T, s setting) *world {
	t.Helper()
	w := &world{t: t, store: memory.Open(memory.Options{})}
	if s.policy.Effect == "" {
		s.policy.Effect = onejob.EffectNone
	}
	if s.policy.Targets == nil {
		s.policy.Targets = []string{"a"}
	}
	if s.policy.Lanes > 1 || s.waived {
		s.policy.Contract = &onejob.ContractTerms{Digest: "v1:contract"}
		w.waive(s.policy.Targets)
	}
	engineStore := w.store
	if s.wrap != nil {
		engineStore = s.wrap(w.store)
	}
	signals := s.signals
	if signals == nil {
		signals = &onejob.Signals{}
	}
	s.engine.Signals, w.signals = signals, signals
	w.engine = w.newEngine(engineStore, s)
	options := onejob.Options{
		Secret: []byte("a secret of sixteen"), Signals: signals,
		Kinds: map[string]onejob.Kind{"k": {Policy: s.policy}},
	}
	if s.engine.Contracts != nil {
		options.Judge = s.engine.Contracts
	}
	if s.direct {
		options.Starter = w.engine
	}
	var err error
	if w.client, err = onejob.New(w.store, options); err != nil {
		t.Fatal(err)
	}
	w.stop = runEngine(w.engine)
	return w
}

// waive lets targets take over.
func (w *world) waive(targets []string) {
	w.t.Helper()
	records := w.store.(onejob.CertificateStore)
	terms := onejob.GateTerms{Targets: map[string]string{}}
	for _, target := range targets {
		terms.Targets[target] = "v1:" + target
		_, err := records.WaiverGrant(w.t.Context(), onejob.Waiver{
			Kind: "k", ContractDigest: "v1:contract", TargetDigest: "v1:" + target, TargetName: target,
			Actor: "ann", Reason: "test", ExpiresAt: time.Now().AddDate(1, 0, 0),
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	records.UseGate(terms)
}

// takeBack revokes every waiver.
func (w *world) takeBack() {
	w.t.Helper()
	records := w.store.(onejob.CertificateStore)
	waivers, err := records.WaiverList(w.t.Context(), onejob.CertificateListParams{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, waiver := range waivers {
		if _, err := records.WaiverRevoke(w.t.Context(), waiver.ID, "ann"); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) newEngine(store onejob.Store, s setting) *engine.Engine {
	w.t.Helper()
	var targets []onejob.Target
	for name, do := range s.targets {
		t := onejob.Target{Name: name, Provider: provider{&w.calls, do}, MaxExecution: time.Minute, Reconcile: s.reconcile[name]}
		if say := s.probe[name]; say != nil {
			t.Provider = prober{provider{&w.calls, do}, say}
		}
		targets = append(targets, t)
	}
	e, err := engine.New(store, targets, s.engine)
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

func runEngine(e *engine.Engine) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = e.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

func (w *world) submit(key string) *onejob.Job {
	w.t.Helper()
	job, _, err := w.client.Submit(w.t.Context(), onejob.SubmitParams{Owner: "o", Key: key, Kind: "k", Input: []byte(`{"n":1}`)})
	if err != nil {
		w.t.Fatalf("submit %s: %v", key, err)
	}
	return job
}

func (w *world) get(id string) *onejob.Job {
	w.t.Helper()
	job, err := w.client.Get(w.t.Context(), "o", id)
	if err != nil {
		w.t.Fatal(err)
	}
	return job
}

// until waits, in the bubble's time, for the job to be in state.
func (w *world) until(id string, state onejob.JobState) *onejob.Job {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Hour)
	defer cancel()
	job, err := w.client.WatchUntil(ctx, "o", id, func(j *onejob.Job) bool { return j.State == state })
	if err != nil {
		w.t.Fatal(err)
	}
	if job.State != state {
		w.t.Fatalf("after an hour the job is %s (%+v, error %+v); want %s", job.State, job.Blocked, job.Error, state)
	}
	return job
}

func (w *world) attempt(job *onejob.Job, number int) onejob.Attempt {
	w.t.Helper()
	a, err := w.client.Attempt(w.t.Context(), "o", job.Attempts[number-1].ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// answers succeeds at once with text.
func answers(text string) behaviour {
	return func(context.Context, onejob.Request) (onejob.Answer, error) {
		return onejob.Answer{Body: []byte(text), ContentType: "application/json"}, nil
	}
}

// answersAfter succeeds after d, or says nothing if ctx ends first.
func answersAfter(d time.Duration, text string) behaviour {
	return func(ctx context.Context, r onejob.Request) (onejob.Answer, error) {
		r.Sent()
		select {
		case <-time.After(d):
			return onejob.Answer{Body: []byte(text), ContentType: "application/json"}, nil
		case <-ctx.Done():
			return onejob.Answer{}, ctx.Err()
		}
	}
}

// fails with what is proven.
func fails(proof error, next onejob.Next) behaviour {
	return func(context.Context, onejob.Request) (onejob.Answer, error) {
		return onejob.Answer{}, &onejob.CallError{Proof: proof, Next: next, Failure: onejob.Failure{Code: "test", Message: "it failed"}, Phase: onejob.PhaseAnswered}
	}
}

// inOrder takes the behaviours one call after another, the last for good.
func inOrder(steps ...behaviour) behaviour {
	var mu sync.Mutex
	n := 0
	return func(ctx context.Context, r onejob.Request) (onejob.Answer, error) {
		mu.Lock()
		step := steps[min(n, len(steps)-1)]
		n++
		mu.Unlock()
		return step(ctx, r)
	}
}

// faulty is a store some of whose calls are not confirmed.
type faulty struct {
	onejob.Store
	mark   func(commit func()) error // nil: pass through
	finish func() error
	renew  func() error
}

var errNoAnswer = errors.New("the store did not answer")

func (f *faulty) AttemptMark(ctx context.Context, p []onejob.AttemptMarkParams) (r []onejob.AttemptMarkResult, err error) {
	if f.mark == nil {
		return f.Store.AttemptMark(ctx, p)
	}
	if err := f.mark(func() { r, err = f.Store.AttemptMark(ctx, p) }); err != nil {
		return nil, err
	}
	return r, err
}

func (f *faulty) AttemptFinish(ctx context.Context, p []onejob.AttemptFinishParams) ([]onejob.AttemptFinishResult, error) {
	if f.finish != nil {
		if err := f.finish(); err != nil {
			return nil, err
		}
	}
	return f.Store.AttemptFinish(ctx, p)
}

func (f *faulty) AttemptRenew(ctx context.Context, p []onejob.AttemptRenewParams) ([]onejob.AttemptRenewResult, error) {
	if f.renew != nil {
		if err := f.renew(); err != nil {
			return nil, err
		}
	}
	return f.Store.AttemptRenew(ctx, p)
}

func states(job *onejob.Job) string {
	text := string(job.State) + ":"
	for _, a := range job.Attempts {
		text += fmt.Sprintf(" %d@%s=%s", a.Number, a.Target, a.State)
	}
	return text
}
