package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/apikey"
	"github.com/onejob-dev/onejob/internal/httpapi"
	"github.com/onejob-dev/onejob/store/memory"
)

// clock is a store's clock that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// world is a server over a store in memory, with keys of two owners. Nothing tries
// its jobs but the test.
type world struct {
	t       *testing.T
	store   *memory.Store
	client  *onejob.Client
	signals *onejob.Signals
	clock   *clock
	handler http.Handler

	alice, bob, viewer, operator, admin, parent string // printed keys
}

const maxBody = 64 << 10

func newWorld(t *testing.T, change func(*onejob.Options, *httpapi.Options)) *world {
	t.Helper()
	w := &world{t: t, clock: &clock{now: time.Now()}, signals: &onejob.Signals{}}
	w.store = memory.Open(memory.Options{NowFunc: w.clock.Now})
	options := onejob.Options{
		Secret: []byte("a secret of the instance"), Signals: w.signals, PollInterval: 10 * time.Millisecond, NowFunc: w.clock.Now,
		Kinds: map[string]onejob.Kind{
			"summarise": {Policy: onejob.Policy{Effect: onejob.EffectNone, Targets: []string{"large", "medium"}}},
			"charge":    {Policy: onejob.Policy{Effect: onejob.EffectExternal, Targets: []string{"acme"}}},
			"strict": {
				Policy:    onejob.Policy{Effect: onejob.EffectNone, Targets: []string{"large"}},
				CheckFunc: func([]byte) error { return context.DeadlineExceeded },
			},
		},
	}
	api := httpapi.Options{MaxBodyBytes: maxBody, Keys: apikey.NewAuthenticator(w.store, apikey.Options{}), Heartbeat: 20 * time.Millisecond}
	if change != nil {
		change(&options, &api)
	}
	var err error
	if w.client, err = onejob.New(w.store, options); err != nil {
		t.Fatalf("onejob.New: %v", err)
	}
	api.Client = w.client
	if w.handler, err = httpapi.New(api); err != nil {
		t.Fatalf("httpapi.New: %v", err)
	}
	w.alice = w.key("alice", onejob.RoleSubmitter, false)
	w.bob = w.key("bob", onejob.RoleSubmitter, false)
	w.viewer = w.key("alice", onejob.RoleViewer, false)
	w.operator = w.key("alice", onejob.RoleOperator, false)
	w.admin = w.key("root", onejob.RoleAdmin, false)
	w.parent = w.key("parent", onejob.RoleSubmitter, true)
	return w
}

func (w *world) key(owner string, role onejob.Role, actAs bool) string {
	w.t.Helper()
	printed, stored, err := apikey.Generate(apikey.Params{Owner: owner, Role: role, ActAs: actAs, Now: w.clock.Now()})
	if err != nil {
		w.t.Fatalf("Generate: %v", err)
	}
	if err := w.store.KeyCreate(context.Background(), onejob.KeyCreateParams{Key: stored}); err != nil {
		w.t.Fatalf("KeyCreate: %v", err)
	}
	return printed
}

// request is one call. Headers come as name, value, name, value.
type request struct {
	method, path, key, body string
	headers                 []string
}

func (q request) http(ctx context.Context) *http.Request {
	var body io.Reader = http.NoBody
	if q.body != "" {
		body = strings.NewReader(q.body)
	}
	r := httptest.NewRequestWithContext(ctx, q.method, q.path, body)
	if q.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if q.key != "" {
		r.Header.Set("Authorization", "Bearer "+q.key)
	}
	for i := 0; i+1 < len(q.headers); i += 2 {
		if q.headers[i+1] == "" {
			r.Header.Del(q.headers[i])
			continue
		}
		r.Header.Set(q.headers[i], q.headers[i+1])
	}
	return r
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (w *world) do(q request) answer {
	w.t.Helper()
	// A stream that should not have begun ends here.
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	return w.serve(q.http(ctx))
}

// object reads the answer as a JSON object.
func (a answer) object(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatalf("the answer is no JSON object: %v\n%s", err, a.body)
	}
	return v
}

func (a answer) text(t *testing.T, member string) string {
	t.Helper()
	s, _ := a.object(t)[member].(string)
	return s
}

func (a answer) wantStatus(t *testing.T, want int) answer {
	t.Helper()
	if a.status != want {
		t.Fatalf("status %d; want %d\n%s", a.status, want, a.body)
	}
	return a
}

// wantProblem checks everything that all problems have.
func (a answer) wantProblem(t *testing.T, status int, code onejob.Code) answer {
	t.Helper()
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		t.Fatalf("status %d, content type %q; want a problem %d %s\n%s", a.status, got, status, code, a.body)
	}
	p := a.object(t)
	if a.status != status || p["code"] != string(code) || p["type"] != "urn:onejob:problem:"+string(code) || p["status"] != float64(status) {
		t.Fatalf("status %d, problem %s; want %d %s", a.status, a.body, status, code)
	}
	if retry := a.header.Get("X-Should-Retry"); retry != map[bool]string{true: "true", false: "false"}[p["retryable"] == true] {
		t.Errorf("x-should-retry %q, retryable %v", retry, p["retryable"])
	}
	return a
}

func submitRequest(key, idempotencyKey, body string) request {
	return request{method: "POST", path: "/v1/jobs", key: key, body: body, headers: []string{"Idempotency-Key", idempotencyKey}}
}

const ticket = `{"kind":"summarise","input":{"text":"hello"}}`

// submit records a job for alice and returns its id.
func (w *world) submit(idempotencyKey, body string) string {
	w.t.Helper()
	return w.do(submitRequest(w.alice, idempotencyKey, body)).wantStatus(w.t, http.StatusAccepted).text(w.t, "id")
}

// claim starts and marks the next attempt that is due.
func (w *world) claim() onejob.Attempt {
	w.t.Helper()
	pins := onejob.TargetPins{Digest: "d", MaxExecution: time.Minute}
	ctx := context.Background()
	claimed, err := w.store.AttemptClaim(ctx, onejob.AttemptClaimParams{Max: 1, StartParams: onejob.StartParams{
		Worker: "w", Lease: time.Minute, Targets: map[string]onejob.TargetPins{"large": pins, "medium": pins, "acme": pins},
	}})
	if err != nil || len(claimed.Claimed) != 1 {
		w.t.Fatalf("AttemptClaim: %d claimed, %v; want 1", len(claimed.Claimed), err)
	}
	a := claimed.Claimed[0].Attempt
	marked, err := w.store.AttemptMark(ctx, []onejob.AttemptMarkParams{{
		Ref: refOf(a), ClaimToken: a.ClaimToken, Lease: time.Minute, SendWithin: time.Second, Pins: pins,
	}})
	if err != nil || marked[0].Err != nil {
		w.t.Fatalf("AttemptMark: %v, %v", err, marked)
	}
	w.signals.JobChanged(a.JobID)
	return marked[0].Attempt
}

func refOf(a onejob.Attempt) onejob.AttemptRef {
	return onejob.AttemptRef{Part: a.Part, JobID: a.JobID, ID: a.ID}
}

// finish records what came of an attempt.
func (w *world) finish(a onejob.Attempt, outcome onejob.Outcome, result *onejob.Result) {
	w.t.Helper()
	p := onejob.AttemptFinishParams{Ref: refOf(a), ClaimToken: a.ClaimToken, Outcome: outcome, Phase: onejob.PhaseAnswered, Result: result}
	if outcome == onejob.OutcomeUnknown {
		p.Phase = onejob.PhaseSent
		p.Evidence = onejob.Evidence{Error: "no answer came in 60s", BytesWritten: 120}
	}
	if outcome == onejob.OutcomeRefused {
		p.Failure = &onejob.Failure{Code: "status_400", Message: "the provider refused the input"}
		p.Next = onejob.NextNowhere
	}
	done, err := w.store.AttemptFinish(context.Background(), []onejob.AttemptFinishParams{p})
	if err != nil || done[0].Err != nil {
		w.t.Fatalf("AttemptFinish: %v, %v", err, done)
	}
	w.signals.JobChanged(a.JobID)
}

func jsonResult(body string) *onejob.Result {
	return &onejob.Result{Body: []byte(body), ContentType: "application/json"}
}

// succeeded is a job of alice's that ended well.
func (w *world) succeeded(idempotencyKey string, result *onejob.Result) string {
	w.t.Helper()
	id := w.submit(idempotencyKey, ticket)
	w.finish(w.claim(), onejob.OutcomeSucceeded, result)
	return id
}

// unknown is a job of alice's whose one attempt is unknown.
func (w *world) unknown(idempotencyKey, body string) (job, attempt string) {
	w.t.Helper()
	job = w.submit(idempotencyKey, body)
	a := w.claim()
	w.finish(a, onejob.OutcomeUnknown, nil)
	return job, a.ID
}

func (w *world) serve(r *http.Request) answer {
	w.t.Helper()
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	got := answer{rec.Code, rec.Header(), rec.Body.Bytes()}
	wantDocumented(w.t, r, got)
	wantLine(w.t, r, got)
	return got
}

// emptyList is a list without items.
const emptyList = `{"items":[]}` + "\n"

// wantLine looks that what a terminal shows ends its line, unless it is a provider's.
func wantLine(t *testing.T, r *http.Request, got answer) {
	t.Helper()
	own := strings.Contains(got.header.Get("Content-Type"), "json") && !strings.HasSuffix(r.URL.Path, "/result")
	if len(got.body) > 0 && (own || got.status >= 400) && (!bytes.HasSuffix(got.body, []byte("}\n")) || bytes.HasSuffix(got.body, []byte("\n\n"))) {
		t.Errorf("%s %s: %d does not end in one line's end: …%q", r.Method, r.URL.Path, got.status, got.body[max(0, len(got.body)-40):])
	}
}
