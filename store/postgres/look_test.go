package postgres_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/postgres"
)

func TestALookFindsWhatThereIsToDoAndNothingElse(t *testing.T) {
	t.Parallel()

	const (
		queued  = "UPDATE job_states SET next_target = 'b' WHERE job_id = 'job_charge'; "
		renewed = "UPDATE attempts SET lease_expires_at = now() + interval '1 hour' WHERE id = 'att_racing'; "
		unknown = renewed + "UPDATE attempts SET state = 'unknown', outcome = 'unknown', probe_at = now() + interval '1 hour', ask_at = now() + interval '1 hour' WHERE id = 'att_racing'; "
		webhook = `INSERT INTO deliveries (part, id, job_id, endpoint, event, created_at, since, due_at) VALUES (1, 'msg_1', 'job_done', 'ep_1', 'job.succeeded', now(), now(), now()); `
	)
	tests := []struct {
		name, sql string
		want      onejob.WorkFound
	}{
		{"Nothing", queued + renewed, onejob.WorkFound{}},
		{"AJobThatIsDue", renewed, onejob.WorkFound{Due: true}},
		{"AJobThatIsDueInAMoment", renewed + "UPDATE job_states SET due = false, run_after = now() + interval '4 seconds' WHERE job_id = 'job_charge'", onejob.WorkFound{Due: true}},
		{"AJobThatIsDueLater", renewed + "UPDATE job_states SET due = false, run_after = now() + interval '1 minute' WHERE job_id = 'job_charge'", onejob.WorkFound{}},
		{"ALeaseThatIsOver", queued, onejob.WorkFound{Expired: true}},
		{"ADeadline", queued + renewed + "UPDATE job_states SET deadline = now() WHERE job_id = 'job_charge'", onejob.WorkFound{Undecided: true}},
		{"AnAttemptInDoubtForLater", queued + unknown, onejob.WorkFound{}},
		{"AQuestion", queued + unknown + "UPDATE attempts SET probe_at = now() WHERE id = 'att_racing'", onejob.WorkFound{Questions: true}},
		{"APersonToAsk", queued + unknown + "UPDATE attempts SET ask_at = now() WHERE id = 'att_racing'", onejob.WorkFound{Unasked: true}},
		{"ACancel", queued + renewed + "UPDATE job_states SET cancel_requested_at = now() WHERE job_id IN ('job_racing', 'job_charge')", onejob.WorkFound{Cancelled: []string{"job_racing"}}},
		{"AWebhook", queued + renewed + webhook, onejob.WorkFound{Outbox: true}},
		{"AWebhookForWhoIsDisabled", queued + renewed + webhook + "INSERT INTO webhook_endpoints (id, disabled_at, reason) VALUES ('ep_1', now(), 'x')", onejob.WorkFound{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			url := schema(t)
			if err := execute(t, url, sqlVictims+tt.sql); err != nil {
				t.Fatal(err)
			}
			got, err := open(t, url).WorkLook(t.Context(), onejob.WorkLookParams{
				Targets: []string{"a"}, Askable: []string{"a"}, Endpoints: []string{"ep_1"},
				Held: []onejob.JobRef{{Part: 1, ID: "job_racing"}, {Part: 1, ID: "job_done"}}, Soon: 8 * time.Second,
			})
			if len(got.Cancelled) == 0 {
				got.Cancelled = nil
			}
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("found %+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
}

// A look that reads more than what is due would cost an idle node as much as a full
// store has rows.
func TestALookGoesByTheIndexesOverWhatIsDue(t *testing.T) {
	t.Parallel()

	conn, err := pgx.Connect(t.Context(), schema(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET plan_cache_mode = force_generic_plan"); err != nil {
		t.Fatal(err)
	}
	rows, err := conn.Query(t.Context(), "EXPLAIN "+postgres.SQLWorkLook, []string{"a"}, []string{"a"}, 1, []string{"ep_1"}, []int16{1}, []string{"job_1"})
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	plan := strings.Join(lines, "\n")
	for _, index := range []string{
		"job_states_due", "job_states_later", "attempts_leases", "job_states_deadline", "job_states_to_free", "attempts_to_probe", "attempts_to_ask", "deliveries_due",
	} {
		if !strings.Contains(plan, " using "+index+" ") && !strings.Contains(plan, " on "+index+" ") {
			t.Errorf("the look does not go by %s:\n%s", index, plan)
		}
	}
}
