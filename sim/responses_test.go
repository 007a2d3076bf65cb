package sim_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

const responseBody = `{"model":"gpt-x","background":true,"store":true,"input":[{"role":"user","content":"hello"}]}`

// handClock is moved by the test.
type handClock struct{ now time.Time }

// made asks for a response in the background and returns its id.
func made(t *testing.T, srv *sim.Server) string {
	t.Helper()
	resp, got := post(t, srv, "/v1/responses", responseBody)
	id, _ := got["id"].(string)
	if resp.StatusCode != 200 || !strings.HasPrefix(id, "resp_") || got["status"] != "queued" || got["usage"] != nil {
		t.Fatalf("made %d %v; want a queued response", resp.StatusCode, got)
	}
	return id
}

func looked(t *testing.T, srv *sim.Server, id string) map[string]any {
	t.Helper()
	_, text := get(t, srv.URL()+"/v1/responses/"+id)
	return decode(t, text)
}

func TestABackgroundResponseIsQueuedThenAtWorkThenEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ step, status string }{
		{"accepted=10s", "completed"},
		{"accepted=10s,ends=failed", "failed"},
		{"accepted=10s,ends=cancelled", "cancelled"},
		{"accepted=10s,ends=incomplete", "incomplete"},
	} {
		clock := &handClock{now: time.Unix(1_800_000_000, 0)}
		srv := sim.ForTest(t, sim.Options{NowFunc: func() time.Time { return clock.now }})
		srv.Script(sim.MustParse(c.step)...)
		id := made(t, srv)
		for _, want := range []string{"queued", "in_progress", c.status} {
			if got := looked(t, srv, id); got["status"] != want || got["id"] != id {
				t.Errorf("%s: got %v; want it %s", c.step, got, want)
			}
			clock.now = clock.now.Add(5 * time.Second)
		}
		if got := looked(t, srv, id); c.status == "completed" && (at(got, "output", 0, "content", 0, "text") != "hello" || at(got, "usage", "output_tokens") == nil) {
			t.Errorf("%s: got %v; want the output and its usage", c.step, got)
		}
		if srv.TotalExecutions() != 1 {
			t.Errorf("%s: %d executions; want 1", c.step, srv.TotalExecutions())
		}
	}
}

func TestACancelEndsABackgroundResponseUnlessItIsDeaf(t *testing.T) {
	t.Parallel()
	for step, want := range map[string]string{"accepted=10s": "cancelled", "accepted=10s,deaf": "completed"} {
		clock := &handClock{now: time.Unix(1_800_000_000, 0)}
		file := filepath.Join(t.TempDir(), "ledger")
		srv := sim.ForTest(t, sim.Options{NowFunc: func() time.Time { return clock.now }, LedgerFile: file})
		srv.Script(sim.MustParse(step)...)
		id := made(t, srv)
		if resp, got := post(t, srv, "/v1/responses/"+id+"/cancel", ""); resp.StatusCode != 200 || got["status"] != "cancelled" {
			t.Errorf("%s: the cancel is answered %d %v; want it acknowledged", step, resp.StatusCode, got)
		}
		clock.now = clock.now.Add(time.Minute)
		if got := looked(t, srv, id); got["status"] != want {
			t.Errorf("%s: a minute later %v; want %s", step, got["status"], want)
		}
		if err := srv.Close(); err != nil {
			t.Fatal(err)
		}
		again := sim.ForTest(t, sim.Options{NowFunc: func() time.Time { return clock.now }, LedgerFile: file})
		if got := looked(t, again, id); got["status"] != want || again.TotalExecutions() != 1 {
			t.Errorf("%s: after a restart %v after %d executions; want %s after 1", step, got["status"], again.TotalExecutions(), want)
		}
	}
}

func TestAPlainChargeIsCancelledByItsID(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{})
	srv.Script(sim.MustParse("accepted=1h")...)
	resp, got := post(t, srv, "/v1/charges", `{}`)
	id, _ := got["id"].(string)
	if resp.StatusCode != http.StatusAccepted || got["status"] != "processing" {
		t.Fatalf("accepted %d %v", resp.StatusCode, got)
	}
	if _, got := post(t, srv, "/v1/charges/"+id+"/cancel", ""); got["status"] != "cancelled" {
		t.Errorf("the cancel is answered %v", got)
	}
	if _, text := get(t, srv.URL()+"/v1/charges/"+id); at(decode(t, text), "status") != "cancelled" || srv.TotalExecutions() != 1 {
		t.Errorf("looked up %s after %d executions", text, srv.TotalExecutions())
	}
}

func TestAForegroundResponseIsAnsweredAtOnceAndABadOneRefused(t *testing.T) {
	t.Parallel()
	srv := sim.ForTest(t, sim.Options{})
	if _, got := post(t, srv, "/v1/responses", `{"model":"m","input":"hello"}`); got["status"] != "completed" || at(got, "output", 0, "content", 0, "text") != "hello" {
		t.Errorf("got %v", got)
	}
	for _, body := range []string{`{`, `{"model":"m"}`, `{"input":"x"}`, `{"model":"m","input":"x","stream":true}`, `{"model":"m","input":"x","background":true,"store":false}`} {
		if resp, got := post(t, srv, "/v1/responses", body); resp.StatusCode != 400 || at(got, "error", "type") != "invalid_request_error" {
			t.Errorf("%s: got %d %v; want a refusal", body, resp.StatusCode, got)
		}
	}
	for _, method := range []string{"GET", "POST"} {
		r := request(t, srv.URL(), "k", "")
		r.Method, r.URL.Path = method, "/v1/responses/resp_none"
		if method == "POST" {
			r.URL.Path += "/cancel"
		}
		if resp, text := do(t, r); resp.StatusCode != 404 {
			t.Errorf("%s of an unknown id: %d %s; want 404", method, resp.StatusCode, text)
		}
	}
	if srv.TotalExecutions() != 1 {
		t.Errorf("%d executions; want 1", srv.TotalExecutions())
	}
}
