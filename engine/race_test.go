package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/engine"
)

// lateClaims is a store that takes its time to say that no jobs wait.
type lateClaims struct {
	onejob.Store
	takes atomic.Int64
}

func (s *lateClaims) AttemptClaim(ctx context.Context, p onejob.AttemptClaimParams) (onejob.AttemptClaimResult, error) {
	time.Sleep(time.Duration(s.takes.Load()))
	return s.Store.AttemptClaim(ctx, p)
}

// A claim takes all free slots with it and brings most of them back. A lane whose time
// comes meanwhile is late, and not left out: nobody would start it afterwards.
func TestALaneWaitsForTheClaimThatHasTakenTheSlots(t *testing.T) {
	s := &lateClaims{}
	in(t, setting{
		policy:  onejob.Policy{Targets: []string{"slow", "fast"}, Lanes: 2, RaceAfter: 2 * time.Second, Timeout: time.Hour},
		targets: map[string]behaviour{"slow": answersAfter(time.Minute, "late"), "fast": answers("soon")},
		engine:  engine.Options{PollInterval: 500 * time.Millisecond},
		wrap:    func(store onejob.Store) onejob.Store { s.Store = store; return s },
		direct:  true,
	}, func(w *world) {
		id := w.submit("1").ID
		s.takes.Store(int64(5 * time.Second)) // longer than until the lane's time
		time.Sleep(20 * time.Second)
		if got, want := states(w.get(id)), "succeeded: 1@slow=running 2@fast=succeeded"; got != want {
			t.Errorf("%s; want %s", got, want)
		}
	})
}

// What came of the first lane is not held up by one that cannot start yet.
func TestALaneThatWaitsForAClaimHoldsNothingUp(t *testing.T) {
	for name, tt := range map[string]struct {
		timeout time.Duration
		want    string
	}{
		"AnAnswer": {time.Hour, "succeeded: 1@slow=succeeded"},
		"Silence":  {2500 * time.Millisecond, "blocked: 1@slow=unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			s, answered := &lateClaims{}, 3*time.Second
			if tt.timeout < answered {
				answered = time.Hour
			}
			in(t, setting{
				policy:  onejob.Policy{Targets: []string{"slow", "fast"}, Lanes: 2, RaceAfter: 2 * time.Second, Timeout: tt.timeout},
				targets: map[string]behaviour{"slow": answersAfter(answered, "soon"), "fast": answers("never asked")},
				engine:  engine.Options{PollInterval: 500 * time.Millisecond},
				wrap:    func(store onejob.Store) onejob.Store { s.Store = store; return s },
				direct:  true,
			}, func(w *world) {
				id := w.submit("1").ID
				s.takes.Store(int64(10 * time.Second))
				time.Sleep(3500 * time.Millisecond)
				if got := states(w.get(id)); got != tt.want {
					t.Errorf("%s; want %s", got, tt.want)
				}
			})
		})
	}
}

// Whoever presses the button meanwhile is answered about the job, and not that there is
// no slot.
func TestAPressWaitsForTheClaimThatHasTakenTheSlots(t *testing.T) {
	s := &lateClaims{}
	in(t, setting{
		policy:  onejob.Policy{Effect: onejob.EffectExternal, Targets: []string{"a", "b"}, Timeout: time.Second, Failover: onejob.FailoverDeclared, FailoverWhy: "test"},
		targets: map[string]behaviour{"a": answersAfter(time.Hour, "late"), "b": answers("soon")},
		engine:  engine.Options{PollInterval: 500 * time.Millisecond},
		wrap:    func(store onejob.Store) onejob.Store { s.Store = store; return s },
		direct:  true,
	}, func(w *world) {
		id := w.until(w.submit("1").ID, onejob.JobBlocked).ID
		s.takes.Store(int64(5 * time.Second))
		time.Sleep(2 * time.Second) // a claim is under way
		_, _, err := w.client.StartAttempt(w.t.Context(), onejob.StartAttemptParams{JobID: id, Owner: "o", Key: "press", Target: "b"})
		if onejob.CodeOf(err) != onejob.CodeAttemptUnresolved {
			t.Errorf("the button answered %v; want attempt-unresolved", err)
		}
	})
}

// Where slots are used, they are for jobs that wait.
func TestALaneForWhichThereIsNoSlotIsLeftOut(t *testing.T) {
	in(t, setting{
		policy:  onejob.Policy{Targets: []string{"slow", "fast"}, Lanes: 2, RaceAfter: 2 * time.Second, Timeout: time.Hour},
		targets: map[string]behaviour{"slow": answersAfter(time.Minute, "late"), "fast": answers("soon")},
		engine:  engine.Options{PollInterval: 500 * time.Millisecond, Slots: 1},
	}, func(w *world) {
		id := w.submit("1").ID
		time.Sleep(20 * time.Second)
		if got, want := states(w.get(id)), "running: 1@slow=running"; got != want {
			t.Errorf("%s; want %s", got, want)
		}
	})
}
