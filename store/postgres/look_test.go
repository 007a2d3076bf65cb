package postgres_test

import (
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
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
				Targets: []string{"a"}, Askable: []string{"a"}, Endpoints: []string{"ep_1"}, Soon: 8 * time.Second,
			})
			if err != nil || got != tt.want {
				t.Errorf("found %+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
}
