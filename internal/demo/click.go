package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/onejob-dev/onejob/sim"
)

// playDoubleClick clicks twice at once.
func playDoubleClick(ctx context.Context, s *stage) error {
	s.scene("A customer clicks Pay, nothing seems to happen, and clicks again. Both clicks carry the key order-1042. Without one identity that is two charges.")
	s.primary.Script(sim.MustParse("slow=150ms")...)
	if err := s.open(ctx, "{effect: external, targets: [acme], timeout: 5s}", ""); err != nil {
		return err
	}
	replies, err := s.clickTwice(ctx)
	if err != nil {
		return err
	}
	first, second := replies[0], replies[1]
	if first.replayed {
		first, second = second, first
	}
	if err := errors.Join(
		expect("the second click's job", second.body.ID, first.body.ID),
		expect("the second click is marked as a replay", second.replayed, true),
		expect("the first click is marked as a replay", first.replayed, false),
	); err != nil {
		return err
	}
	s.say("database", "refused a second row for (owner, key): one key, one job")
	if _, err := s.untilState(ctx, first.body.ID, "succeeded"); err != nil {
		return err
	}
	n := s.primary.Executions("1042")
	s.say("provider", "did the work of order 1042 %s", times(n))
	s.count("2 clicks, 1 job, %d execution at the provider", n)
	return expect("executions at the provider", n, 1)
}

func (s *stage) clickTwice(ctx context.Context) ([2]reply, error) {
	var replies [2]reply
	var errs [2]error
	var both sync.WaitGroup
	ready := make(chan struct{})
	for i := range replies {
		both.Go(func() {
			<-ready
			replies[i], errs[i] = s.submit(ctx, "order-1042", "1042", 4200)
		})
	}
	s.say("customer", "clicks twice: 2 × POST /v1/jobs  Idempotency-Key: order-1042")
	close(ready)
	both.Wait()
	for i, r := range replies {
		if errs[i] == nil {
			s.say(fmt.Sprintf("click %d", i+1), "%d %s %s", r.status, r.body.ID, newOrReplay(r))
		}
	}
	return replies, errors.Join(errs[:]...)
}

func newOrReplay(r reply) string {
	if r.replayed {
		return "(the same job: Idempotent-Replayed: true)"
	}
	return "(new)"
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// playMismatch reuses a key for another request in every state of the job.
func playMismatch(ctx context.Context, s *stage) error {
	s.scene("The same key comes with another amount: a bug in a caller, or an attack. Answering with the first job would lie; running it would charge twice. It is a conflict, in every state of the job.")
	s.primary.Script(sim.MustParse("late=900ms")...)
	if err := s.open(ctx, "{effect: external, targets: [acme], timeout: 300ms, linger: 10s}", ""); err != nil {
		return err
	}
	first, err := s.submit(ctx, "order-7", "7", 100)
	if err != nil {
		return err
	}
	s.say("caller", "POST order-7, amount 100: %d %s", first.status, first.body.ID)
	conflicts := 0
	for _, state := range []string{"running", "blocked", "succeeded"} {
		if _, err := s.untilState(ctx, first.body.ID, state); err != nil {
			return err
		}
		if err := s.conflict(ctx); err != nil {
			return fmt.Errorf("while the job is %s: %w", state, err)
		}
		conflicts++
	}
	again, err := s.submit(ctx, "order-7", "7", 100)
	if err != nil {
		return err
	}
	s.say("caller", "POST order-7, amount 100 again: %d, replayed: %t, %s", again.status, again.replayed, again.body.State)
	n := s.primary.Executions("7")
	s.count("%d conflicts in 3 states, the honest repeat answered, %d execution at the provider", conflicts, n)
	return errors.Join(
		expect("the honest repeat's job", again.body.ID, first.body.ID),
		expect("executions at the provider", n, 1),
	)
}

func (s *stage) conflict(ctx context.Context) error {
	r, err := s.submit(ctx, "order-7", "7", 999)
	if err != nil {
		return err
	}
	s.say("caller", "POST order-7, amount 999: %d %s", r.status, r.body.Code)
	return errors.Join(
		expect("status", r.status, http.StatusConflict),
		expect("code", r.body.Code, "idempotency-key-conflict"),
	)
}
