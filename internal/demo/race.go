package demo

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/onejob-dev/onejob/sim"
)

// playRace starts a second lane beside a slow one.
func playRace(ctx context.Context, s *stage) error {
	s.scene("The work costs money only, and the primary is slow. After 300 ms another lane starts at the fallback, which answers first. The primary's answer comes later: there is one result, and the loser is kept with what it cost.")
	s.primary.Script(sim.MustParse("hold")...)
	kind := `{effect: none, contract: charge.yaml, targets: [acme, backup], timeout: 20s, race: {after: 300ms, lanes: 2}, failover: {declared: "both draw the same picture"}}`
	if err := s.openRace(ctx, kind, `    cost: body.cost_micros`); err != nil {
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

// anyAnswer is a contract that every answer keeps.
const anyAnswer = `apiVersion: onejob/contract.v1
kind: charge
input_schema:
  type: object
  additionalProperties: false
  required: [order, amount]
  properties: {order: {type: string, maxLength: 100}, amount: {type: integer, minimum: 0}}
output: {media: binary}
cases: {files: [cases.jsonl], min_distinct: 5}
gates: {structure: {min_rate: 0.5, max_failures: 0}}
side_effects: none
failover: {automatic: true}
`

// openRace opens with the contract charge.yaml. A racing lane needs proof that its
// target may stand in; here it is a person's word for the fallback.
func (s *stage) openRace(ctx context.Context, kind, target string) error {
	cases := `{"id":"c-0","input":{"order":"","amount":0},"tags":["hostile"]}` + "\n"
	for i := 1; i < 5; i++ {
		cases += fmt.Sprintf(`{"id":"c-%d","input":{"order":"o-%d","amount":%d}}`+"\n", i, i, i)
	}
	for name, text := range map[string]string{"charge.yaml": anyAnswer, "cases.jsonl": cases} {
		if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	if err := s.open(ctx, kind, target); err != nil {
		return err
	}
	waive := s.command(ctx, "contract", "waive", "charge", "--target", "backup", "--reason", "both draw the same picture", "--until", "1h", "--config", "onejob.yaml", "--store", s.opts.Store)
	if _, err := waive.Output(); err != nil {
		return fmt.Errorf("could not waive: %w", explain(err))
	}
	return nil
}
