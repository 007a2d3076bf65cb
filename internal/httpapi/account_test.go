package httpapi_test

import (
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
)

// duplicated is an incident of alice's: an attempt that was ruled not to have
// happened succeeds after another did.
func (w *world) duplicated(idempotencyKey string) (incident, job string) {
	w.t.Helper()
	job = w.submit(idempotencyKey, ticket)
	first := w.claim()
	w.finish(first, onejob.OutcomeUnknown, nil)
	w.clock.Advance(time.Hour)
	w.post(w.operator, "/v1/attempts/"+first.ID+"/resolve", `{"outcome":"failed","proves":"not_executed","evidence":"not on the statement"}`).wantStatus(w.t, 200)
	w.clock.Advance(time.Hour)
	w.finish(w.claim(), onejob.OutcomeSucceeded, jsonResult(`1`))
	w.finish(first, onejob.OutcomeSucceeded, jsonResult(`2`))
	for _, item := range w.items("/v1/incidents", w.operator) {
		if item["job_id"] == job {
			return fmt.Sprint(item["id"]), job
		}
	}
	w.t.Fatal("there is no incident of the job")
	return "", ""
}

// items reads a list, page by page.
func (w *world) items(path, key string) []map[string]any {
	w.t.Helper()
	var all []map[string]any
	for cursor := ""; ; {
		got := w.do(request{method: "GET", path: path + cursor, key: key}).wantStatus(w.t, 200).object(w.t)
		items, _ := got["items"].([]any)
		for _, item := range items {
			object, _ := item.(map[string]any)
			all = append(all, object)
		}
		next, more := got["next_cursor"].(string)
		if !more {
			return all
		}
		if len(items) == 0 || len(all) > 1000 {
			w.t.Fatalf("%s goes on without end", path)
		}
		sign := "&"
		if !strings.Contains(path, "?") {
			sign = "?"
		}
		cursor = sign + "cursor=" + url.QueryEscape(next)
	}
}

func TestAnIncidentIsListedAndClosedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	id, job := w.duplicated("k1")
	path := "/v1/incidents/" + id

	got := w.get(path).wantStatus(t, 200)
	if got.text(t, "state") != "open" || got.text(t, "kind") != "duplicate_effect" || got.text(t, "owner") != "alice" || got.text(t, "job_id") != job || got.text(t, "detail") == "" {
		t.Errorf("the incident is %s", got.body)
	}
	w.post(w.alice, path+":close", `{"note":"refunded"}`).wantProblem(t, 403, onejob.CodeForbidden)
	for _, body := range []string{`{}`, `{"note":""}`, `{"note":" "}`, `{"note":"a\u0000"}`, `{"note":"` + strings.Repeat("a", 4097) + `"}`, `{"note":"n","state":"closed"}`} {
		w.post(w.operator, path+":close", body).wantProblem(t, 400, onejob.CodeInvalidRequest)
	}
	closed := w.post(w.operator, path+":close", `{"note":"refunded"}`).wantStatus(t, 200)
	if closed.text(t, "state") != "closed" || closed.text(t, "note") != "refunded" || !strings.HasPrefix(closed.text(t, "closed_by"), "alice (key ") {
		t.Errorf("the closed incident is %s", closed.body)
	}
	w.clock.Advance(time.Minute)
	if again := w.post(w.admin, path+":close", `{"note":"another"}`).wantStatus(t, 200); string(again.body) != string(closed.body) {
		t.Errorf("the repeat answers %s; want %s", again.body, closed.body)
	}
	if n := len(w.items("/v1/incidents?state=open", w.viewer)); n != 0 {
		t.Errorf("%d incidents are open; want none", n)
	}
	if n := len(w.items("/v1/incidents?state=open,closed&limit=1", w.viewer)); n != 1 {
		t.Errorf("%d incidents are listed; want 1", n)
	}
	w.get("/v1/incidents?state=reopened").wantProblem(t, 400, onejob.CodeInvalidRequest)
	w.get("/v1/incidents?cursor=MTIgam9iXzE").wantProblem(t, 400, onejob.CodeInvalidRequest)
}

func TestAnotherOwnersIncidentAnswersExactlyAsOneThatDoesNotExist(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	id, _ := w.duplicated("k1")
	none := onejob.NewIncidentID(3, 1<<40)
	stranger := w.key("mallory", onejob.RoleOperator, false)
	for _, q := range []request{
		{method: "GET", path: "/v1/incidents/ID", key: stranger},
		{method: "POST", path: "/v1/incidents/ID:close", key: stranger, body: `{"note":"mine"}`},
	} {
		ask := func(id string) answer {
			q := q
			q.path = strings.Replace(q.path, "ID", id, 1)
			return w.do(q).wantProblem(t, 404, onejob.CodeNotFound)
		}
		if foreign, missing := ask(id), ask(none); strings.ReplaceAll(string(foreign.body), id, none) != string(missing.body) {
			t.Errorf("%s answers %s for another's and %s for none", q.path, foreign.body, missing.body)
		}
	}
	if n := len(w.items("/v1/incidents", stranger)); n != 0 {
		t.Errorf("a stranger is shown %d incidents", n)
	}
	if got := w.get("/v1/incidents/"+id).text(t, "state"); got != "open" {
		t.Errorf("after all that the incident is %s; want open", got)
	}
}

func TestTheAuditTellsAnOperatorOfItsOwnerAndAnAdminOfAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for i, key := range []string{w.alice, w.bob, w.alice} {
		id := w.do(submitRequest(key, fmt.Sprint("k", i), ticket)).wantStatus(t, 202).text(t, "id")
		w.clock.Advance(time.Second)
		w.post(key, "/v1/jobs/"+id+"/cancel", "").wantStatus(t, 200)
	}
	w.do(request{method: "GET", path: "/v1/audit", key: w.alice}).wantProblem(t, 403, onejob.CodeForbidden)
	w.do(request{method: "GET", path: "/v1/audit?owner=bob", key: w.operator}).wantProblem(t, 403, onejob.CodeForbidden)
	w.do(request{method: "GET", path: "/v1/audit?cursor=MTIgeA", key: w.operator}).wantProblem(t, 400, onejob.CodeInvalidRequest)

	cancels := func(path, key string) (who []string) {
		for _, e := range w.items(path, key) {
			if e["action"] == "job.cancel" {
				who = append(who, fmt.Sprint(e["owner"]))
			}
		}
		return who
	}
	for _, limit := range []string{"1", "200"} {
		if got := fmt.Sprint(cancels("/v1/audit?limit="+limit, w.operator)); got != "[alice alice]" {
			t.Errorf("an operator of alice's is told of %s", got)
		}
		if got := fmt.Sprint(cancels("/v1/audit?limit="+limit, w.admin)); got != "[alice bob alice]" {
			t.Errorf("an admin is told of %s; want all, newest first", got)
		}
		if got := fmt.Sprint(cancels("/v1/audit?owner=bob&limit="+limit, w.admin)); got != "[bob]" {
			t.Errorf("an admin that asks for bob is told of %s", got)
		}
	}
	newest := w.items("/v1/audit?owner=alice", w.admin)[0]
	for _, name := range []string{"prev", "hash"} {
		if raw, err := hex.DecodeString(fmt.Sprint(newest[name])); err != nil || len(raw) != 32 {
			t.Errorf("%s is %v; want 32 bytes in hexadecimal", name, newest[name])
		}
	}
	if !strings.HasPrefix(fmt.Sprint(newest["actor"]), "alice (key ") {
		t.Errorf("the actor is %v; want whose key it was", newest["actor"])
	}
}

func TestCostsAreSummedForTheOwnerAndForAnAdminOverAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for i, key := range []string{w.alice, w.bob, w.alice} {
		w.do(submitRequest(key, fmt.Sprint("k", i), ticket)).wantStatus(t, 202)
		a := w.claim()
		done, err := w.store.AttemptFinish(t.Context(), []onejob.AttemptFinishParams{{
			Ref: refOf(a), ClaimToken: a.ClaimToken, Outcome: onejob.OutcomeSucceeded, Phase: onejob.PhaseAnswered,
			Result: jsonResult(`1`), CostMicros: int64(i + 1), Currency: []string{"EUR", "EUR", "USD"}[i],
		}})
		if err != nil || done[0].Err != nil {
			t.Fatal(err, done)
		}
	}
	sums := func(path, key string) string {
		var rows []string
		for _, row := range w.items(path, key) {
			rows = append(rows, fmt.Sprint(row["key"], " ", row["micros"], " ", row["currency"], " ", row["at_least"], " ", row["attempts"]))
		}
		return strings.Join(rows, ", ")
	}
	day := w.clock.Now().UTC().Format(time.DateOnly)
	for _, c := range []struct{ path, key, want string }{
		{"/v1/costs", w.viewer, "alice 1 EUR false 1, alice 3 USD false 1"},
		{"/v1/costs?limit=1", w.admin, "alice 1 EUR false 1, alice 3 USD false 1, bob 2 EUR false 1"},
		{"/v1/costs?by=kind", w.admin, "summarise 3 EUR false 2, summarise 3 USD false 1"},
		{"/v1/costs?by=day&owner=bob", w.admin, day + " 2 EUR false 1"},
		{"/v1/costs?by=target&target=large&kind=charge", w.admin, ""},
		{"/v1/costs?from=2099-01-01T00:00:00Z", w.admin, ""},
		{"/v1/costs?to=2099-01-01T00:00:00Z", w.bob, "bob 2 EUR false 1"},
	} {
		if got := sums(c.path, c.key); got != c.want {
			t.Errorf("GET %s: %s; want %s", c.path, got, c.want)
		}
	}
	w.unknown("k9", ticket)
	if got := sums("/v1/costs", w.alice); got != "alice 0 <nil> true 1, alice 1 EUR true 1, alice 3 USD true 1" {
		t.Errorf("with an attempt in doubt: %s; want at least", got)
	}
	for _, bad := range []string{"by=colour", "from=yesterday", "cursor=x", "cursor=WyJhIl0", "owner=bob"} {
		if got := w.do(request{method: "GET", path: "/v1/costs?" + bad, key: w.alice}); got.status != 400 && got.status != 403 {
			t.Errorf("GET /v1/costs?%s: %d %s; want a refusal", bad, got.status, got.body)
		}
	}
}
