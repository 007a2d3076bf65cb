package onejob_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
)

// declaredKinds lets b take over from a.
func declaredKinds(_ *world, o *onejob.Options) {
	kind := o.Kinds["draw"]
	kind.Policy.Failover, kind.Policy.FailoverWhy = onejob.FailoverDeclared, "the same model"
	o.Kinds["draw"] = kind
}

func press(job *onejob.Job, key, target string) onejob.StartAttemptParams {
	return onejob.StartAttemptParams{JobID: job.ID, Owner: "alice", Actor: "alice", Key: key, Target: target}
}

func TestTheFallbackButtonClickedTwiceIsOneAttempt(t *testing.T) {
	t.Parallel()
	s := &slots{free: 9}
	w := newWorld(t, declaredKinds, func(_ *world, o *onejob.Options) { o.Starter = s })
	s.free = 0 // the first attempt is to be claimed
	job, _ := w.submit(drawing(`1`))
	w.finish(w.claim(), onejob.OutcomeRefused, onejob.NextAgain)
	s.free = 9

	first, existed, err := w.client.StartAttempt(t.Context(), press(job, "press-1", "b"))
	if err != nil || existed || first.Target != "b" || first.Number != 2 {
		t.Fatalf("StartAttempt = attempt %d at %q, %t, %v; want the second, at b", first.Number, first.Target, existed, err)
	}
	again, existed, err := w.client.StartAttempt(t.Context(), press(job, `"press-1"`, "b"))
	if err != nil || !existed || again.ID != first.ID {
		t.Errorf("the second click is attempt %s, %t, %v; want %s, true", again.ID, existed, err, first.ID)
	}
	_, _, err = w.client.StartAttempt(t.Context(), press(job, "press-1", "a"))
	wantCode(t, err, onejob.CodeKeyConflict)
	s.check(t, 1)
	if got := len(w.get(job.ID).Attempts); got != 2 {
		t.Errorf("the job has %d attempts; want 2", got)
	}
}

func TestAPressIsRefusedAndTakesNoKey(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		state onejob.JobState
		p     func(*onejob.StartAttemptParams)
		code  onejob.Code
	}{
		{"WhileAnAttemptRuns", onejob.JobRunning, nil, onejob.CodeAttemptUnresolved},
		{"WhileAnAttemptIsUnknown", onejob.JobBlocked, nil, onejob.CodeAttemptUnresolved},
		{"OfAJobThatSucceeded", onejob.JobSucceeded, nil, onejob.CodeJobTerminal},
		{"OfAJobThatFailed", onejob.JobFailed, nil, onejob.CodeJobTerminal},
		{"OfAJobThatWasCancelled", onejob.JobCancelled, nil, onejob.CodeJobTerminal},
		{"WithoutACertificate", onejob.JobQueued, func(p *onejob.StartAttemptParams) { p.Target = "b" }, onejob.CodeFailoverNotCertified},
		{"AtAnUnknownTarget", onejob.JobQueued, func(p *onejob.StartAttemptParams) { p.Target = "elsewhere" }, onejob.CodeInvalidJob},
		{"WithoutAKey", onejob.JobQueued, func(p *onejob.StartAttemptParams) { p.Key = " " }, onejob.CodeKeyMissing},
		{"WithABadKey", onejob.JobQueued, func(p *onejob.StartAttemptParams) { p.Key = "\x00" }, onejob.CodeKeyInvalid},
		{"OfAnothersJob", onejob.JobQueued, func(p *onejob.StartAttemptParams) { p.Owner = "bob" }, onejob.CodeNotFound},
		{"AtAnOldRevision", onejob.JobQueued, func(p *onejob.StartAttemptParams) { p.IfRevision = new(int64) }, onejob.CodeVersionMismatch},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := &slots{}
			w := newWorld(t, starting(s))
			job := w.leadTo(tt.state, "k1")
			s.free = 1
			p := press(job, "press-1", "")
			if tt.p != nil {
				tt.p(&p)
			}
			a, existed, err := w.client.StartAttempt(t.Context(), p)
			wantCode(t, err, tt.code)
			if existed || a.ID != "" {
				t.Errorf("beside the refusal came attempt %q, existed %t", a.ID, existed)
			}
			s.check(t, 0)
			if tt.state == onejob.JobQueued {
				if _, existed, err := w.client.StartAttempt(t.Context(), press(job, "press-1", "")); err != nil || existed {
					t.Errorf("the same key afterwards: existed %t, %v; want a new attempt", existed, err)
				}
			}
		})
	}
}

func TestAPressWithoutAFreeSlotIsAskedToComeAgain(t *testing.T) {
	t.Parallel()
	s := &slots{}
	w := newWorld(t, starting(s))
	job, _ := w.submit(drawing(`1`))
	_, _, err := w.client.StartAttempt(t.Context(), press(job, "press-1", ""))
	if e := wantError(t, err, onejob.CodeOverloaded); e.RetryAfter <= 0 {
		t.Error("the refusal does not say when to come again")
	}
	if got := len(w.get(job.ID).Attempts); got != 0 {
		t.Errorf("the job has %d attempts; want none", got)
	}
}

func TestAPressThatTheStoreDoesNotConfirmGivesItsSlotBack(t *testing.T) {
	t.Parallel()
	s := &slots{}
	w := newWorld(t, starting(s))
	job, _ := w.submit(drawing(`1`))
	s.free = 1
	ctx, leave := context.WithCancel(t.Context())
	leave()
	_, _, err := w.client.StartAttempt(ctx, press(job, "press-1", ""))
	wantCode(t, err, onejob.CodeStoreUnavailable)
	s.check(t, 0)
}

func TestResolvingLetsTheJobGoOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	job := w.leadTo(onejob.JobBlocked, "k1")
	unknown := job.Attempts[0]
	p := onejob.AttemptResolveParams{ID: unknown.ID, Owner: "alice", Actor: "bob", Outcome: onejob.OutcomeNotExecuted, Evidence: "their log"}

	_, _, err := w.client.Resolve(t.Context(), p)
	if e := wantError(t, err, onejob.CodeQuarantined); e.RetryAfter <= time.Minute {
		t.Errorf("quarantine ends in %s; want most of the target's hour", e.RetryAfter)
	}
	w.advance(2 * time.Hour)
	attempt, after, err := w.client.Resolve(t.Context(), p)
	if err != nil || attempt.State != onejob.AttemptFailed || after.State != onejob.JobQueued || attempt.Ruling.By != "bob" {
		t.Fatalf("Resolve = %+v, %+v, %v; want a failed attempt ruled by bob and a queued job", attempt, after, err)
	}
	_, _, err = w.client.Resolve(t.Context(), p)
	wantCode(t, err, onejob.CodeAttemptTerminal)
	p.Owner = "bob"
	_, _, err = w.client.Resolve(t.Context(), p)
	wantCode(t, err, onejob.CodeNotFound)
}

func TestARulingOfSuccessIsTheJobsResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	job := w.leadTo(onejob.JobBlocked, "k1")
	_, after, err := w.client.Resolve(t.Context(), onejob.AttemptResolveParams{
		ID: job.Attempts[0].ID, Actor: "bob", Outcome: onejob.OutcomeSucceeded, Evidence: "their dashboard",
		Result: &onejob.Result{Body: []byte(`"a cat"`), ContentType: "application/json"},
	})
	if err != nil || after.State != onejob.JobSucceeded || after.CompletedBy != job.Attempts[0].ID || string(after.Result.Body) != `"a cat"` {
		t.Errorf("Resolve = %+v, %v; want the job succeeded with the result", after, err)
	}
	attempt, err := w.client.Attempt(t.Context(), "alice", job.Attempts[0].ID)
	if err != nil || attempt.Result == nil || string(attempt.Result.Body) != `"a cat"` {
		t.Errorf("the attempt shows %+v, %v; want its own answer", attempt.Result, err)
	}
}

func TestCancelling(t *testing.T) {
	t.Parallel()
	for state, want := range map[onejob.JobState]onejob.JobState{
		onejob.JobQueued: onejob.JobCancelled, onejob.JobRunning: onejob.JobRunning,
		onejob.JobBlocked: onejob.JobBlocked, onejob.JobCancelled: onejob.JobCancelled,
		onejob.JobSucceeded: "", onejob.JobFailed: "",
	} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			job := w.leadTo(state, "k1")
			for range 2 { // it is safe to repeat
				after, err := w.client.Cancel(t.Context(), onejob.JobCancelParams{ID: job.ID, Owner: "alice"})
				if want == "" {
					wantCode(t, err, onejob.CodeJobTerminal)
					continue
				}
				if err != nil || after.State != want || after.CancelRequestedAt.IsZero() {
					t.Errorf("Cancel = %+v, %v; want %s", after, err, want)
				}
			}
			_, err := w.client.Cancel(t.Context(), onejob.JobCancelParams{ID: job.ID, Owner: "bob"})
			if !errors.Is(err, onejob.ErrNotFound) {
				t.Errorf("somebody else's cancel is answered with %v; want not-found", err)
			}
		})
	}
}

func TestUnblockingAJobThatNeedsAnOperator(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	job := w.leadTo(onejob.JobBlocked, "k1")
	_, err := w.client.Unblock(t.Context(), onejob.JobUnblockParams{ID: job.ID, Actor: "bob", Reason: "looked"})
	wantCode(t, err, onejob.CodeAttemptUnresolved)

	w.advance(2 * time.Hour)
	_, after, err := w.client.Resolve(t.Context(), onejob.AttemptResolveParams{
		ID: job.Attempts[0].ID, Actor: "bob", Outcome: onejob.OutcomeCancelled, Evidence: "they said so",
	})
	w.noError(err)
	if after.State != onejob.JobBlocked || after.Blocked.Reason != onejob.BlockNeedsOperator {
		t.Fatalf("ruled cancelled though nobody asked, the job is %s for %+v; want it to need an operator", after.State, after.Blocked)
	}
	w.advance(time.Second)
	after, err = w.client.Unblock(t.Context(), onejob.JobUnblockParams{ID: job.ID, Actor: "bob", Reason: "go on"})
	if err != nil || after.State != onejob.JobQueued {
		t.Errorf("Unblock = %+v, %v; want it queued", after, err)
	}
}

func TestLookingAround(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	job := w.leadTo(onejob.JobBlocked, "k1")
	if page, err := w.client.List(t.Context(), onejob.JobListParams{Owner: "alice", Limit: 9}); err != nil || len(page.Jobs) != 1 {
		t.Errorf("List = %+v, %v; want the one job", page, err)
	}
	page, err := w.client.Attempts(t.Context(), onejob.AttemptListParams{States: []onejob.AttemptState{onejob.AttemptUnknown}, Limit: 9})
	if err != nil || len(page.Attempts) != 1 || page.Attempts[0].JobID != job.ID {
		t.Errorf("Attempts = %+v, %v; want the unknown one", page, err)
	}
	stats, err := w.client.Stats(t.Context())
	if err != nil || stats.Jobs[onejob.JobBlocked] != 1 || stats.UnknownByTarget["a"] != 1 {
		t.Errorf("Stats = %+v, %v; want one blocked job, unknown at a", stats, err)
	}
	_, err = w.client.Attempt(t.Context(), "bob", job.Attempts[0].ID)
	wantCode(t, err, onejob.CodeNotFound)
	w.noError(w.client.Check(t.Context()))

	w.noError(w.store.Close())
	_, errGet := w.client.Get(t.Context(), "", job.ID)
	_, errStats := w.client.Stats(t.Context())
	for _, err := range []error{errGet, errStats, w.client.Check(t.Context())} {
		wantCode(t, err, onejob.CodeStoreUnavailable)
	}
}
