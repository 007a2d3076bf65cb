package memory

import (
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

// delivery is one row of the outbox.
type delivery struct {
	onejob.Delivery
	since time.Time // when it was made or last resent
}

// tell makes a delivery to every subscriber who wants the event. The end of a job
// is told to each endpoint once.
func (r *row) tell(now time.Time, e onejob.WebhookEvent, attemptID string) {
	told := map[string]bool{}
	for _, d := range r.told {
		if e.Terminal() && d.Event.Terminal() {
			told[d.Endpoint] = true
		}
	}
	for _, w := range r.job.Webhooks {
		if !w.Wants(e) || w.Endpoint == "" || told[w.Endpoint] {
			continue
		}
		told[w.Endpoint] = true
		r.told = append(r.told, &delivery{since: now, Delivery: onejob.Delivery{
			Part: r.job.Part, ID: onejob.NewDeliveryID(r.job.Part), JobID: r.job.ID, AttemptID: attemptID, Owner: r.job.Owner,
			Endpoint: w.Endpoint, Event: e, State: onejob.DeliveryPending, CreatedAt: now, DueAt: now,
		}})
	}
}

// tellDoubt tells of attempts that have entered unknown.
func (r *row) tellDoubt(now time.Time) {
	if len(r.job.Webhooks) == 0 {
		return
	}
	for i := range r.job.Attempts {
		a := &r.job.Attempts[i]
		if a.State != onejob.AttemptUnknown || r.doubt(a).told {
			continue
		}
		r.doubt(a).told = true
		r.tell(now, onejob.WebhookAttemptUnknown, a.ID)
	}
}

// tellEnd tells of the end of the job.
func (r *row) tellEnd(now time.Time) {
	if e, ended := r.job.State.Webhook(); ended {
		r.tell(now, e, "")
	}
}

// post puts what the row tells into the outbox.
func (s *Store) post(r *row) {
	for _, d := range r.told {
		s.outbox[d.ID] = d
	}
}

// telling reports whether a delivery of the job is still to be made.
func (r *row) telling() bool {
	return slices.ContainsFunc(r.told, func(d *delivery) bool { return d.State == onejob.DeliveryPending })
}
