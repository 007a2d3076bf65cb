package sim_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob/sim"
)

// statusOf charges under a key, with an optional directive in the header.
func statusOf(t *testing.T, srv *sim.Server, key, directive string) int {
	t.Helper()
	r := request(t, srv.URL(), key, `{}`)
	if directive != "" {
		r.Header.Set("Sim-Fault", directive)
	}
	resp, _ := do(t, r)
	return resp.StatusCode
}

func TestAScriptedStepGoesBeforeTheDirectiveAndTheDirectiveBeforeTheDefault(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{Default: sim.Step{Fault: "status", Status: 504}})
	srv.Script(sim.MustParse("status=502")...)
	srv.ScriptFor("k", sim.MustParse("ok", "status=501")...)
	for i, tt := range []struct {
		key, directive string
		want           int
	}{
		{"k", "status=503", 200},
		{"k", "status=503", 501},
		{"other", "status=503", 502},
		{"k", "status=503", 503},
		{"k", "", 504},
		{"k", "nonsense", 400},
	} {
		if got := statusOf(t, srv, tt.key, tt.directive); got != tt.want {
			t.Errorf("request %d (%s, %q): got %d; want %d", i+1, tt.key, tt.directive, got, tt.want)
		}
	}
}

func TestTheDirectiveMayStandInTheQuery(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{})
	r := request(t, srv.URL(), "k", `{}`)
	r.URL.RawQuery = "sim=status:503,retry_after:1s"
	if resp, _ := do(t, r); resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("got %d, %v; want 503 with Retry-After", resp.StatusCode, resp.Header)
	}
}

func TestALookUpTakesOnlyStepsMeantForIt(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{Default: sim.Step{Fault: "status", Status: 504}})
	srv.Script(sim.MustParse("status=503", "status=502,lookup")...)
	if resp, _ := get(t, srv.URL()+"/v1/charges?intent=k"); resp.StatusCode != 502 {
		t.Errorf("the look-up got %d; want 502", resp.StatusCode)
	}
	if resp, _ := get(t, srv.URL()+"/v1/charges?intent=k"); resp.StatusCode != 200 {
		t.Errorf("the next look-up got %d; want 200", resp.StatusCode)
	}
	if got := statusOf(t, srv, "k", ""); got != 503 {
		t.Errorf("the charge got %d; want 503", got)
	}
}

func TestAnIntentMayBeNamedByTheBody(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{IntentFunc: sim.IntentMember("metadata.order")})
	for _, body := range []string{`{"metadata":{"order":"o1"}}`, `{"metadata":{"order":"o1"},"amount":2}`, `{"metadata":{"order":7}}`, `{}`, `[]`} {
		if resp, got := charge(t, srv, "", body); resp.StatusCode != 200 || !strings.Contains(got, `"echo":`+body) {
			t.Errorf("%s: got %d %s; want its echo", body, resp.StatusCode, got)
		}
	}
	for intent, want := range map[string]int{"o1": 2, "7": 1, "": 2, "o2": 0} {
		if got := srv.Executions(intent); got != want {
			t.Errorf("%d executions of %q; want %d", got, intent, want)
		}
	}
}

func TestAnotherProcessDrivesTheProvider(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{})
	order := func(path, body string) int {
		r := request(t, srv.URL(), "", body)
		r.URL.Path = path
		resp, _ := do(t, r)
		return resp.StatusCode
	}
	if got := order("/sim/script", `{"intent":"k","steps":["status=503"]}`); got != http.StatusNoContent {
		t.Fatalf("the script got %d", got)
	}
	for _, body := range []string{`{"steps":["nonsense"]}`, `{"stpes":[]}`, `{`} {
		if got := order("/sim/script", body); got != http.StatusBadRequest {
			t.Errorf("the script %s got %d; want 400", body, got)
		}
	}
	if a, b := statusOf(t, srv, "other", ""), statusOf(t, srv, "k", ""); a != 200 || b != 503 {
		t.Errorf("got %d and %d; want 200 and 503", a, b)
	}
	_, got := get(t, srv.URL()+"/sim/ledger?intent=other")
	if rep := decode(t, got); rep["executions"] != 1.0 || rep["requests"] != 1.0 || at(rep, "entries", 0, "intent") != "other" {
		t.Errorf("the ledger is %s", got)
	}
	if got := order("/sim/reset", ""); got != http.StatusNoContent || srv.Requests() != 0 || srv.Executions("other") != 0 {
		t.Errorf("the reset got %d and left %+v", got, srv.Report())
	}
	if _, got := get(t, srv.URL()+"/sim/faults"); !strings.Contains(got, `"reset_mid_request"`) {
		t.Errorf("the faults are %s", got)
	}
}
