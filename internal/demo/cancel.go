package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// playCancel cancels three jobs: one whose work is finished after all, one that
// nothing was done for, and one that the provider takes its time to give up.
func playCancel(ctx context.Context, s *stage) error {
	s.scene("A customer clicks Cancel. Many systems mark the job cancelled and forget it, while the provider charges all the same. Here a cancel is a request: nothing new starts, the provider is asked to give up, and what it then says it did is what counts. Its acknowledgement alone is not.")
	desk, err := openDesk()
	if err != nil {
		return err
	}
	defer desk.close()
	err = s.open(ctx, "{effect: external, targets: [desk, acme], timeout: 10s}", `
  desk: # accepts a charge, works on it later, and can be asked to give it up
    provider: http
    request: {url: "`+desk.url()+`/v1/charges"}
    accepted: {when: "status == 202", id: body.id}
    lookup:
      url: "`+desk.url()+`/v1/charges/{id}"
      every: 100ms
      running: "body.status in ['processing', 'cancelling']"
      succeeded: "body.status == 'completed'"
      failed: "body.status == 'cancelled'"
    cancel: {url: "`+desk.url()+`/v1/charges/{id}/cancel"}`)
	if err != nil {
		return err
	}
	if err := s.cancelTooLate(ctx, desk); err != nil {
		return err
	}
	if err := s.cancelUntouched(ctx); err != nil {
		return err
	}
	polls, err := s.cancelSlowly(ctx, desk)
	if err != nil {
		return err
	}
	s.count("3 cancels: 1 in doubt that succeeded after all, %d execution; 1 with nothing in doubt, cancelled at once, %d executions; 1 acknowledged, asked about %d more times until the provider had given up, %d executions",
		desk.executions("51"), desk.executions("52"), polls, desk.executions("53"))
	return errors.Join(
		expect("executions of order 51", desk.executions("51"), 1),
		expect("executions of order 52", desk.executions("52"), 0),
		expect("executions of order 53", desk.executions("53"), 0),
		expect("executions at the fallback", int(s.primary.TotalExecutions()), 0),
	)
}

// accepted submits an order and waits until the provider has accepted it and was
// asked about it.
func (s *stage) accepted(ctx context.Context, d *desk, order string) (string, error) {
	first, err := s.submit(ctx, "order-"+order, order, 100)
	if err != nil {
		return "", err
	}
	s.say("caller", "POST order-%s: %d %s", order, first.status, first.body.ID)
	err = s.until(ctx, "the accepted charge is asked about", func() (bool, error) { return d.asked(order) > 0, nil })
	s.say("provider", "accepted the charge, and works on it")
	return first.body.ID, err
}

// cancel clicks on cancel while an attempt is in doubt: the job stays as it is.
func (s *stage) cancel(ctx context.Context, id string) error {
	r, err := s.send(ctx, http.MethodPost, "/v1/jobs/"+id+"/cancel", "")
	if err != nil {
		return err
	}
	s.say("customer", "clicks Cancel: %d, the job is still %s", r.status, r.body.State)
	return errors.Join(
		expect("the cancel's status", r.status, http.StatusAccepted),
		expect("the job's state after the cancel", r.body.State, "running"),
	)
}

// stillRunning waits until the provider was asked so many more times after it heard
// of the cancel, and makes sure that nothing came of its acknowledgement.
func (s *stage) stillRunning(ctx context.Context, d *desk, order, id string, polls int) error {
	err := s.until(ctx, "the provider has heard of the cancel", func() (bool, error) { return d.heard(order), nil })
	if err != nil {
		return err
	}
	before := d.asked(order)
	err = s.until(ctx, "the provider is asked again", func() (bool, error) { return d.asked(order) >= before+polls, nil })
	if err != nil {
		return err
	}
	r, err := s.job(ctx, id)
	if err != nil {
		return err
	}
	return errors.Join(
		expect("the job's state after the provider's acknowledgement", r.body.State, "running"),
		expect("attempts after the cancel", len(r.body.Attempts), 1),
	)
}

// cancelTooLate has the provider say that it cancelled, and complete all the same.
func (s *stage) cancelTooLate(ctx context.Context, d *desk) error {
	id, err := s.accepted(ctx, d, "51")
	if err != nil {
		return err
	}
	if err := s.cancel(ctx, id); err != nil {
		return err
	}
	button, err := s.send(ctx, http.MethodPost, "/v1/jobs/"+id+"/attempts", `{"target":"acme"}`, "Idempotency-Key", "press-51")
	if err != nil {
		return err
	}
	s.say("caller", "presses the fallback button: %d %s", button.status, button.body.Code)
	if err := s.stillRunning(ctx, d, "51", id, 2); err != nil {
		return err
	}
	s.say("provider", "answered the cancel with \"cancelled\", while a look-up says \"cancelling\": nobody believes it yet")
	d.complete("51")
	done, err := s.untilState(ctx, id, "succeeded")
	if err != nil {
		return err
	}
	s.say("provider", "completed after all: it happened and was paid, so the job succeeded")
	return errors.Join(
		expect("the button's status", button.status, http.StatusConflict),
		expect("attempts", len(done.body.Attempts), 1),
		expect("the winner", done.body.CompletedBy, done.body.Attempts[0].ID),
	)
}

// cancelUntouched cancels a job before anything was tried.
func (s *stage) cancelUntouched(ctx context.Context) error {
	body := fmt.Sprintf(`{"kind":"charge","input":{"order":"52","amount":100},"run_after":%q}`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	first, err := s.send(ctx, http.MethodPost, "/v1/jobs", body, "Idempotency-Key", "order-52")
	if err != nil {
		return err
	}
	s.say("caller", "POST order-52, not before an hour from now: %d %s", first.status, first.body.ID)
	r, err := s.send(ctx, http.MethodPost, "/v1/jobs/"+first.body.ID+"/cancel", "")
	if err != nil {
		return err
	}
	s.say("customer", "clicks Cancel: %d, the job is %s", r.status, r.body.State)
	return errors.Join(
		expect("the cancel's status", r.status, http.StatusOK),
		expect("the job's state", r.body.State, "cancelled"),
		expect("attempts", len(r.body.Attempts), 0),
	)
}

// cancelSlowly has the provider give up only after a while. It returns how often it
// was asked between its acknowledgement and that.
func (s *stage) cancelSlowly(ctx context.Context, d *desk) (polls int, err error) {
	id, err := s.accepted(ctx, d, "53")
	if err != nil {
		return 0, err
	}
	if err := s.cancel(ctx, id); err != nil {
		return 0, err
	}
	if err := s.stillRunning(ctx, d, "53", id, 3); err != nil {
		return 0, err
	}
	s.say("provider", "acknowledged the cancel and is \"cancelling\": asked again and again")
	polls = d.giveUp("53")
	done, err := s.untilState(ctx, id, "cancelled")
	if err != nil {
		return 0, err
	}
	s.say("provider", "gave the charge up: only now is the job cancelled")
	return polls, errors.Join(
		expect("attempts", len(done.body.Attempts), 1),
		expect("a result is there", len(done.body.Result) > 0, false),
	)
}
