package storetest

import (
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
)

func holding() []promise {
	return []promise{
		{name: "AttemptMark/PinsWhenTheLastByteMustBeOut", test: testMarkPins},
		{name: "AttemptMark/NoQuarantineEndWithoutMaxExecution", test: testMarkUndeclared},
		{name: "AttemptMark/NothingWithoutTheToken", test: testMarkToken},
		{name: "AttemptMark/OnlyOnce", test: testMarkOnce},
		{name: "AttemptMark/NotAfterTheLease", test: testMarkAfterLease},
		{name: "AttemptMark/EachRowOfABatchIsJudgedByItself", test: testMarkBatch},
		{name: "AttemptRenew/KeepsTheLease", test: testRenewKeeps},
		{name: "AttemptRenew/NothingWithoutTheToken", test: testRenewToken},
		{name: "AttemptRenew/NotOnceItEnded", test: testRenewEnded},
		{name: "AttemptRenew/TellsOfACancel", test: testRenewCancel},
		{name: "AttemptRenew/IsNoVisibleChange", test: testRenewInvisible},
		{name: "AttemptExpire/StartingWasNeverSent", test: testExpireStarting},
		{name: "AttemptExpire/RunningIsUnknown", test: testExpireRunning},
		{name: "AttemptExpire/OnlyOnceTheLeaseIsOver", test: testExpireEarly},
		{name: "AttemptExpire/NotWhatWasRenewedMeanwhile", test: testExpireRenewed},
		{name: "AttemptExpire/NotWhatWasFinishedMeanwhile", test: testExpireFinished},
		{name: "AttemptExpire/TwoSweepersChangeItOnce", test: testExpireTwice, handles: 2},
		{name: "AttemptExpire/TheSameRowTwiceChangesOnce", test: testExpireSameRow},
		{name: "AttemptExpire/StrangersDoNotStopTheirNeighbours", test: testExpireStrangers},
		{name: "AttemptExpired/LongestFirstAndAtMostLimit", test: testExpiredOrder},
		{name: "OwnFault/IsTriedAgainAtOnce", test: testOwnFaultAtOnce},
		{name: "OwnFault/CostsNoBudgetOfTheTarget", test: testOwnFaultBudget},
		{name: "OwnFault/BeyondItsBudgetNeedsAnOperator", test: testOwnFaultOperator},
	}
}

func testMarkPins(f *fixture) {
	a := f.running("k1")
	if a.State != onejob.AttemptRunning || a.TargetDigest != pins.Digest || a.MarkedAt.IsZero() {
		f.Errorf("the marked attempt is %+v; want it running with the target's digest", a)
	}
	if got := a.SendBy.Sub(a.MarkedAt); got != sendWithin {
		f.Errorf("send_by is %s after the mark; want %s", got, sendWithin)
	}
	if got := a.QuarantineUntil.Sub(a.MarkedAt); got != quarantine {
		f.Errorf("the quarantine ends %s after the mark; want %s", got, quarantine)
	}
	if got := a.LeaseExpiresAt.Sub(a.MarkedAt); got != lease {
		f.Errorf("the lease ends %s after the mark; want %s", got, lease)
	}
	stored := f.wantAttempt(a.ID, onejob.AttemptRunning)
	if !stored.SendBy.Equal(a.SendBy) || !stored.QuarantineUntil.Equal(a.QuarantineUntil) {
		f.Errorf("the attempt reads back with send_by %s and quarantine %s; want %s and %s",
			stored.SendBy, stored.QuarantineUntil, a.SendBy, a.QuarantineUntil)
	}
}

func testMarkUndeclared(f *fixture) {
	p := markOf(f.starting("k1"))
	p.Pins.MaxExecution = 0
	a, err := f.tryMark(p)
	f.noError(err)
	if !a.QuarantineUntil.IsZero() {
		f.Errorf("the quarantine ends at %s though nothing says how long the target works", a.QuarantineUntil)
	}
}

func testMarkToken(f *fixture) {
	a := f.starting("k1")
	for _, token := range []string{"", onejob.NewToken()} {
		p := markOf(a)
		p.ClaimToken = token
		_, err := f.tryMark(p)
		f.wantCode(err, onejob.CodeClaimLost)
	}
	f.wantAttempt(a.ID, onejob.AttemptStarting)
	f.mark(a)
}

// Whoever marks sends. A mark whose acknowledgement was lost must not be taken for
// a licence to send when it is repeated.
func testMarkOnce(f *fixture) {
	a := f.running("k1")
	_, err := f.tryMark(markOf(a))
	f.wantCode(err, onejob.CodeClaimLost)
	if again := f.wantAttempt(a.ID, onejob.AttemptRunning); !again.SendBy.Equal(a.SendBy) {
		f.Errorf("a second mark moved send_by from %s to %s", a.SendBy, again.SendBy)
	}
}

func testMarkAfterLease(f *fixture) {
	a := f.starting("k1")
	f.advance(lease + time.Second) // and no sweep came by
	_, err := f.tryMark(markOf(a))
	f.wantCode(err, onejob.CodeClaimLost)
	f.wantAttempt(a.ID, onejob.AttemptStarting)
}

func testMarkBatch(f *fixture) {
	f.create("k1")
	f.create("k2")
	claimed := f.claim().Claimed
	stranger := markOf(claimed[0].Attempt)
	stranger.Ref.ID = onejob.NewAttemptID(stranger.Ref.JobID, 1)
	results, err := f.s.AttemptMark(f.Context(), []onejob.AttemptMarkParams{
		markOf(claimed[0].Attempt), stranger, markOf(claimed[0].Attempt), markOf(claimed[1].Attempt),
	})
	f.noError(err)
	f.noError(results[0].Err)
	f.noError(results[3].Err)
	f.wantCode(results[1].Err, onejob.CodeClaimLost)
	f.wantCode(results[2].Err, onejob.CodeClaimLost)
	if results[0].Attempt.ID != claimed[0].Attempt.ID || results[3].Attempt.ID != claimed[1].Attempt.ID {
		f.Errorf("the answers are of %s and %s; want the order that was asked in", results[0].Attempt.ID, results[3].Attempt.ID)
	}
}

func testRenewKeeps(f *fixture) {
	starting, running := f.starting("k1"), f.running("k2")
	for range 3 {
		f.advance(lease - time.Second)
		f.noError(f.tryRenew(starting).Err)
		f.noError(f.tryRenew(running).Err)
	}
	if refs := f.expired(); len(refs) != 0 {
		f.Errorf("%d renewed attempts are listed as expired; want none", len(refs))
	}
	f.mark(starting)
}

func testRenewToken(f *fixture) {
	a := f.running("k1")
	a.ClaimToken = onejob.NewToken()
	f.wantCode(f.tryRenew(a).Err, onejob.CodeClaimLost)
}

func testRenewEnded(f *fixture) {
	unknown := f.unknown("k1")
	f.wantCode(f.tryRenew(unknown).Err, onejob.CodeClaimLost)
	done := f.running("k2")
	f.finish(done, onejob.OutcomeSucceeded)
	f.wantCode(f.tryRenew(done).Err, onejob.CodeClaimLost)
	lost := f.starting("k3")
	f.sweep()
	f.wantCode(f.tryRenew(lost).Err, onejob.CodeClaimLost)
}

func testRenewCancel(f *fixture) {
	a := f.running("k1")
	if f.tryRenew(a).CancelRequested {
		f.Error("a renewal tells of a cancel that nobody asked for")
	}
	f.cancel(a.JobID)
	if r := f.tryRenew(a); r.Err != nil || !r.CancelRequested {
		f.Errorf("after a cancel the renewal answers %+v; want it held, and told", r)
	}
}

func testRenewInvisible(f *fixture) {
	a := f.running("k1")
	before := f.get(a.JobID).Revision
	f.noError(f.tryRenew(a).Err)
	if after := f.get(a.JobID).Revision; after != before {
		f.Errorf("a renewal moved the revision from %d to %d", before, after)
	}
}

func testExpireStarting(f *fixture) {
	a := f.starting("k1")
	if changed := f.sweep(); !refsEqual(changed, []onejob.AttemptRef{refOf(a)}) {
		f.Errorf("the sweep changed %v; want the one attempt", changed)
	}
	after := f.wantAttempt(a.ID, onejob.AttemptFailed)
	if after.Outcome != onejob.OutcomeNotExecuted || !after.OwnFault || after.Next != onejob.NextAgain || after.FinishedAt.IsZero() {
		f.Errorf("the attempt is %+v; want not_executed, our own fault, again", after)
	}
	f.wantJob(a.JobID, onejob.JobQueued)
}

func testExpireRunning(f *fixture) {
	a := f.running("k1")
	version := f.get(a.JobID).Version
	f.sweep()
	after := f.wantAttempt(a.ID, onejob.AttemptUnknown)
	if after.Outcome != onejob.OutcomeUnknown || !after.FinishedAt.IsZero() || !strings.Contains(after.Evidence.Error, worker) {
		f.Errorf("the attempt is %+v; want unknown, not finished, with evidence that names the worker", after)
	}
	job := f.wantJob(a.JobID, onejob.JobBlocked, onejob.BlockAttemptUnknown)
	if job.Blocked.AttemptID != a.ID || job.Blocked.Since.IsZero() || job.Version != version {
		f.Errorf("the job is blocked by %+v at version %d; want by %s at %d", job.Blocked, job.Version, a.ID, version)
	}
	f.claimNothing()
}

func testExpireEarly(f *fixture) {
	starting, running := f.starting("k1"), f.running("k2")
	f.advance(lease - 5*time.Second)
	if refs := f.expired(); len(refs) != 0 {
		f.Errorf("%d attempts are listed before their lease is over", len(refs))
	}
	if changed := f.expire([]onejob.AttemptRef{refOf(starting), refOf(running)}); len(changed) != 0 {
		f.Errorf("%d attempts were ended before their lease was over", len(changed))
	}
	f.wantAttempt(starting.ID, onejob.AttemptStarting)
	f.wantAttempt(running.ID, onejob.AttemptRunning)
}

func testExpireRenewed(f *fixture) {
	a := f.running("k1")
	f.advance(lease + time.Second)
	refs := f.expired()
	if len(refs) != 1 {
		f.Fatalf("%d attempts are listed; want 1", len(refs))
	}
	f.noError(f.tryRenew(a).Err)
	if changed := f.expire(refs); len(changed) != 0 {
		f.Errorf("a sweep ended an attempt that was renewed since it was listed")
	}
	f.wantAttempt(a.ID, onejob.AttemptRunning)
}

// A rescuer overwrote what had finished between its reading and its writing
// (riverqueue/river#1302).
func testExpireFinished(f *fixture) {
	for _, outcome := range []onejob.Outcome{onejob.OutcomeSucceeded, onejob.OutcomeRefused, onejob.OutcomeUnknown} {
		a := f.running("k-" + string(outcome))
		f.advance(lease + time.Second)
		refs := f.expired()
		f.finish(a, outcome)
		before := f.get(a.JobID)
		if changed := f.expire(refs); len(changed) != 0 {
			f.Errorf("a sweep ended an attempt that had finished as %s since it was listed", outcome)
		}
		if after := f.get(a.JobID); after.Revision != before.Revision || after.State != before.State {
			f.Errorf("after %s a late sweep moved the job from %s to %s", outcome, before.State, after.State)
		}
	}
}

// Two recoverers picked the same expired work (hibiken/asynq#717).
func testExpireTwice(f *fixture) {
	starting, running := f.starting("k1"), f.running("k2")
	f.advance(lease + time.Second)
	first := f.expired()
	second, err := f.handle(1).AttemptExpired(f.Context(), 100)
	f.noError(err)
	if len(first) != 2 || len(second) != 2 {
		f.Fatalf("the sweepers list %d and %d attempts; want 2 each", len(first), len(second))
	}
	changed := f.expire(first)
	again, err := f.handle(1).AttemptExpire(f.Context(), second)
	f.noError(err)
	if len(changed) != 2 || len(again) != 0 {
		f.Errorf("the sweepers changed %d and %d attempts; want 2 and none", len(changed), len(again))
	}
	f.wantAttempt(starting.ID, onejob.AttemptFailed)
	f.wantAttempt(running.ID, onejob.AttemptUnknown)
	if n := f.eventsOf(f.get(running.JobID), onejob.EventBlocked); n != 1 {
		f.Errorf("the job entered blocked %d times; want once", n)
	}
}

func testExpireSameRow(f *fixture) {
	a := f.running("k1")
	f.advance(lease + time.Second)
	if changed := f.expire([]onejob.AttemptRef{refOf(a), refOf(a)}); len(changed) != 1 {
		f.Errorf("one attempt given twice changed %d times; want once", len(changed))
	}
	if n := f.get(a.JobID).AttemptsMade; n != 1 {
		f.Errorf("%d attempts were made; want 1", n)
	}
}

func testExpireStrangers(f *fixture) {
	a := f.running("k1")
	f.advance(lease + time.Second)
	none := onejob.AttemptRef{Part: 3, JobID: onejob.NewJobID(3, time.UnixMilli(0))}
	none.ID = onejob.NewAttemptID(none.JobID, 1)
	if changed := f.expire([]onejob.AttemptRef{none, {}, refOf(a)}); !refsEqual(changed, []onejob.AttemptRef{refOf(a)}) {
		f.Errorf("the sweep changed %v; want only the attempt that exists", changed)
	}
}

func testExpiredOrder(f *fixture) {
	first := f.starting("k1")
	f.advance(time.Second)
	second := f.starting("k2")
	f.advance(lease + time.Second)
	refs, err := f.s.AttemptExpired(f.Context(), 1)
	f.noError(err)
	if !refsEqual(refs, []onejob.AttemptRef{refOf(first)}) {
		f.Errorf("listed %v; want the one whose lease ended first", refs)
	}
	if refs := f.expired(); !refsEqual(refs, []onejob.AttemptRef{refOf(first), refOf(second)}) {
		f.Errorf("listed %v; want both, longest over first", refs)
	}
	f.wantAttempt(first.ID, onejob.AttemptStarting) // a list changes nothing
}

func testOwnFaultAtOnce(f *fixture) {
	a := f.starting("k1")
	f.sweep()
	if again := f.claimOne().Attempt; again.JobID != a.JobID || again.Number != 2 || again.Target != "a" {
		f.Errorf("after a lost worker the next attempt is %+v; want number 2 at a, at once", again)
	}
}

func testOwnFaultBudget(f *fixture) {
	f.create("k1", withPolicy(func(p *onejob.Policy) { p.MaxAttempts, p.PerTarget = 1, 1 }))
	for range 3 {
		f.claimOne()
		f.sweep()
	}
	a := f.mark(f.claimOne().Attempt)
	f.finish(a, onejob.OutcomeSucceeded)
	f.wantJob(a.JobID, onejob.JobSucceeded)
}

func testOwnFaultOperator(f *fixture) {
	job := f.create("k1")
	for range onejob.MaxOwnFaults + 1 {
		f.wantJob(job.ID, onejob.JobQueued)
		f.claimOne()
		f.sweep()
	}
	blocked := f.wantJob(job.ID, onejob.JobBlocked, onejob.BlockNeedsOperator)
	f.claimNothing()
	f.advance(time.Second)
	again, err := f.tryUnblock(onejob.JobUnblockParams{ID: job.ID, Actor: "olga", Reason: "the disk was full"})
	f.noError(err)
	if again.State != onejob.JobQueued || again.Blocked != nil || again.Revision <= blocked.Revision {
		f.Errorf("the unblocked job is %s, %+v; want queued", again.State, again.Blocked)
	}
	f.finish(f.mark(f.claimOne().Attempt), onejob.OutcomeSucceeded)
	f.wantJob(job.ID, onejob.JobSucceeded)
}
