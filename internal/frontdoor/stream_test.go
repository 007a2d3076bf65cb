package frontdoor_test

import (
	"bufio"
	"context"
	"fmt"
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
	"github.com/onejob-dev/onejob/internal/frontdoor"
)

const streamed = `{"model":"chat","stream":true,"messages":[{"role":"user","content":"hello"}]}`

// mouth is a provider that says one event after another as a test tells it to.
type mouth struct {
	*httptest.Server
	says  chan string // events; closed: the end of the body
	asked atomic.Int32
}

func newMouth(t *testing.T) *mouth {
	t.Helper()
	m := &mouth{says: make(chan string, 32)}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.asked.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		rc := http.NewResponseController(w)
		for {
			select {
			case event, more := <-m.says:
				if !more {
					return
				}
				_, _ = io.WriteString(w, event)
				_ = rc.Flush()
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(m.Server.Close)
	return m
}

func (m *mouth) say(t *testing.T, events ...string) {
	t.Helper()
	for _, event := range events {
		select {
		case m.says <- event:
		case <-time.After(10 * time.Second):
			t.Fatalf("the provider is not asked for %q", event)
		}
	}
}

func word(text string) string {
	return fmt.Sprintf("data: {\"id\":\"c1\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q},\"finish_reason\":null}]}\n\n", text)
}

const (
	head    = "data: {\"id\":\"c1\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"},\"finish_reason\":null}]}\n\n"
	stop    = "data: {\"id\":\"c1\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
	theEnd  = "data: [DONE]\n\n"
	failure = "data: {\"error\":{\"message\":\"overloaded\"}}\n\n"
)

// reader is a caller who reads a stream.
type reader struct {
	t    *testing.T
	resp *http.Response
	body *bufio.Reader
	stop context.CancelFunc
}

// read begins a call whose answer is read as it comes.
func (w *world) read(path, body string, headers ...string) *reader {
	w.t.Helper()
	ctx, stop := context.WithTimeout(w.t.Context(), 30*time.Second)
	w.t.Cleanup(stop)
	resp, err := http.DefaultClient.Do(w.request(ctx, path, body, headers...))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = resp.Body.Close() })
	return &reader{t: w.t, resp: resp, body: bufio.NewReader(resp.Body), stop: stop}
}

// want reads exactly text.
func (r *reader) want(text string) {
	r.t.Helper()
	got := make([]byte, len(text))
	n, err := io.ReadFull(r.body, got)
	if string(got[:n]) != text {
		r.t.Fatalf("read %q, %v; want %q", got[:n], err, text)
	}
}

// wantErrorEvent reads the last event, an error with the code, and the end.
func (r *reader) wantErrorEvent(code onejob.Code) {
	r.t.Helper()
	rest, err := io.ReadAll(r.body)
	if err != nil || !strings.HasPrefix(string(rest), "event: error\ndata: {\"type\":\"error\"") || !strings.Contains(string(rest), `"code":"`+string(code)+`"`) ||
		!strings.Contains(string(rest), `"error":{"message":`) || strings.Count(string(rest), "\n\n") != 1 {
		r.t.Errorf("read %q, %v; want an event with the error %s, and the end", rest, err, code)
	}
}

func (r *reader) wantEnd() {
	r.t.Helper()
	if rest, err := io.ReadAll(r.body); len(rest) > 0 || err != nil {
		r.t.Errorf("read %q, %v; want the end", rest, err)
	}
}

func TestAStreamIsShownAsItComesAndARepeatFollowsItFromItsFirstByte(t *testing.T) {
	t.Parallel()
	m := newMouth(t)
	w := newWorldAt(t, m.URL)
	m.say(t, head, word("hel"))
	first := w.read(chat, streamed, "Idempotency-Key", "k1")
	if h := first.resp.Header; first.resp.StatusCode != 200 || h.Get("Content-Type") != "text/event-stream" || h.Get("Onejob-Target") != "gpt" ||
		h.Get("Onejob-Attempts") != "1" || h.Get("Onejob-Intent") != "keyed" || h.Get("Onejob-Job-Id") == "" || h.Get("Idempotent-Replayed") != "" {
		t.Fatalf("%d %v", first.resp.StatusCode, h)
	}
	first.want(head + word("hel"))
	repeat := w.read(chat, streamed, "Idempotency-Key", "k1")
	if h := repeat.resp.Header; h.Get("Idempotent-Replayed") != "true" || h.Get("Onejob-Job-Id") != first.resp.Header.Get("Onejob-Job-Id") {
		t.Errorf("a repeat got %v", h)
	}
	repeat.want(head + word("hel"))
	m.say(t, word("lo"))
	first.want(word("lo"))
	repeat.want(word("lo"))
	first.stop() // leaving cancels nothing
	m.say(t, stop, theEnd)
	close(m.says)
	repeat.want(stop + theEnd)
	repeat.wantEnd()
	whole := w.post(chat, streamed, "Idempotency-Key", "k1")
	if string(whole.body) != head+word("hel")+word("lo")+stop+theEnd || whole.header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("after the end a repeat got %q as %s", whole.body, whole.header.Get("Content-Type"))
	}
	if n := m.asked.Load(); n != 1 {
		t.Errorf("%d executions; want 1", n)
	}
}

func TestAStreamThatFailsBeforeItsFirstByteIsAnsweredWithAStatus(t *testing.T) {
	t.Parallel()
	m := newMouth(t)
	w := newWorldAt(t, m.URL)
	m.say(t, head, failure)
	w.post(chat, streamed, "Idempotency-Key", "k1").wantProblem(t, http.StatusBadGateway, onejob.CodeProviderFailed)
}

func TestAStreamThatFailsLaterEndsWithAnEvent(t *testing.T) {
	t.Parallel()
	m := newMouth(t)
	w := newWorldAt(t, m.URL)
	m.say(t, head, word("hel"))
	first := w.read(chat, streamed, "Idempotency-Key", "k1")
	first.want(head + word("hel"))
	m.say(t, failure)
	first.wantErrorEvent(onejob.CodeProviderFailed)
	repeat := w.read(chat, streamed, "Idempotency-Key", "k1")
	repeat.want(head + word("hel"))
	repeat.wantErrorEvent(onejob.CodeProviderFailed)
}

// What was cut is there for who asks again, and is not made a second time.
func TestAStreamThatIsCutEndsInDoubtEachTimeItIsAskedFor(t *testing.T) {
	t.Parallel()
	m := newMouth(t)
	w := newWorldAt(t, m.URL)
	m.say(t, head, word("hel"))
	first := w.read(chat, streamed, "Idempotency-Key", "k1")
	first.want(head + word("hel"))
	close(m.says)
	first.wantErrorEvent(onejob.CodeOutcomeUnknown)
	repeat := w.read(chat, streamed, "Idempotency-Key", "k1")
	repeat.want(head + word("hel"))
	repeat.wantErrorEvent(onejob.CodeOutcomeUnknown)
	if n := m.asked.Load(); n != 1 {
		t.Errorf("%d executions; want 1", n)
	}
}

func TestASilentStreamShowsSignsOfLifeUntilTheHoldingEnds(t *testing.T) {
	t.Parallel()
	m := newMouth(t)
	w := newWorldAt(t, m.URL, func(o *frontdoor.Options) { o.Heartbeat, o.Hold = 20*time.Millisecond, time.Second })
	defer close(m.says)
	r := w.read(chat, streamed, "Idempotency-Key", "k1")
	r.want(":\n\n:\n\n")
	m.say(t, head, word("hel"))
	all, err := io.ReadAll(r.body)
	text := strings.ReplaceAll(string(all), ":\n\n", "")
	if err != nil || !strings.HasPrefix(text, head+word("hel")+"event: error\n") || !strings.Contains(text, string(onejob.CodeOutcomeUnknown)) {
		t.Errorf("read %q, %v; want what came and, after the holding, an event that says that it is in doubt", text, err)
	}
}

func TestAnAnthropicStreamIsShown(t *testing.T) {
	t.Parallel()
	m := newMouth(t)
	w := newWorldAt(t, m.URL)
	events := []string{
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"type\":\"message\",\"model\":\"m\",\"content\":[],\"usage\":{\"input_tokens\":1}}}\n\n",
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":1}}\n\n",
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
	}
	m.say(t, events...)
	r := w.read(messages, strings.Replace(claude, "{", `{"stream":true,`, 1), "Idempotency-Key", "k1")
	r.want(strings.Join(events, ""))
	close(m.says)
	r.wantEnd()
}

func TestAStreamWithoutAKeyIsDeliveredOnceItsEndIsOut(t *testing.T) {
	t.Parallel()
	m := newMouth(t)
	w := newWorldAt(t, m.URL)
	m.say(t, head, word("hel"))
	left := w.read(chat, streamed, retry(0)...)
	left.want(head + word("hel"))
	left.stop()
	if p := <-w.store.ended; p.Delivered {
		t.Error("a stream whose caller left was delivered")
	}
	again := w.read(chat, streamed, retry(1)...)
	if got := again.resp.Header.Get("Onejob-Intent"); got != "retry-claimed" {
		t.Errorf("the retry's intent is %s; want retry-claimed", got)
	}
	again.want(head + word("hel"))
	m.say(t, stop, theEnd)
	close(m.says)
	again.want(stop + theEnd)
	again.wantEnd()
	if p := <-w.store.ended; !p.Delivered {
		t.Error("a stream that was read to its end was not delivered")
	}
	if n := m.asked.Load(); n != 1 {
		t.Errorf("%d executions; want 1", n)
	}
}

func TestWhatComesWholeIsNotStreamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for path, body := range map[string]string{
		"/openai/v1/embeddings":         `{"model":"vectors","stream":true,"input":"a"}`,
		"/openai/v1/images/generations": `{"model":"pictures","stream":true,"prompt":"a"}`,
	} {
		w.post(path, body, "Idempotency-Key", path).wantProblem(t, http.StatusUnprocessableEntity, onejob.CodeInvalidJob)
		w.post(path, strings.Replace(body, `"stream":true`, `"stream":7`, 1), "Idempotency-Key", path).wantProblem(t, http.StatusBadRequest, onejob.CodeInvalidRequest)
	}
	page, err := w.client.List(t.Context(), onejob.JobListParams{Owner: "alice", Limit: 1})
	if err != nil || len(page.Jobs) != 0 {
		t.Errorf("%d jobs, %v; want none", len(page.Jobs), err)
	}
}

// Who is told to come back has not been answered: a retry without a key finds the job.
func TestAStreamThatIsGivenUpForAnotherAnswerIsNotDelivered(t *testing.T) {
	t.Parallel()
	for name, shown := range map[string]string{"after a part of it": head + word("hel"), "after a sign of life": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMouth(t)
			w := newWorldAt(t, m.URL, func(o *frontdoor.Options) { o.Heartbeat = 20 * time.Millisecond })
			defer close(m.says)
			if shown != "" {
				m.say(t, shown)
			}
			body := strings.Replace(streamed, `"chat"`, `"brief"`, 1)
			r := w.read(chat, body, retry(0)...)
			job, err := w.client.WatchUntil(t.Context(), "alice", r.resp.Header.Get("Onejob-Job-Id"), func(j *onejob.Job) bool { return j.State == onejob.JobBlocked })
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = w.client.Resolve(t.Context(), onejob.AttemptResolveParams{
				ID: job.Attempts[0].ID, Owner: "alice", Actor: "ann", Outcome: onejob.OutcomeSucceeded, Evidence: "seen",
				Result: &onejob.Result{Body: []byte(`{"choices":[]}`), ContentType: "application/json"},
			})
			if err != nil {
				t.Fatal(err)
			}
			all, err := io.ReadAll(r.body)
			if text := strings.ReplaceAll(string(all), ":\n\n", ""); err != nil || !strings.HasPrefix(text, shown+"event: error\n") || strings.Contains(text, "choices\":[]") {
				t.Errorf("read %q, %v; want what was shown, and an error", text, err)
			}
			if p := <-w.store.ended; p.Delivered {
				t.Error("a caller who was told to come back was delivered the answer")
			}
			again := w.post(chat, body, retry(1)...)
			if again.header.Get("Onejob-Intent") != "retry-claimed" || string(again.body) != `{"choices":[]}` {
				t.Errorf("its retry got %q %s; want the job's answer", again.header.Get("Onejob-Intent"), again.body)
			}
		})
	}
}

// timed is a writer that knows how long the caller has for what is written.
type timed struct {
	*httptest.ResponseRecorder
	mu       sync.Mutex
	deadline time.Time
	written  int // since it was set
	most     int // under one deadline
	stale    int // writes under one that was set for another

	began func() // nil: nobody waits for it
}

func (w *timed) SetWriteDeadline(at time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deadline, w.written = at, 0
	return nil
}

func (w *timed) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.deadline.IsZero() {
		if w.written > 0 {
			w.stale++
		}
		w.written += len(b)
		w.most = max(w.most, w.written)
	}
	if w.began != nil {
		w.began()
	}
	return w.ResponseRecorder.Write(b)
}

// A caller on a slow line has as long for each part of an answer as for any other.
func TestWhoReadsSlowlyHasTimeForEachPart(t *testing.T) {
	t.Parallel()
	t.Run("of a stream that is there", func(t *testing.T) {
		t.Parallel()
		m := newMouth(t)
		w := newWorldAt(t, m.URL)
		m.say(t, head, word(strings.Repeat("long ", 100_000)), stop, theEnd)
		close(m.says)
		want := w.post(chat, streamed, "Idempotency-Key", "k1")
		slow := &timed{ResponseRecorder: httptest.NewRecorder()}
		w.handler.ServeHTTP(slow, w.request(t.Context(), chat, streamed, "Idempotency-Key", "k1"))
		if slow.Body.String() != string(want.body) || slow.most > onejob.MaxChunkBytes || slow.stale > 0 {
			t.Errorf("%d of %d bytes, %d under one deadline and %d writes under a stale one; want at most %d and none",
				slow.Body.Len(), len(want.body), slow.most, slow.stale, onejob.MaxChunkBytes)
		}
	})
	t.Run("of a whole answer behind a sign of life", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "hold")
		begun, done := make(chan struct{}), make(chan struct{})
		slow := &timed{ResponseRecorder: httptest.NewRecorder(), began: sync.OnceFunc(func() { close(begun) })}
		go func() {
			defer close(done)
			w.handler.ServeHTTP(slow, w.request(t.Context(), chat, alive, "Idempotency-Key", "k1"))
		}()
		<-begun
		w.provider.Release()
		<-done
		if strings.TrimSpace(slow.Body.String()) == "" || slow.stale > 0 {
			t.Errorf("read %q, %d writes under the deadline of another; want none", slow.Body.String(), slow.stale)
		}
	})
}

// A long event is kept in parts. Nothing stands between them: neither a sign of life
// while the store is slow, nor an error after the process that made it is gone.
func TestAnEventIsShownOnceItIsWhole(t *testing.T) {
	t.Parallel()
	m := newMouth(t)
	w := newWorldAt(t, m.URL, func(o *frontdoor.Options) { o.Heartbeat = 20 * time.Millisecond })
	w.store.mute.Store(true)
	long := word(strings.Repeat("x", 2*onejob.MaxChunkBytes))
	m.say(t, head, word("hel")+long)
	r := w.read(chat, streamed, "Idempotency-Key", "k1")
	shown := ""
	for !strings.Contains(shown, "hel") || !strings.HasSuffix(shown, ":\n\n:\n\n") { // signs of life, after what can be shown
		b, err := r.body.ReadByte()
		if err != nil {
			t.Fatal(err)
		}
		shown += string(b)
	}
	w.store.mute.Store(false)
	m.say(t, stop, theEnd)
	close(m.says)
	rest, err := io.ReadAll(r.body)
	events := strings.SplitAfter(shown+string(rest), "\n\n")
	events = slices.DeleteFunc(events, func(e string) bool { return e == ":\n\n" })
	if want := head + word("hel") + long + stop + theEnd; err != nil || strings.Join(events, "") != want {
		t.Errorf("read %d bytes in %d events, %v; want the %d of the provider's, with signs of life between them alone", len(strings.Join(events, "")), len(events), err, len(want))
	}
}
