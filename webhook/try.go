package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/onejob-dev/onejob"
)

// try sends one delivery once and writes down what came of it. One that is cut off
// is not written down: its lease ends, and it is sent again under the same id.
func (s *Sender) try(ctx context.Context, d *onejob.Delivery) {
	e := s.endpoints[d.Endpoint]
	began := time.Now()
	body, err := s.bodyOf(ctx, d)
	if errors.Is(err, errUnread) {
		s.complain("the job of a webhook could not be read", err, "delivery", d.ID)
		return
	}
	var got answer
	if err == nil {
		got, err = s.post(ctx, e, d.ID, body)
	}
	if err != nil && ctx.Err() != nil {
		return
	}
	record, result := s.judge(d, got, err)
	record.Body = body
	if result == ResultGone {
		s.disable(ctx, d.Endpoint)
	}
	if err := s.recorder.record(ctx, record); err != nil {
		// The lease ends and it is sent again: at least once, and never under another id.
		s.complain("a webhook's try could not be written down; it may be sent again, under the same id", err, "delivery", d.ID)
	}
	s.tell(d, record, result, time.Since(began))
}

// errUnread says that a job is not known now, which is no fault of the endpoint.
var errUnread = errors.New("the store did not answer")

// bodyOf returns what the first try sent, or makes it. The job is read after the
// claim, and so after the commit that the webhook tells of.
func (s *Sender) bodyOf(ctx context.Context, d *onejob.Delivery) ([]byte, error) {
	if len(d.Body) > 0 {
		return d.Body, nil
	}
	found, err := s.store.JobGet(ctx, []onejob.JobGetParams{{ID: d.JobID}})
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errUnread, err)
	case len(found) != 1 || found[0].Err != nil || found[0].Job == nil:
		return nil, errors.New("the job is not in the store")
	}
	body, err := s.opts.BodyFunc(*d, found[0].Job)
	if err != nil {
		s.opts.Logger.Error("a webhook's body could not be made", "delivery", d.ID, "job_id", d.JobID, "err", err)
		return nil, errors.New("its body could not be made")
	}
	return body, nil
}

// judge says where a delivery stands after a try. Only a 2xx is a delivery: a
// redirect is not followed, and so is a failure like any other.
func (s *Sender) judge(d *onejob.Delivery, got answer, err error) (onejob.DeliveryRecordParams, Result) {
	r := onejob.DeliveryRecordParams{ID: d.ID, Tries: d.Tries, Resent: d.Resent, Status: got.status, State: onejob.DeliveryFailed}
	switch {
	case err != nil:
		r.Error = short(err.Error())
	case got.status >= 200 && got.status < 300:
		r.State = onejob.DeliveryDelivered
		return r, ResultDelivered
	case got.status == http.StatusGone:
		r.Error = "it answered 410: it is gone, and disabled"
		return r, ResultGone
	case got.status >= 300 && got.status < 400:
		r.Error = fmt.Sprintf("it answered %d; redirects are not followed", got.status)
	default:
		r.Error = fmt.Sprintf("it answered %d", got.status)
	}
	pause, more := pauseAfter(s.opts.Schedule, d.Tries+1, got.retryAfter)
	if !more {
		return r, ResultFailed
	}
	r.State, r.After = onejob.DeliveryPending, pause
	return r, ResultRetrying
}

// disable keeps what else is due from being sent. The reason is for a person.
func (s *Sender) disable(ctx context.Context, endpoint string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if err := s.store.EndpointDisable(ctx, endpoint, "it answered 410 Gone"); err != nil {
		s.complain("an endpoint that is gone could not be disabled", err, "endpoint", endpoint)
	}
}

// tell counts a try, and logs what a person may want to know of.
func (s *Sender) tell(d *onejob.Delivery, r onejob.DeliveryRecordParams, result Result, took time.Duration) {
	if s.opts.Observer != nil {
		s.opts.Observer.WebhookTried(d.Endpoint, result, took)
	}
	attrs := []any{
		"delivery", d.ID, "endpoint", d.Endpoint, "host", s.endpoints[d.Endpoint].Host(), "event", string(d.Event),
		"job_id", d.JobID, "tries", d.Tries + 1, "status", r.Status,
	}
	switch result {
	case ResultDelivered:
		s.opts.Logger.Debug("a webhook was delivered", attrs...)
	case ResultRetrying:
		s.opts.Logger.Info("a webhook was not delivered; it is tried again", append(attrs, "why", r.Error, "after", r.After.Round(time.Millisecond).String())...)
	case ResultFailed:
		s.opts.Logger.Warn("a webhook was given up", append(attrs, "why", r.Error)...)
	case ResultGone:
		s.opts.Logger.Warn("an endpoint is gone and was disabled", append(attrs, "why", r.Error)...)
	}
}
