package frontdoor_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/frontdoor"
)

const again = `{"model":"again","messages":[{"role":"user","content":"hello"}]}`

// retry is the header of a library's nth retry; 0 is its first try.
func retry(n int) []string { return []string{"X-Stainless-Retry-Count", fmt.Sprint(n)} }

// gated is a provider that answers once it is let, each time something else.
type gated struct {
	url     string
	arrived chan struct{}
	calls   atomic.Int64
	open    func() // lets everybody
	padding string // of each answer
}

func newGated(t *testing.T) *gated {
	t.Helper()
	gate := make(chan struct{})
	g := &gated{arrived: make(chan struct{}, 100), open: sync.OnceFunc(func() { close(gate) })}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		n := g.calls.Add(1)
		g.arrived <- struct{}{}
		<-gate
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"sample %d%s"}}]}`, n, g.padding)
	}))
	t.Cleanup(func() { g.open(); server.Close() })
	g.url = server.URL
	return g
}

func (g *gated) wantCalls(t *testing.T, want int64) {
	t.Helper()
	if n := g.calls.Load(); n != want {
		t.Errorf("%d requests at the provider; want %d", n, want)
	}
}

// call is one under way.
type call struct {
	answers chan answer // closed without one if the connection was lost
	hangUp  context.CancelFunc
}

func (w *world) start(body string, headers ...string) call {
	w.t.Helper()
	ctx, hangUp := context.WithCancel(w.t.Context())
	w.t.Cleanup(hangUp)
	c := call{answers: make(chan answer, 1), hangUp: hangUp}
	r := w.request(ctx, chat, body, headers...)
	go func() {
		defer close(c.answers)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return
		}
		defer func() { _ = resp.Body.Close() }()
		if body, err := io.ReadAll(resp.Body); err == nil {
			c.answers <- answer{resp.StatusCode, resp.Header, body}
		}
	}()
	return c
}

// left returns the job of the next caller who leaves without its answer.
func (w *world) left() (jobID string) {
	w.t.Helper()
	for {
		if p := soon(w.t, w.store.ended, "end of a waiting"); !p.Delivered {
			return p.ID
		}
	}
}

// soon receives what is about to be sent.
func soon[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case sent := <-from:
		return sent
	case <-time.After(10 * time.Second):
		t.Fatalf("there was no %s", what)
		panic("unreachable")
	}
}

// lose starts a call, waits until it is at the provider, and loses its connection. It
// returns the job.
func (w *world) lose(g *gated, body string, headers ...string) (jobID string) {
	w.t.Helper()
	c := w.start(body, headers...)
	<-g.arrived
	c.hangUp()
	return w.left()
}

func (a answer) wantIntent(t *testing.T, intent, jobID string) {
	t.Helper()
	replayed := a.header.Get("Idempotent-Replayed") == "true"
	if got := a.header.Get("Onejob-Intent"); got != intent || replayed != (intent == "retry-claimed") {
		t.Errorf("%d: the intent is %q, replayed %t; want %q", a.status, got, replayed, intent)
	}
	if got := a.header.Get("Onejob-Job-Id"); jobID != "" && got != jobID {
		t.Errorf("the call was given job %s; want %s", got, jobID)
	}
}

// Five wanted samples that look alike, two of whose callers lost their connections and
// tried again, are five executions: none is merged, and none is done twice.
func TestParallelSamplesStayApartAndTheirRetriesFindThem(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	w := newWorldAt(t, g.url)
	var calls []call
	for range 5 {
		calls = append(calls, w.start(hello, retry(0)...))
	}
	for range calls {
		<-g.arrived
	}
	calls[0].hangUp()
	calls[1].hangUp()
	lost := []string{w.left(), w.left()}
	retries := []call{w.start(hello, retry(1)...), w.start(hello, retry(1)...)}
	g.open()
	var claimed, jobs, bodies []string
	for _, c := range slices.Concat(calls[2:], retries) {
		a := <-c.answers
		if a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.body)
		}
		jobs, bodies = append(jobs, a.header.Get("Onejob-Job-Id")), append(bodies, string(a.body))
		if a.header.Get("Onejob-Intent") == "retry-claimed" {
			a.wantIntent(t, "retry-claimed", "")
			claimed = append(claimed, a.header.Get("Onejob-Job-Id"))
		}
	}
	slices.Sort(lost)
	slices.Sort(claimed)
	if !slices.Equal(claimed, lost) {
		t.Errorf("the retries were given jobs %v; want %v, which lost their callers", claimed, lost)
	}
	for name, each := range map[string][]string{"jobs": jobs, "answers": bodies} {
		if slices.Sort(each); len(slices.Compact(each)) != 5 {
			t.Errorf("the %s are %v; want five", name, each)
		}
	}
	g.wantCalls(t, 5)
}

func TestARetryWhoseFirstAnswerWasDroppedIsOneExecution(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	w := newWorldAt(t, g.url)
	job := w.lose(g, hello, retry(0)...)
	g.open()
	if _, err := w.client.WatchUntil(t.Context(), "alice", job, func(j *onejob.Job) bool { return j.State.Terminal() }); err != nil {
		t.Fatal(err)
	}
	got := w.post(chat, hello, retry(1)...)
	got.wantIntent(t, "retry-claimed", job)
	if got.status != http.StatusOK || !strings.Contains(string(got.body), "sample 1") {
		t.Errorf("%d %s; want the answer that was dropped", got.status, got.body)
	}
	g.wantCalls(t, 1)
	w.post(chat, hello, retry(2)...).wantIntent(t, "new", "") // it has been delivered now
	g.wantCalls(t, 2)
}

// The connection breaks while the answer is on its way.
func TestARetryWhoseFirstAnswerWasCutOffIsOneExecution(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	g.padding = strings.Repeat("x", 7<<20) // no socket takes so much unread, but a provider may say it
	w := newWorldAt(t, g.url)
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(4 << 10)
	}
	if err := w.request(t.Context(), chat, hello, retry(0)...).Write(conn); err != nil {
		t.Fatal(err)
	}
	<-g.arrived
	g.open()
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatalf("no answer began: %v", err)
	}
	_ = conn.Close()
	job := w.left()
	got := w.post(chat, hello, retry(1)...)
	got.wantIntent(t, "retry-claimed", job)
	if got.status != http.StatusOK || len(got.body) < len(g.padding) {
		t.Errorf("%d with %d bytes; want the whole answer", got.status, len(got.body))
	}
	g.wantCalls(t, 1)
}

func TestARetryThatIsLostTooLeavesTheJobToTheNext(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	w := newWorldAt(t, g.url)
	job := w.lose(g, hello, retry(0)...)
	second := w.start(hello, retry(1)...)
	soon(t, w.store.taken, "taking over")
	second.hangUp()
	if got := w.left(); got != job {
		t.Fatalf("the retry left job %s; want %s", got, job)
	}
	third := w.start(hello, retry(2)...)
	g.open()
	got := <-third.answers
	got.wantIntent(t, "retry-claimed", job)
	g.wantCalls(t, 1)
}

func TestOnlyARetryTakesOver(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, body string
		headers    []string
		intent     string
	}{
		{"AFirstTry", hello, retry(0), "new"},
		{"NothingSaid", hello, nil, "new"},
		{"Nonsense", hello, []string{"X-Stainless-Retry-Count", "often"}, "new"},
		{"AnotherBody", strings.Replace(hello, "hello", "good-bye", 1), retry(1), "new"},
		{"AnotherModel", brief, retry(1), "new"},
		{"AKey", hello, append(retry(1), "Idempotency-Key", "k1"), "keyed"},
		{"TheSameInAnotherOrder", `{"x_unknown":{"kept":true}, "messages":[{"content":"hello","role":"user"}], "model":"chat"}`, retry(1), "retry-claimed"},
		{"NothingSaidWhereThatWillDo", again, nil, "retry-claimed"},
		{"AFirstTryWhereNothingNeedBeSaid", again, retry(0), "new"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := newGated(t)
			w := newWorldAt(t, g.url)
			first := hello
			if tt.body == again {
				first = again
			}
			job := w.lose(g, first, retry(0)...)
			g.open()
			got := w.post(chat, tt.body, tt.headers...)
			if tt.intent != "retry-claimed" {
				job = ""
			}
			got.wantIntent(t, tt.intent, job)
		})
	}
}

func TestAnotherOwnersRetryTakesNothingOver(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	w := newWorldAt(t, g.url)
	job := w.lose(g, hello)
	g.open()
	w.post(chat, hello, append(retry(1), "Authorization", "Bearer "+w.keyOf("bob"))...).wantIntent(t, "new", "")
	w.post(chat, hello, retry(1)...).wantIntent(t, "retry-claimed", job)
}

func TestAKeyedJobIsNeverTakenOver(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	w := newWorldAt(t, g.url)
	c := w.start(hello, "Idempotency-Key", "k1")
	<-g.arrived
	c.hangUp()
	<-c.answers
	g.open()
	w.post(chat, hello, retry(1)...).wantIntent(t, "new", "")
	g.wantCalls(t, 2)
}

func TestTheWindowCountsFromTheDisconnect(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	w := newWorldAt(t, g.url, func(o *frontdoor.Options) { o.TakeOverWithin = time.Second })
	job := w.lose(g, hello)
	w.store.advance(999 * time.Millisecond)
	c := w.start(hello, retry(1)...)
	soon(t, w.store.taken, "taking over")
	c.hangUp()
	if got := w.left(); got != job {
		t.Fatalf("the retry left job %s; want %s", got, job)
	}
	w.store.advance(time.Second)
	g.open()
	w.post(chat, hello, retry(2)...).wantIntent(t, "new", "")
}

func TestWhoStillWaitsKeepsTheirJob(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	const lease = 150 * time.Millisecond
	w := newWorldAt(t, g.url, func(o *frontdoor.Options) { o.Lease = lease })
	first := w.start(hello, retry(0)...)
	<-g.arrived
	for range 3 { // the store's clock has moved by more than the lease then
		w.store.advance(lease / 2)
		soon(t, w.store.renewed, "renewal")
		soon(t, w.store.renewed, "renewal that began after that")
	}
	second := w.start(hello, retry(1)...)
	<-g.arrived
	g.open()
	a, b := <-first.answers, <-second.answers
	a.wantIntent(t, "new", "")
	b.wantIntent(t, "new", "")
	if a.header.Get("Onejob-Job-Id") == b.header.Get("Onejob-Job-Id") {
		t.Error("a retry was given the job of a caller who still waits")
	}
}

// Who was only told to come back has no answer yet.
func TestWhoIsToldToComeBackFindsTheirJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "silent")
	first := w.post(chat, brief, append(retry(0), "Prefer", "wait=1")...)
	first.wantProblem(t, http.StatusConflict, onejob.CodeOutcomeUnknown)
	w.left()
	second := w.post(chat, brief, append(retry(1), "Prefer", "wait=1")...)
	second.wantProblem(t, http.StatusConflict, onejob.CodeOutcomeUnknown)
	second.wantIntent(t, "retry-claimed", first.header.Get("Onejob-Job-Id"))
	if n := len(w.provider.Ledger()); n != 1 {
		t.Errorf("%d requests at the provider; want 1", n)
	}
}

func TestAFailureThatWasToldIsAnAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "status=400")
	w.post(chat, hello, retry(0)...).wantProblem(t, http.StatusBadGateway, onejob.CodeProviderFailed)
	w.post(chat, hello, retry(1)...).wantIntent(t, "new", "")
}

// The store goes away while a call without a key is held, and comes back before the
// lease of its caller is over: a repeat would not be recognised.
func TestACallWithoutAKeyIsNotToldToRepeatWhenTheStoreGoesAway(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"Whole": hello, "Stream": strings.Replace(hello, "{", `{"stream":true,`, 1)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGated(t)
			w := newWorldAt(t, g.url)
			c := w.start(body, retry(0)...)
			<-g.arrived
			w.store.down.Store(true)
			got := soon(t, c.answers, "answer")
			w.store.down.Store(false)
			got.wantProblem(t, http.StatusConflict, onejob.CodeOutcomeUnknown)
			if h := got.header; h.Get("X-Should-Retry") != "false" || h.Get("Location") != "/v1/jobs/"+h.Get("Onejob-Job-Id") {
				t.Errorf("headers %v; want that it is not repeated, and where the job is", h)
			}
		})
	}
}

// Who counts its tries is recognised when it comes back, and may be told to.
func TestACallThatThereIsNoPlaceForIsToldToRepeatOnlyIfThatIsRecognised(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	w := &world{t: t, store: newStore(), holding: 1}
	w.run(w.targets(g.url), kinds(), map[string]frontdoor.Model{
		"chat": {Kind: "chat", API: frontdoor.APIChat}, "again": {Kind: "chat", API: frontdoor.APIChat, TakeOver: true},
	})
	w.start(hello, "Idempotency-Key", "k1")
	<-g.arrived
	w.post(chat, plain).wantProblem(t, http.StatusConflict, onejob.CodeOutcomeUnknown)
	w.post(chat, plain, retry(0)...).wantProblem(t, http.StatusTooManyRequests, onejob.CodeOverloaded)
	w.post(chat, again).wantProblem(t, http.StatusTooManyRequests, onejob.CodeOverloaded)
}
