package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/onejob-dev/onejob"
)

// batchOf sends one intent by the batch and returns the id of its job.
func (w *world) batchOf(idempotencyKey, body string) string {
	w.t.Helper()
	member, err := json.Marshal(idempotencyKey)
	if err != nil {
		w.t.Fatal(err)
	}
	got := w.post(w.alice, "/v1/jobs:batch", `{"items":[{"idempotency_key":`+string(member)+`,`+body[1:]+`]}`).wantStatus(w.t, http.StatusOK)
	var batch struct {
		Items []struct{ Job struct{ ID string } }
	}
	if err := json.Unmarshal(got.body, &batch); err != nil || len(batch.Items) != 1 || batch.Items[0].Job.ID == "" {
		w.t.Fatalf("%v: %s", err, got.body)
	}
	return batch.Items[0].Job.ID
}

// One door that reads a key otherwise than the others makes two jobs of one intent.
func TestEveryDoorReadsAKeyInTheSameWay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, key string
		written   []string // all of them this key
	}{
		{"ABareKey", "a", []string{"a", " a ", `"a"`, ` "a"	`}},
		{"AKeyWithQuotesInIt", `"a"`, []string{`"\"a\""`}},
		{"AKeyWithABackslash", `a\b`, []string{`a\b`, `"a\\b"`}},
		{"AKeyOfAQuoteInTheMiddle", `a"b`, []string{`a"b`, `"a\"b"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			id := w.submit(tt.written[0], ticket)
			for _, written := range tt.written {
				if got := w.submit(written, ticket); got != id {
					t.Errorf("the header %q is job %s; want %s", written, got, id)
				}
				if got := w.batchOf(written, ticket); got != id {
					t.Errorf("the batch's %q is job %s; want %s", written, got, id)
				}
				job, existed, err := w.client.Submit(t.Context(), onejob.SubmitParams{
					Owner: "alice", Key: written, Kind: "summarise", Input: []byte(`{"text":"hello"}`),
				})
				if err != nil || !existed || job.ID != id {
					t.Errorf("the library's %q is %+v, %t, %v; want job %s", written, job, existed, err, id)
				}
			}
			page, err := w.client.List(t.Context(), onejob.JobListParams{Owner: "alice", KeyHash: onejob.HashKey(tt.key), Limit: 2})
			if err != nil || len(page.Jobs) != 1 || page.Jobs[0].ID != id {
				t.Errorf("the key %q has jobs %+v, %v; want %s", tt.key, page.Jobs, err, id)
			}
		})
	}
}

func TestAKeyIsNotUnquotedTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	bare, quoted := w.submit("a", ticket), w.submit(`"\"a\""`, ticket)
	if bare == quoted {
		t.Error(`the key with quotes in it is the job of the key without`)
	}
	if got := w.batchOf("a", ticket); got != bare {
		t.Errorf("the batch's a is job %s; want %s", got, bare)
	}
	if got := w.batchOf(`"\"a\""`, ticket); got != quoted {
		t.Errorf("the batch's quoted key is job %s; want %s", got, quoted)
	}
	press := func(key string) string {
		return w.post(w.alice, "/v1/jobs/"+bare+"/attempts", "", "Idempotency-Key", key).wantStatus(t, http.StatusAccepted).text(t, "id")
	}
	if first, again := press(`"\"b\""`), press(`"\"b\""`); again != first {
		t.Error("a press repeated is two attempts")
	}
	w.post(w.alice, "/v1/jobs/"+bare+"/attempts", "", "Idempotency-Key", "b").wantProblem(t, 409, onejob.CodeAttemptUnresolved)
}

// idempot-dev/idempot-js#191: a request with another body met "in progress" while
// the first was being worked on, and waited for an answer that was not its own.
func TestAnotherIntentIsAConflictInEveryStateOfTheJob(t *testing.T) {
	t.Parallel()
	const other = `{"kind":"summarise","input":{"text":"other"}}`
	for name, bring := range map[string]func(w *world) string{
		"Queued":  func(w *world) string { return w.submit("k1", ticket) },
		"Running": func(w *world) string { id := w.submit("k1", ticket); w.claim(); return id },
		"Unknown": func(w *world) string { id, _ := w.unknown("k1", ticket); return id },
		"Succeeded": func(w *world) string {
			return w.succeeded("k1", jsonResult(`{"ok":true}`))
		},
		"Failed": func(w *world) string {
			id := w.submit("k1", ticket)
			w.finish(w.claim(), onejob.OutcomeRefused, nil)
			return id
		},
		"Cancelled": func(w *world) string {
			id := w.submit("k1", ticket)
			w.post(w.alice, "/v1/jobs/"+id+"/cancel", "").wantStatus(w.t, http.StatusOK)
			return id
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			id := bring(w)
			before := string(w.get("/v1/jobs/" + id).body)
			// Held, it would be told of a job that is not its own.
			q := submitRequest(w.alice, "k1", other)
			q.headers = append(q.headers, "Prefer", "wait=60")
			got := w.do(q).wantProblem(t, http.StatusConflict, onejob.CodeKeyConflict)
			if got.text(t, "job_id") != id || got.header.Get("Preference-Applied") != "" {
				t.Errorf("%v %s; want job %s, and no waiting", got.header, got.body, id)
			}
			if after := string(w.get("/v1/jobs/" + id).body); after != before {
				t.Errorf("the refused repeat changed the job:\n%s\n%s", before, after)
			}
			if again := w.do(submitRequest(w.alice, "k1", ticket)); again.text(t, "id") != id || again.header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("the same intent: %d %s; want job %s, replayed", again.status, again.body, id)
			}
		})
	}
}

// stripe/stripe-ruby#598: a client kept its key on the object, and the next
// operation sent it too. flexprice/flexprice#2488: a key that all tenants shared
// merged two ways of paying.
func TestAKeyOfAnotherOperationTargetOrOwnerAnswersNothingOfTheFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	first := w.submit("k1", `{"kind":"summarise","input":{"order":1},"target":"large"}`)
	for name, body := range map[string]string{
		"another kind":    `{"kind":"charge","input":{"order":1}}`,
		"another target":  `{"kind":"summarise","input":{"order":1},"target":"medium"}`,
		"no target named": `{"kind":"summarise","input":{"order":1}}`,
		"another input":   `{"kind":"summarise","input":{"order":1,"amount":2}}`,
	} {
		got := w.do(submitRequest(w.alice, "k1", body)).wantProblem(t, http.StatusConflict, onejob.CodeKeyConflict)
		if got.text(t, "advice") != "fix_request" {
			t.Errorf("%s: advice %q; want fix_request", name, got.text(t, "advice"))
		}
	}
	theirs := w.do(submitRequest(w.bob, "k1", `{"kind":"summarise","input":{"order":1},"target":"large"}`)).wantStatus(t, http.StatusAccepted)
	if theirs.text(t, "id") == first || theirs.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("bob got %s", theirs.body)
	}
}

// Medical-Software-Foundation/canvas#243: a fresh token in a retried body locked a
// patient out for a day. stripe/stripe-java#389: with metadata in the comparison a
// repeat could not be recognised; without a comparison each repeat would pass.
func TestWhatChangesFromTryToTryBelongsInTheMetadata(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	with := func(method string, try int) string {
		return fmt.Sprintf(`{"kind":"charge","input":{"order":1,"method":%q},"metadata":{"try":%d,"trace":"t-%d"},"priority":%d}`, method, try, try, try)
	}
	first := w.do(submitRequest(w.alice, "k1", with("pm_1", 1))).wantStatus(t, http.StatusAccepted)
	again := w.do(submitRequest(w.alice, "k1", with("pm_1", 2))).wantStatus(t, http.StatusAccepted)
	if again.header.Get("Idempotent-Replayed") != "true" || string(again.body) != string(first.body) {
		t.Errorf("other metadata: %s; want the first job, unchanged:\n%s", again.body, first.body)
	}
	w.do(submitRequest(w.alice, "k1", with("pm_2", 3))).wantProblem(t, http.StatusConflict, onejob.CodeKeyConflict)
}
