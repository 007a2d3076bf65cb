package httpapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/httpapi"
)

func TestThePressedButtonIsOneAttemptAndIsRefusedWhileInDoubt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	id := w.submit("k1", ticket)
	press := func(key, body string) answer {
		return w.post(w.alice, "/v1/jobs/"+id+"/attempts", body, "Idempotency-Key", key)
	}
	w.post(w.alice, "/v1/jobs/"+id+"/attempts", "").wantProblem(t, 400, onejob.CodeKeyMissing)
	w.post(w.alice, "/v1/jobs/"+id+"/attempts", "{", "Idempotency-Key", "\x01").wantProblem(t, 400, onejob.CodeKeyInvalid)
	press("b1", `{"targets":"x"}`).wantProblem(t, 400, onejob.CodeInvalidRequest)

	first := press("b1", "").wantStatus(t, http.StatusAccepted)
	attempt := first.text(t, "id")
	if first.header.Get("Location") != "/v1/attempts/"+attempt || first.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("headers %v", first.header)
	}
	again := press("b1", "{}").wantStatus(t, http.StatusAccepted)
	if again.text(t, "id") != attempt || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("pressed twice: %s, %v; want attempt %s, replayed", again.body, again.header, attempt)
	}
	press("b1", `{"target":"medium"}`).wantProblem(t, 409, onejob.CodeKeyConflict)
	refused := press("b2", "").wantProblem(t, 409, onejob.CodeAttemptUnresolved)
	if refused.text(t, "attempt_id") != attempt || refused.text(t, "job_id") != id || !strings.Contains(refused.text(t, "detail"), "since") {
		t.Errorf("refused: %s", refused.body)
	}
}

func TestARefusedFallbackSaysWhyAndWhichTargetsThereAre(t *testing.T) {
	t.Parallel()
	c := &counted{}
	w := newWorld(t, func(_ *onejob.Options, api *httpapi.Options) { api.Observer = c })
	id := w.submit("k1", ticket)
	got := w.post(w.alice, "/v1/jobs/"+id+"/attempts", `{"target":"medium"}`, "Idempotency-Key", "b1").wantProblem(t, 409, onejob.CodeFailoverNotCertified)
	if got.text(t, "reason") != onejob.GateNoCertificate || !strings.Contains(string(got.body), `"candidates":[{"target":"medium"`) {
		t.Errorf("%s", got.body)
	}
	if want := "gate summarise medium false no_certificate"; !slices.Contains(c.lines, want) {
		t.Errorf("counted %q; want %q among it", c.lines, want)
	}
}

func TestCancelIsDoneAtOnceWithNothingInDoubtAndAskedForOtherwise(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	queued := w.submit("k1", ticket)
	for range 2 { // safe to repeat
		if got := w.post(w.alice, "/v1/jobs/"+queued+"/cancel", "").wantStatus(t, 200); got.text(t, "state") != "cancelled" {
			t.Errorf("%s", got.body)
		}
	}
	doubtful, _ := w.unknown("k2", ticket)
	got := w.post(w.alice, "/v1/jobs/"+doubtful+"/cancel", "{}").wantStatus(t, 202)
	if got.text(t, "state") != "blocked" || got.text(t, "cancel_requested_at") == "" || got.header.Get("Location") != "/v1/jobs/"+doubtful {
		t.Errorf("%s", got.body)
	}
	done := w.succeeded("k3", jsonResult("1"))
	w.post(w.alice, "/v1/jobs/"+done+"/cancel", "").wantProblem(t, 409, onejob.CodeJobTerminal)
	w.post(w.alice, "/v1/jobs/"+queued+"/cancel", `{"why":"x"}`).wantProblem(t, 400, onejob.CodeInvalidRequest)
}

func TestUnblockNeedsAReasonAndNothingInDoubt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	id, attempt := w.unknown("k1", ticket)
	unblock := func(body string) answer { return w.post(w.operator, "/v1/jobs/"+id+"/unblock", body) }
	for _, body := range []string{``, `{}`, `{"reason":""}`, `{"reason":"` + strings.Repeat("x", 4097) + `"}`} {
		unblock(body).wantProblem(t, 400, onejob.CodeInvalidRequest)
	}
	unblock(`{"reason":"looked"}`).wantProblem(t, 409, onejob.CodeAttemptUnresolved)

	w.clock.Advance(time.Hour)
	w.post(w.operator, "/v1/attempts/"+attempt+"/resolve", `{"outcome":"cancelled","evidence":"told to stop"}`).wantStatus(t, 200)
	if got := w.get("/v1/jobs/" + id).object(t)["blocked"].(map[string]any); got["reason"] != "needs_operator" || !strings.Contains(fmt.Sprint(got["actions"]), "/unblock") {
		t.Errorf("blocked %v", got)
	}
	w.clock.Advance(time.Second)
	if got := unblock(`{"reason":"looked"}`).wantStatus(t, 200); got.text(t, "state") == "blocked" {
		t.Errorf("%s", got.body)
	}
}

func TestARulingIsTranslatedAndWhatContradictsItselfIsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		body    string
		outcome string // of the ruling; empty: refused with 422
		state   string // of the attempt
		result  string // of the job
	}{
		{`{"outcome":"succeeded","evidence":"seen","result":{"a": 1}}`, "succeeded", "succeeded", `{"a": 1}`},
		{`{"outcome":"succeeded","evidence":"seen","result":null}`, "succeeded", "succeeded", `null`},
		{`{"outcome":"succeeded","evidence":"seen","result":"text"}`, "succeeded", "succeeded", `"text"`},
		{`{"outcome":"succeeded","evidence":"seen","result_lost":true}`, "result_lost", "succeeded", `null`},
		{`{"outcome":"succeeded","evidence":"seen","result_lost":true,"result":null}`, "result_lost", "succeeded", `null`},
		{`{"outcome":"failed","proves":"not_executed","evidence":{"ticket":"T-1"}}`, "not_executed", "failed", ``},
		{`{"outcome":"failed","proves":"executed_failed","evidence":"seen"}`, "executed_failed", "failed", ``},
		{`{"outcome":"cancelled","evidence":"seen"}`, "cancelled", "cancelled", ``},

		{`{"outcome":"succeeded","evidence":"seen"}`, "", "", ""},
		{`{"outcome":"succeeded","evidence":"seen","result":1,"result_lost":true}`, "", "", ""},
		{`{"outcome":"succeeded","evidence":"seen","result":1,"proves":"not_executed"}`, "", "", ""},
		{`{"outcome":"failed","evidence":"seen"}`, "", "", ""},
		{`{"outcome":"failed","evidence":"seen","proves":"unknown"}`, "", "", ""},
		{`{"outcome":"failed","evidence":"seen","proves":"not_executed","result":1}`, "", "", ""},
		{`{"outcome":"cancelled","evidence":"seen","result_lost":true}`, "", "", ""},
		{`{"outcome":"unknown","evidence":"seen"}`, "", "", ""},
		{`{"outcome":"failed","proves":"not_executed"}`, "", "", ""},
		{`{"outcome":"failed","proves":"not_executed","evidence":""}`, "", "", ""},
		{`{"outcome":"failed","proves":"not_executed","evidence":7}`, "", "", ""},
	} {
		t.Run(tt.body, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			id, attempt := w.unknown("k1", `{"kind":"charge","input":1}`)
			w.clock.Advance(time.Hour)
			got := w.post(w.operator, "/v1/attempts/"+attempt+"/resolve", tt.body)
			if tt.outcome == "" {
				got.wantProblem(t, 422, onejob.CodeInvalidResolution)
				if state := w.get("/v1/attempts/"+attempt).text(t, "state"); state != "unknown" {
					t.Errorf("after a refused ruling the attempt is %s", state)
				}
				return
			}
			got.wantStatus(t, 200)
			ruling, _ := got.object(t)["ruling"].(map[string]any)
			if got.text(t, "state") != tt.state || ruling["outcome"] != tt.outcome || !strings.Contains(fmt.Sprint(ruling["by"]), "alice") {
				t.Errorf("attempt %s", got.body)
			}
			job := w.get("/v1/jobs/" + id)
			if tt.result != "" && !strings.Contains(string(job.body), `"result":`+tt.result+"}") {
				t.Errorf("job %s; want result %s", job.body, tt.result)
			}
			if lost, _ := job.object(t)["result_lost"].(bool); lost != (tt.outcome == "result_lost") {
				t.Errorf("result_lost %v", lost)
			}
			w.post(w.operator, "/v1/attempts/"+attempt+"/resolve", tt.body).wantProblem(t, 409, onejob.CodeAttemptTerminal)
		})
	}
}

func TestNobodyRulesBeforeTheEndOfQuarantineNorWhatIsNotUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	const ruling = `{"outcome":"failed","proves":"not_executed","evidence":"seen"}`
	w.submit("k0", ticket)
	running := w.claim()
	w.post(w.operator, "/v1/attempts/"+running.ID+"/resolve", ruling).wantProblem(t, 409, onejob.CodeAttemptNotUnknown)
	_, attempt := w.unknown("k1", ticket)
	got := w.post(w.operator, "/v1/attempts/"+attempt+"/resolve", ruling).wantProblem(t, 409, onejob.CodeQuarantined)
	if after := got.header.Get("Retry-After"); after == "" || got.header.Get("X-Should-Retry") != "false" {
		t.Errorf("Retry-After %q, x-should-retry %q", after, got.header.Get("X-Should-Retry"))
	}
	w.post(w.operator, "/v1/attempts/"+attempt+"/resolve", `{"outcome":"succeeded","result":1,"evidence":"seen"}`).wantStatus(t, 200)
	w.post(w.operator, "/v1/attempts/"+attempt+"/resolve", `{"outcome":"succeeded","result":1,"result":2,"evidence":"seen"}`).wantProblem(t, 400, onejob.CodePayloadNotCanonical)
}

func TestAnAttemptShowsItsEvidenceAndNeverItsClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	id := w.submit("k1", ticket)
	a := w.claim()
	w.finish(a, onejob.OutcomeUnknown, nil)
	got := w.get("/v1/attempts/"+a.ID).wantStatus(t, 200)
	doc := got.object(t)
	evidence, _ := doc["evidence"].(map[string]any)
	if doc["state"] != "unknown" || doc["job_id"] != id || doc["phase"] != "sent" || doc["outcome"] != "unknown" || evidence["bytes_written"] != 120.0 || doc["provider_key"] == "" || doc["send_by"] == nil {
		t.Errorf("%s", got.body)
	}
	for _, answer := range []answer{got, w.get("/v1/jobs/" + id + "/attempts"), w.get("/v1/attempts")} {
		if s := string(answer.body); strings.Contains(s, a.ClaimToken) || strings.Contains(s, "claim") {
			t.Errorf("the claim is on the wire: %s", s)
		}
	}
}

// counted is an observer that remembers.
type counted struct {
	httpapi.Observer
	mu    sync.Mutex
	lines []string
}

func (c *counted) add(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, fmt.Sprintf(format, args...))
}

func (c *counted) RequestServed(method, route string, status int, _ time.Duration) {
	c.add("%s %s %d", method, route, status)
}

func (c *counted) GateDecided(kind, target string, allowed bool, reason string) {
	c.add("gate %s %s %t %s", kind, target, allowed, reason)
}
func (c *counted) JobSubmitted(kind, result string)             { c.add("%s %s", kind, result) }
func (c *counted) UnknownResolved(by string, as onejob.Outcome) { c.add("%s %s", by, as) }

func TestWhatHappensIsCountedUnderPatternsAndNeverUnderPaths(t *testing.T) {
	t.Parallel()
	c := &counted{}
	w := newWorld(t, func(_ *onejob.Options, api *httpapi.Options) { api.Observer = c })
	id, attempt := w.unknown("k1", ticket)
	w.submit("k1", ticket)
	w.do(submitRequest(w.alice, "k1", `{"kind":"charge","input":1}`))
	w.post(w.operator, "/v1/attempts/"+attempt+"/resolve", `{"outcome":"succeeded","result":1,"evidence":"seen"}`)
	w.do(request{method: "BREW", path: "/v1/" + id, key: w.alice})
	all := strings.Join(c.lines, "\n")
	for _, want := range []string{
		"summarise new", "summarise replayed", "charge conflict", "operator succeeded",
		"POST /v1/jobs 202", "POST /v1/jobs 409", "POST /v1/attempts/{id}/resolve 200", "other none 404",
	} {
		if !strings.Contains(all+"\n", want+"\n") {
			t.Errorf("%q was not counted:\n%s", want, all)
		}
	}
	if strings.Contains(all, id) || strings.Contains(all, attempt) {
		t.Errorf("an id is a label:\n%s", all)
	}
}
