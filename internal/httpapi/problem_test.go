package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/httpapi"
)

func TestEveryCodeHasItsPlaceOnTheWire(t *testing.T) {
	t.Parallel()
	const (
		wait, same, not, fix = httpapi.AdviceWait, httpapi.AdviceRetrySameKey, httpapi.AdviceDoNotResubmit, httpapi.AdviceFixRequest
	)
	type place struct {
		status    int
		retryable bool
		advice    httpapi.Advice
	}
	want := map[onejob.Code]place{
		onejob.CodeKeyMissing: {400, false, fix}, onejob.CodeKeyInvalid: {400, false, fix},
		onejob.CodeInvalidRequest: {400, false, fix}, onejob.CodePayloadNotCanonical: {400, false, fix}, onejob.CodeInvalidArgument: {400, false, fix},
		onejob.CodeUnauthenticated: {401, false, fix}, onejob.CodeForbidden: {403, false, fix}, onejob.CodeNotFound: {404, false, fix},
		onejob.CodeKeyConflict: {409, false, fix}, onejob.CodeAttemptUnresolved: {409, false, wait}, onejob.CodeOutcomeUnknown: {409, false, not},
		onejob.CodeRequestInProgress: {409, true, wait}, onejob.CodeJobNotFinished: {409, true, wait},
		onejob.CodeFailoverNotCertified: {409, false, not}, onejob.CodeJobTerminal: {409, false, not}, onejob.CodeAttemptTerminal: {409, false, not},
		onejob.CodeAttemptNotUnknown: {409, false, wait}, onejob.CodeQuarantined: {409, false, wait}, onejob.CodeClaimLost: {409, false, not},
		onejob.CodeKeyExpired: {410, false, not}, onejob.CodeResultExpired: {410, false, not}, onejob.CodeVersionMismatch: {412, false, fix},
		onejob.CodePayloadTooLarge: {413, false, fix}, onejob.CodeUnsupportedMedia: {415, false, fix},
		onejob.CodeInvalidJob: {422, false, fix}, onejob.CodeInvalidResolution: {422, false, fix},
		onejob.CodeQuotaExceeded: {429, true, same}, onejob.CodeOverloaded: {429, true, same}, onejob.CodeProviderFailed: {502, false, not},
		onejob.CodeStoreUnavailable: {503, true, same}, onejob.CodeDraining: {503, true, same}, onejob.CodeRestoreUnconfirmed: {503, true, same},
		onejob.CodeInternal: {500, true, same}, onejob.CodeInvalidTransition: {500, true, same},
	}
	if len(want) != len(onejob.Codes()) {
		t.Errorf("%d codes are placed; there are %d", len(want), len(onejob.Codes()))
	}
	for _, code := range onejob.Codes() {
		p := httpapi.ProblemOf(&onejob.Error{Code: code, Message: "m"})
		if got := (place{p.Status, p.Retryable, p.Advice}); got != want[code] {
			t.Errorf("%s: %+v; want %+v", code, got, want[code])
		}
		if p.Title == "" {
			t.Errorf("%s has no title", code)
		}
	}
}

func TestEveryProblemDocumentIsWhole(t *testing.T) {
	t.Parallel()
	for _, code := range onejob.Codes() {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			err := &onejob.Error{
				Code: code, Message: "said", JobID: "job_1", AttemptID: "att_1", RetryAfter: 90 * time.Second,
				Reason: "no_certificate", Candidates: []onejob.Candidate{{Target: "medium", Reason: "no_certificate"}},
				Err: errors.New("secret cause at 10.0.0.1"),
			}
			w := newWorld(t, func(o *onejob.Options, _ *httpapi.Options) {
				o.AdmitFunc = func(_ context.Context, _ string, _ int) *onejob.Error { return err }
			})
			rec := httptest.NewRecorder() // some of these no submission answers in earnest
			w.handler.ServeHTTP(rec, submitRequest(w.alice, "k1", ticket).http(t.Context()))
			got := answer{rec.Code, rec.Header(), rec.Body.Bytes()}
			wantSchema(t, "Problem", got.body)
			p := httpapi.ProblemOf(err)
			got.wantProblem(t, p.Status, p.Code)
			if strings.Contains(string(got.body), "10.0.0.1") {
				t.Errorf("the cause is on the wire: %s", got.body)
			}
			if got.header.Get("Retry-After") != "60" && p.Status != http.StatusInternalServerError {
				t.Errorf("Retry-After %q; want it cut to 60", got.header.Get("Retry-After"))
			}
			if (got.header.Get("WWW-Authenticate") != "") != (p.Status == 401) {
				t.Errorf("WWW-Authenticate %q with status %d", got.header.Get("WWW-Authenticate"), p.Status)
			}
			if p.Status == http.StatusInternalServerError {
				if p.Detail != "" || p.Code != onejob.CodeInternal || p.JobID != "" {
					t.Errorf("an internal error tells %+v", p)
				}
				return
			}
			doc := got.object(t)
			for member, want := range map[string]string{"detail": "said", "job_id": "job_1", "attempt_id": "att_1", "reason": "no_certificate"} {
				if doc[member] != want {
					t.Errorf("%s is %v; want %q", member, doc[member], want)
				}
			}
		})
	}
}

func TestRetryAfterIsThereWheneverAskingAgainCanHelp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	// The key is not known any more: the store is down for authentication too.
	got := w.do(submitRequest(w.alice, "k1", ticket)).wantProblem(t, http.StatusServiceUnavailable, onejob.CodeStoreUnavailable)
	if got.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After %q; want 1", got.header.Get("Retry-After"))
	}
	w.do(request{method: "GET", path: "/readyz"}).wantProblem(t, http.StatusServiceUnavailable, onejob.CodeStoreUnavailable)
	w.do(request{method: "GET", path: "/livez"}).wantStatus(t, http.StatusOK)
}

func TestAPanicIsAnsweredWithoutItsStack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *onejob.Options, _ *httpapi.Options) {
		o.AdmitFunc = func(context.Context, string, int) *onejob.Error { panic("boom at 10.0.0.1") }
	})
	got := w.do(submitRequest(w.alice, "k1", ticket)).wantProblem(t, http.StatusInternalServerError, onejob.CodeInternal)
	if s := string(got.body); strings.Contains(s, "boom") || strings.Contains(s, ".go") {
		t.Errorf("the panic is on the wire: %s", s)
	}
}

func TestWhatIsNotThereIsAProblemToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, path := range []string{
		"/nope", "/v1/callbacks/acme", "/openai/v1/chat/completions", "/anthropic/v1/messages",
		"/v1/contracts/triage/matrix", "/v1/verifications/run_x", "/metrics", "/v1/jobs/x/nope",
	} {
		w.do(request{method: "GET", path: path, key: w.admin}).wantProblem(t, http.StatusNotFound, onejob.CodeNotFound)
	}
	got := w.do(request{method: "DELETE", path: "/v1/jobs", key: w.admin}).wantProblem(t, http.StatusMethodNotAllowed, onejob.CodeInvalidRequest)
	if got.header.Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("Allow %q; want GET, HEAD, POST", got.header.Get("Allow"))
	}
	for _, q := range []request{
		{method: "POST", path: "/v1/attempts/x/reconcile", key: w.admin},
		{method: "POST", path: "/v1/attempts/x:begin", key: w.admin},
		{method: "GET", path: "/v1/attempts/x/probes", key: w.admin},
	} {
		if got := w.do(q); got.status != http.StatusNotFound && got.status != http.StatusMethodNotAllowed {
			t.Errorf("%s %s: status %d; want none of it", q.method, q.path, got.status)
		}
	}
}
