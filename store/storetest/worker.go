package storetest

import (
	"time"

	"github.com/onejob-dev/onejob"
)

// What workers out of our sight are given, and may do.
func working() []promise {
	return []promise{
		{name: "Worker/IsGivenItsOwnersJobsOnly", test: testWorkerOwner},
		{name: "Worker/IsGivenItsKindsOnly", test: testWorkerKinds},
		{name: "Worker/ClaimsMarked", test: testWorkerMarked},
		{name: "Worker/ALostOneIsInDoubt", test: testWorkerLost},
		{name: "Worker/RenewingMovesSendByForwardOnly", test: testWorkerRenews},
		{name: "Worker/NoLeaseOutlastsTheWork", test: testWorkerWithin},
		{name: "Worker/AnothersAttemptIsAsIfItDidNotExist", test: testWorkerIsolated},
	}
}

func withKind(kind string) func(*onejob.JobCreateParams) {
	return func(p *onejob.JobCreateParams) { p.Kind = kind }
}

func (f *fixture) wantClaimed(p onejob.AttemptClaimParams, ids ...string) {
	f.Helper()
	p.StartParams, p.Max = claimer(), 10
	claimed := map[string]bool{}
	for _, c := range f.claimWith(p).Claimed {
		claimed[c.Job.ID] = true
	}
	if len(claimed) != len(ids) {
		f.Fatalf("%v were claimed; want %q", claimed, ids)
	}
	for _, id := range ids {
		if !claimed[id] {
			f.Errorf("%v were claimed; want %q", claimed, ids)
		}
	}
}

func testWorkerOwner(f *fixture) {
	alices := f.create("k1")
	bobs := f.create("k1", withOwner("bob"))
	f.wantClaimed(onejob.AttemptClaimParams{Owner: "carol"})
	f.wantClaimed(onejob.AttemptClaimParams{Owner: "bob"}, bobs.ID)
	f.wantClaimed(onejob.AttemptClaimParams{}, alices.ID)
	f.create("k2", func(p *onejob.JobCreateParams) { p.RunAfter = alices.CreatedAt.Add(time.Hour) })
	if r := f.claimWith(onejob.AttemptClaimParams{StartParams: claimer(), Max: 1, Owner: "bob"}); !r.NextDue.IsZero() {
		f.Errorf("bob's worker is told that something is due at %s; want nothing of alice's", r.NextDue)
	}
}

func testWorkerKinds(f *fixture) {
	charge := f.create("k1")
	mail := f.create("k2", withKind("mail"))
	f.wantClaimed(onejob.AttemptClaimParams{Kinds: []string{"sms", "mail"}}, mail.ID)
	f.wantClaimed(onejob.AttemptClaimParams{Kinds: []string{"charge"}, Owner: owner}, charge.ID)
}

// worked records an intent and claims its attempt as a pull worker does.
func (f *fixture) worked(key string) onejob.Attempt {
	f.Helper()
	f.create(key)
	r := f.claimWith(onejob.AttemptClaimParams{StartParams: claimer(), Max: 1, Owner: owner, Mark: true})
	if len(r.Claimed) != 1 {
		f.Fatalf("%d attempts were claimed; want 1", len(r.Claimed))
	}
	return r.Claimed[0].Attempt
}

func testWorkerMarked(f *fixture) {
	a := f.worked("k1")
	for name, got := range map[string]onejob.Attempt{"claimed": a, "stored": f.wantAttempt(a.ID, onejob.AttemptRunning)} {
		if got.State != onejob.AttemptRunning || got.MarkedAt.IsZero() || !got.SendBy.Equal(got.LeaseExpiresAt) {
			f.Errorf("the %s attempt is %+v; want it marked, with send_by at the end of the lease", name, got)
		}
		if d := got.QuarantineUntil.Sub(got.SendBy); d != maxExecution {
			f.Errorf("the %s attempt's quarantine ends %s after send_by; want %s", name, d, maxExecution)
		}
	}
	f.wantJob(a.JobID, onejob.JobRunning)
	f.finish(a, onejob.OutcomeSucceeded)
	f.wantJob(a.JobID, onejob.JobSucceeded)
}

func testWorkerLost(f *fixture) {
	a := f.worked("k1")
	f.sweep()
	f.wantAttempt(a.ID, onejob.AttemptUnknown)
	f.wantDue(a.ID)
}

func testWorkerRenews(f *fixture) {
	a := f.worked("k1")
	renew := func(lease time.Duration, move bool) onejob.Attempt {
		results, err := f.s.AttemptRenew(f.Context(), []onejob.AttemptRenewParams{
			{Ref: refOf(a), ClaimToken: a.ClaimToken, Owner: owner, Lease: lease, MoveSendBy: move},
		})
		f.noError(err)
		f.noError(results[0].Err)
		return f.attempt(a.ID)
	}
	f.advance(10 * time.Second)
	if got := renew(lease, false); !got.SendBy.Equal(a.SendBy) || !got.QuarantineUntil.Equal(a.QuarantineUntil) {
		f.Errorf("send_by moved to %s unasked", got.SendBy)
	}
	moved := renew(lease, true)
	if d := moved.SendBy.Sub(a.SendBy); d < 10*time.Second || d > time.Minute || !moved.SendBy.Equal(moved.LeaseExpiresAt) {
		f.Errorf("send_by moved by %s; want about 10 s, to the end of the lease", d)
	}
	if d := moved.QuarantineUntil.Sub(moved.SendBy); d != maxExecution {
		f.Errorf("the quarantine ends %s after send_by; want %s", d, maxExecution)
	}
	if got := renew(time.Second, true); !got.SendBy.Equal(moved.SendBy) || !got.QuarantineUntil.Equal(moved.QuarantineUntil) {
		f.Errorf("a shorter lease moved send_by from %s to %s; want it kept", moved.SendBy, got.SendBy)
	}
}

// The clock that marked the attempt is the one that counts from there.
func testWorkerWithin(f *fixture) {
	const within = 40 * time.Second
	a := f.worked("k1")
	renew := func() onejob.AttemptRenewResult {
		results, err := f.s.AttemptRenew(f.Context(), []onejob.AttemptRenewParams{
			{Ref: refOf(a), ClaimToken: a.ClaimToken, Lease: lease, Within: within, MoveSendBy: true},
		})
		f.noError(err)
		return results[0]
	}
	f.noError(renew().Err)
	f.advance(20 * time.Second)
	f.noError(renew().Err)
	got := f.attempt(a.ID)
	if end := a.MarkedAt.Add(within); !got.LeaseExpiresAt.Equal(end) || !got.SendBy.Equal(end) {
		f.Errorf("the lease ends at %s, and the work may begin until %s; want %s, %s after the mark", got.LeaseExpiresAt, got.SendBy, end, within)
	}
	f.advance(21 * time.Second)
	f.wantCode(renew().Err, onejob.CodeClaimLost)
	if again := f.wantAttempt(a.ID, onejob.AttemptRunning); !again.LeaseExpiresAt.Equal(got.LeaseExpiresAt) {
		f.Errorf("a heartbeat that came too late moved the lease to %s", again.LeaseExpiresAt)
	}
}

func testWorkerIsolated(f *fixture) {
	a := f.worked("k1")
	none := a
	none.ID = onejob.NewAttemptID(a.JobID, a.Number)
	finish := func(a onejob.Attempt) error {
		return f.tryFinish(finishOf(a, onejob.OutcomeSucceeded, func(p *onejob.AttemptFinishParams) { p.Owner = "bob" })).Err
	}
	f.sameRefusal("AttemptFinish", finish(a), finish(none), a.ID, none.ID)
	renew := func(a onejob.Attempt) error {
		results, err := f.s.AttemptRenew(f.Context(), []onejob.AttemptRenewParams{
			{Ref: refOf(a), Owner: "bob", ClaimToken: a.ClaimToken, Lease: time.Hour},
		})
		f.noError(err)
		return results[0].Err
	}
	f.sameRefusal("AttemptRenew", renew(a), renew(none), a.ID, none.ID)
	if got := f.wantAttempt(a.ID, onejob.AttemptRunning); !got.LeaseExpiresAt.Equal(a.LeaseExpiresAt) {
		f.Errorf("a stranger moved the lease from %s to %s", a.LeaseExpiresAt, got.LeaseExpiresAt)
	}
	stolen := a
	stolen.ClaimToken = "stolen"
	f.lose(finishOf(stolen, onejob.OutcomeSucceeded, func(p *onejob.AttemptFinishParams) { p.Owner = owner }), onejob.AttemptRunning)
	f.finish(a, onejob.OutcomeSucceeded, func(p *onejob.AttemptFinishParams) { p.Owner = owner })
}
