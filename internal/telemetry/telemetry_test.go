package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/telemetry"
)

func scrape(t *testing.T, m *telemetry.Metrics) string {
	t.Helper()
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	if rec.Code != 200 {
		t.Fatalf("scrape: status %d: %s", rec.Code, rec.Body)
	}
	return rec.Body.String()
}

func wantLines(t *testing.T, got string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("the scrape lacks %q", line)
		}
	}
}

func TestEverythingThatHappensIsCounted(t *testing.T) {
	t.Parallel()
	m := telemetry.NewMetrics(telemetry.Options{Kinds: []string{"summarise"}, Version: "v1.2.3", Revision: "abc"})
	m.JobSubmitted("summarise", "new")
	m.JobSubmitted("summarise", "replayed")
	m.AttemptStarted("acme")
	m.AttemptStarted("acme")
	m.AttemptEnded("acme", onejob.OutcomeUnknown, 1500*time.Millisecond)
	m.RaceLost("acme")
	m.Incident(onejob.EventDuplicateEffect)
	m.Blocked(onejob.BlockAttemptUnknown)
	m.Swept(3)
	m.ProbeAnswered("acme", onejob.ProbeLookup, onejob.OutcomeSucceeded)
	m.ProbeAnswered("acme", onejob.ProbeLookup, "")
	m.PeopleAsked(2)
	m.CallbackRefused("token")
	m.UnknownResolved("operator", onejob.OutcomeNotExecuted)
	m.WebhookTried("ep_1", "retrying", 3*time.Second)
	m.RequestServed("POST", "/v1/jobs", 202, 3*time.Millisecond)

	wantLines(t, scrape(t, m),
		`onejob_jobs_created_total{kind="summarise",result="new"} 1`,
		`onejob_jobs_created_total{kind="summarise",result="replayed"} 1`,
		`onejob_attempts_total{outcome="unknown",target="acme"} 1`,
		`onejob_attempt_duration_seconds_bucket{outcome="unknown",target="acme",le="1"} 0`,
		`onejob_attempt_duration_seconds_bucket{outcome="unknown",target="acme",le="2.5"} 1`,
		`onejob_attempts_inflight{target="acme"} 1`,
		`onejob_races_total{target="acme"} 1`,
		`onejob_incidents_total{kind="duplicate_effect"} 1`,
		`onejob_guard_blocks_total{reason="attempt_unknown"} 1`,
		`onejob_attempts_swept_total 3`,
		`onejob_probes_total{method="lookup",outcome="succeeded",target="acme"} 1`,
		`onejob_probes_total{method="lookup",outcome="nothing",target="acme"} 1`,
		`onejob_people_asked_total 2`,
		`onejob_callbacks_refused_total{reason="token"} 1`,
		`onejob_unknown_resolved_total{as="not_executed",by="operator"} 1`,
		`onejob_webhook_tries_total{endpoint="ep_1",result="retrying"} 1`,
		`onejob_webhook_try_duration_seconds_sum{endpoint="ep_1"} 3`,
		`onejob_http_request_duration_seconds_count{method="POST",route="/v1/jobs",status="202"} 1`,
		`onejob_build_info{revision="abc",version="v1.2.3"} 1`,
	)
}

func TestACallerCannotMakeUpLabels(t *testing.T) {
	t.Parallel()
	m := telemetry.NewMetrics(telemetry.Options{Kinds: []string{"summarise"}})
	for _, kind := range []string{"a", "b", "c\n{}"} {
		m.JobSubmitted(kind, "conflict")
	}
	wantLines(t, scrape(t, m), `onejob_jobs_created_total{kind="other",result="conflict"} 3`)
}

func TestGaugesAreReadFromTheStoreWhenScraped(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000, 0)
	m := telemetry.NewMetrics(telemetry.Options{
		NowFunc: func() time.Time { return now },
		StatsFunc: func(context.Context) (onejob.Stats, error) {
			return onejob.Stats{
				Jobs:            map[onejob.JobState]int64{onejob.JobBlocked: 2},
				Blocked:         map[onejob.BlockReason]int64{onejob.BlockAttemptUnknown: 2},
				UnknownByTarget: map[string]int64{"acme": 2},
				OldestUnknown:   now.Add(-time.Minute),
				OldestQueued:    now.Add(time.Second), // by a clock that is ahead of ours

				PendingDeliveries: 3, OldestDelivery: now.Add(-time.Hour),
			}, nil
		},
	})
	wantLines(t, scrape(t, m),
		`onejob_jobs_live{state="blocked"} 2`, `onejob_jobs_live{state="queued"} 0`,
		`onejob_jobs_blocked{reason="attempt_unknown"} 2`,
		`onejob_unknown_attempts{target="acme"} 2`,
		`onejob_unknown_oldest_age_seconds 60`, `onejob_jobs_oldest_due_age_seconds 0`,
		`onejob_webhooks_pending 3`, `onejob_webhooks_oldest_pending_age_seconds 3600`, `onejob_store_up 1`,
	)
}

func TestAStoreThatIsDownLeavesItsGaugesOutAndTheRestIn(t *testing.T) {
	t.Parallel()
	m := telemetry.NewMetrics(telemetry.Options{
		StatsFunc: func(context.Context) (onejob.Stats, error) { return onejob.Stats{}, errors.New("down") },
	})
	got := scrape(t, m)
	wantLines(t, got, `onejob_store_up 0`)
	if strings.Contains(got, "onejob_unknown_oldest_age_seconds ") {
		t.Error("the scrape tells an age that nobody knows")
	}
	if !strings.Contains(got, "go_goroutines ") {
		t.Error("the scrape lacks the Go runtime's metrics")
	}
}

func TestWithoutATerminalTheLogIsJSON(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log, err := telemetry.NewLogger(&out, telemetry.LogOptions{})
	if err != nil {
		t.Fatal(err)
	}
	log.Debug("not shown")
	log.Info("shown", slog.String("job_id", "job_1"))
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line["msg"] != "shown" || line["job_id"] != "job_1" {
		t.Errorf("log %q (%v); want one JSON line", out.String(), err)
	}
}

func TestTextHasNoColourWithoutATerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log, err := telemetry.NewLogger(&out, telemetry.LogOptions{Format: telemetry.LogText})
	if err != nil {
		t.Fatal(err)
	}
	log.Info("shown", slog.String("job_id", "job_1"))
	if got := out.String(); !strings.Contains(got, "job_id=job_1") || strings.Contains(got, "\x1b") {
		t.Errorf("log %q; want plain text", got)
	}
	if _, err := telemetry.NewLogger(&out, telemetry.LogOptions{Format: "xml"}); onejob.CodeOf(err) != onejob.CodeInvalidArgument {
		t.Errorf("format xml: %v; want %s", err, onejob.CodeInvalidArgument)
	}
}
