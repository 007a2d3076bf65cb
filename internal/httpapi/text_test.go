package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/httpapi"
)

// PostgreSQL keeps neither a NUL nor what is no UTF-8 as text, and would say so by
// an error that looks like an outage.
func TestWhatNoStoreKeepsAsTextIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withMetrics)
	job, attempt := w.unknown("k1", ticket)

	for _, bad := range []string{"%00", "a%00", "%ff", "%ed%a0%80"} {
		for _, name := range []string{"kind", "target", "error_code", "owner", "cursor", "state", "created_after"} {
			w.do(request{method: "GET", path: "/v1/jobs?" + name + "=" + bad, key: w.admin}).wantProblem(t, 400, onejob.CodeInvalidRequest)
		}
		w.do(request{method: "GET", path: "/v1/jobs?idempotency_key=" + bad, key: w.admin}).wantProblem(t, 400, onejob.CodeKeyInvalid)
		w.do(request{method: "GET", path: "/v1/attempts?owner=" + bad, key: w.admin}).wantProblem(t, 400, onejob.CodeInvalidRequest)
		for _, name := range []string{"owner", "job_id", "endpoint", "state", "cursor"} {
			w.do(request{method: "GET", path: "/v1/deliveries?" + name + "=" + bad, key: w.admin}).wantProblem(t, 400, onejob.CodeInvalidRequest)
		}
		for _, rt := range httpapi.Routes() {
			if !strings.Contains(rt.Path, "{id}") {
				continue
			}
			q := everyRoute(rt, w.admin, ids{"job_" + bad, "att_" + bad, "msg_" + bad, "ep_" + bad})
			w.do(q).wantProblem(t, 400, onejob.CodeInvalidRequest)
		}
	}

	for _, member := range []string{"kind", "target", "supersedes"} {
		body := `{"kind":"summarise","input":1,"` + member + `":"a\u0000"}`
		if member == "kind" {
			body = `{"kind":"a\u0000","input":1}`
		}
		w.do(submitRequest(w.alice, "k2", body)).wantProblem(t, 400, onejob.CodeInvalidRequest)
		got := w.post(w.alice, "/v1/jobs:batch", `{"items":[{"idempotency_key":"k3",`+body[1:]+`]}`).wantStatus(t, 200)
		if !strings.Contains(string(got.body), `"code":"invalid-request"`) {
			t.Errorf("%s in a batch: %s", member, got.body)
		}
	}
	w.post(w.alice, "/v1/jobs/"+job+"/attempts", `{"target":"a\u0000"}`, "Idempotency-Key", "b1").wantProblem(t, 400, onejob.CodeInvalidRequest)
	w.post(w.operator, "/v1/jobs/"+job+"/unblock", `{"reason":"a\u0000"}`).wantProblem(t, 400, onejob.CodeInvalidRequest)
	w.post(w.operator, "/v1/attempts/"+attempt+"/resolve", `{"outcome":"succeeded","result":1,"evidence":"a\u0000"}`).
		wantProblem(t, 422, onejob.CodeInvalidResolution)

	// In what is kept as it was written it is text like any other.
	w.do(submitRequest(w.alice, "k4", `{"kind":"summarise","input":"\u0000","metadata":{"a":"\u0000"}}`)).wantStatus(t, http.StatusAccepted)
}
