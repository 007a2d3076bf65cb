package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// claimed is an attempt in a worker's hands.
type claimed struct {
	Attempt    attempt         `json:"attempt"`
	JobID      string          `json:"job_id"`
	ClaimToken string          `json:"claim_token"`
	Input      json.RawMessage `json:"input"`
}

// playWorker freezes a worker twice: once nothing replaces it, once somebody does.
func playWorker(ctx context.Context, s *stage) error {
	s.scene("Workers pull the charges over HTTP. One claims and freezes: no heartbeat, no word. Most queues hand its job to the next worker, and both charge. Here the attempt is unknown and handed to nobody. When the worker wakes, its answer wins if nothing replaced it, and is discarded if something did.")
	if err := s.open(ctx, "{effect: external, targets: [pool], timeout: 20s, backoff: {initial: 10ms, max: 10ms}}", ""); err != nil {
		return err
	}
	if err := s.wakeAlone(ctx); err != nil {
		return err
	}
	return s.wakeReplaced(ctx)
}

// freeze submits an order, lets worker A claim it and stay silent until its lease
// is over, and makes sure that worker B gets nothing.
func (s *stage) freeze(ctx context.Context, order string) (claimed, error) {
	first, err := s.submit(ctx, "order-"+order, order, 100)
	if err != nil {
		return claimed{}, err
	}
	s.say("caller", "POST order-%s: %d %s", order, first.status, first.body.ID)
	a, err := s.pull(ctx, 10_000)
	if err != nil {
		return claimed{}, err
	}
	if err := expect("worker A's claims", len(a), 1); err != nil {
		return claimed{}, err
	}
	s.say("worker A", "claims attempt %d for 1 s, and freezes", a[0].Attempt.Number)
	if _, err := s.untilState(ctx, first.body.ID, "blocked"); err != nil {
		return claimed{}, err
	}
	b, err := s.pull(ctx, 0)
	if err != nil {
		return claimed{}, err
	}
	s.say("worker B", "claims: nothing to do, for A may have charged already")
	return a[0], expect("worker B's claims", len(b), 0)
}

// wakeAlone lets the frozen worker finish when nothing has replaced it.
func (s *stage) wakeAlone(ctx context.Context) error {
	a, err := s.freeze(ctx, "20")
	if err != nil {
		return err
	}
	r, err := s.finish(ctx, a, "A")
	if err != nil {
		return err
	}
	s.say("worker A", "wakes and finishes late: %d, %s, for nothing had replaced it", r.status, r.body.State)
	return expect("the late finish", r.body.State, "succeeded")
}

// wakeReplaced lets it finish after a person's ruling and another worker's success.
func (s *stage) wakeReplaced(ctx context.Context) error {
	a, err := s.freeze(ctx, "21")
	if err != nil {
		return err
	}
	if err := s.ruleFailed(ctx, a.Attempt.ID, "not_executed"); err != nil {
		return err
	}
	b, err := s.pull(ctx, 10_000)
	if err != nil {
		return err
	}
	if err := expect("worker B's claims after the ruling", len(b), 1); err != nil {
		return err
	}
	won, err := s.finish(ctx, b[0], "B")
	if err != nil {
		return err
	}
	s.say("worker B", "claims attempt %d and finishes: %s", b[0].Attempt.Number, won.body.State)
	late, err := s.finish(ctx, a, "A")
	if err != nil {
		return err
	}
	again, err := s.finish(ctx, a, "A")
	if err != nil {
		return err
	}
	s.say("worker A", "wakes and finishes late: %d, %s; says it again: %d, %s", late.status, late.body.State, again.status, again.body.State)
	job, err := s.job(ctx, a.JobID)
	if err != nil {
		return err
	}
	incidents, err := s.incidents(ctx, "duplicate_effect")
	if err != nil {
		return err
	}
	s.count("2 frozen workers, 2 unknown attempts, 0 handed to a second worker unruled; 1 late finish won, 1 discarded with %s incident; 1 result each", incidents)
	return errors.Join(
		expect("worker B's finish", won.body.State, "succeeded"),
		expect("worker A's late finish", late.body.State, "discarded"),
		expect("its repeat", again.body.State, "discarded"),
		expect("the winner", job.body.CompletedBy, b[0].Attempt.ID),
		expect("the result", string(job.body.Result), `{"by":"B"}`),
		expect("attempts", len(job.body.Attempts), 2),
		expect("incidents", incidents, "1"),
	)
}

// pull claims one attempt, waiting up to so many milliseconds for it.
func (s *stage) pull(ctx context.Context, waitMS int) ([]claimed, error) {
	r, err := s.send(ctx, http.MethodPost, "/v1/attempts:claim", fmt.Sprintf(`{"kinds":["charge"],"max":1,"lease_ms":1000,"wait_ms":%d}`, waitMS))
	if err == nil && r.status != http.StatusOK {
		err = fmt.Errorf("the claim was answered %d %s: %s", r.status, r.body.Code, r.body.Detail)
	}
	return r.body.Items, err
}

func (s *stage) finish(ctx context.Context, c claimed, by string) (reply, error) {
	body := fmt.Sprintf(`{"claim_token":%q,"outcome":"succeeded","result":{"by":%q}}`, c.ClaimToken, by)
	return s.send(ctx, http.MethodPost, "/v1/attempts/"+c.Attempt.ID+":finish", body)
}
