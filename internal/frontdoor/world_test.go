package frontdoor_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/engine"
	"github.com/onejob-dev/onejob/internal/apikey"
	"github.com/onejob-dev/onejob/internal/frontdoor"
	"github.com/onejob-dev/onejob/internal/httpapi"
	"github.com/onejob-dev/onejob/provider/anthropic"
	"github.com/onejob-dev/onejob/provider/openai"
	"github.com/onejob-dev/onejob/sim"
	"github.com/onejob-dev/onejob/store/memory"
)

// world is a server with both doors, whose providers are fake.
type world struct {
	t        *testing.T
	provider *sim.Server // nil: another
	store    *store
	client   *onejob.Client
	handler  http.Handler
	signals  *onejob.Signals
	holding  int // calls at once; zero: many
	url      string
	key      string
}

// newWorld serves the models chat, brief (the same with a timeout that is over soon)
// and claude. script is what the provider does with each request in turn.
func newWorld(t *testing.T, script ...string) *world {
	t.Helper()
	provider := sim.ForTest(t, sim.Options{})
	if len(script) > 0 {
		provider.Script(sim.MustParse(script...)...)
	}
	w := newWorldAt(t, provider.URL())
	w.provider = provider
	return w
}

// newWorldAt is newWorld with another provider.
func newWorldAt(t *testing.T, provider string, change ...func(*frontdoor.Options)) *world {
	t.Helper()
	w := &world{t: t, store: newStore()}
	targets := w.targets(provider)
	w.run(targets, kinds(), map[string]frontdoor.Model{
		"chat": {Kind: "chat", API: frontdoor.APIChat}, "brief": {Kind: "brief", API: frontdoor.APIChat},
		"strict": {Kind: "chat", API: frontdoor.APIChat, RequireKey: true},
		"alive":  {Kind: "brief", API: frontdoor.APIChat, Heartbeat: 20 * time.Millisecond},
		"again":  {Kind: "chat", API: frontdoor.APIChat, TakeOver: true},
		"claude": {Kind: "claude", API: frontdoor.APIMessages, Counter: counterOf(targets, "sonnet")}, "mixed": {Kind: "chat"},
		"vectors": {Kind: "vectors", API: frontdoor.APIEmbeddings}, "pictures": {Kind: "pictures", API: frontdoor.APIImages},
	}, change...)
	return w
}

// run serves models over targets.
func (w *world) run(targets []onejob.Target, kinds map[string]onejob.Kind, models map[string]frontdoor.Model, change ...func(*frontdoor.Options)) {
	w.t.Helper()
	w.signals = &onejob.Signals{}
	workers, err := engine.New(w.store, targets, engine.Options{Signals: w.signals, Drain: time.Second})
	if err != nil {
		w.t.Fatal(err)
	}
	w.client, err = onejob.New(w.store, onejob.Options{Secret: []byte("a secret of the instance"), Signals: w.signals, Starter: workers, Kinds: kinds})
	if err != nil {
		w.t.Fatal(err)
	}
	opts := frontdoor.Options{Client: w.client, Hold: 20 * time.Second, Models: models, HeldFunc: workers.Holds}
	for _, c := range change {
		c(&opts)
	}
	doors, err := frontdoor.New(opts)
	if err != nil {
		w.t.Fatal(err)
	}
	handler, err := httpapi.New(httpapi.Options{Client: w.client, Keys: apikey.NewAuthenticator(w.store, apikey.Options{}), Doors: doors, MaxHolding: w.holding})
	if err != nil {
		w.t.Fatal(err)
	}
	w.handler = handler
	w.serve(handler, workers)
}

// counterOf is what counts tokens for a target.
func counterOf(targets []onejob.Target, name string) onejob.TokenCounter {
	i := slices.IndexFunc(targets, func(t onejob.Target) bool { return t.Name == name })
	counter, _ := targets[i].Provider.(onejob.TokenCounter)
	return counter
}

func kinds() map[string]onejob.Kind {
	return map[string]onejob.Kind{
		"chat":   {Policy: onejob.Policy{Effect: onejob.EffectNone, Targets: []string{"gpt"}}},
		"brief":  {Policy: onejob.Policy{Effect: onejob.EffectExternal, Targets: []string{"gpt"}, Timeout: 200 * time.Millisecond, SendWithin: 100 * time.Millisecond, Linger: time.Minute}},
		"short":  {Policy: onejob.Policy{Effect: onejob.EffectExternal, Targets: []string{"gpt"}, Timeout: 200 * time.Millisecond, SendWithin: 100 * time.Millisecond, Linger: 300 * time.Millisecond}},
		"claude": {Policy: onejob.Policy{Effect: onejob.EffectNone, Targets: []string{"sonnet"}}},

		"vectors":  {Policy: onejob.Policy{Effect: onejob.EffectNone, Targets: []string{"vectors"}}},
		"pictures": {Policy: onejob.Policy{Effect: onejob.EffectNone, Targets: []string{"pictures"}}},
	}
}

func (w *world) targets(url string) []onejob.Target {
	w.t.Helper()
	var targets []onejob.Target
	for name, api := range map[string]openai.API{"gpt": openai.APIChat, "vectors": openai.APIEmbeddings, "pictures": openai.APIImages} {
		p, err := openai.New(openai.Options{BaseURL: url + "/v1", Model: name + "-x", API: api})
		if err != nil {
			w.t.Fatal(err)
		}
		targets = append(targets, onejob.Target{Name: name, Provider: p, Digest: p.Digest()})
	}
	sonnet, err := anthropic.New(anthropic.Options{BaseURL: url, Model: "sonnet-x", APIKey: "sk-fake", MaxTokens: 100})
	if err != nil {
		w.t.Fatal(err)
	}
	return append(targets, onejob.Target{Name: "sonnet", Provider: sonnet, Digest: sonnet.Digest()})
}

func (w *world) serve(handler http.Handler, workers *engine.Engine) {
	w.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- workers.Run(ctx) }()
	server := httptest.NewServer(handler)
	w.url = server.URL
	w.t.Cleanup(func() {
		server.Close()
		stop()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	})
	w.key = w.keyOf("alice")
}

// keyOf makes a credential of an owner's.
func (w *world) keyOf(owner string) string {
	w.t.Helper()
	printed, stored, err := apikey.Generate(apikey.Params{Owner: owner, Role: onejob.RoleSubmitter, Now: time.Now()})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.store.KeyCreate(w.t.Context(), onejob.KeyCreateParams{Key: stored}); err != nil {
		w.t.Fatal(err)
	}
	return printed
}

// store is one in memory that tells what becomes of those who wait.
type store struct {
	*memory.Store
	ended   chan onejob.WaiterEndParams
	renewed chan struct{}
	taken   chan struct{}

	down atomic.Bool // nothing is read, nor the end of a waiting written down
	mute atomic.Bool // no piece of an answer is kept but the first

	mu  sync.Mutex
	now time.Time // it stands still until it is moved
}

func newStore() *store {
	s := &store{ended: make(chan onejob.WaiterEndParams, 100), renewed: make(chan struct{}), taken: make(chan struct{}, 100), now: time.Now()}
	s.Store = memory.Open(memory.Options{NowFunc: s.clock})
	return s
}

func (s *store) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *store) advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

var errDown = errors.New("the store is down")

func (s *store) JobGet(ctx context.Context, params []onejob.JobGetParams) ([]onejob.JobResult, error) {
	if s.down.Load() {
		return nil, errDown
	}
	return s.Store.JobGet(ctx, params)
}

func (s *store) WaiterEnd(ctx context.Context, params []onejob.WaiterEndParams) ([]bool, error) {
	if s.down.Load() {
		return nil, errDown
	}
	ended, err := s.Store.WaiterEnd(ctx, params)
	for _, p := range params {
		s.ended <- p
	}
	return ended, err
}

func (s *store) ChunkAppend(ctx context.Context, params []onejob.ChunkAppendParams) ([]onejob.ChunkAppendResult, error) {
	if s.mute.Load() && params[0].Number > 0 {
		return nil, errDown
	}
	return s.Store.ChunkAppend(ctx, params)
}

func (s *store) WaiterTake(ctx context.Context, p onejob.WaiterTakeParams) (onejob.JobRef, bool, error) {
	ref, taken, err := s.Store.WaiterTake(ctx, p)
	if taken {
		s.taken <- struct{}{}
	}
	return ref, taken, err
}

func (s *store) WaiterRenew(ctx context.Context, params []onejob.WaiterRenewParams) ([]bool, error) {
	held, err := s.Store.WaiterRenew(ctx, params)
	if err == nil {
		select {
		case s.renewed <- struct{}{}:
		default: // nobody looks
		}
	}
	return held, err
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// post sends a body to a path. Headers come as name, value, name, value.
func (w *world) post(path, body string, headers ...string) answer {
	w.t.Helper()
	return w.do(w.request(w.t.Context(), path, body, headers...))
}

func (w *world) request(ctx context.Context, path, body string, headers ...string) *http.Request {
	w.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+w.key)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func (w *world) do(r *http.Request) answer {
	w.t.Helper()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, body}
}

// wantProblem holds an answer to both shapes of an error.
func (a answer) wantProblem(t *testing.T, status int, code onejob.Code) {
	t.Helper()
	var p struct {
		Type, Code, Advice string
		Error              struct{ Message, Type, Code string }
	}
	if err := json.Unmarshal(a.body, &p); err != nil {
		t.Fatalf("%d with %s: %v", a.status, a.body, err)
	}
	if a.status != status || p.Code != string(code) || p.Error.Code != string(code) || p.Error.Message == "" || p.Error.Type == "" || p.Type == "" {
		t.Errorf("%d with %s; want %d %s in both shapes", a.status, a.body, status, code)
	}
	if a.header.Get("X-Should-Retry") == "" {
		t.Error("nothing says whether to retry")
	}
}
