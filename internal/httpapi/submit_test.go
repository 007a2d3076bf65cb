package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/httpapi"
)

func TestAFirstSubmissionIsAcceptedAndARepeatIsTheSameJobAsItIsNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)

	first := w.do(submitRequest(w.alice, "k1", ticket)).wantStatus(t, http.StatusAccepted)
	id := first.text(t, "id")
	for name, want := range map[string]string{"Location": "/v1/jobs/" + id, "Retry-After": "1", "ETag": `"1"`, "Idempotent-Replayed": ""} {
		if got := first.header.Get(name); got != want {
			t.Errorf("first: %s %q; want %q", name, got, want)
		}
	}

	w.finish(w.claim(), onejob.OutcomeSucceeded, jsonResult(`{"ok":true}`))
	again := w.do(submitRequest(w.alice, `"k1"`, "{ \"input\" : {\"text\":\"hello\"}, \"kind\":\"summarise\"}")).wantStatus(t, http.StatusOK)
	if got := again.text(t, "id"); got != id || again.header.Get("Idempotent-Replayed") != "true" || again.header.Get("Location") != "/v1/jobs/"+id {
		t.Errorf("repeat: job %s, headers %v; want job %s, replayed", got, again.header, id)
	}
	if got := again.text(t, "state"); got != "succeeded" {
		t.Errorf("repeat: state %q; want succeeded", got)
	}
}

// IABTechLab/seller-agent#44: a key that was required but decorative made four
// quotes of four calls and took another payload under it.
func TestFourCallsWithOneKeyAreOneJobAndAnotherPayloadIsAConflict(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	ids := map[string]bool{}
	for range 4 {
		ids[w.submit("k1", ticket)] = true
	}
	if len(ids) != 1 {
		t.Errorf("jobs %v; want one", ids)
	}
	for _, body := range []string{
		`{"kind":"summarise","input":{"text":"other"}}`,
		`{"kind":"charge","input":{"text":"hello"}}`,
		`{"kind":"summarise","input":{"text":"hello"},"target":"medium"}`,
		`{"kind":"summarise","input":{"text":"hello"},"deadline":"2100-01-01T00:00:00Z"}`,
	} {
		got := w.do(submitRequest(w.alice, "k1", body)).wantProblem(t, http.StatusConflict, onejob.CodeKeyConflict)
		if !ids[got.text(t, "job_id")] {
			t.Errorf("conflict names job %q; want the first", got.text(t, "job_id"))
		}
	}
}

// alphagov/pay-connector#4460: a unique violation at commit came out as a 500.
func TestADoubleClickIsOneJobAndNeverAnError(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	const clicks = 50
	answers := make([]answer, clicks)
	var all sync.WaitGroup
	for i := range clicks {
		all.Go(func() { answers[i] = w.do(submitRequest(w.alice, "k1", ticket)) })
	}
	all.Wait()
	id, replayed := answers[0].text(t, "id"), 0
	for _, a := range answers {
		a.wantStatus(t, http.StatusAccepted)
		if a.text(t, "id") != id {
			t.Errorf("jobs %s and %s", id, a.text(t, "id"))
		}
		if a.header.Get("Idempotent-Replayed") == "true" {
			replayed++
		}
	}
	if replayed != clicks-1 {
		t.Errorf("%d of %d answers are replays; want all but one", replayed, clicks)
	}
}

// paveg/hono-idempotency#126, arun0009/idempotent#217: one user got another's answer.
func TestTwoOwnersWithOneKeyHaveTwoJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	a := w.do(submitRequest(w.alice, "k1", ticket)).wantStatus(t, http.StatusAccepted)
	b := w.do(submitRequest(w.bob, "k1", `{"kind":"charge","input":1}`)).wantStatus(t, http.StatusAccepted)
	if a.text(t, "id") == b.text(t, "id") || b.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("bob got %s", b.body)
	}
	if b.text(t, "owner") != "bob" {
		t.Errorf("owner %q; want bob", b.text(t, "owner"))
	}
}

// KanishJebaMathewM/Truxify#2869: a validation error was kept under the key, and
// the key of one path answered another.
func TestARefusedRequestLeavesItsKeyFree(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for name, body := range map[string]string{
		"no JSON": `{`, "unknown kind": `{"kind":"nope","input":1}`, "unknown target": `{"kind":"summarise","input":1,"target":"nope"}`,
		"the kind's own check": `{"kind":"strict","input":1}`, "unknown member": `{"kind":"summarise","input":1,"owner":"bob"}`,
		"duplicate": `{"kind":"summarise","input":{"a":1,"a":2}}`, "priority": `{"kind":"summarise","input":1,"priority":101}`,
	} {
		if got := w.do(submitRequest(w.alice, "k1", body)); got.status < 400 || got.status >= 500 {
			t.Errorf("%s: status %d", name, got.status)
		}
	}
	first := w.do(submitRequest(w.alice, "k1", ticket)).wantStatus(t, http.StatusAccepted)
	if first.header.Get("Idempotent-Replayed") != "" {
		t.Error("the key was taken by a request that was refused")
	}
	// The same key on another path is another space: it presses the button.
	w.do(request{method: "POST", path: "/v1/jobs/" + first.text(t, "id") + "/attempts", key: w.alice, headers: []string{"Idempotency-Key", "k1"}}).
		wantStatus(t, http.StatusAccepted)
}

// fullstackhero/dotnet-starter-kit#1333, granit-fx/granit-dotnet#1151: replays
// changed status and carried cookies and hop headers along.
func TestAReplayHasTheStatusBodyAndLocationOfItsJobAndNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	first := w.do(submitRequest(w.alice, "k1", ticket)).wantStatus(t, http.StatusAccepted)
	again := w.do(submitRequest(w.alice, "k1", ticket)).wantStatus(t, first.status)
	first.header.Set("Idempotent-Replayed", "true")
	for name := range again.header {
		if got, want := again.header.Get(name), first.header.Get(name); got != want {
			t.Errorf("replay: %s %q; the first had %q", name, got, want)
		}
	}
	if string(first.body) != string(again.body) {
		t.Errorf("replay %s; the first was %s", again.body, first.body)
	}
	for _, name := range []string{"Set-Cookie", "Connection", "Transfer-Encoding"} {
		if again.header.Get(name) != "" {
			t.Errorf("replay carries %s", name)
		}
	}
}

// KeeperHub/keeperhub#1922: reusing a key after a failure and rotating it while
// running were both wrong, and the 409s could not be told apart.
func TestEveryProblemSaysWhetherToReuseTheKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	running, _ := w.unknown("k1", ticket)
	press := func(path string) answer {
		return w.do(request{method: "POST", path: path, key: w.alice, headers: []string{"Idempotency-Key", "b1"}})
	}
	done := w.submit("k2", ticket)
	w.do(request{method: "POST", path: "/v1/jobs/" + done + "/cancel", key: w.alice}).wantStatus(t, http.StatusOK)

	for _, tt := range []struct {
		name      string
		got       answer
		code      onejob.Code
		retryable bool
		advice    string
	}{
		{"another intent under the key", w.do(submitRequest(w.alice, "k1", `{"kind":"charge","input":1}`)), onejob.CodeKeyConflict, false, "fix_request"},
		{"the button while in doubt", press("/v1/jobs/" + running + "/attempts"), onejob.CodeAttemptUnresolved, false, "wait"},
		{"the result too early", w.do(request{method: "GET", path: "/v1/jobs/" + running + "/result", key: w.alice}), onejob.CodeJobNotFinished, true, "wait"},
		{"the button after the end", press("/v1/jobs/" + done + "/attempts"), onejob.CodeJobTerminal, false, "do_not_resubmit"},
	} {
		tt.got.wantProblem(t, http.StatusConflict, tt.code)
		if p := tt.got.object(t); p["retryable"] != tt.retryable || p["advice"] != tt.advice {
			t.Errorf("%s: retryable %v, advice %v; want %v, %s", tt.name, p["retryable"], p["advice"], tt.retryable, tt.advice)
		}
	}
}

func TestTheProviderGetsTheCallersOwnBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	const input = "{ \"b\" : 1.50 ,\n\"a\":\"\\u00e9\", \"n\": 9007199254740993 }"
	id := w.submit("k1", `{"input": `+input+` ,"kind":"summarise"}`)
	got, err := w.store.JobGet(t.Context(), []onejob.JobGetParams{{ID: id, WithInput: true}})
	if err != nil || got[0].Err != nil {
		t.Fatalf("JobGet: %v, %v", err, got)
	}
	if string(got[0].Job.Input) != input {
		t.Errorf("input %q; want %q", got[0].Job.Input, input)
	}
}

// The order of checks, each against the one after it.
func TestChecksComeInTheDocumentedOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.submit("taken", ticket)
	large := `{"kind":"summarise","input":"` + strings.Repeat("x", maxBody) + `"}`
	for _, tt := range []struct {
		name   string
		q      request
		status int
		code   onejob.Code
	}{
		{"authentication before size", submitRequest("", "k", large), 401, onejob.CodeUnauthenticated},
		{"size before key syntax", submitRequest(w.alice, "", large), 413, onejob.CodePayloadTooLarge},
		{"media type before key syntax", request{method: "POST", path: "/v1/jobs", key: w.alice, body: ticket, headers: []string{"Content-Type", "text/plain"}}, 415, onejob.CodeUnsupportedMedia},
		{"a missing key before a bad body", submitRequest(w.alice, "", `{"kind"`), 400, onejob.CodeKeyMissing},
		{"a bad key before a bad body", submitRequest(w.alice, "k\x7f", `{"kind"`), 400, onejob.CodeKeyInvalid},
		{"body syntax before the key is looked up", submitRequest(w.alice, "taken", `{"kind"`), 400, onejob.CodeInvalidRequest},
		{"canonical form before the key is looked up", submitRequest(w.alice, "taken", `{"kind":"summarise","input":{"a":1,"a":1}}`), 400, onejob.CodePayloadNotCanonical},
		{"a missing member before the key is looked up", submitRequest(w.alice, "taken", `{"kind":"summarise"}`), 400, onejob.CodeInvalidRequest},
		{"the key before the kind", submitRequest(w.alice, "taken", `{"kind":"nope","input":1}`), 409, onejob.CodeKeyConflict},
		{"the key before the target", submitRequest(w.alice, "taken", `{"kind":"summarise","input":1,"target":"nope"}`), 409, onejob.CodeKeyConflict},
		{"the kind last", submitRequest(w.alice, "free", `{"kind":"nope","input":1}`), 422, onejob.CodeInvalidJob},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w.do(tt.q).wantProblem(t, tt.status, tt.code)
		})
	}
}

func TestAnExistingJobAnswersAheadOfQuotaAndDraining(t *testing.T) {
	t.Parallel()
	var draining bool
	now := time.Now()
	admission, err := httpapi.NewAdmission(httpapi.AdmissionOptions{
		Rate: 2, DrainingFunc: func() bool { return draining }, NowFunc: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(o *onejob.Options, api *httpapi.Options) {
		o.AdmitFunc = admission.Admit
		api.DrainingFunc = func() bool { return draining }
	})
	w.submit("k1", ticket)
	w.submit("k2", ticket)
	refused := w.do(submitRequest(w.alice, "k3", ticket)).wantProblem(t, http.StatusTooManyRequests, onejob.CodeQuotaExceeded)
	if refused.header.Get("Retry-After") != "1" || refused.header.Get("X-Should-Retry") != "true" {
		t.Errorf("headers %v; want Retry-After 1 and x-should-retry true", refused.header)
	}
	w.submit("k1", ticket) // a repeat is no new job
	w.do(submitRequest(w.bob, "k3", ticket)).wantStatus(t, http.StatusAccepted)

	now = now.Add(time.Second)
	draining = true
	w.do(submitRequest(w.alice, "k3", ticket)).wantProblem(t, http.StatusServiceUnavailable, onejob.CodeDraining)
	w.submit("k1", ticket)
	draining = false
	w.submit("k3", ticket)
}

func TestAdmissionRemembersABoundedNumberOfOwners(t *testing.T) {
	t.Parallel()
	now := time.Now()
	a, err := httpapi.NewAdmission(httpapi.AdmissionOptions{Rate: 1, MaxOwners: 4, NowFunc: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	if a.Admit(t.Context(), "alice", 0) != nil || a.Admit(t.Context(), "alice", 0) == nil {
		t.Fatal("the second job in one moment must be refused")
	}
	for i := range 100 { // alice is forgotten, and begins afresh
		_ = a.Admit(t.Context(), fmt.Sprint(i), 0)
	}
	if err := a.Admit(t.Context(), "alice", 0); err != nil {
		t.Errorf("after 100 other owners: %v; want to be admitted afresh", err)
	}
}

func TestBodiesAreReadStrictly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	deep := strings.Repeat("[", 65) + strings.Repeat("]", 65)
	justDeep := strings.Repeat("[", 64) + strings.Repeat("]", 64)
	w.submit("deep enough", `{"kind":"summarise","input":`+justDeep+`}`)
	for body, code := range map[string]onejob.Code{
		``:                                 onejob.CodeInvalidRequest,
		`null`:                             onejob.CodeInvalidRequest,
		`[]`:                               onejob.CodeInvalidRequest,
		`{"kind":"summarise","input":1} x`: onejob.CodeInvalidRequest,
		`{"kind":"summarise","input":1}{}`: onejob.CodeInvalidRequest,
		`{"Kind":"summarise","input":1}`:   onejob.CodeInvalidRequest,
		`{"kind":"summarise","input":1,"state":"succeeded"}`:                                   onejob.CodeInvalidRequest,
		`{"kind":"summarise","input":1,"owner":"bob"}`:                                         onejob.CodeInvalidRequest,
		`{"kind":"summarise","input":1,"version":7}`:                                           onejob.CodeInvalidRequest,
		`{"kind":"","input":1}`:                                                                onejob.CodeInvalidRequest,
		`{"kind":7,"input":1}`:                                                                 onejob.CodeInvalidRequest,
		`{"kind":"summarise"}`:                                                                 onejob.CodeInvalidRequest,
		`{"kind":"summarise","input":1,"metadata":[1]}`:                                        onejob.CodeInvalidRequest,
		`{"kind":"summarise","input":1,"run_after":"tomorrow"}`:                                onejob.CodeInvalidRequest,
		`{"kind":"summarise","input":1,"priority":1.5}`:                                        onejob.CodeInvalidRequest,
		`{"kind":"summarise","input":` + deep + `}`:                                            onejob.CodeInvalidRequest,
		`{"kind":"summarise","input":1,"webhook":"https://x"}`:                                 onejob.CodeInvalidRequest,
		`{"kind":"summarise","input":1,"webhook":{}}`:                                          onejob.CodeInvalidRequest,
		`{"kind":"summarise","input":1,"webhook":{"url":"a\u0000"}}`:                           onejob.CodeInvalidRequest,
		`{"kind":"summarise","input":1,"webhook":{"url":"x","secret":"y"}}`:                    onejob.CodeInvalidRequest,
		`{"kind":"summarise","input":1,"webhook":{"url":"` + strings.Repeat("x", 2049) + `"}}`: onejob.CodeInvalidRequest,
		`{"kind":"summarise","input":1,"kind":"summarise"}`:                                    onejob.CodePayloadNotCanonical,
		`{"kind":"summarise","input":1,"metadata":{"a":1,"a":2}}`:                              onejob.CodePayloadNotCanonical,
		`{"kind":"summarise","input":1e400}`:                                                   onejob.CodePayloadNotCanonical,
		"{\"kind\":\"summarise\",\"input\":\"\xff\"}":                                          onejob.CodePayloadNotCanonical,
		`{"kind":"summarise","input":"\ud800"}`:                                                onejob.CodePayloadNotCanonical,
	} {
		got := w.do(submitRequest(w.alice, "k1", body)).wantProblem(t, http.StatusBadRequest, code)
		if strings.Contains(got.text(t, "detail"), "tomorrow") {
			t.Errorf("%s: the problem repeats a value: %s", body, got.body)
		}
	}
	w.submit("null is an input", `{"kind":"summarise","input":null}`)
}

func TestMediaTypeAndEncodingAreChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, tt := range []struct {
		header, value string
		status        int
	}{
		{"Content-Type", "application/json; charset=utf-8", 202},
		{"Content-Type", "application/json; charset=latin1", 415},
		{"Content-Type", "application/x-www-form-urlencoded", 415},
		{"Content-Type", "text/plain", 415},
		{"Content-Type", "", 415},
		{"Content-Encoding", "gzip", 415},
		{"Content-Encoding", "identity", 202},
	} {
		q := submitRequest(w.alice, "k1", ticket)
		q.headers = append(q.headers, tt.header, tt.value)
		if got := w.do(q); got.status != tt.status {
			t.Errorf("%s %q: status %d; want %d", tt.header, tt.value, got.status, tt.status)
		}
	}
	two := submitRequest(w.alice, "k1", ticket).http(t.Context())
	two.Header.Add("Idempotency-Key", "k2")
	if got := w.serve(two); got.status != http.StatusBadRequest {
		t.Errorf("two keys: status %d; want 400", got.status)
	}
}

func TestEachItemOfABatchIsJudgedByItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	taken := w.submit("taken", ticket)
	items := []string{
		`{"idempotency_key":"a","kind":"summarise","input":1}`,
		`{"idempotency_key":"taken","kind":"summarise","input":{"text":"hello"}}`,
		`{"idempotency_key":"taken","kind":"summarise","input":2}`,
		`{"idempotency_key":"a","kind":"summarise","input":2}`,
		`{"idempotency_key":"b","kind":"nope","input":1}`,
		`{"kind":"summarise","input":1}`,
		`{"idempotency_key":"c","kind":"summarise","input":{"x":1,"x":2}}`,
		`{"idempotency_key":"d","kind":"summarise","input":1,"state":"failed"}`,
		"{\"idempotency_key\":\"e\",\"kind\":\"summarise\",\"input\":\"\xff\"}",
		`{"idempotency_key":"f","kind":"charge","input":1}`,
	}
	got := w.do(request{method: "POST", path: "/v1/jobs:batch", key: w.alice, body: `{"items":[` + strings.Join(items, ",\n") + `]}`}).wantStatus(t, 200)
	var batch struct {
		Items []struct {
			Status  int
			Job     *struct{ ID string }
			Problem *struct{ Code string }
		}
	}
	if err := json.Unmarshal(got.body, &batch); err != nil {
		t.Fatalf("%v\n%s", err, got.body)
	}
	want := []string{
		"202 ", "202 ", "409 idempotency-key-conflict", "409 idempotency-key-conflict", "422 invalid-job", "400 idempotency-key-missing",
		"400 payload-not-canonical", "400 invalid-request", "400 payload-not-canonical", "202 ",
	}
	if len(batch.Items) != len(want) {
		t.Fatalf("%d items; want %d", len(batch.Items), len(want))
	}
	for i, item := range batch.Items {
		code := ""
		if item.Problem != nil {
			code = item.Problem.Code
		}
		if s := fmt.Sprint(item.Status, " ", code); s != want[i] || (item.Job == nil) == (item.Problem == nil) {
			t.Errorf("item %d: %q, job %v; want %q", i, s, item.Job, want[i])
		}
	}
	if batch.Items[1].Job == nil || batch.Items[1].Job.ID != taken {
		t.Errorf("item 1 is not job %s", taken)
	}
}

func TestABatchIsBoundedAndWellFormed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *onejob.Options, api *httpapi.Options) { api.MaxBodyBytes = 1 << 20 })
	post := func(body string) answer {
		return w.do(request{method: "POST", path: "/v1/jobs:batch", key: w.alice, body: body})
	}
	item := func(i int) string {
		return fmt.Sprintf(`{"idempotency_key":"k%d","kind":"summarise","input":%d}`, i, i)
	}
	var items []string
	for i := range 1000 {
		items = append(items, item(i))
	}
	got := post(`{"items":[`+strings.Join(items, ",")+`]}`).wantStatus(t, 200)
	if n := strings.Count(string(got.body), `"status":202`); n != 1000 {
		t.Errorf("%d of 1,000 accepted", n)
	}
	items = append(items, item(1000))
	for _, body := range []string{
		`{"items":[` + strings.Join(items, ",") + `]}`,
		`{"items":{}}`, `{"items":[]} x`, `{"items":[],"more":1}`, `[]`, `{"items":[`, `{"Items":[]}`,
	} {
		post(body).wantProblem(t, 400, onejob.CodeInvalidRequest)
	}
	if got := post(`{"items":[]}`).wantStatus(t, 200); string(got.body) != emptyList {
		t.Errorf("an empty batch: %s", got.body)
	}
}

// A thousand repeats would otherwise load and encode a thousand results.
func TestABatchAnswersJobsWithoutTheirResults(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	id := w.succeeded("k1", jsonResult(`{"large":"`+strings.Repeat("x", 10_000)+`"}`))
	item := `{"idempotency_key":"k1",` + ticket[1:]
	got := w.post(w.alice, "/v1/jobs:batch", `{"items":[`+strings.Repeat(item+",", 99)+item+`]}`).wantStatus(t, 200)
	if n := strings.Count(string(got.body), `"id":"`+id+`"`); n != 100 || strings.Contains(string(got.body), `"result"`) || len(got.body) > 100_000 {
		t.Errorf("%d of 100 entries are job %s, in %d bytes; want all, without results", n, id, len(got.body))
	}
	if !strings.Contains(string(w.get("/v1/jobs/"+id).body), `"result":{"large"`) {
		t.Error("the job by itself has no result")
	}
}

func TestABatchBeyondTheBoundOfABodyIsRefusedUnread(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	large := `{"items":[{"idempotency_key":"k1","kind":"summarise","input":"` + strings.Repeat("x", maxBody) + `"}]}`
	w.post(w.alice, "/v1/jobs:batch", large).wantProblem(t, http.StatusRequestEntityTooLarge, onejob.CodePayloadTooLarge)
	unsaid := request{method: "POST", path: "/v1/jobs:batch", key: w.alice, body: large}.http(t.Context())
	unsaid.ContentLength = -1
	w.serve(unsaid).wantProblem(t, http.StatusRequestEntityTooLarge, onejob.CodePayloadTooLarge)
	if got := w.get("/v1/jobs").wantStatus(t, 200); string(got.body) != emptyList {
		t.Errorf("jobs %s; want none", got.body)
	}
}
