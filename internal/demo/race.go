package demo

import (
	"context"
	"errors"

	"github.com/onejob-dev/onejob/sim"
)

// playRace starts a second lane beside a slow one.
func playRace(ctx context.Context, s *stage) error {
	s.scene("The work costs money only, and the primary is slow. After 300 ms another lane starts at the fallback, which answers first. The primary's answer comes later: there is one result, and the loser is kept with what it cost.")
	s.primary.Script(sim.MustParse("hold")...)
	kind := `{effect: none, targets: [acme, backup], timeout: 20s, race: {after: 300ms, lanes: 2}, failover: {declared: "both draw the same picture"}}`
	if err := s.open(ctx, kind, `    cost: body.cost_micros`); err != nil {
		return err
	}
	first, err := s.submit(ctx, "order-3", "3", 100)
	if err != nil {
		return err
	}
	s.say("caller", "POST order-3: %d %s", first.status, first.body.ID)
	won, err := s.untilState(ctx, first.body.ID, "succeeded")
	if err != nil {
		return err
	}
	if err := expect("attempts", len(won.body.Attempts), 2); err != nil {
		return err
	}
	loser, winner := won.body.Attempts[0], won.body.Attempts[1]
	s.say("attempt 2", "in lane 1 at %s won the result slot; attempt 1 is %s", winner.Target, loser.State)
	late, err := s.releaseUntilDiscarded(ctx, loser.ID)
	if err != nil {
		return err
	}
	s.say("attempt 1", "answered %d ms after the winner: discarded, %d micros booked", late.Discarded.AfterMS, late.CostMicros)
	after, err := s.job(ctx, first.body.ID)
	if err != nil {
		return err
	}
	incidents, err := s.incidents(ctx, "duplicate_effect")
	if err != nil {
		return err
	}
	n, m := s.primary.Executions("3"), s.fallback.Executions("3")
	s.count("2 lanes, 1 result, the fallback's; the slow one discarded with its cost of %d micros; %d and %d execution, no incident", late.CostMicros, n, m)
	return errors.Join(
		expect("the winner", after.body.CompletedBy, winner.ID),
		expect("the winner's target", winner.Target, "backup"),
		expect("whom the loser lost to", late.Discarded.Winner, winner.ID),
		expect("the loser's cost", late.CostMicros, costMicros),
		expect("the job's version", after.body.Version, won.body.Version),
		expect("the job's result", string(after.body.Result), string(won.body.Result)),
		expect("incidents", incidents, "0"),
		expect("executions at the primary", n, 1),
		expect("executions at the fallback", m, 1),
	)
}
