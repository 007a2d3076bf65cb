package httpapi_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/httpapi"
)

const hookURL = "https://app.example/hooks"

// withWebhooks registers an endpoint of alice's that is told everything, one of
// bob's, and one of everybody's.
func withWebhooks(options *onejob.Options, api *httpapi.Options) {
	options.SubscribeFunc = func(owner, url string) ([]onejob.Subscription, *onejob.Error) {
		endpoint := onejob.Subscription{Endpoint: "ep_" + owner, Events: onejob.WebhookEvents()[3:]}
		switch url {
		case "":
			return []onejob.Subscription{endpoint, {Endpoint: "ep_all"}}, nil
		case hookURL:
			return []onejob.Subscription{endpoint}, nil
		}
		return nil, &onejob.Error{Code: onejob.CodeInvalidJob, Message: "no webhook endpoint is registered at that URL"}
	}
	api.Endpoints = []httpapi.EndpointInfo{
		{ID: "ep_alice", URL: hookURL, Owner: "alice", Events: onejob.WebhookEvents()[3:]},
		{ID: "ep_bob", URL: "https://bob.example/", Owner: "bob"},
		{ID: "ep_all", URL: "https://ops.example/"},
	}
}

// deliveries lists them as a caller sees them.
func (w *world) deliveries(key, query string) []httpapi.Delivery {
	w.t.Helper()
	got := w.do(request{method: "GET", path: "/v1/deliveries" + query, key: key}).wantStatus(w.t, 200)
	return decodeItems[httpapi.Delivery](w.t, got.body)
}

func decodeItems[T any](t *testing.T, body []byte) []T {
	t.Helper()
	var list struct{ Items []T }
	if err := json.Unmarshal(body, &list); err != nil {
		t.Fatalf("no list: %v\n%s", err, body)
	}
	return list.Items
}

// deliveryAbout returns the id of a delivery about a job.
func (w *world) deliveryAbout(job string) string {
	w.t.Helper()
	all := w.deliveries(w.admin, "?job_id="+job)
	if len(all) == 0 {
		w.t.Fatalf("there is no delivery about %s", job)
	}
	return all[0].ID
}

// send claims what is due for an endpoint and records what came of one try each.
func (w *world) send(endpoint string, status int) {
	w.t.Helper()
	due, err := w.store.DeliveryClaim(w.t.Context(), onejob.DeliveryClaimParams{Endpoints: []string{endpoint}, Lease: time.Minute, Max: 100})
	if err != nil || len(due) == 0 {
		w.t.Fatalf("DeliveryClaim: %d due, %v", len(due), err)
	}
	for _, d := range due {
		p := onejob.DeliveryRecordParams{ID: d.ID, Tries: d.Tries, Resent: d.Resent, State: onejob.DeliveryDelivered, Status: status, Body: []byte(`{"secret":"body"}`)}
		if status >= 300 {
			p.State, p.After, p.Error = onejob.DeliveryPending, time.Hour, fmt.Sprintf("the endpoint answered %d", status)
		}
		if errs, err := w.store.DeliveryRecord(w.t.Context(), []onejob.DeliveryRecordParams{p}); err != nil || errs[0] != nil {
			w.t.Fatalf("DeliveryRecord: %v, %v", err, errs)
		}
	}
}

func TestAJobIsToldToTheEndpointsThatItsSubmissionNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWebhooks)
	told := func(job string) []string {
		var endpoints []string
		for _, d := range w.deliveries(w.alice, "?job_id="+job) {
			if d.Event != onejob.WebhookJobSucceeded || d.JobID != job {
				t.Errorf("an unexpected delivery %+v", d)
			}
			endpoints = append(endpoints, d.Endpoint)
		}
		slices.Sort(endpoints)
		return endpoints
	}
	const named = `{"kind":"summarise","input":1,"webhook":{"url":"` + hookURL + `"}}`
	for _, tt := range []struct {
		body string
		want []string
	}{{ticket, []string{"ep_alice", "ep_all"}}, {named, []string{"ep_alice"}}} {
		job := w.submit(tt.body, tt.body)
		if got := told(job); len(got) > 0 {
			t.Errorf("before the end %v are told", got)
		}
		w.finish(w.claim(), onejob.OutcomeSucceeded, jsonResult(`1`))
		if diff := cmp.Diff(tt.want, told(job)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.body, diff)
		}
	}
	batch := w.post(w.alice, "/v1/jobs:batch", `{"items":[{"idempotency_key":"b1",`+named[1:]+`]}`).wantStatus(t, 200)
	w.finish(w.claim(), onejob.OutcomeSucceeded, jsonResult(`1`))
	job := decodeItems[httpapi.BatchResult](t, batch.body)[0].Job
	if diff := cmp.Diff([]string{"ep_alice"}, told(job.ID)); diff != "" {
		t.Errorf("in a batch (-want +got):\n%s", diff)
	}
}

// Who is told is no part of the intent, and an endpoint that is not registered
// takes no key.
func TestAWebhookIsNoPartOfTheIntent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWebhooks)
	with := func(url string) request {
		return submitRequest(w.alice, "k1", `{"kind":"summarise","input":1,"webhook":{"url":"`+url+`"}}`)
	}
	w.do(with("https://elsewhere.example/")).wantProblem(t, 422, onejob.CodeInvalidJob)
	first := w.do(with(hookURL)).wantStatus(t, 202)
	for _, url := range []string{hookURL, "https://elsewhere.example/"} {
		again := w.do(with(url)).wantStatus(t, 202)
		if again.header.Get("Idempotent-Replayed") != "true" || again.text(t, "id") != first.text(t, "id") {
			t.Errorf("%s: %s; want the job %s as a replay", url, again.body, first.text(t, "id"))
		}
	}

	bare := newWorld(t, nil)
	bare.do(submitRequest(bare.alice, "k1", `{"kind":"summarise","input":1,"webhook":{"url":"x"}}`)).wantProblem(t, 422, onejob.CodeInvalidJob)
	bare.submit("k1", ticket)
}

func TestADeliveryShowsWhatCameOfItsTriesAndNeverItsBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWebhooks)
	job := w.succeeded("k1", jsonResult(`1`))
	w.send("ep_alice", 500)
	w.send("ep_all", 204)

	var shown []httpapi.Delivery
	for _, d := range w.deliveries(w.viewer, "?job_id="+job) {
		one := w.do(request{method: "GET", path: "/v1/deliveries/" + d.ID, key: w.viewer}).wantStatus(t, 200)
		wantSchema(t, "Delivery", one.body)
		var alone httpapi.Delivery
		if err := json.Unmarshal(one.body, &alone); err != nil || alone != d || strings.Contains(string(one.body), "secret") {
			t.Errorf("alone %s, in the list %+v", one.body, d)
		}
		if d.CreatedAt.IsZero() || d.DueAt.IsZero() != (d.State != onejob.DeliveryPending) || d.FinishedAt.IsZero() != (d.State == onejob.DeliveryPending) {
			t.Errorf("the times of %+v", d)
		}
		d.ID, d.CreatedAt, d.DueAt, d.FinishedAt = "", time.Time{}, time.Time{}, time.Time{}
		shown = append(shown, d)
	}
	slices.SortFunc(shown, func(a, b httpapi.Delivery) int { return strings.Compare(a.Endpoint, b.Endpoint) })
	want := []httpapi.Delivery{
		{JobID: job, Endpoint: "ep_alice", Event: "job.succeeded", State: "pending", Tries: 1, Status: 500, Error: "the endpoint answered 500"},
		{JobID: job, Endpoint: "ep_all", Event: "job.succeeded", State: "delivered", Tries: 1, Status: 204},
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDeliveriesAreFilteredAndPaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWebhooks)
	var jobs []string
	for i := range 3 {
		jobs = append(jobs, w.succeeded(fmt.Sprint("k", i), jsonResult(`1`)))
		w.clock.Advance(time.Second)
	}
	blocked, attempt := w.unknown("k9", ticket)
	w.send("ep_all", 200)

	for query, want := range map[string]int{
		"": 8, "?endpoint=ep_alice": 5, "?endpoint=ep_nobody": 0, "?state=delivered": 3, "?state=pending": 5,
		"?state=pending,delivered": 8, "?state=failed": 0, "?job_id=" + jobs[1]: 2, "?job_id=" + blocked: 2,
		"?job_id=" + jobs[1] + "&endpoint=ep_all&state=delivered": 1, "?job_id=nonsense": 0,
	} {
		if got := w.deliveries(w.alice, query); len(got) != want {
			t.Errorf("%q: %d deliveries; want %d\n%+v", query, len(got), want, got)
		}
	}
	ofJob := w.do(request{method: "GET", path: "/v1/jobs/" + blocked + "/deliveries", key: w.alice}).wantStatus(t, 200)
	for _, d := range decodeItems[httpapi.Delivery](t, ofJob.body) {
		if d.Event == onejob.WebhookAttemptUnknown && d.AttemptID != attempt {
			t.Errorf("%s is about attempt %q; want %q", d.Event, d.AttemptID, attempt)
		}
	}
	for _, path := range []string{"/v1/deliveries", "/v1/jobs/" + jobs[0] + "/deliveries"} {
		for _, query := range []string{"?state=lost", "?limit=0", "?limit=201", "?cursor=x", "?jobid=1"} {
			w.do(request{method: "GET", path: path + query, key: w.alice}).wantProblem(t, 400, onejob.CodeInvalidRequest)
		}
	}

	seen := map[string]bool{}
	var last time.Time
	for path := "/v1/deliveries?limit=3"; path != ""; {
		got := w.do(request{method: "GET", path: path, key: w.alice}).wantStatus(t, 200)
		for _, d := range decodeItems[httpapi.Delivery](t, got.body) {
			if seen[d.ID] || (!last.IsZero() && d.CreatedAt.After(last)) {
				t.Errorf("%s is there twice, or out of order", d.ID)
			}
			seen[d.ID], last = true, d.CreatedAt
		}
		path = ""
		if next := got.text(t, "next_cursor"); next != "" {
			path = "/v1/deliveries?limit=3&cursor=" + next
		}
	}
	if len(seen) != 8 {
		t.Errorf("the pages hold %d; want 8", len(seen))
	}
}

func TestADeliveryIsResentByTheOwnersSubmittersAndAdmins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWebhooks)
	job := w.succeeded("k1", jsonResult(`1`))
	w.send("ep_alice", 200)
	id := w.deliveries(w.alice, "?job_id="+job+"&endpoint=ep_alice")[0].ID
	path := "/v1/deliveries/" + id + ":resend"

	w.post(w.viewer, path, "").wantProblem(t, 403, onejob.CodeForbidden)
	w.post(w.bob, path, "").wantProblem(t, 404, onejob.CodeNotFound)
	w.post(w.alice, path, `{"now":true}`).wantProblem(t, 400, onejob.CodeInvalidRequest)
	if d := w.deliveries(w.alice, "?job_id="+job+"&endpoint=ep_alice")[0]; d.State != onejob.DeliveryDelivered {
		t.Fatalf("after refusals it is %s", d.State)
	}
	for _, key := range []string{w.alice, w.operator, w.admin} {
		got := w.post(key, path, "").wantStatus(t, 200)
		if got.text(t, "id") != id || got.text(t, "state") != "pending" || got.object(t)["tries"] != 0.0 {
			t.Errorf("resent: %s; want it pending, its tries counted anew", got.body)
		}
		w.send("ep_alice", 200)
	}
}

func TestResendingWakesWhoSends(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWebhooks)
	id := w.deliveryAbout(w.succeeded("k1", jsonResult(`1`)))
	outbox := w.signals.Outbox()
	for drained := false; !drained; {
		select {
		case <-outbox:
		default:
			drained = true
		}
	}
	w.post(w.alice, "/v1/deliveries/"+id+":resend", "").wantStatus(t, 200)
	select {
	case <-outbox:
	default:
		t.Error("the sender is not woken")
	}
}

func TestOperatorsSeeTheEndpointsThatConcernThemAndEnableThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWebhooks)
	for _, id := range []string{"ep_alice", "ep_bob", "ep_removed"} {
		if err := w.store.EndpointDisable(t.Context(), id, "it answered 410"); err != nil {
			t.Fatal(err)
		}
	}
	list := func(key string) (shown []string) {
		got := w.do(request{method: "GET", path: "/v1/webhook-endpoints", key: key}).wantStatus(t, 200)
		for _, e := range decodeItems[httpapi.WebhookEndpoint](t, got.body) {
			if e.Disabled != nil && (e.Disabled.Reason != "it answered 410" || e.Disabled.Since.IsZero()) {
				t.Errorf("disabled: %+v", e.Disabled)
			}
			shown = append(shown, fmt.Sprintf("%s %s %d %t", e.ID, e.URL, len(e.Events), e.Disabled != nil))
		}
		return shown
	}
	alices := []string{"ep_alice " + hookURL + " 5 true", "ep_all https://ops.example/ 0 false", "ep_removed  0 true"}
	if diff := cmp.Diff(alices, list(w.operator)); diff != "" {
		t.Errorf("alice's operator (-want +got):\n%s", diff)
	}
	everybodys := slices.Insert(slices.Clone(alices), 1, "ep_bob https://bob.example/ 0 true")
	if diff := cmp.Diff(everybodys, list(w.admin)); diff != "" {
		t.Errorf("an admin (-want +got):\n%s", diff)
	}

	w.post(w.alice, "/v1/webhook-endpoints/ep_alice:enable", "").wantProblem(t, 403, onejob.CodeForbidden)
	w.post(w.operator, "/v1/webhook-endpoints/ep_bob:enable", "").wantProblem(t, 404, onejob.CodeNotFound)
	for range 2 {
		got := w.post(w.operator, "/v1/webhook-endpoints/ep_alice:enable", "{}").wantStatus(t, 200)
		if _, still := got.object(t)["disabled"]; still || got.text(t, "url") != hookURL {
			t.Errorf("enabled: %s", got.body)
		}
	}
	w.post(w.operator, "/v1/webhook-endpoints/ep_removed:enable", "").wantStatus(t, 200)
	w.post(w.operator, "/v1/webhook-endpoints/ep_removed:enable", "").wantProblem(t, 404, onejob.CodeNotFound)
	left, err := w.client.DisabledEndpoints(t.Context())
	if err != nil || len(left) != 1 || left[0].ID != "ep_bob" {
		t.Errorf("disabled are %v, %v; want bob's alone", left, err)
	}
}

// What endpoints are sent is what the document says, of a job in whatever state.
func TestWebhooksAreAsDocumented(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWebhooks)
	w.succeeded("k1", jsonResult(`{"a":1}`))
	w.unknown("k2", `{"kind":"charge","input":1,"metadata":{"a":1}}`)
	for _, d := range w.deliveries(w.admin, "") {
		job, err := w.client.Get(t.Context(), "", d.JobID)
		if err != nil {
			t.Fatal(err)
		}
		body, err := httpapi.WebhookBody(onejob.Delivery{ID: d.ID, JobID: d.JobID, AttemptID: d.AttemptID, Event: d.Event, CreatedAt: d.CreatedAt}, job)
		if err != nil {
			t.Fatal(err)
		}
		wantRef(t, "#/webhooks/"+string(d.Event)+"/post/requestBody/content/application~1json/schema", body)
	}
}

// What the document says of webhooks follows the code.
func TestTheDocumentTellsOfEveryWebhook(t *testing.T) {
	t.Parallel()
	raw, err := httpapi.Document()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Webhooks map[string]struct {
			Post struct {
				Summary    string
				Parameters []struct{ Name string }
			}
		}
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	for _, e := range onejob.WebhookEvents() {
		hook := doc.Webhooks[string(e)].Post
		if hook.Summary == "" || len(hook.Parameters) != 3 {
			t.Errorf("%s: %+v", e, hook)
		}
	}
	if got, want := len(doc.Webhooks), len(onejob.WebhookEvents()); got != want {
		t.Errorf("%d webhooks are documented; want %d", got, want)
	}
}
