package httpapi

import (
	"net/http"
	"time"

	"github.com/onejob-dev/onejob"
)

// Delivery is one webhook to one endpoint.
type Delivery struct {
	ID         string               `json:"id" doc:"The webhook-id that every try carries"`
	JobID      string               `json:"job_id"`
	AttemptID  string               `json:"attempt_id,omitzero" doc:"Absent: it concerns no attempt"`
	Endpoint   string               `json:"endpoint" doc:"The id of the endpoint; see /v1/webhook-endpoints"`
	Event      onejob.WebhookEvent  `json:"event"`
	State      onejob.DeliveryState `json:"state"`
	Tries      int                  `json:"tries" doc:"Made since it was created or resent"`
	Status     int                  `json:"status,omitzero" doc:"HTTP status of the last try; absent: none came"`
	Error      string               `json:"error,omitzero" doc:"What was wrong with the last try"`
	CreatedAt  time.Time            `json:"created_at"`
	DueAt      time.Time            `json:"due_at,omitzero" doc:"When the next try is due, while pending"`
	FinishedAt time.Time            `json:"finished_at,omitzero" doc:"When it was delivered or given up"`
}

// DeliveryList is one page of webhooks, newest first.
type DeliveryList struct {
	Items      []Delivery `json:"items" nullable:"false"`
	NextCursor string     `json:"next_cursor,omitzero" doc:"Absent: this is the last page"`
}

func deliveryOf(d *onejob.Delivery) Delivery {
	return Delivery{
		ID: d.ID, JobID: d.JobID, AttemptID: d.AttemptID, Endpoint: d.Endpoint, Event: d.Event, State: d.State,
		Tries: d.Tries, Status: d.Status, Error: d.Error,
		CreatedAt: d.CreatedAt.UTC(), DueAt: utc(d.DueAt), FinishedAt: utc(d.FinishedAt),
	}
}

func writeDelivery(w http.ResponseWriter, d *onejob.Delivery) error {
	body, err := encode(deliveryOf(d))
	if err != nil {
		return err
	}
	write(w, http.StatusOK, "application/json", body)
	return nil
}

func writeDeliveries(w http.ResponseWriter, page *onejob.DeliveryPage) error {
	items := make([][]byte, len(page.Deliveries))
	for i := range page.Deliveries {
		var err error
		if items[i], err = encode(deliveryOf(&page.Deliveries[i])); err != nil {
			return err
		}
	}
	next := ""
	if n := len(page.Deliveries); page.More && n > 0 {
		next = cursorOf(page.Deliveries[n-1].CreatedAt, page.Deliveries[n-1].ID)
	}
	writeItems(w, items, next)
	return nil
}
