package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/onejob-dev/onejob/sim"
)

// playTimeout lets a provider be slower than the caller's patience.
func playTimeout(ctx context.Context, s *stage) error {
	s.scene("The provider does the work at once and answers after 1.2 s; we wait 300 ms. Queues call that failed and run it again, gateways start the fallback: both execute twice. Here it is unknown, and unknown blocks.")
	s.primary.Script(sim.MustParse("late=1200ms")...)
	if err := s.open(ctx, `{effect: external, targets: [acme, backup], timeout: 300ms, linger: 10s, failover: {declared: "both charge the same account"}}`, ""); err != nil {
		return err
	}
	first, err := s.submit(ctx, "order-9", "9", 100)
	if err != nil {
		return err
	}
	s.say("caller", "POST order-9: %d %s", first.status, first.body.ID)
	if _, err := s.untilState(ctx, first.body.ID, "blocked"); err != nil {
		return err
	}
	refused, err := s.send(ctx, http.MethodPost, "/v1/jobs/"+first.body.ID+"/attempts", `{"target":"backup"}`, "Idempotency-Key", "press-1")
	if err != nil {
		return err
	}
	s.say("caller", "presses the fallback button: %d %s", refused.status, refused.body.Code)
	s.say("database", "keeps at most one attempt in doubt: a partial unique index")
	done, err := s.untilState(ctx, first.body.ID, "succeeded")
	if err != nil {
		return err
	}
	s.say("provider", "the late answer on the open connection settled attempt 1")
	n, m := s.primary.Executions("9"), s.fallback.Executions("9")
	s.count("silent attempt was unknown, the second refused, the late answer won; %d execution at the primary, %d at the fallback", n, m)
	return errors.Join(
		expect("the button's answer", refused.body.Code, "attempt-unresolved"),
		expect("attempts", len(done.body.Attempts), 1),
		expect("executions at the primary", n, 1),
		expect("executions at the fallback", m, 0),
	)
}

// playReverseFinish lets a fallback win and the first attempt come back later.
func playReverseFinish(ctx context.Context, s *stage) error {
	s.scene("The first attempt is silent. A person is sure that it failed and says so, after the quarantine; the fallback wins; then the first comes back with a success. In most queues the last writer wins. Here the slot is taken: the late result is kept as evidence, and an incident is raised.")
	s.primary.Script(sim.MustParse("late=3s")...)
	kind := `{effect: none, targets: [acme, backup], timeout: 200ms, linger: 20s, send_within: 200ms, failover: {declared: "both draw the same picture"}}`
	if err := s.open(ctx, kind, "    max_execution: 200ms"); err != nil {
		return err
	}
	first, err := s.submit(ctx, "order-5", "5", 100)
	if err != nil {
		return err
	}
	s.say("caller", "POST order-5: %d %s", first.status, first.body.ID)
	blocked, err := s.untilState(ctx, first.body.ID, "blocked")
	if err != nil {
		return err
	}
	loser := blocked.body.Attempts[0].ID
	if err := s.ruleFailed(ctx, loser, "executed_failed"); err != nil {
		return err
	}
	won, err := s.untilState(ctx, first.body.ID, "succeeded")
	if err != nil {
		return err
	}
	s.say("job", "attempt %d at %s won the result slot", won.body.Attempts[1].Number, won.body.Attempts[1].Target)
	late, err := s.untilDiscarded(ctx, loser)
	if err != nil {
		return err
	}
	after, err := s.job(ctx, first.body.ID)
	if err != nil {
		return err
	}
	s.say("attempt 1", "came back %d ms after the winner: discarded", late.Discarded.AfterMS)
	incidents, err := s.incidents(ctx, "duplicate_effect")
	if err != nil {
		return err
	}
	s.say("server", "raised %s incident: the effect may have happened twice", incidents)
	s.count("2 attempts finished in reverse order, 1 result, the late one discarded and an incident raised; %d execution at each provider", s.primary.Executions("5"))
	return errors.Join(
		expect("incidents", incidents, "1"),
		expect("the winner", after.body.CompletedBy, won.body.CompletedBy),
		expect("the winner is the fallback", won.body.CompletedBy, won.body.Attempts[1].ID),
		expect("the loser's winner", late.Discarded.Winner, won.body.CompletedBy),
		expect("the job's version", after.body.Version, won.body.Version),
		expect("the job's result", string(after.body.Result), string(won.body.Result)),
		expect("executions at the primary", s.primary.Executions("5"), 1),
		expect("executions at the fallback", s.fallback.Executions("5"), 1),
	)
}

// ruleFailed resolves an attempt as failed, waiting out its quarantine.
func (s *stage) ruleFailed(ctx context.Context, id, proves string) error {
	said := false
	return s.until(ctx, "the ruling is accepted", func() (bool, error) {
		r, err := s.send(ctx, http.MethodPost, "/v1/attempts/"+id+"/resolve",
			`{"outcome":"failed","proves":"`+proves+`","evidence":"their dashboard says so"}`)
		switch {
		case err != nil:
			return false, err
		case r.body.Code == "quarantined" && !said:
			said = true
			s.say("operator", "rules attempt 1 failed: %d %s, it may still be working", r.status, r.body.Code)
			return false, nil
		case r.body.Code == "quarantined":
			return false, nil
		case r.status != http.StatusOK:
			return false, fmt.Errorf("the ruling was answered %d %s: %s", r.status, r.body.Code, r.body.Detail)
		}
		s.say("operator", "rules attempt 1 failed after the quarantine: %d", r.status)
		return true, nil
	})
}

func (s *stage) untilDiscarded(ctx context.Context, id string) (attempt, error) {
	var a attempt
	err := s.until(ctx, "the late answer is discarded", func() (bool, error) {
		var err error
		a, err = s.attempt(ctx, id)
		return a.State == "discarded" && a.Discarded != nil, err
	})
	return a, err
}

// releaseUntilDiscarded lets what the primary holds go: when the winner has won, and
// not by a clock that a busy machine outruns.
func (s *stage) releaseUntilDiscarded(ctx context.Context, id string) (attempt, error) {
	var a attempt
	err := s.until(ctx, "the late answer is discarded", func() (bool, error) {
		s.primary.Release() // each time: it may not have come yet
		var err error
		a, err = s.attempt(ctx, id)
		return a.State == "discarded" && a.Discarded != nil, err
	})
	return a, err
}

// playRestart kills the server in the middle of work.
func playRestart(ctx context.Context, s *stage) error {
	s.scene("The server is killed with -9 while one charge is at the provider and others wait. After the restart every acknowledged job is there; what was on the wire is unknown, since nobody can know; the rest is done once.")
	const waiting = 12
	s.primary.Script(sim.MustParse("silent", "silent", "silent", "silent")...) // as many as there are slots
	if err := s.open(ctx, "{effect: external, targets: [acme], timeout: 30s, linger: 30s}", ""); err != nil {
		return err
	}
	ids, err := s.submitMany(ctx, waiting)
	if err != nil {
		return err
	}
	s.say("caller", "%d jobs acknowledged", len(ids))
	if err := s.until(ctx, "four charges are at the provider", func() (bool, error) { return s.primary.Requests() >= 4, nil }); err != nil {
		return err
	}
	sent := int(s.primary.Requests())
	s.say("provider", "%d charges are on the wire, unanswered", sent)
	if err := s.kill(); err != nil {
		return err
	}
	s.say("server", "killed with -9")
	if err := s.serve(ctx); err != nil {
		return err
	}
	s.say("server", "restarted on the same store")
	return s.checkRestart(ctx, ids, sent)
}

func (s *stage) submitMany(ctx context.Context, n int) ([]string, error) {
	ids := make([]string, n)
	for i := range ids {
		r, err := s.submit(ctx, fmt.Sprintf("key-%d", i), fmt.Sprintf("order-%d", i), i)
		if err != nil {
			return nil, err
		}
		ids[i] = r.body.ID
	}
	return ids, nil
}

// checkRestart sends every intent again and counts where each one stands.
func (s *stage) checkRestart(ctx context.Context, ids []string, sent int) error {
	for i, id := range ids {
		r, err := s.submit(ctx, fmt.Sprintf("key-%d", i), fmt.Sprintf("order-%d", i), i)
		if err != nil {
			return err
		}
		if err := expect(fmt.Sprintf("the id of key-%d", i), r.body.ID, id); err != nil {
			return err
		}
	}
	s.say("caller", "sends all %d again: the same %d ids", len(ids), len(ids))
	states := map[string]int{}
	err := s.until(ctx, "every job has settled", func() (bool, error) {
		clear(states)
		for _, id := range ids {
			r, err := s.job(ctx, id)
			if err != nil {
				return false, err
			}
			states[r.body.State]++
		}
		return states["succeeded"]+states["blocked"] == len(ids), nil
	})
	if err != nil {
		return err
	}
	s.say("job", "%d succeeded, %d blocked by an unknown attempt, 0 lost", states["succeeded"], states["blocked"])
	twice := len(s.primary.Duplicates())
	s.count("%d acknowledged, %d there after kill -9, %d unknown, %d succeeded; %d executed twice at the provider",
		len(ids), len(ids), states["blocked"], states["succeeded"], twice)
	return errors.Join(
		expect("unknown attempts", states["blocked"], sent),
		expect("orders executed more than once", twice, 0),
		expect("executions", int(s.primary.TotalExecutions()), len(ids)),
	)
}
