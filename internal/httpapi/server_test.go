package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/httpapi"
)

// listen serves the world on a socket and returns its address.
func (w *world) listen(change func(*http.Server)) (base string, srv *http.Server) {
	w.t.Helper()
	srv = httpapi.Server(w.handler, nil)
	if change != nil {
		change(srv)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	go func() { _ = srv.Serve(l) }()
	w.t.Cleanup(func() { _ = srv.Close() })
	return "http://" + l.Addr().String(), srv
}

// open starts a request and returns once its headers are there.
func (w *world) open(ctx context.Context, base string, q request) *http.Response {
	w.t.Helper()
	r := q.http(ctx)
	u := r.URL
	r, err := http.NewRequestWithContext(ctx, q.method, base+u.RequestURI(), r.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header = q.http(ctx).Header
	// A fresh connection each time: on one that was used before, the client would
	// send a request again by itself when its answer is cut off.
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		w.t.Fatalf("%s %s: %v", q.method, q.path, err)
	}
	w.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// event is one server-sent event; comment marks a sign of life.
type event struct {
	name, id, data string
	comment        bool
}

func nextEvent(r *bufio.Reader) (event, error) {
	var e event
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return e, err
		}
		line = strings.TrimSuffix(line, "\n")
		field, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "":
			return e, nil
		case strings.HasPrefix(line, ":"):
			e.comment = true
		case field == "event":
			e.name = value
		case field == "id":
			e.id = value
		case field == "data":
			e.data += value + "\n"
		}
	}
}

func (w *world) stream(base, job string, headers ...string) (*http.Response, *bufio.Reader) {
	resp := w.open(w.t.Context(), base, request{method: "GET", path: "/v1/jobs/" + job + "/events", key: w.alice, headers: headers})
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || got != "text/event-stream" {
		w.t.Fatalf("stream: status %d, content type %q", resp.StatusCode, got)
	}
	return resp, bufio.NewReader(resp.Body)
}

// job reads the next event that is no sign of life.
func (w *world) nextJob(r *bufio.Reader) (state, id string) {
	w.t.Helper()
	for {
		e, err := nextEvent(r)
		if err != nil {
			w.t.Fatalf("the stream ended: %v", err)
		}
		if e.comment {
			continue
		}
		var job struct {
			State    string
			Revision int64
			Result   any
		}
		if err := json.Unmarshal([]byte(e.data), &job); err != nil || e.name != "job" || e.id != fmt.Sprint(job.Revision) {
			w.t.Fatalf("event %+v: %v", e, err)
		}
		wantSchema(w.t, "Job", []byte(e.data))
		return job.State, e.id
	}
}

func TestAStreamTellsEveryStateInOrderAndEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	base, _ := w.listen(nil)
	id := w.submit("k1", ticket)
	_, events := w.stream(base, id)
	state, first := w.nextJob(events)
	if state != "queued" {
		t.Errorf("first state %q; want the state as it is, queued", state)
	}
	a := w.claim()
	if state, _ := w.nextJob(events); state != "running" {
		t.Errorf("second state %q; want running", state)
	}
	w.finish(a, onejob.OutcomeSucceeded, jsonResult("{\"a\":\r\n1,\n\r \"b\":2}"))
	var last string
	for state = "running"; state == "running"; {
		state, last = w.nextJob(events)
	}
	if state != "succeeded" {
		t.Errorf("last state %q; want succeeded", state)
	}
	if e, err := nextEvent(events); err == nil {
		t.Errorf("after the end: %+v; want the stream to end", e)
	}

	// Whoever comes back starts with a snapshot, and it ends again.
	for _, seen := range []string{first, last} {
		_, again := w.stream(base, id, "Last-Event-ID", seen)
		if state, _ := w.nextJob(again); state != "succeeded" {
			t.Errorf("resumed after %s: %q; want succeeded", seen, state)
		}
		if _, err := nextEvent(again); err == nil {
			t.Error("a resumed stream of a finished job does not end")
		}
	}
}

func TestAStreamShowsSignsOfLifeAndOutlivesTheServersDeadlines(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	base, _ := w.listen(func(s *http.Server) {
		s.ReadTimeout, s.WriteTimeout = 100*time.Millisecond, 100*time.Millisecond
	})
	id := w.submit("k1", ticket)
	_, events := w.stream(base, id)
	w.nextJob(events)
	start := time.Now()
	for time.Since(start) < 400*time.Millisecond {
		if e, err := nextEvent(events); err != nil || !e.comment {
			t.Fatalf("after %s: %+v, %v; want a sign of life", time.Since(start), e, err)
		}
	}
	w.finish(w.claim(), onejob.OutcomeSucceeded, jsonResult("1"))
	for state := ""; state != "succeeded"; {
		state, _ = w.nextJob(events)
	}

	// So does a request that waits.
	waiting := w.submit("k2", ticket)
	done := make(chan string, 1)
	go func() {
		resp := w.open(w.t.Context(), base, request{method: "GET", path: "/v1/jobs/" + waiting, key: w.alice, headers: []string{"Prefer", "wait=30"}})
		var job struct{ State string }
		_ = json.NewDecoder(resp.Body).Decode(&job)
		done <- job.State
	}()
	a := w.claim()
	time.AfterFunc(400*time.Millisecond, func() { w.finish(a, onejob.OutcomeSucceeded, jsonResult("1")) })
	select {
	case state := <-done:
		if state != "succeeded" {
			t.Errorf("the held request answered %q; want succeeded", state)
		}
	case <-time.After(10 * time.Second):
		t.Error("the held request was not answered")
	}
}

func TestShuttingDownEndsStreamsAndWaitsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	var active atomic.Int32
	base, srv := w.listen(func(s *http.Server) {
		s.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateActive {
				active.Add(1)
			}
		}
	})
	id := w.submit("k1", ticket)
	_, events := w.stream(base, id)
	w.nextJob(events)
	answered := make(chan int, 1)
	go func() {
		answered <- w.open(w.t.Context(), base, request{method: "GET", path: "/v1/jobs/" + id, key: w.alice, headers: []string{"Prefer", "wait=60"}}).StatusCode
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	// The waiting request must have arrived, or it would find the door shut.
	w.eventually("the request waits", func() bool { return active.Load() >= 2 })
	start := time.Now()
	if err := srv.Shutdown(ctx); err != nil {
		t.Fatalf("Shutdown: %v", err)
	}
	if status := <-answered; status != http.StatusOK {
		t.Errorf("the waiting request was answered %d; want 200 with the job as it is", status)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("shutting down took %s", took)
	}
}

func TestStreamsAndWaitsAreBoundedApartFromRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *onejob.Options, api *httpapi.Options) { api.MaxHolding, api.MaxRequests = 1, 1 })
	base, _ := w.listen(nil)
	id := w.submit("k1", ticket)
	resp, events := w.stream(base, id)
	w.nextJob(events)

	// The stream holds no place among the requests, and there is no second stream.
	got := w.get("/v1/jobs/"+id+"/events").wantProblem(t, http.StatusTooManyRequests, onejob.CodeOverloaded)
	if got.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After %q; want 1", got.header.Get("Retry-After"))
	}
	// Who would wait is answered at once instead.
	if got := w.get("/v1/jobs/"+id, "Prefer", "wait=60").wantStatus(t, 200); got.header.Get("Preference-Applied") != "" {
		t.Error("waiting was applied beyond its bound")
	}
	_ = resp.Body.Close()
	w.eventually("the place is given back", func() bool {
		resp := w.open(t.Context(), base, request{method: "HEAD", path: "/v1/jobs/" + id + "/events", key: w.alice})
		if resp.StatusCode != 200 {
			t.Fatalf("HEAD: %d", resp.StatusCode)
		}
		return w.get("/v1/jobs/"+id, "Prefer", "wait=1").header.Get("Preference-Applied") != ""
	})
}

func TestTooManyRequestsAreRefusedBeforeTheirKeyIsTaken(t *testing.T) {
	t.Parallel()
	inside, leave := make(chan struct{}), make(chan struct{})
	var once atomic.Bool
	w := newWorld(t, func(o *onejob.Options, api *httpapi.Options) {
		api.MaxRequests = 1
		o.AdmitFunc = func(context.Context, string, int) *onejob.Error {
			if once.CompareAndSwap(false, true) {
				close(inside)
				<-leave
			}
			return nil
		}
	})
	first := make(chan answer, 1)
	go func() { first <- w.do(submitRequest(w.alice, "k1", ticket)) }()
	<-inside
	got := w.do(submitRequest(w.alice, "k2", ticket)).wantProblem(t, http.StatusTooManyRequests, onejob.CodeOverloaded)
	if got.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	w.do(request{method: "GET", path: "/livez"}).wantStatus(t, 200)
	w.do(request{method: "GET", path: "/readyz"}).wantStatus(t, 200)
	close(leave)
	(<-first).wantStatus(t, 202)
	if got := w.do(submitRequest(w.alice, "k2", ticket)).wantStatus(t, 202); got.header.Get("Idempotent-Replayed") != "" {
		t.Error("the refused request took its key")
	}
}

func TestDrainingIsNotReadyAndEndsStreams(t *testing.T) {
	t.Parallel()
	var draining atomic.Bool
	w := newWorld(t, func(_ *onejob.Options, api *httpapi.Options) { api.DrainingFunc = draining.Load })
	base, _ := w.listen(nil)
	w.do(request{method: "GET", path: "/readyz"}).wantStatus(t, 200)
	_, events := w.stream(base, w.submit("k1", ticket))
	w.nextJob(events)
	draining.Store(true)
	for {
		if _, err := nextEvent(events); err != nil {
			break
		}
	}
	got := w.do(request{method: "GET", path: "/readyz"}).wantProblem(t, 503, onejob.CodeDraining)
	if got.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	w.do(request{method: "GET", path: "/livez"}).wantStatus(t, 200)
}

func TestWhatIsRefusedWhileDrainingIsNoErrorInTheLog(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	w := newWorld(t, func(_ *onejob.Options, api *httpapi.Options) {
		api.DrainingFunc, api.Logger = func() bool { return true }, slog.New(slog.NewTextHandler(&log, nil))
	})
	w.do(request{method: "GET", path: "/readyz"}).wantProblem(t, 503, onejob.CodeDraining)
	if said := log.String(); !strings.Contains(said, "level=INFO") || strings.Contains(said, "level=ERROR") {
		t.Errorf("logged %s", said)
	}
}

func TestAFilterThatIsRefusedNamesWhatThereIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for query, want := range map[string]string{
		"/v1/jobs?state=done":           `there is no state "done"; there are queued, running, blocked, succeeded, failed, cancelled`,
		"/v1/costs?by=colour":           `there are no sums by "colour"; there are owner, kind, target, day`,
		"/v1/jobs?created_after=monday": `parameter "created_after" is not an RFC 3339 time, as in 2026-03-01T09:30:00Z`,
	} {
		got := w.get(query).wantProblem(t, 400, onejob.CodeInvalidRequest).text(t, "detail")
		if got != want {
			t.Errorf("%s: %s; want %s", query, got, want)
		}
	}
}

func TestASlowCallerAndHugeHeadersAreCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	base, _ := w.listen(func(s *http.Server) { s.ReadHeaderTimeout, s.ReadTimeout = 100*time.Millisecond, 200*time.Millisecond })
	for name, sent := range map[string]string{
		"a slow head": "POST /v1/jobs HTTP/1.1\r\nHost: x\r\n",
		"a slow body": "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + w.alice + "\r\nIdempotency-Key: slow\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := conn.Write([]byte(sent)); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(conn).ReadString(0); err == nil || strings.Contains(err.Error(), "timeout") {
			t.Errorf("%s: %v; want the connection closed", name, err)
		}
		_ = conn.Close()
	}
	q := request{method: "GET", path: "/v1/limits", key: w.alice, headers: []string{"X-Large", strings.Repeat("x", 32<<10)}}
	if got := w.open(t.Context(), base, q).StatusCode; got != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("32 KiB of headers: status %d; want 431", got)
	}
}
