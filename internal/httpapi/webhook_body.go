package httpapi

import (
	"time"

	"github.com/onejob-dev/onejob"
)

// Webhook is the body of a webhook.
type Webhook struct {
	Type      onejob.WebhookEvent `json:"type"`
	Timestamp time.Time           `json:"timestamp" doc:"When it happened"`
	Data      WebhookJob          `json:"data"`
}

// WebhookJob is a job as a webhook tells of it: as GET /v1/jobs/{id} does, but for
// the attempts, of which some may still change.
type WebhookJob struct {
	Job
	Attempts []AttemptSummary `json:"attempts,omitzero" hidden:"true"` // hides the job's

	AttemptID     string `json:"attempt_id,omitzero" doc:"The attempt that the event is about"`
	ResultOmitted bool   `json:"result_omitted,omitzero" doc:"The result is longer than 256 KiB, and is read at /v1/jobs/{id}/result; or the webhook was resent after the job was purged, and it is gone"`
}

// maxWebhookResult bounds the result that a webhook brings along, in bytes.
const maxWebhookResult = 256 << 10

// WebhookBody returns what a webhook tells of a job, as it is when the webhook is
// first tried. Every later try sends the same bytes.
func WebhookBody(d onejob.Delivery, j *onejob.Job) ([]byte, error) {
	told := Webhook{
		Type: d.Event, Timestamp: d.CreatedAt.UTC(),
		Data: WebhookJob{Job: jobOf(j), AttemptID: d.AttemptID},
	}
	url := "/v1/jobs/" + j.ID + "/result"
	result := j.Result
	if j.Purged() && j.State == onejob.JobSucceeded {
		told.Data.ResultOmitted, result = true, nil
	}
	if result != nil && len(resultValue(result, url)) > maxWebhookResult {
		told.Data.ResultOmitted, result = true, nil
	}
	body, err := encode(told)
	if err != nil {
		return nil, err
	}
	data := withResult(body[:len(body)-1], result, url) // the job is the last member
	return append(data, '}'), nil
}
