package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/httpapi"
)

// ids are what the routes with an id in them are asked for.
type ids struct{ job, attempt, delivery, endpoint string }

// someIDs are of nothing that exists.
var someIDs = ids{"job_1", "att_1", "msg_1", "ep_1"}

// fill puts the id that a pattern is for into it.
func (i ids) fill(path string) string {
	id := i.job
	for prefix, of := range map[string]string{"/v1/attempts/": i.attempt, "/v1/deliveries/": i.delivery, "/v1/webhook-endpoints/": i.endpoint} {
		if strings.HasPrefix(path, prefix) {
			id = of
		}
	}
	return strings.ReplaceAll(path, "{id}", id)
}

// replacer puts other ids in the place of these.
func (i ids) replacer(other ids) *strings.Replacer {
	return strings.NewReplacer(i.job, other.job, i.attempt, other.attempt, i.delivery, other.delivery, i.endpoint, other.endpoint)
}

// bodies are what each POST needs to get past its syntax.
var bodies = map[string]string{
	"/v1/jobs": ticket, "/v1/jobs:batch": `{"items":[]}`,
	"/v1/jobs/{id}/unblock":       `{"reason":"looked at"}`,
	"/v1/attempts/{id}/resolve":   `{"outcome":"failed","proves":"not_executed","evidence":"looked at"}`,
	"/v1/incidents/{id}:close":    `{"note":"looked at"}`,
	"/v1/attempts:claim":          `{"kinds":["charge"],"max":1,"lease_ms":30000}`,
	"/v1/attempts/{id}:heartbeat": `{"claim_token":"t"}`,
	"/v1/attempts/{id}:release":   `{"claim_token":"t"}`,
	"/v1/attempts/{id}:finish":    `{"claim_token":"t","outcome":"unknown"}`,
}

func everyRoute(rt httpapi.Route, key string, i ids) request {
	return request{method: rt.Method, path: i.fill(rt.Path), key: key, body: bodies[rt.Path], headers: []string{"Idempotency-Key", "route " + rt.Path}}
}

func withMetrics(_ *onejob.Options, api *httpapi.Options) {
	api.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "up 1") })
}

func TestWithoutACredentialOnlyProbesGetIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withMetrics)
	none, err := httpapi.New(httpapi.Options{Client: w.client}) // nothing is configured
	if err != nil {
		t.Fatal(err)
	}
	for _, rt := range append(httpapi.Routes(), httpapi.Route{Method: "GET", Path: "/nope"}, httpapi.Route{Method: "DELETE", Path: "/livez"}) {
		want := http.StatusUnauthorized
		if rt.Method == "GET" && (rt.Path == "/livez" || rt.Path == "/readyz") {
			want = http.StatusOK
		}
		if strings.HasPrefix(rt.Path, "/v1/callbacks/") {
			want = http.StatusNotFound // its token is its credential, and this one is not genuine
		}
		for _, key := range []string{"", "oj_", w.alice + "x", "oj_' OR '1'='1' --", strings.Repeat("x", 10_000)} {
			q := everyRoute(rt, key, someIDs)
			if got := w.do(q); got.status != want {
				t.Errorf("%s %s with %.12q: status %d; want %d", rt.Method, rt.Path, key, got.status, want)
			}
			rec := httptest.NewRecorder()
			none.ServeHTTP(rec, q.http(t.Context()))
			if rec.Code != want {
				t.Errorf("nothing configured: %s %s with %.12q: status %d; want %d", rt.Method, rt.Path, key, rec.Code, want)
			}
		}
		for _, path := range []string{"//livez", "/livez/../v1/jobs", "/./v1/jobs"} {
			if got := w.do(request{method: "GET", path: path}); got.status != http.StatusUnauthorized {
				t.Errorf("GET %s: status %d; want 401", path, got.status)
			}
		}
	}
}

// Broken object level authorisation: every route with an id, as another owner.
func TestAnotherOwnersIDAnswersExactlyAsOneThatDoesNotExist(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWebhooks)
	job, attempt := w.unknown("k1", ticket)
	theirs := ids{job, attempt, w.deliveryAbout(job), "ep_bob"}
	noJob := onejob.NewJobID(7, w.clock.Now())
	none := ids{noJob, onejob.NewAttemptID(noJob, 1), onejob.NewDeliveryID(7), "ep_nobody"}
	stranger := w.key("mallory", onejob.RoleOperator, false)
	sub := w.key("alice", onejob.RoleOperator, true) // alice/x is not alice

	for _, rt := range httpapi.Routes() {
		if !strings.Contains(rt.Path, "{id}") {
			continue
		}
		for name, q := range map[string]request{
			"plain": {}, "a ruling that contradicts itself": {body: `{"outcome":"failed","evidence":"x"}`}, "If-Match": {headers: []string{"If-Match", `"999"`}},
			"no ETag of ours": {headers: []string{"If-Match", "abc"}}, "Prefer": {headers: []string{"Prefer", "wait=5"}},
		} {
			if q.body != "" && !strings.HasSuffix(rt.Path, "/resolve") {
				continue
			}
			ask := func(key string, i ids, more ...string) answer {
				r := everyRoute(rt, key, i)
				if q.body != "" {
					r.body = q.body
				}
				r.headers = append(append(r.headers, q.headers...), more...)
				return w.do(r)
			}
			missing := ask(stranger, none)
			missing.wantProblem(t, http.StatusNotFound, onejob.CodeNotFound)
			for who, foreign := range map[string]answer{
				"a stranger":  ask(stranger, theirs),
				"a sub-owner": ask(sub, theirs, "Onejob-Owner", "x"),
			} {
				same := theirs.replacer(none).Replace(string(foreign.body))
				if diff := cmp.Diff(string(missing.body), same); diff != "" || foreign.status != missing.status {
					t.Errorf("%s %s as %s, %s: status %d (missing: %d) (-missing +foreign):\n%s", rt.Method, rt.Path, who, name, foreign.status, missing.status, diff)
				}
				if diff := cmp.Diff(without(missing.header, "Content-Length"), without(foreign.header, "Content-Length")); diff != "" {
					t.Errorf("%s %s as %s: headers (-missing +foreign):\n%s", rt.Method, rt.Path, who, diff)
				}
			}
		}
	}
	for _, path := range []string{"/v1/jobs", "/v1/attempts", "/v1/jobs?idempotency_key=k1", "/v1/deliveries", "/v1/deliveries?job_id=" + job} {
		if got := w.do(request{method: "GET", path: path, key: stranger}).wantStatus(t, 200); string(got.body) != emptyList {
			t.Errorf("GET %s as a stranger: %s", path, got.body)
		}
	}
	superseding := w.do(submitRequest(stranger, "k9", `{"kind":"summarise","input":1,"supersedes":"`+job+`"}`))
	if strings.Contains(string(superseding.body), "attempt") || superseding.status < 400 {
		t.Errorf("superseding another owner's job: %d %s", superseding.status, superseding.body)
	}
	if got := w.do(request{method: "GET", path: "/v1/jobs/" + job, key: w.alice}).text(t, "state"); got != "blocked" {
		t.Errorf("after all that the job is %s; want blocked", got)
	}
}

func without(h http.Header, name string) http.Header {
	h = h.Clone()
	h.Del(name)
	return h
}

func TestARoleMayWhatItsRoutesSayAndNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withMetrics)
	rank := map[onejob.Role]int{}
	for i, role := range onejob.Roles() {
		rank[role] = i
	}
	keys := map[onejob.Role]string{
		onejob.RoleViewer: w.viewer, onejob.RoleSubmitter: w.alice, onejob.RoleOperator: w.operator, onejob.RoleAdmin: w.admin,
	}
	for _, rt := range httpapi.Routes() {
		for role, key := range keys {
			got := w.do(everyRoute(rt, key, someIDs))
			allowed := rt.Role == "" || rank[role] >= rank[rt.Role]
			if allowed == (got.status == http.StatusForbidden) {
				t.Errorf("%s %s as %s: status %d; allowed %v", rt.Method, rt.Path, role, got.status, allowed)
			}
		}
	}
}

func TestTheOwnerComesFromTheCredentialAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	as := func(key, sub string, q request) answer {
		q.key, q.headers = key, append(q.headers, "Onejob-Owner", sub)
		return w.do(q)
	}
	submit := request{method: "POST", path: "/v1/jobs", body: ticket, headers: []string{"Idempotency-Key", "k1"}}

	as(w.alice, "bob", submit).wantProblem(t, http.StatusForbidden, onejob.CodeForbidden)
	as(w.admin, "bob", submit).wantProblem(t, http.StatusForbidden, onejob.CodeForbidden)
	for _, bad := range []string{"a/b", " a", "é", "a\tb", strings.Repeat("a", 129)} {
		as(w.parent, bad, submit).wantProblem(t, http.StatusBadRequest, onejob.CodeInvalidRequest)
	}

	plain := w.do(submitRequest(w.parent, "k1", ticket)).wantStatus(t, 202)
	sub := as(w.parent, "bob", submit).wantStatus(t, 202)
	if sub.text(t, "owner") != "parent/bob" || plain.text(t, "owner") != "parent" || sub.text(t, "id") == plain.text(t, "id") {
		t.Errorf("owners %q and %q", plain.text(t, "owner"), sub.text(t, "owner"))
	}
	// Another parent's bob is another bob.
	other := w.key("parent2", onejob.RoleSubmitter, true)
	if got := as(other, "bob", submit).wantStatus(t, 202); got.text(t, "id") == sub.text(t, "id") {
		t.Error("two parents share a bob")
	}
	as(w.parent, "ann", request{method: "GET", path: "/v1/jobs/" + sub.text(t, "id")}).wantProblem(t, 404, onejob.CodeNotFound)
	as(w.parent, "bob", request{method: "GET", path: "/v1/jobs/" + sub.text(t, "id")}).wantStatus(t, 200)
}

func TestAnAdminSeesEverybodyAndOthersCannotAskForOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	mine := w.submit("k1", ticket)
	w.do(submitRequest(w.bob, "k1", ticket)).wantStatus(t, 202)

	w.do(request{method: "GET", path: "/v1/jobs/" + mine, key: w.admin}).wantStatus(t, 200)
	count := func(path, key string) int {
		items, _ := w.do(request{method: "GET", path: path, key: key}).wantStatus(t, 200).object(t)["items"].([]any)
		return len(items)
	}
	if n := count("/v1/jobs", w.admin); n != 2 {
		t.Errorf("an admin sees %d jobs; want 2", n)
	}
	if n := count("/v1/jobs?owner=bob", w.admin); n != 1 {
		t.Errorf("an admin sees %d of bob's jobs; want 1", n)
	}
	if n := count("/v1/jobs", w.alice); n != 1 {
		t.Errorf("alice sees %d jobs; want 1", n)
	}
	w.do(request{method: "GET", path: "/v1/jobs?owner=bob", key: w.operator}).wantProblem(t, 403, onejob.CodeForbidden)
	w.do(request{method: "GET", path: "/v1/attempts?owner=bob", key: w.operator}).wantProblem(t, 403, onejob.CodeForbidden)
	w.do(request{method: "GET", path: "/v1/deliveries?owner=bob", key: w.operator}).wantProblem(t, 403, onejob.CodeForbidden)
}

func TestARevokedKeyIsLetInNoMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	id := strings.Split(w.bob, "_")[1]
	if err := w.store.KeyRevoke(t.Context(), onejob.KeyRevokeParams{ID: id}); err != nil {
		t.Fatal(err)
	}
	w.do(submitRequest(w.bob, "k1", ticket)).wantProblem(t, 401, onejob.CodeUnauthenticated)
}

func TestEveryAnswerCarriesTheSecurityHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withMetrics)
	for _, rt := range httpapi.Routes() {
		for _, key := range []string{w.admin, ""} {
			got := w.do(everyRoute(rt, key, someIDs))
			for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"} {
				if got.header.Get(name) != want {
					t.Errorf("%s %s: %s %q; want %q", rt.Method, rt.Path, name, got.header.Get(name), want)
				}
			}
			if csp := got.header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; frame-ancestors 'none'") {
				t.Errorf("%s %s: policy %q", rt.Method, rt.Path, csp)
			}
		}
	}
	docs := w.do(request{method: "GET", path: "/docs", key: w.viewer}).wantStatus(t, 200)
	if s := string(docs.body); strings.Contains(s, "<script") || strings.Contains(s, "https://") || !strings.Contains(s, "POST /v1/jobs:batch") {
		t.Errorf("the page loads something, or lacks a route:\n%s", s)
	}
}

func TestAnotherSiteCannotMakeABrowserPost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for site, want := range map[string]int{"cross-site": 403, "same-site": 403, "same-origin": 202, "none": 202} {
		q := submitRequest(w.alice, "k1", ticket)
		q.headers = append(q.headers, "Sec-Fetch-Site", site)
		if got := w.do(q); got.status != want {
			t.Errorf("%s: status %d; want %d", site, got.status, want)
		}
	}
}

// Metrics tell of all owners together.
func TestMetricsAreForOperators(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withMetrics)
	for key, want := range map[string]int{w.viewer: 403, w.alice: 403, w.operator: 200, w.admin: 200} {
		if got := w.do(request{method: "GET", path: "/metrics", key: key}); got.status != want {
			t.Errorf("status %d; want %d\n%s", got.status, want, got.body)
		}
	}
}
