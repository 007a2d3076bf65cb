//go:build sdks

// The libraries are large: make test-sdks compiles them, and nothing else does.

package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

// question is what a stock client library is asked to do. For libraries that are not
// Go's it is JSON.
type question struct {
	BaseURL    string `json:"base_url"` // without /openai/v1 or /anthropic
	Credential string `json:"credential"`
	Ask        ask    `json:"ask"`
	Stream     bool   `json:"stream"`
	Order      string `json:"order"`      // the intent, which the provider counts by
	Key        string `json:"key"`        // the header Idempotency-Key; empty: none
	OwnOption  bool   `json:"own_option"` // the key goes into the library's own option instead
	TimeoutMS  int    `json:"timeout_ms"` // 0: the library's own
	Wait       int    `json:"wait"`       // the header Prefer: wait=N, in seconds; 0: none
}

// ask is a shape of answer.
type ask string

const (
	askPlain  ask = "plain"
	askTool   ask = "tool"
	askSchema ask = "schema"
)

// prompt is answered by an honest mind with the order, whatever shape is asked for.
func (q *question) prompt() string {
	if q.Ask == askTool {
		return "Call look_up_order.\nOrder: " + q.Order
	}
	return "Order: " + q.Order + "\nSeverity: high"
}

// answered is what a library makes of it.
type answered struct {
	Text      string `json:"text"` // or the JSON
	Tool      string `json:"tool"`
	Arguments string `json:"arguments"`

	Error    string `json:"error"` // its name for what went wrong; empty: nothing did
	Status   int    `json:"status"`
	Code     string `json:"code"` // the problem's, from where the library keeps it
	Job      string `json:"job"`  // the header Onejob-Job-Id of an error
	Message  string `json:"message"`
	Location string `json:"location"`
}

// stock is a client library as it is, its own retries on.
type stock struct {
	name string
	ask  func(t *testing.T, q question) answered
	// repeatsAnyway says that it heeds no X-Should-Retry, and does not count its tries.
	repeatsAnyway bool
	// ownOption says that it has an option for a key, which it is known to drop.
	ownOption bool
}

// shop is a node with a model for each API, asked by all clients.
type shop struct {
	*site
	node *node
}

func newShop(t *testing.T) *shop {
	t.Helper()
	provider := sim.ForTest(t, sim.Options{Models: map[string]sim.Mind{"large": {}}, IntentFunc: orderIn})
	s := &site{t: t, dir: t.TempDir(), store: newSQLite(t), provider: provider}
	s.setUp(fmt.Sprintf(`
targets:
  gpt: {provider: openai, base_url: "%[1]s/v1", model: large}
  responder: {provider: openai, api: responses, base_url: "%[1]s/v1", model: large}
  claude: {provider: anthropic, base_url: "%[1]s", model: large, api_key: "${env:ACME_KEY}"}
kinds:
  chat: {effect: none, targets: [gpt], timeout: 60s}
  respond: {effect: none, targets: [responder], timeout: 60s}
  message: {effect: none, targets: [claude], timeout: 60s}
workers: {slots: 64, lease: 10s, drain: 1s}
secret: "a secret that all nodes share"
`, provider.URL()))
	n := s.newNode()
	n.start()
	return &shop{site: s, node: n}
}

var orderLine = regexp.MustCompile(`Order: ([\w-]+)`)

// orderIn is the order of a request to a model, in whatever shape it comes.
func orderIn(r *http.Request) string {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return ""
	}
	found := orderLine.FindSubmatch(body)
	if found == nil {
		return ""
	}
	return string(found[1])
}

// meet has a library ask for everything.
func (s *shop) meet(t *testing.T, c stock) {
	if c.ownOption {
		t.Run("KeepsTheKeyOfItsOwnOptionToItself", func(t *testing.T) {
			t.Parallel()
			ownOption(t, s.visit(t, c, true))
		})
	}
	for name, test := range map[string]func(*testing.T, *visit){
		"IsAnsweredPlainly":                       plainly,
		"CallsATool":                              withATool,
		"IsAnsweredInAShape":                      inAShape,
		"IsToldThatTheProviderRefused":            refused,
		"TimesOutAndFindsTheAnswer":               timedOut,
		"LosesItsConnectionWhileTheProviderWorks": droppedWhileHeld,
		"LosesTheAnswerItself":                    droppedAnswer,
		"IsToldThatTheOutcomeIsUnknown":           inDoubt,
		"IsAnsweredInAStream":                     streamed,
		"CallsAToolInAStream":                     streamedTool,
		"IsAnsweredAsAWholeInAStream":             streamIgnored,
		"IsToldThatTheStreamFailed":               streamFailed,
		"IsToldThatTheStreamWasCut":               streamCut,
		"LosesItsConnectionInAStream":             streamDropped,
	} {
		for _, keyed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/%s", name, map[bool]string{true: "WithAKey", false: "WithoutAKey"}[keyed]), func(t *testing.T) {
				t.Parallel()
				test(t, s.visit(t, c, keyed))
			})
		}
	}
}

// visit is one call by one library, through a proxy of its own.
type visit struct {
	shop  *shop
	stock stock
	proxy *lossy
	question
}

func (s *shop) visit(t *testing.T, c stock, keyed bool) *visit {
	order := strings.ToLower(orderName.ReplaceAllString(t.Name(), "-"))
	v := &visit{shop: s, stock: c, proxy: &lossy{node: s.node, executed: func() bool { return s.provider.Executions(order) > 0 }}}
	srv := httptest.NewServer(v.proxy)
	t.Cleanup(srv.Close)
	v.question = question{BaseURL: srv.URL, Credential: s.key, Ask: askPlain, Order: order}
	if keyed {
		v.Key = "key-" + order
	}
	return v
}

var orderName = regexp.MustCompile(`[^A-Za-z0-9]+`)

// script says what the provider does with the requests of this intent, in turn.
func (v *visit) script(steps ...string) {
	v.shop.provider.ScriptFor(v.Order, sim.MustParse(steps...)...)
}

func (v *visit) ask(t *testing.T) answered {
	t.Helper()
	a := v.stock.ask(t, v.question)
	t.Logf("%d requests %v, %d at the provider, %d executions: %+v", len(v.proxy.passed()), v.proxy.passed(), v.atProvider(), v.executions(), a)
	return a
}

func (v *visit) executions() int { return v.shop.provider.Executions(v.Order) }

// atProvider counts the provider's requests for this intent.
func (v *visit) atProvider() int {
	n := 0
	for _, e := range v.shop.provider.Ledger() {
		if e.Intent == v.Order {
			n++
		}
	}
	return n
}

// wantOneExecution holds for a call with a key, whatever the library repeats. Without
// one it is promised only where a repeat says that it is one, and here that the work is done.
func (v *visit) wantOneExecution(t *testing.T) {
	t.Helper()
	switch n := v.executions(); {
	case v.Key != "" && n != 1:
		t.Errorf("%d executions under one key; want 1", n)
	case n == 0:
		t.Error("nothing was executed")
	}
	for _, p := range v.proxy.passed() {
		if p.Key != v.Key {
			t.Errorf("a request came with the key %q; want %q in each", p.Key, v.Key)
		}
	}
}

func (v *visit) wantText(t *testing.T, a answered) {
	t.Helper()
	if a.Error != "" || !strings.Contains(a.Text, v.Order) {
		t.Errorf("got %+v; want a text with %s", a, v.Order)
	}
}

func plainly(t *testing.T, v *visit) {
	v.wantText(t, v.ask(t))
	v.wantOneExecution(t)
}

func withATool(t *testing.T, v *visit) {
	v.Ask = askTool
	if a := v.ask(t); a.Tool != "look_up_order" || compact(a.Arguments) != `{"order":"`+v.Order+`"}` {
		t.Errorf("got %+v; want a call of look_up_order for %s", a, v.Order)
	}
	v.wantOneExecution(t)
}

func inAShape(t *testing.T, v *visit) {
	v.Ask = askSchema
	if a := v.ask(t); compact(a.Text) != `{"order":"`+v.Order+`","severity":"high"}` {
		t.Errorf("got %+v; want the JSON that was asked for", a)
	}
	v.wantOneExecution(t)
}

func compact(text string) string { return strings.NewReplacer(" ", "", "\n", "").Replace(text) }

func refused(t *testing.T, v *visit) {
	v.script("status=400", "status=400", "status=400")
	a := v.ask(t)
	v.wantProblem(t, a, http.StatusBadGateway, "provider-failed")
	if n := v.atProvider(); v.Key != "" && n != 1 {
		t.Errorf("%d requests at the provider under one key; want 1", n)
	}
}

// wantProblem wants an error of the library that says which, and that it did not ask
// again after it was told, unless it is known to repeat whatever it is told.
func (v *visit) wantProblem(t *testing.T, a answered, status int, code string) {
	t.Helper()
	if a.Error == "" || a.Status != status || a.Code != code || !strings.HasPrefix(a.Job, "job_") {
		t.Errorf("got %+v; want an error with %d %s and the job's id", a, status, code)
	}
	n := 0
	for _, p := range v.proxy.passed() {
		if p.Status == status {
			n++
		}
	}
	if n != 1 && !v.stock.repeatsAnyway {
		t.Errorf("it was told %d times; want once, as X-Should-Retry says", n)
	}
}

// The provider has done the work when the library's patience ends. If its own retries
// do not carry it over, the application's repeat does.
func timedOut(t *testing.T, v *visit) {
	v.script("late=2s")
	v.TimeoutMS = 1000
	a := v.ask(t)
	if a.Error != "" {
		v.TimeoutMS = 0
		a = v.ask(t)
	}
	v.wantText(t, a)
	v.wantOneExecution(t)
}

func droppedWhileHeld(t *testing.T, v *visit) {
	v.script("late=1500ms")
	v.proxy.drop = dropWhenExecuted
	v.wantText(t, v.ask(t))
	v.wantRepeated(t)
	v.wantOneExecution(t)
	if n := v.executions(); n != 1 && !v.stock.repeatsAnyway {
		t.Errorf("%d executions; want 1, since the repeat says that it is one", n)
	}
}

func droppedAnswer(t *testing.T, v *visit) {
	v.proxy.drop = dropAnswer
	v.wantText(t, v.ask(t))
	v.wantRepeated(t)
	v.wantOneExecution(t)
}

func (v *visit) wantRepeated(t *testing.T) {
	t.Helper()
	if n := len(v.proxy.passed()); n < 2 {
		t.Errorf("it asked %d times; want a repeat of its own", n)
	}
}

func inDoubt(t *testing.T, v *visit) {
	v.script("silent", "silent", "silent")
	v.Wait = 1
	a := v.ask(t)
	v.wantProblem(t, a, http.StatusConflict, "outcome-unknown")
	if !strings.HasPrefix(a.Location, "/v1/jobs/job_") {
		t.Errorf("the job's address is %q", a.Location)
	}
	v.wantOneExecution(t)
}

func streamed(t *testing.T, v *visit) {
	v.Stream = true
	v.script("trickle=5ms")
	v.wantText(t, v.ask(t))
	v.wantOneExecution(t)
}

func streamedTool(t *testing.T, v *visit) {
	v.Stream = true
	withATool(t, v)
}

// The provider makes no streams: it answers as a whole, which the library is given as one.
func streamIgnored(t *testing.T, v *visit) {
	v.Stream = true
	v.script("stream_ignored")
	v.wantText(t, v.ask(t))
	v.wantOneExecution(t)
}

func streamFailed(t *testing.T, v *visit) {
	v.Stream = true
	v.script("stream_error")
	v.wantStreamError(t, v.ask(t), "provider-failed")
	v.wantOneExecution(t)
}

func streamCut(t *testing.T, v *visit) {
	v.Stream = true
	v.script("stream_cut")
	v.wantStreamError(t, v.ask(t), "outcome-unknown")
	v.wantOneExecution(t)
}

// wantStreamError wants an error of the library although the answer had begun with 200,
// and that it is not repeated.
func (v *visit) wantStreamError(t *testing.T, a answered, code string) {
	t.Helper()
	if a.Error == "" || !strings.Contains(a.Code+a.Message, code) {
		t.Errorf("got %+v; want an error that says %s", a, code)
	}
	if n := len(v.proxy.passed()); n != 1 {
		t.Errorf("it asked %d times; want once", n)
	}
}

// No library goes on with a stream that was lost on its way. The application asks again,
// and with a key it is given the same bytes.
func streamDropped(t *testing.T, v *visit) {
	v.Stream = true
	v.script("trickle=20ms")
	v.proxy.drop = dropStream
	a := v.ask(t)
	if a.Error == "" {
		t.Errorf("got %+v from a stream that was lost; want an error", a)
	}
	v.wantText(t, v.ask(t))
	v.wantOneExecution(t)
}

// The documentation says that the option is dropped; when a library begins to send it,
// that is to be changed.
func ownOption(t *testing.T, v *visit) {
	v.OwnOption = true
	v.wantText(t, v.ask(t))
	for _, p := range v.proxy.passed() {
		if p.Key != "" {
			t.Errorf("the library's own option sent the key %q", p.Key)
		}
	}
}

// drop is what becomes of the answer to the first request.
type drop int

const (
	dropNothing      drop = iota
	dropWhenExecuted      // both connections are cut while onejob holds the call
	dropAnswer            // onejob has answered; the client gets none of it
	dropStream            // the client gets the first events of a stream
)

// lossy is a proxy between a client and a node that loses the first answer.
type lossy struct {
	node     *node
	drop     drop
	losing   int         // how many requests lose their answers; 0: the first
	executed func() bool // the provider has done the work

	mu       sync.Mutex
	requests []passing
}

// passing is what one request said of itself, and what it was told.
type passing struct {
	Key    string // Idempotency-Key
	Retry  string // X-Stainless-Retry-Count
	Status int    // 0: nothing
}

func (p *lossy) passed() []passing {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// note enters a request and returns how many came before it.
func (p *lossy) note(h http.Header) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, passing{Key: h.Get("Idempotency-Key"), Retry: h.Get("X-Stainless-Retry-Count")})
	return len(p.requests) - 1
}

func (p *lossy) told(request, status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests[request].Status = status
}

func (p *lossy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	request := p.note(r.Header)
	lost := request < max(p.losing, 1) && p.drop != dropNothing
	ctx, leave := context.WithCancel(r.Context())
	defer leave()
	if lost && p.drop == dropWhenExecuted {
		go func() {
			eventually(10*time.Second, p.executed)
			leave()
		}()
	}
	if lost && p.drop == dropStream {
		p.passSome(ctx, w, r, body)
	}
	answer, whole, err := p.pass(ctx, r, body)
	if lost || err != nil {
		panic(http.ErrAbortHandler) // closes the client's connection without a byte
	}
	p.told(request, answer.StatusCode)
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = w.Write(whole)
}

// passSome passes the first events of a stream on, and cuts both connections.
func (p *lossy) passSome(ctx context.Context, w http.ResponseWriter, r *http.Request, body []byte) {
	answer, err := p.send(ctx, r, body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer func() { _ = answer.Body.Close() }()
	events, _ := readEvents(answer.Body, 4)
	w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
	_, _ = w.Write(events)
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func (p *lossy) send(ctx context.Context, r *http.Request, body []byte) (*http.Response, error) {
	out, err := http.NewRequestWithContext(ctx, r.Method, "http://"+p.node.addr+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	out.GetBody = nil
	out.Header = r.Header.Clone()
	return client.Do(out)
}

// pass asks the node, and reads its whole answer.
func (p *lossy) pass(ctx context.Context, r *http.Request, body []byte) (*http.Response, []byte, error) {
	answer, err := p.send(ctx, r, body)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	whole, err := io.ReadAll(answer.Body)
	return answer, whole, err
}
