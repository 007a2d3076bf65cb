package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/httpapi"
)

func (w *world) get(path string, headers ...string) answer {
	w.t.Helper()
	return w.do(request{method: "GET", path: path, key: w.alice, headers: headers})
}

func (w *world) post(key, path, body string, headers ...string) answer {
	w.t.Helper()
	return w.do(request{method: "POST", path: path, key: key, body: body, headers: headers})
}

func TestAJobShowsItsWholeLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	id := w.submit("k1", `{"kind":"summarise","input":1,"target":"large","metadata":{"order":"o-1"},"priority":3}`)
	a := w.claim()
	w.finish(a, onejob.OutcomeSucceeded, jsonResult(`{"n":1}`))

	got := w.get("/v1/jobs/"+id).wantStatus(t, 200).object(t)
	for member := range got {
		if strings.HasSuffix(member, "_at") {
			if _, err := time.Parse(time.RFC3339, fmt.Sprint(got[member])); err != nil || !strings.HasSuffix(fmt.Sprint(got[member]), "Z") {
				t.Errorf("%s is %v; want RFC 3339 in UTC", member, got[member])
			}
			delete(got, member)
		}
	}
	delete(got, "revision")
	want := map[string]any{
		"id": id, "kind": "summarise", "owner": "alice", "target": "large", "state": "succeeded", "version": 2.0,
		"completed_by": a.ID, "result": map[string]any{"n": 1.0},
		"attempts": []any{map[string]any{"id": a.ID, "number": 1.0, "lane": 0.0, "target": "large", "state": "succeeded"}},
		"cost":     []any{}, "metadata": map[string]any{"order": "o-1"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("job (-want +got):\n%s", diff)
	}
}

func TestABlockedJobSaysWhyAndWhatWouldHelp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	id, attempt := w.unknown("k1", ticket)
	blocked, _ := w.get("/v1/jobs/"+id).wantStatus(t, 200).object(t)["blocked"].(map[string]any)
	if blocked["reason"] != "attempt_unknown" || blocked["attempt_id"] != attempt || !strings.Contains(fmt.Sprint(blocked["detail"]), "no answer came in 60s") {
		t.Errorf("blocked %v", blocked)
	}
	want := []string{"resolve: POST /v1/attempts/" + attempt + "/resolve", "cancel: POST /v1/jobs/" + id + "/cancel"}
	if diff := cmp.Diff(want, actionsOf(blocked)); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
	// The inbox has it.
	inbox := w.get("/v1/attempts?state=unknown").wantStatus(t, 200).object(t)["items"].([]any)
	if len(inbox) != 1 || inbox[0].(map[string]any)["id"] != attempt {
		t.Errorf("inbox %v; want attempt %s", inbox, attempt)
	}
	if items := w.get("/v1/attempts?state=running,starting").object(t)["items"].([]any); len(items) != 0 {
		t.Errorf("running or starting: %v; want none", items)
	}
	w.get("/v1/attempts?state=lost").wantProblem(t, 400, onejob.CodeInvalidRequest)
}

// actionsOf are the calls that would help a blocked job.
func actionsOf(blocked map[string]any) (calls []string) {
	for _, action := range blocked["actions"].([]any) {
		a := action.(map[string]any)
		calls = append(calls, fmt.Sprint(a["name"], ": ", a["method"], " ", a["href"]))
	}
	return calls
}

func TestAJobWithoutACertifiedTargetSaysWhatWouldHelp(t *testing.T) {
	t.Parallel()
	for name, contract := range map[string]*onejob.ContractTerms{"Contract": {Digest: "v1:c"}, "NoContract": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(o *onejob.Options, _ *httpapi.Options) {
				o.Kinds["summarise"] = onejob.Kind{Policy: onejob.Policy{Effect: onejob.EffectNone, Targets: []string{"large", "medium"}, Contract: contract}}
			})
			id := w.submit("k1", ticket)
			a := w.claim()
			done, err := w.store.AttemptFinish(t.Context(), []onejob.AttemptFinishParams{{
				Ref: refOf(a), ClaimToken: a.ClaimToken, Outcome: onejob.OutcomeNotExecuted, Phase: onejob.PhaseNotSent, Next: onejob.NextElsewhere,
			}})
			if err != nil || done[0].Err != nil {
				t.Fatalf("%v, %v", err, done)
			}
			blocked, _ := w.get("/v1/jobs/"+id).wantStatus(t, 200).object(t)["blocked"].(map[string]any)
			if blocked["reason"] != "failover_not_certified" {
				t.Fatalf("blocked %v", blocked)
			}
			want := []string{"retry_primary: POST /v1/jobs/" + id + "/attempts", "verify: POST /v1/contracts/summarise/verify", "waive: POST /v1/waivers", "cancel: POST /v1/jobs/" + id + "/cancel"}
			if contract == nil {
				want = slices.Delete(want, 1, 3)
			}
			if diff := cmp.Diff(want, actionsOf(blocked)); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
			// The first of them does help.
			w.post(w.alice, "/v1/jobs/"+id+"/attempts", `{"target":"large"}`, "Idempotency-Key", "b1").wantStatus(t, 202)
		})
	}
}

func TestAResultIsTheProvidersOwnByteForByte(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	const odd = "{\"text\": \"\\u00e9\\/\",\r\n  \"n\": 1.500, \"big\": 9007199254740993}"
	for i, tt := range []struct {
		contentType, body string
		inline            bool
		served            string
		attachment        bool
	}{
		{"application/json", odd, true, "application/json", false},
		{"application/vnd.acme+json; v=2", odd, true, "application/vnd.acme+json; v=2", false},
		{"application/json", "{broken", false, "application/json", false},
		{"application/json", `{"a":1,"a":2}`, false, "application/json", false},
		{"text/plain; charset=utf-8", "hello", false, "text/plain; charset=utf-8", false},
		{"image/png", "\x89PNG\x00", false, "image/png", false},
		{"text/html", "<script>alert(1)</script>", false, "text/html", true},
		{"image/svg+xml", "<svg onload=alert(1)>", false, "image/svg+xml", true},
		{"", "bytes", false, "application/octet-stream", true},
		{"nonsense\r\nSet-Cookie: x=1", "bytes", false, "application/octet-stream", true},
	} {
		id := w.succeeded(fmt.Sprint("k", i), &onejob.Result{Body: []byte(tt.body), ContentType: tt.contentType})
		raw := w.get("/v1/jobs/"+id+"/result").wantStatus(t, 200)
		if string(raw.body) != tt.body || raw.header.Get("Content-Type") != tt.served || raw.header.Get("X-Content-Type-Options") != "nosniff" || raw.header.Get("Set-Cookie") != "" {
			t.Errorf("%q: got %q as %q", tt.contentType, raw.body, raw.header.Get("Content-Type"))
		}
		if got := strings.HasPrefix(raw.header.Get("Content-Disposition"), "attachment"); got != tt.attachment {
			t.Errorf("%q: attachment %v; want %v", tt.contentType, got, tt.attachment)
		}
		job := w.get("/v1/jobs/"+id).wantStatus(t, 200)
		if tt.inline && !strings.Contains(string(job.body), `"result":`+tt.body) {
			t.Errorf("%q: the job does not hold %q:\n%s", tt.contentType, tt.body, job.body)
		}
		if !tt.inline {
			want := map[string]any{"content_type": tt.served, "size": float64(len(tt.body)), "url": "/v1/jobs/" + id + "/result"}
			if diff := cmp.Diff(want, job.object(t)["result"]); diff != "" {
				t.Errorf("%q (-want +got):\n%s", tt.contentType, diff)
			}
		}
	}
}

func TestAJobWithoutAResultSaysWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	open := w.submit("open", `{"kind":"summarise","input":1,"run_after":"2100-01-01T00:00:00Z"}`)
	got := w.get("/v1/jobs/"+open+"/result").wantProblem(t, 409, onejob.CodeJobNotFinished)
	if got.header.Get("Retry-After") == "" || got.text(t, "job_id") != open {
		t.Errorf("%v %s", got.header, got.body)
	}
	failed := w.submit("failed", ticket)
	w.finish(w.claim(), onejob.OutcomeRefused, nil)
	if s := w.get("/v1/jobs/" + failed).object(t)["error"]; s == nil {
		t.Error("the failed job has no error")
	}
	w.get("/v1/jobs/"+failed+"/result").wantProblem(t, 409, onejob.CodeJobTerminal)

	purged := w.succeeded("purged", jsonResult(`1`))
	w.clock.Advance(time.Hour)
	if n, err := w.store.JobPurge(t.Context(), onejob.JobPurgeParams{PayloadAge: time.Minute, Limit: 10}); err != nil || n == 0 {
		t.Fatalf("JobPurge: %d, %v", n, err)
	}
	w.get("/v1/jobs/"+purged+"/result").wantProblem(t, 410, onejob.CodeResultExpired)
	w.do(submitRequest(w.alice, "purged", ticket)).wantProblem(t, 410, onejob.CodeKeyExpired)
	w.do(submitRequest(w.alice, "purged", `{"kind":"charge","input":1}`)).wantProblem(t, 409, onejob.CodeKeyConflict)
}

func TestTheETagIsTheRevision(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	id := w.submit("k1", ticket)
	tag := w.get("/v1/jobs/"+id).wantStatus(t, 200).header.Get("ETag")
	for _, match := range []string{tag, "W/" + tag, `"77", ` + tag, "*"} {
		got := w.get("/v1/jobs/"+id, "If-None-Match", match).wantStatus(t, http.StatusNotModified)
		if len(got.body) != 0 || got.header.Get("ETag") != tag {
			t.Errorf("If-None-Match %s: %q, ETag %q", match, got.body, got.header.Get("ETag"))
		}
	}
	w.claim()
	got := w.get("/v1/jobs/"+id, "If-None-Match", tag).wantStatus(t, 200)
	if revision := fmt.Sprintf(`"%v"`, got.object(t)["revision"]); got.header.Get("ETag") != revision || revision == tag {
		t.Errorf("ETag %q after %q; want the revision %s", got.header.Get("ETag"), tag, revision)
	}
}

func TestIfMatchIsHonouredOnEveryPostToAJobOrAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	id, attempt := w.unknown("k1", ticket)
	tag := w.get("/v1/jobs/" + id).header.Get("ETag")
	w.clock.Advance(time.Hour)
	ruling := `{"outcome":"failed","proves":"not_executed","evidence":"looked"}`
	for _, stale := range []string{`"0"`, `"1"`, "abc", `W/` + tag, strings.Trim(tag, `"`), `"-1"`} {
		for path, body := range map[string]string{
			"/v1/jobs/" + id + "/cancel": "", "/v1/jobs/" + id + "/unblock": `{"reason":"x"}`,
			"/v1/jobs/" + id + "/attempts": "", "/v1/attempts/" + attempt + "/resolve": ruling,
		} {
			w.post(w.operator, path, body, "If-Match", stale, "Idempotency-Key", "b").wantProblem(t, http.StatusPreconditionFailed, onejob.CodeVersionMismatch)
		}
	}
	w.post(w.operator, "/v1/attempts/"+attempt+"/resolve", ruling, "If-Match", tag).wantStatus(t, 200)
}

func TestPreferWaitHoldsUntilTheJobHasEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, ask := range []func(key string) answer{
		func(key string) answer {
			q := submitRequest(w.alice, key, ticket)
			q.headers = append(q.headers, "Prefer", "respond-async, wait=30")
			return w.do(q)
		},
		func(key string) answer { return w.get("/v1/jobs/"+w.submit(key, ticket), "Prefer", "wait=99") },
	} {
		key := onejob.NewToken()
		answered := make(chan answer, 1)
		go func() { answered <- ask(key) }()
		w.eventually("the job is recorded", func() bool {
			return strings.Contains(string(w.get("/v1/jobs?state=queued&idempotency_key="+key).body), `"id"`)
		})
		a := w.claim()
		select {
		case got := <-answered:
			t.Fatalf("answered while running: %s", got.body)
		default:
		}
		w.finish(a, onejob.OutcomeSucceeded, jsonResult(`"done"`))
		got := (<-answered).wantStatus(t, 200)
		if applied := got.header.Get("Preference-Applied"); got.text(t, "result") != "done" || (applied != "wait=30" && applied != "wait=60") {
			t.Errorf("%s, Preference-Applied %q", got.body, applied)
		}
	}
}

func TestPreferWaitEndsWhenTheJobIsBlockedAndWhenTimeIsUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.unknown("k1", ticket)
	q := submitRequest(w.alice, "k1", ticket)
	q.headers = append(q.headers, "Prefer", "wait=60")
	got := w.do(q).wantStatus(t, http.StatusAccepted)
	if got.text(t, "state") != "blocked" || got.header.Get("Retry-After") == "" {
		t.Errorf("%s", got.body)
	}
	open := w.submit("k2", ticket)
	start := time.Now()
	got = w.get("/v1/jobs/"+open, "Prefer", "wait=1").wantStatus(t, 200)
	if took := time.Since(start); took < 900*time.Millisecond || got.text(t, "state") != "queued" {
		t.Errorf("after %s: %s", took, got.body)
	}
	for _, none := range []string{"wait=0", "wait=-1", "wait=x", "wait", "return=minimal"} {
		if got := w.get("/v1/jobs/"+open, "Prefer", none).wantStatus(t, 200); got.header.Get("Preference-Applied") != "" {
			t.Errorf("Prefer %s was applied", none)
		}
	}
}

func (w *world) eventually(what string, f func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !f() {
		if time.Now().After(deadline) {
			w.t.Fatalf("never: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestListsArePagedNewestFirstWithoutGapsOrRepeats(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	var want []string
	for i := range 25 {
		want = append([]string{w.submit(fmt.Sprint("k", i), ticket)}, want...)
		w.clock.Advance(time.Duration(i%3) * time.Millisecond) // some at the same moment
	}
	var got []string
	pages, cursor := 0, ""
	for {
		page := w.get("/v1/jobs?limit=7"+cursor).wantStatus(t, 200).object(t)
		for _, item := range page["items"].([]any) {
			got = append(got, item.(map[string]any)["id"].(string))
		}
		pages++
		next, ok := page["next_cursor"].(string)
		if !ok || pages > 10 {
			break
		}
		cursor = "&cursor=" + url.QueryEscape(next)
	}
	if pages != 4 || len(got) != len(want) {
		t.Errorf("%d jobs on %d pages; want %d on 4", len(got), pages, len(want))
	}
	seen := map[string]bool{}
	for _, id := range got {
		if seen[id] {
			t.Errorf("job %s is there twice", id)
		}
		seen[id] = true
	}
}

func TestListsFilterAndRefuseWhatTheyDoNotKnow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	done := w.succeeded("k1", jsonResult("1"))
	charge := w.submit("k2", `{"kind":"charge","input":1}`)
	for query, want := range map[string][]string{
		"state=succeeded":                     {done},
		"state=queued,running":                {charge},
		"state=succeeded&state=queued":        {charge, done},
		"kind=charge":                         {charge},
		"idempotency_key=k1":                  {done},
		"target=large":                        {done},
		"created_after=2100-01-01T00:00:00Z":  nil,
		"created_before=2100-01-01T00:00:00Z": {charge, done},
		"error_code=nope":                     nil,
	} {
		var got []string
		page := w.get("/v1/jobs?"+query).wantStatus(t, 200)
		for _, item := range page.object(t)["items"].([]any) {
			got = append(got, item.(map[string]any)["id"].(string))
		}
		if strings.Contains(string(page.body), `"result"`) {
			t.Errorf("%s: a list holds a result", query)
		}
		if len(got) != len(want) || (len(got) == 1 && got[0] != want[0]) {
			t.Errorf("%s: %v; want %v", query, got, want)
		}
	}
	for _, bad := range []string{
		"status=queued", "state=lost", "limit=0", "limit=201", "limit=x", "cursor=x", "created_after=yesterday", "kind=a&kind=b", "%zz", "cursor=MSBqb2JfeA",
	} {
		w.get("/v1/jobs?"+bad).wantProblem(t, 400, onejob.CodeInvalidRequest)
	}
	w.get("/v1/jobs?idempotency_key=%00").wantProblem(t, 400, onejob.CodeKeyInvalid)
}

func TestLimitsSayWhatTheServerTakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *onejob.Options, api *httpapi.Options) {
		api.OwnerRate, api.KeepPayloads = 5, 30*24*time.Hour
	})
	var got map[string]float64
	if err := json.Unmarshal(w.get("/v1/limits").wantStatus(t, 200).body, &got); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{
		"max_body_bytes": maxBody, "max_input_bytes": 1 << 20, "max_key_bytes": 255, "max_depth": 64, "max_batch_items": 1000,
		"max_wait_ms": 60_000, "owner_rate": 5, "keep_payloads_ms": 30 * 24 * 3600 * 1000, "keep_keys_ms": 0,
	} {
		if got[name] != want {
			t.Errorf("%s is %v; want %v", name, got[name], want)
		}
	}
}
