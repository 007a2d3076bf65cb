package httpapi_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/httpapi"
)

var happened = time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.FixedZone("east", 3600))

// told returns the body of a webhook about a job with a result, decoded and as it is.
func told(t *testing.T, d onejob.Delivery, r *onejob.Result) (body map[string]any, raw string) {
	t.Helper()
	d.CreatedAt = happened
	job := &onejob.Job{
		ID: "job_1", Kind: "charge", Owner: "shop", State: onejob.JobSucceeded, Version: 1, Revision: 4, CompletedBy: "att_2",
		Attempts:  []onejob.Attempt{{ID: "att_1", Number: 1, State: onejob.AttemptUnknown}, {ID: "att_2", Number: 2, State: onejob.AttemptSucceeded}},
		Metadata:  []byte(`{"a":1}`),
		CreatedAt: happened.Add(-time.Minute), FinishedAt: happened, Result: r,
	}
	b, err := httpapi.WebhookBody(d, job)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &body); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, b)
	}
	return body, string(b)
}

func TestAWebhookThatIsResentAfterThePurgeSaysThatTheResultIsGone(t *testing.T) {
	t.Parallel()

	job := &onejob.Job{ID: "job_1", State: onejob.JobSucceeded, CompletedBy: "att_1", CreatedAt: happened, FinishedAt: happened, PurgedAt: happened}
	body, err := httpapi.WebhookBody(onejob.Delivery{Event: onejob.WebhookJobSucceeded}, job)
	if err != nil || !strings.Contains(string(body), `"result_omitted":true`) || strings.Contains(string(body), `"result":`) {
		t.Errorf("body %s, %v; want result_omitted, and no result", body, err)
	}
}

func asJSON(body string) *onejob.Result {
	return &onejob.Result{ContentType: "application/json", Body: []byte(body)}
}

func TestAWebhookTellsTheJobWithoutItsAttempts(t *testing.T) {
	t.Parallel()

	body, raw := told(t, onejob.Delivery{Event: onejob.WebhookJobSucceeded}, asJSON(`{"charge": 10000000000000000001}`))
	data, _ := body["data"].(map[string]any)
	if !strings.HasSuffix(raw, `,"result":{"charge": 10000000000000000001}}}`) {
		t.Errorf("the result is not the provider's own bytes, last: %s", raw)
	}
	delete(data, "result")
	want := map[string]any{
		"type": "job.succeeded", "timestamp": "2026-01-02T02:04:05.678Z",
		"data": map[string]any{
			"id": "job_1", "kind": "charge", "owner": "shop", "state": "succeeded", "version": 1.0, "revision": 4.0,
			"completed_by": "att_2", "cost": []any{}, "metadata": map[string]any{"a": 1.0},
			"created_at": "2026-01-02T02:03:05.678Z", "finished_at": "2026-01-02T02:04:05.678Z",
		},
	}
	if diff := cmp.Diff(want, body); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

func TestAWebhookAboutAnAttemptNamesIt(t *testing.T) {
	t.Parallel()

	body, _ := told(t, onejob.Delivery{Event: onejob.WebhookDuplicateEffect, AttemptID: "att_1"}, nil)
	data, _ := body["data"].(map[string]any)
	if data["attempt_id"] != "att_1" || body["type"] != "incident.duplicate_effect" || data["attempts"] != nil {
		t.Errorf("body %v; want the incident of att_1, and no attempts", body)
	}
}

func TestALongResultIsLeftToBeRead(t *testing.T) {
	t.Parallel()

	fits := `"` + strings.Repeat("x", 256<<10-2) + `"`
	tests := []struct {
		name    string
		result  *onejob.Result
		omitted bool
		want    any
	}{
		{"Fits", asJSON(fits), false, fits[1 : len(fits)-1]},
		{"OneByteMore", asJSON(fits[:1] + "x" + fits[1:]), true, nil},
		{"Lost", &onejob.Result{Lost: true}, false, nil},
		{"LongButNotJSON", &onejob.Result{ContentType: "image/png", Body: make([]byte, 1<<20)}, false, map[string]any{
			"content_type": "image/png", "size": float64(1 << 20), "url": "/v1/jobs/job_1/result",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			body, raw := told(t, onejob.Delivery{Event: onejob.WebhookJobSucceeded}, tt.result)
			data, _ := body["data"].(map[string]any)
			if omitted, _ := data["result_omitted"].(bool); omitted != tt.omitted {
				t.Errorf("result_omitted %t; want %t", omitted, tt.omitted)
			}
			if _, there := data["result"]; there == tt.omitted {
				t.Errorf("a result is there: %t; want %t", there, !tt.omitted)
			}
			if diff := cmp.Diff(tt.want, data["result"]); diff != "" {
				t.Errorf("result (-want +got), %d bytes in all:\n%.300s", len(raw), diff)
			}
		})
	}
}
