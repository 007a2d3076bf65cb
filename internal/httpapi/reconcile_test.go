package httpapi_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/httpapi"
)

func TestAnOperatorHasTheProviderAskedAndReadsWhatItSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	_, id := w.unknown("k1", `{"kind":"charge","input":1}`)
	claim := func() int {
		due, err := w.store.ProbeClaim(t.Context(), onejob.ProbeClaimParams{Targets: []string{"acme"}, Lease: time.Second, Max: 9})
		if err != nil {
			t.Fatal(err)
		}
		return len(due)
	}
	attempt, err := w.client.Attempt(t.Context(), "", id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.ProbeRecord(t.Context(), []onejob.ProbeRecordParams{{
		Ref: refOf(attempt), Method: onejob.ProbeSearch, Detail: "the provider answered 503, which settles nothing", After: time.Hour,
	}}); err != nil {
		t.Fatal(err)
	}
	if n := claim(); n != 0 {
		t.Fatalf("%d due within the hour; want none", n)
	}
	path := "/v1/attempts/" + id
	w.post(w.alice, path+"/reconcile", "").wantProblem(t, 403, onejob.CodeForbidden)
	w.post(w.bob, path+"/reconcile", "").wantProblem(t, 403, onejob.CodeForbidden)
	w.post(w.operator, path+"/reconcile", `{"now":true}`).wantProblem(t, 400, onejob.CodeInvalidRequest)
	if got := w.post(w.operator, path+"/reconcile", "").wantStatus(t, 202); got.text(t, "id") != id || got.text(t, "state") != "unknown" {
		t.Errorf("%s", got.body)
	}
	if n := claim(); n != 1 {
		t.Errorf("%d due after reconcile; want 1", n)
	}
	got := w.get(path+"/probes").wantStatus(t, 200)
	if !strings.Contains(string(got.body), `"number":1,"method":"search"`) || !strings.Contains(string(got.body), "answered 503") {
		t.Errorf("probes %s", got.body)
	}
	w.do(request{method: "GET", path: path + "/probes", key: w.bob}).wantProblem(t, 404, onejob.CodeNotFound)
	w.post(w.operator, "/v1/attempts/att_none/reconcile", "").wantProblem(t, 404, onejob.CodeNotFound)

	w.post(w.operator, path+"/resolve", `{"outcome":"succeeded","result":1,"evidence":"seen"}`).wantStatus(t, 200)
	w.post(w.operator, path+"/reconcile", "").wantProblem(t, 409, onejob.CodeAttemptTerminal)
}

// hook reads a report: {"ok": …} settles, anything else does not.
type hook struct{}

func (hook) ReadCallback(_ http.Header, body []byte) (onejob.Answer, error) {
	switch string(body) {
	case `{"ok":true}`:
		return onejob.Answer{Outcome: onejob.OutcomeSucceeded, Body: []byte(`"done"`), ContentType: "application/json"}, nil
	case `{"ok":false}`:
		return onejob.Answer{Outcome: onejob.OutcomeExecutedFailed, Failure: &onejob.Failure{Code: "broken", Message: "it broke"}}, nil
	}
	return onejob.Answer{}, errors.New("no state fits")
}

const hookSecret = onejob.Secret("a secret of the instance")

func newHookWorld(t *testing.T) *world {
	t.Helper()
	return newWorld(t, func(_ *onejob.Options, o *httpapi.Options) {
		o.Secret, o.Callbacks = hookSecret, map[string]httpapi.CallbackReader{"acme": hook{}}
		o.CallbackWait = 2 * time.Second
	})
}

func callbackPath(attempt string) string {
	return "/v1/callbacks/acme/" + onejob.CallbackToken(hookSecret, "acme", attempt)
}

func TestAReportSettlesItsAttemptOnceAndIsADuplicateThen(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	job, id := w.unknown("k1", `{"kind":"charge","input":1}`)
	report := func(body string) answer { return w.post("", callbackPath(id), body) }
	if got := report(`{"progress":3}`).wantStatus(t, 200); got.object(t)["duplicate"] != false {
		t.Errorf("progress: %s", got.body)
	}
	if state := w.get("/v1/attempts/"+id).text(t, "state"); state != "unknown" {
		t.Fatalf("after progress the attempt is %s; want unknown", state)
	}
	if got := report(`{"ok":true}`).wantStatus(t, 200); got.object(t)["duplicate"] != false {
		t.Errorf("first: %s", got.body)
	}
	for _, body := range []string{`{"ok":true}`, `{"ok":false}`} {
		if got := report(body).wantStatus(t, 200); got.object(t)["duplicate"] != true {
			t.Errorf("repeat %s: %s", body, got.body)
		}
	}
	if got := w.get("/v1/jobs/" + job); got.text(t, "state") != "succeeded" || got.text(t, "result") != "done" {
		t.Errorf("job %s", got.body)
	}
	if probes := w.get("/v1/attempts/" + id + "/probes"); strings.Count(string(probes.body), `"method":"callback"`) != 2 {
		t.Errorf("probes %s; want the two reports that came in time", probes.body)
	}
}

func TestAReportThatComesBeforeItsAttemptIsRecordedIsToComeAgain(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.submit("k1", `{"kind":"charge","input":1}`)
	running := w.claim()
	w.post("", callbackPath(running.ID), `{"ok":true}`).wantProblem(t, 409, onejob.CodeRequestInProgress)
	w.finish(running, onejob.OutcomeUnknown, nil)
	w.post("", callbackPath(running.ID), `{"ok":true}`).wantStatus(t, 200)
}

func TestAReportWithATokenThatIsNotItsOwnChangesNothing(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	_, mine := w.unknown("k1", `{"kind":"charge","input":1}`)
	_, other := w.unknown("k2", `{"kind":"charge","input":2}`)
	_, proof, _ := strings.Cut(onejob.CallbackToken(hookSecret, "acme", other), ".")
	for name, path := range map[string]string{
		"AnotherAttempts": "/v1/callbacks/acme/" + mine + "." + proof,
		"NoProof":         "/v1/callbacks/acme/" + mine,
		"AnotherTarget":   "/v1/callbacks/large/" + onejob.CallbackToken(hookSecret, "large", mine),
		"AnotherSecret":   "/v1/callbacks/acme/" + onejob.CallbackToken("a secret of another one", "acme", mine),
		"NoSuchAttempt":   callbackPath("att_none"),
	} {
		got := w.post("", path, `{"ok":true}`)
		if got.status != 404 {
			t.Errorf("%s: %d %s; want 404", name, got.status, got.body)
		}
	}
	w.post("", callbackPath(mine), `{"x":"`+strings.Repeat("x", maxBody)+`"}`).wantProblem(t, 413, onejob.CodePayloadTooLarge)
	for _, id := range []string{mine, other} {
		if state := w.get("/v1/attempts/"+id).text(t, "state"); state != "unknown" {
			t.Errorf("attempt %s is %s; want unknown", id, state)
		}
	}
}
