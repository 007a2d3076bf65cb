package demo

import (
	"context"
	"errors"

	"github.com/onejob-dev/onejob/sim"
)

// playReconcile lets a provider do the work and never answer.
func playReconcile(ctx context.Context, s *stage) error {
	s.scene("The provider does the work and never answers. Running it again would charge twice, and giving up would lose a charge that happened. Here nothing is sent again: the provider is asked, by the key that it got, and its word settles the attempt.")
	if err := s.replacePrimary(sim.Options{IntentFunc: sim.IntentHeader("Idempotency-Key")}); err != nil {
		return err
	}
	s.primary.Script(sim.MustParse("silent")...)
	err := s.open(ctx, "{effect: external, targets: [acme], timeout: 300ms, linger: 20s}", `    max_execution: 1m
    lookup:
      url: "`+s.primary.URL()+`/v1/charges?intent={key}"
      every: 200ms
      running: "body.data.exists(c, c.status == 'processing')"
      succeeded: "body.data.exists(c, c.status == 'succeeded')"
      result: "body.data[0]"`)
	if err != nil {
		return err
	}
	first, err := s.submit(ctx, "order-31", "31", 100)
	if err != nil {
		return err
	}
	s.say("caller", "POST order-31: %d %s", first.status, first.body.ID)
	s.say("provider", "did the work and says nothing")
	done, err := s.untilState(ctx, first.body.ID, "succeeded")
	if err != nil {
		return err
	}
	s.say("job", "succeeded: the look-up found the charge that nobody had confirmed")
	n := s.primary.TotalExecutions()
	s.count("an attempt that never answered was found by a look-up; %d attempt, %d execution", len(done.body.Attempts), n)
	return errors.Join(
		expect("attempts", len(done.body.Attempts), 1),
		expect("a result is there", len(done.body.Result) > 0, true),
		expect("executions", int(n), 1),
	)
}

// replacePrimary starts the primary anew with other options.
func (s *stage) replacePrimary(opts sim.Options) error {
	if err := s.primary.Close(); err != nil {
		return err
	}
	var err error
	s.primary, err = sim.Start("127.0.0.1:0", opts)
	return err
}
