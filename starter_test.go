package onejob_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onejob-dev/onejob"
)

// slots is a starter that keeps account: every slot that is reserved must be
// dispatched or released, once.
type slots struct {
	mu         sync.Mutex
	free       int
	reserved   int
	dispatched []onejob.Claimed
	asked      []string
}

var since = noon.Add(-time.Millisecond)

func (s *slots) Reserve(target string) (onejob.StartParams, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, target)
	if s.free == 0 {
		return onejob.StartParams{}, false
	}
	s.free--
	s.reserved++
	return onejob.StartParams{Worker: "w1", Lease: time.Minute, Targets: pins, Since: since}, true
}

func (s *slots) Await(context.Context) (onejob.StartParams, bool) { return s.Reserve("") }

func (s *slots) Dispatch(c onejob.Claimed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved--
	s.dispatched = append(s.dispatched, c)
}

func (s *slots) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved--
	s.free++
}

// check holds the account to its end: so many dispatched, none left reserved. What
// was not confirmed is found out behind the caller's back, so it waits a little.
func (s *slots) check(t *testing.T, dispatched int) {
	t.Helper()
	deadline, tick := time.After(5*time.Second), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for !s.settled(dispatched) {
		select {
		case <-tick.C:
		case <-deadline:
			s.mu.Lock()
			defer s.mu.Unlock()
			t.Fatalf("%d attempts dispatched, %d slots left reserved; want %d, 0", len(s.dispatched), s.reserved, dispatched)
		}
	}
}

func (s *slots) settled(dispatched int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.dispatched) == dispatched && s.reserved == 0
}

func starting(s *slots) func(*world, *onejob.Options) {
	return func(_ *world, o *onejob.Options) { o.Starter = s }
}

func TestANewJobStartsInTheCommitThatCreatesIt(t *testing.T) {
	t.Parallel()
	s := &slots{free: 1}
	w := newWorld(t, starting(s))
	p := drawing(`{"prompt":"a cat"}`)
	p.Target = "b"
	job, _ := w.submit(p)
	s.check(t, 1)
	c := s.dispatched[0]
	if job.State != onejob.JobRunning || c.Attempt.State != onejob.AttemptRunning || c.Attempt.Target != "b" || c.Attempt.JobID != job.ID {
		t.Errorf("the job is %s, its attempt %s at %s; want both running, at b", job.State, c.Attempt.State, c.Attempt.Target)
	}
	if !c.Since.Equal(since) || string(c.Job.Input) != `{"prompt":"a cat"}` {
		t.Errorf("dispatched with input %s, since %s; want the input, since %s", c.Job.Input, c.Since, since)
	}
	if s.asked[0] != "b" {
		t.Errorf("a slot was reserved for %q; want b", s.asked[0])
	}
}

func TestWithoutAFreeSlotTheJobWaitsToBeClaimed(t *testing.T) {
	t.Parallel()
	s := &slots{}
	w := newWorld(t, starting(s))
	if job, _ := w.submit(drawing(`1`)); job.State != onejob.JobQueued || s.asked[0] != "a" {
		t.Errorf("the job is %s after asking for %q; want queued, a", job.State, s.asked)
	}
	s.check(t, 0)
}

func TestASlotIsReservedOnlyForWhatMayStart(t *testing.T) {
	t.Parallel()
	s := &slots{free: 9}
	w := newWorld(t, starting(s), func(_ *world, o *onejob.Options) {
		o.AdmitFunc = func(_ context.Context, owner string, _ int) *onejob.Error {
			if owner == "bob" {
				return &onejob.Error{Code: onejob.CodeQuotaExceeded}
			}
			return nil
		}
	})
	later, unknown, bobs := drawing(`1`), drawing(`1`), drawing(`1`)
	later.RunAfter, unknown.Kind, bobs.Owner, unknown.Key = noon.Add(time.Hour), "unknown", "bob", "k2"
	w.client.SubmitBatch(t.Context(), []onejob.SubmitParams{later, unknown, bobs})
	if len(s.asked) != 0 {
		t.Errorf("slots were asked for at %q; want none", s.asked)
	}
}

// refusingAll is a store that does not confirm two creations and has recorded none
// of them when it is asked again.
func refusingAll(err error) func(*world, *onejob.Options) {
	return func(w *world, _ *onejob.Options) {
		inner := w.store
		var calls atomic.Int32
		w.store = &between{Store: inner, create: func(ctx context.Context, params []onejob.JobCreateParams) ([]onejob.JobCreateResult, error) {
			if calls.Add(1) <= 2 {
				return nil, err
			}
			return inner.JobCreate(ctx, params)
		}}
	}
}

func TestEverySlotOfABatchIsUsedOrGivenBack(t *testing.T) {
	t.Parallel()
	item := func(key, input string) onejob.SubmitParams {
		p := drawing(input)
		p.Key = key
		return p
	}
	batch := []onejob.SubmitParams{item("k1", `1`), item("k1", `1`), item("k1", `2`), item("", `1`), item("k2", `1`)}
	for _, tt := range []struct {
		name       string
		free       int
		spoil      func(*world, *onejob.Options)
		dispatched int
	}{
		{"ARepeatAndAConflictGiveBack", 9, nil, 2},
		{"AShortageIsNoHarm", 1, nil, 1},
		{"ALostAcknowledgementIsStillOurStart", 9, losing(1), 2},
		{"WhatWasNotConfirmedTwiceIsFoundOut", 9, losing(2), 2},
		{"WhatWasNeverRecordedGivesBack", 9, refusingAll(errCut), 0},
		{"WhatThereWasNoRoomForGivesBack", 9, refusingAll(&onejob.Error{Code: onejob.CodeOverloaded}), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := &slots{free: tt.free}
			changes := []func(*world, *onejob.Options){starting(s)}
			if tt.spoil != nil {
				changes = append(changes, tt.spoil)
			}
			newWorld(t, changes...).client.SubmitBatch(t.Context(), batch)
			s.check(t, tt.dispatched)
		})
	}
	t.Run("ACallerWhoLeftGivesBack", func(t *testing.T) {
		t.Parallel()
		s := &slots{free: 9}
		w := newWorld(t, starting(s))
		ctx, leave := context.WithCancel(t.Context())
		leave()
		w.client.SubmitBatch(ctx, batch)
		s.check(t, 0)
	})
}

// committingSlowly is a store whose first creation is under way for longer than it is
// waited for: who asks meets its lock, and does not see it until it is committed.
func committingSlowly(committed bool) func(*world, *onejob.Options) {
	return func(w *world, _ *onejob.Options) {
		inner := w.store
		var calls atomic.Int32
		var first []onejob.JobCreateParams
		w.store = &between{Store: inner, create: func(ctx context.Context, params []onejob.JobCreateParams) ([]onejob.JobCreateResult, error) {
			switch calls.Add(1) {
			case 1:
				first = params
				return nil, errCut
			case 2:
				return []onejob.JobCreateResult{{Err: &onejob.Error{Code: onejob.CodeStoreUnavailable, Reason: onejob.ReasonRowLocked}}}, nil
			case 4:
				if !committed {
					break
				}
				if _, err := inner.JobCreate(ctx, first); err != nil {
					return nil, err
				}
			}
			return inner.JobCreate(ctx, params)
		}}
	}
}

// What stands in the way of asking again may be the creation itself.
func TestAStartThatIsStillBeingCommittedIsSentOnce(t *testing.T) {
	t.Parallel()
	s := &slots{free: 1}
	w := newWorld(t, starting(s), committingSlowly(true))
	_, _, err := w.client.Submit(t.Context(), drawing(`1`))
	wantCode(t, err, onejob.CodeStoreUnavailable)
	s.check(t, 1)
}

func TestAStartThatIsNeverCommittedGivesItsSlotBackWithItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slots{free: 1}
		w := newWorld(t, starting(s), committingSlowly(false))
		_, _, err := w.client.Submit(t.Context(), drawing(`1`))
		wantCode(t, err, onejob.CodeStoreUnavailable)
		time.Sleep(2 * time.Minute)
		s.check(t, 0)
	})
}

// A claim whose acknowledgement was lost met itself as a stranger, and its work was
// never done (idempot-dev/idempot-js#185).
func TestAnAttemptWhoseStartWasCommittedUnseenIsSentOnce(t *testing.T) {
	t.Parallel()
	s := &slots{free: 1}
	w := newWorld(t, starting(s), losing(1))
	job, existed := w.submit(drawing(`{"prompt":"a dog"}`))
	if existed || job.State != onejob.JobRunning {
		t.Errorf("the job is %s, existed %t; want our own, running", job.State, existed)
	}
	s.check(t, 1)
	c := s.dispatched[0]
	if c.Attempt.ClaimToken == "" || string(c.Job.Input) != `{"prompt":"a dog"}` || !c.Since.Equal(since) {
		t.Errorf("dispatched with token %q, input %s, since %s; want the claim's token, the input, since %s", c.Attempt.ClaimToken, c.Job.Input, c.Since, since)
	}
}
