package httpapi_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/httpapi"
)

// refusedReports counts what is refused.
type refusedReports struct {
	httpapi.Observer
	mu sync.Mutex
	by map[string]int
}

func (o *refusedReports) CallbackRefused(reason string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.by[reason]++
}

func (*refusedReports) ProbeAnswered(string, onejob.ProbeMethod, onejob.Outcome) {}
func (*refusedReports) RequestServed(string, string, int, time.Duration)         {}
func (*refusedReports) JobSubmitted(string, string)                              {}
func (*refusedReports) AttemptStarted(string)                                    {}
func (*refusedReports) AttemptEnded(string, onejob.Outcome, time.Duration)       {}
func (*refusedReports) UnknownResolved(string, onejob.Outcome)                   {}

// reportFrom sends a report from an address.
func (w *world) reportFrom(address, path, body string) *httptest.ResponseRecorder {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, path, strings.NewReader(body))
	r.RemoteAddr = address
	r.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	return rec
}

func TestForgedReportsAreHeldToARateAndGenuineOnesNever(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	counted := &refusedReports{by: map[string]int{}}
	now := &clock{now: time.Now()}
	w := newWorld(t, func(_ *onejob.Options, o *httpapi.Options) {
		o.Secret, o.Callbacks = hookSecret, map[string]httpapi.CallbackReader{"acme": hook{}}
		o.Logger, o.Observer, o.NowFunc = slog.New(slog.NewTextHandler(&log, nil)), counted, now.Now
	})
	_, id := w.unknown("k1", `{"kind":"charge","input":1}`)
	const here = "192.0.2.7:4000"
	statuses := map[int]int{}
	for i := range 50 {
		rec := w.reportFrom(here, fmt.Sprintf("/v1/callbacks/acme/%s.forged%d", id, i), `{"ok":true}`)
		statuses[rec.Code]++
		if after := rec.Header().Get("Retry-After"); rec.Code == 429 && after != "1" {
			t.Errorf("a 429 says Retry-After %q; want 1", after)
		}
	}
	if statuses[404] != 20 || statuses[429] != 30 || counted.by["token"] != 20 || counted.by["rate"] != 30 {
		t.Errorf("50 forged reports were answered %v and counted %v; want 20 times 404, then 429", statuses, counted.by)
	}
	if n := strings.Count(log.String(), "do not prove"); n != 1 {
		t.Errorf("%d lines were logged; want one for all of them:\n%s", n, log.String())
	}
	for _, address := range []string{"192.0.2.8:4000", "[2001:db8::1]:4000"} {
		if rec := w.reportFrom(address, "/v1/callbacks/acme/"+id+".forged", `{}`); rec.Code != 404 {
			t.Errorf("from %s: %d; want 404, another address is another's", address, rec.Code)
		}
	}
	now.Advance(2 * time.Minute)
	if rec := w.reportFrom(here, "/v1/callbacks/acme/"+id+".forged", `{}`); rec.Code != 404 {
		t.Errorf("two minutes later: %d; want 404", rec.Code)
	}
	if state := w.get("/v1/attempts/"+id).text(t, "state"); state != "unknown" {
		t.Fatalf("the attempt is %s; want it untouched", state)
	}
	for range 30 {
		w.reportFrom(here, "/v1/callbacks/acme/none", `{}`)
	}
	if rec := w.reportFrom(here, callbackPath(id), `{"ok":true}`); rec.Code != 200 {
		t.Errorf("the provider's own report from that address: %d %s; want 200", rec.Code, rec.Body)
	}
}

// signed reads reports that say they are signed.
type signed struct{}

func (signed) ReadCallback(header http.Header, body []byte) (onejob.Answer, error) {
	if header.Get("X-Signature") != "good" {
		return onejob.Answer{}, onejob.ErrForged
	}
	return hook{}.ReadCallback(header, body)
}

func TestAReportThatIsNotSignedAsTheTargetSignsIsNotWrittenDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *onejob.Options, o *httpapi.Options) {
		o.Secret, o.Callbacks = hookSecret, map[string]httpapi.CallbackReader{"acme": signed{}}
	})
	_, id := w.unknown("k1", `{"kind":"charge","input":1}`)
	w.post("", callbackPath(id), `{"ok":true}`).wantProblem(t, 401, onejob.CodeUnauthenticated)
	if probes := w.get("/v1/attempts/" + id + "/probes"); strings.Contains(string(probes.body), "callback") {
		t.Errorf("probes %s; want no trace of it", probes.body)
	}
	if state := w.get("/v1/attempts/"+id).text(t, "state"); state != "unknown" {
		t.Errorf("the attempt is %s; want unknown", state)
	}
	w.do(request{method: "POST", path: callbackPath(id), body: `{"ok":true}`, headers: []string{"X-Signature", "good"}}).wantStatus(t, 200)
}

// signals tells when a report is read.
type signals struct {
	hook
	arrived chan struct{}
}

func (s signals) ReadCallback(header http.Header, body []byte) (onejob.Answer, error) {
	s.arrived <- struct{}{}
	return s.hook.ReadCallback(header, body)
}

func TestAReportWaitsForTheCallThatItIsAbout(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{}, 1)
	w := newWorld(t, func(_ *onejob.Options, o *httpapi.Options) {
		o.Secret, o.Callbacks = hookSecret, map[string]httpapi.CallbackReader{"acme": signals{arrived: arrived}}
	})
	w.submit("k1", `{"kind":"charge","input":1}`)
	running := w.claim()
	reported := make(chan answer, 1)
	go func() { reported <- w.post("", callbackPath(running.ID), `{"ok":true}`) }()
	<-arrived
	w.finish(running, onejob.OutcomeUnknown, nil)
	(<-reported).wantStatus(t, 200)
	if state := w.get("/v1/attempts/"+running.ID).text(t, "state"); state != "succeeded" {
		t.Errorf("the attempt is %s; want succeeded", state)
	}
}

// toldOf keeps what reports did.
type toldOf struct {
	refusedReports
	events []string
}

func (o *toldOf) ProbeAnswered(target string, method onejob.ProbeMethod, outcome onejob.Outcome) {
	o.events = append(o.events, target+" "+string(method)+" "+string(outcome))
}
func (o *toldOf) RaceLost(target string)         { o.events = append(o.events, target+" lost") }
func (o *toldOf) Incident(kind onejob.EventKind) { o.events = append(o.events, string(kind)) }

// Attempt 1 was ruled not to have happened, attempt 2 succeeded, and then attempt 1's
// report came and overwrote the result (Pulsefy/Soter#263).
func TestALateReportOfAnEarlierAttemptOverwritesNothingAndIsAnIncident(t *testing.T) {
	t.Parallel()
	counted := &toldOf{refusedReports: refusedReports{by: map[string]int{}}}
	w := newWorld(t, func(_ *onejob.Options, o *httpapi.Options) {
		o.Secret, o.Callbacks, o.Observer = hookSecret, map[string]httpapi.CallbackReader{"acme": hook{}}, counted
	})
	job, first := w.unknown("k1", `{"kind":"charge","input":1}`)
	w.clock.Advance(time.Hour)
	w.post(w.operator, "/v1/attempts/"+first+"/resolve", `{"outcome":"failed","proves":"not_executed","evidence":"not on the statement","acknowledge_risk":true}`).wantStatus(t, 200)
	w.clock.Advance(time.Hour)
	w.finish(w.claim(), onejob.OutcomeSucceeded, &onejob.Result{Body: []byte(`"second"`), ContentType: "application/json"})
	before := w.get("/v1/jobs/" + job)
	w.post("", callbackPath(first), `{"ok":true}`).wantStatus(t, 200)
	after := w.get("/v1/jobs/" + job)
	if after.text(t, "state") != "succeeded" || after.text(t, "result") != "second" || after.text(t, "completed_by") != before.text(t, "completed_by") {
		t.Errorf("the job is %s; want its first result", after.body)
	}
	if state := w.get("/v1/attempts/"+first).text(t, "state"); state != "discarded" {
		t.Errorf("attempt 1 is %s; want discarded", state)
	}
	want := "acme callback succeeded, acme lost, duplicate_effect"
	if got := strings.Join(counted.events, ", "); got != want {
		t.Errorf("told of %q; want %q", got, want)
	}
}
