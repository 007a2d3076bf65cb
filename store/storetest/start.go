package storetest

import (
	"time"

	"github.com/onejob-dev/onejob"
)

func starting() []promise {
	return []promise{
		{name: "Fallback/ADeclaredTargetStarts", test: testFallbackStarts},
		{name: "Fallback/TwiceIsOneAttempt", test: testFallbackTwice, handles: 2},
		{name: "Fallback/TwiceInOneBatchIsOneAttempt", test: testFallbackBatch},
		{name: "Fallback/AnotherTargetUnderTheKeyConflicts", test: testFallbackConflict},
		{name: "Fallback/ARefusedClickTakesNoKey", test: testFallbackTakesNoKey},
		{name: "Fallback/AnUnservedTargetIsRefusedAndTakesNoKey", test: testFallbackUnserved},
		{name: "Fallback/WithoutAnEngineAnyTargetStarts", test: testFallbackWithoutEngine},
		{name: "Fallback/ARepeatAnswersWhateverBecameOfTheJob", test: testFallbackRepeatLater},
		{name: "Fallback/InDoubtIsUnresolved", test: testFallbackInDoubt},
		{name: "Fallback/NotCertifiedSaysWhy", test: testFallbackNotCertified},
		{name: "Fallback/NotAfterAnUnprovenEffect", test: testFallbackUnproven},
		{name: "Fallback/DoesNotWaitOutABackoff", test: testFallbackNow},
		{name: "Fallback/AFinishedJobIsTerminal", test: testFallbackTerminal},
		{name: "Fallback/JobAndButtonKeysAreApart", test: testFallbackKeySpace},
		{name: "Lane/ASecondMayStart", test: testLaneStarts},
		{name: "Lane/AThirdMayNot", test: testLaneThird},
		{name: "Lane/EachHasOneAttempt", test: testLaneOnce},
		{name: "Lane/NoneOnAnEffect", test: testLaneOnEffect},
		{name: "Lane/StartsBesideAnUnknown", test: testLaneBesideUnknown},
		{name: "Lane/NotAfterACancel", test: testLaneCancelled},
	}
}

// blockedAtA records an intent that target a refused and no other target may take.
func (f *fixture) blockedAtA(key string, change ...func(*onejob.JobCreateParams)) *onejob.Job {
	f.Helper()
	certified := withPolicy(func(p *onejob.Policy) { p.Targets = []string{"a", "b", "c"} })
	a := f.running(key, append([]func(*onejob.JobCreateParams){certified}, change...)...)
	f.finish(a, onejob.OutcomeRefused)
	return f.wantJob(a.JobID, onejob.JobBlocked, onejob.BlockFailoverNotCertified)
}

// awaitingB records an intent that target a refused and whose next target is b.
func (f *fixture) awaitingB(key string) *onejob.Job {
	f.Helper()
	a := f.running(key, targets("a", "b", "c"))
	f.finish(a, onejob.OutcomeRefused)
	return f.wantJob(a.JobID, onejob.JobQueued)
}

// twoLanes records an intent with an attempt running at a and a racing one at b.
func (f *fixture) twoLanes(key string, change ...func(*onejob.JobCreateParams)) (first, second onejob.Attempt) {
	f.Helper()
	first = f.running(key, append([]func(*onejob.JobCreateParams){racing(2, "a", "b", "c")}, change...)...)
	return first, f.mark(f.start(laneOf(first.JobID, 1, "b")))
}

func testFallbackStarts(f *fixture) {
	job := f.awaitingB("k1")
	r := f.tryStart(buttonOf(job.ID, "click", "c"))
	f.noError(r.Err)
	a := r.Claimed.Attempt
	if r.Existed || a.Target != "c" || a.State != onejob.AttemptStarting || a.Number != 2 || a.ClaimToken == "" {
		f.Errorf("the click made %+v, existed %t; want attempt 2 at c, starting", a, r.Existed)
	}
	if string(r.Claimed.Job.Input) != `{"amount":7}` {
		f.Errorf("the claimed job has input %q; want the caller's", r.Claimed.Job.Input)
	}
	f.wantJob(job.ID, onejob.JobRunning)
	f.finish(f.mark(a), onejob.OutcomeSucceeded)
	f.wantJob(job.ID, onejob.JobSucceeded)
}

func testFallbackTwice(f *fixture) {
	job := f.awaitingB("k1")
	first := f.start(buttonOf(job.ID, "click", "b"))
	results, err := f.handle(1).AttemptStart(f.Context(), []onejob.AttemptStartParams{buttonOf(job.ID, "click", "b")})
	f.noError(err)
	f.noError(results[0].Err)
	if !results[0].Existed || results[0].Claimed.Attempt.ID != first.ID {
		f.Errorf("the second click answered %+v, existed %t; want attempt %s", results[0].Claimed.Attempt, results[0].Existed, first.ID)
	}
	if n := f.get(job.ID).AttemptsMade; n != 2 {
		f.Errorf("%d attempts were made; want 2, the refused one and the click", n)
	}
}

func testFallbackBatch(f *fixture) {
	job := f.awaitingB("k1")
	click := buttonOf(job.ID, "click", "b")
	results, err := f.s.AttemptStart(f.Context(), []onejob.AttemptStartParams{click, click})
	f.noError(err)
	f.noError(results[0].Err)
	f.noError(results[1].Err)
	if results[0].Existed || !results[1].Existed || results[0].Claimed.Attempt.ID != results[1].Claimed.Attempt.ID {
		f.Errorf("two clicks in one batch made %s and %s; want one attempt", results[0].Claimed.Attempt.ID, results[1].Claimed.Attempt.ID)
	}
}

func testFallbackConflict(f *fixture) {
	job := f.awaitingB("k1")
	f.start(buttonOf(job.ID, "click", "b"))
	f.wantCode(f.tryStart(buttonOf(job.ID, "click", "c")).Err, onejob.CodeKeyConflict)
}

func testFallbackTakesNoKey(f *fixture) {
	a := f.running("k1", targets("a", "b"))
	f.wantCode(f.tryStart(buttonOf(a.JobID, "click", "b")).Err, onejob.CodeAttemptUnresolved)
	f.finish(a, onejob.OutcomeRefused)
	if again := f.tryStart(buttonOf(a.JobID, "click", "b")); again.Err != nil || again.Existed {
		f.Errorf("after the doubt the same click answered %v, existed %t; want a new attempt", again.Err, again.Existed)
	}
}

// An attempt at a target that this node cannot call would be claimed by nobody who
// can send it, and be in doubt for nothing.
func testFallbackUnserved(f *fixture) {
	lane := laneOf(f.running("k1", racing(2, "a", "c")).JobID, 1, "c")
	lane.StartParams = claimer("a")
	job := f.awaitingB("k2")
	click := buttonOf(job.ID, "click", "c")
	click.StartParams = claimer("a", "b")
	for _, p := range []onejob.AttemptStartParams{click, lane} {
		before := f.get(p.JobID)
		f.wantCode(f.tryStart(p).Err, onejob.CodeInvalidJob)
		if after := f.get(p.JobID); after.Revision != before.Revision || after.AttemptsMade != before.AttemptsMade {
			f.Errorf("the refusal left revision %d and %d attempts; want %d and %d",
				after.Revision, after.AttemptsMade, before.Revision, before.AttemptsMade)
		}
	}
	if again := f.tryStart(buttonOf(job.ID, "click", "c")); again.Err != nil || again.Existed {
		f.Errorf("where c is served the same click answered %v, existed %t; want a new attempt", again.Err, again.Existed)
	}
}

func testFallbackWithoutEngine(f *fixture) {
	click := buttonOf(f.awaitingB("k1").ID, "click", "c")
	click.StartParams = onejob.StartParams{Worker: worker, Lease: lease}
	if a := f.start(click); a.Target != "c" {
		f.Errorf("the click started at %s; want c, for whoever serves it", a.Target)
	}
}

func testFallbackRepeatLater(f *fixture) {
	job := f.awaitingB("k1")
	a := f.mark(f.start(buttonOf(job.ID, "click", "b")))
	f.finish(a, onejob.OutcomeSucceeded)
	again := f.tryStart(buttonOf(job.ID, "click", "b"))
	f.noError(again.Err)
	if !again.Existed || again.Claimed.Attempt.ID != a.ID || again.Claimed.Attempt.State != onejob.AttemptSucceeded {
		f.Errorf("the repeat answered %+v; want attempt %s, succeeded", again.Claimed.Attempt, a.ID)
	}
	f.wantCode(f.tryStart(buttonOf(job.ID, "click", "c")).Err, onejob.CodeKeyConflict)
}

func testFallbackInDoubt(f *fixture) {
	a := f.starting("k1", targets("a", "b"))
	refuse := func(state onejob.AttemptState) {
		f.Helper()
		f.wantAttempt(a.ID, state)
		e := f.wantError(f.tryStart(buttonOf(a.JobID, "click", "b")).Err, onejob.CodeAttemptUnresolved)
		if e.AttemptID != a.ID || e.JobID != a.JobID {
			f.Errorf("while %s the refusal names %q of %q; want %q of %q", state, e.AttemptID, e.JobID, a.ID, a.JobID)
		}
	}
	refuse(onejob.AttemptStarting)
	f.mark(a)
	refuse(onejob.AttemptRunning)
	f.finish(a, onejob.OutcomeUnknown)
	refuse(onejob.AttemptUnknown)
	if n := f.get(a.JobID).AttemptsMade; n != 1 {
		f.Errorf("%d attempts were made; want 1", n)
	}
}

func testFallbackNotCertified(f *fixture) {
	job := f.blockedAtA("k1")
	e := f.wantError(f.tryStart(buttonOf(job.ID, "click", "")).Err, onejob.CodeFailoverNotCertified)
	if e.Reason != onejob.GateNoCertificate || len(e.Candidates) != 2 || e.Candidates[0].Target != "b" || e.Candidates[1].Target != "c" {
		f.Errorf("the refusal says %q of %+v; want %q of b and c", e.Reason, e.Candidates, onejob.GateNoCertificate)
	}
	f.wantCode(f.tryStart(buttonOf(job.ID, "click", "c")).Err, onejob.CodeFailoverNotCertified)
	if n := f.get(job.ID).AttemptsMade; n != 1 {
		f.Errorf("%d attempts were made; want 1", n)
	}
}

func testFallbackUnproven(f *fixture) {
	a := f.running("k1", targets("a", "b"))
	f.finish(a, onejob.OutcomeExecutedFailed)
	f.wantJob(a.JobID, onejob.JobBlocked, onejob.BlockFailoverUnproven)
	e := f.wantError(f.tryStart(buttonOf(a.JobID, "click", "b")).Err, onejob.CodeFailoverNotCertified)
	if e.Reason != string(onejob.BlockFailoverUnproven) {
		f.Errorf("the refusal's reason is %q; want %q", e.Reason, onejob.BlockFailoverUnproven)
	}
}

func testFallbackNow(f *fixture) {
	a := f.running("k1")
	f.finish(a, onejob.OutcomeRefused, withNext(onejob.NextAgain), withRetryAfter(time.Hour))
	f.claimNothing()
	if again := f.start(buttonOf(a.JobID, "click", "")); again.Target != "a" {
		f.Errorf("the click started at %s; want a, at once", again.Target)
	}
}

func testFallbackTerminal(f *fixture) {
	succeeded := f.running("k1", targets("a", "b"))
	f.finish(succeeded, onejob.OutcomeSucceeded)
	failed := f.running("k2", targets("a", "b"))
	f.finish(failed, onejob.OutcomeRefused, withNext(onejob.NextNowhere))
	for _, id := range []string{succeeded.JobID, failed.JobID, f.cancel(f.create("k3").ID).ID} {
		f.wantCode(f.tryStart(buttonOf(id, "click", "b")).Err, onejob.CodeJobTerminal)
		if lane := f.tryStart(laneOf(id, 1, "b")); lane.Err == nil {
			f.Errorf("a racing lane started on %s, which is over", id)
		}
	}
}

func testFallbackKeySpace(f *fixture) {
	a := f.start(buttonOf(f.awaitingB("k1").ID, "click", "b"))
	b := f.start(buttonOf(f.awaitingB("k2").ID, "click", "b"))
	if a.ID == b.ID || a.JobID == b.JobID {
		f.Errorf("one click key on two jobs made %s and %s; want an attempt of each", a.ID, b.ID)
	}
	f.create("click")
}

func testLaneStarts(f *fixture) {
	first, second := f.twoLanes("k1")
	if second.Lane != 1 || second.Number != 2 || second.Target != "b" || second.JobVersion != first.JobVersion {
		f.Errorf("the racing attempt is %+v; want number 2 in lane 1 at b, of the same version", second)
	}
	f.wantAttempt(first.ID, onejob.AttemptRunning)
	f.wantAttempt(second.ID, onejob.AttemptRunning)
	f.wantJob(first.JobID, onejob.JobRunning)
}

func testLaneThird(f *fixture) {
	first, _ := f.twoLanes("k1")
	for _, lane := range []int{1, 2, 3} {
		if r := f.tryStart(laneOf(first.JobID, lane, "c")); r.Err == nil {
			f.Errorf("a third attempt started in lane %d of a job with two lanes", lane)
		}
	}
	f.wantCode(f.tryStart(buttonOf(first.JobID, "click", "c")).Err, onejob.CodeAttemptUnresolved)
	if n := f.get(first.JobID).AttemptsMade; n != 2 {
		f.Errorf("%d attempts were made; want 2", n)
	}
}

func testLaneOnce(f *fixture) {
	a := f.running("k1", racing(3, "a", "b", "c"))
	params := []onejob.AttemptStartParams{laneOf(a.JobID, 1, "b"), laneOf(a.JobID, 1, "c"), laneOf(a.JobID, 2, "c")}
	results, err := f.s.AttemptStart(f.Context(), params)
	f.noError(err)
	f.noError(results[0].Err)
	f.noError(results[2].Err)
	f.wantCode(results[1].Err, onejob.CodeAttemptUnresolved)
}

func testLaneOnEffect(f *fixture) {
	a := f.running("k1", targets("a", "b"))
	for _, lane := range []int{1, 2} {
		f.wantCode(f.tryStart(laneOf(a.JobID, lane, "b")).Err, onejob.CodeAttemptUnresolved)
	}
	if n := f.get(a.JobID).AttemptsMade; n != 1 {
		f.Errorf("%d attempts of a charge were made; want 1", n)
	}
}

func testLaneBesideUnknown(f *fixture) {
	a := f.unknown("k1", racing(2, "a", "b"))
	f.wantJob(a.JobID, onejob.JobBlocked, onejob.BlockAttemptUnknown)
	b := f.mark(f.start(laneOf(a.JobID, 1, "b")))
	f.wantJob(a.JobID, onejob.JobRunning)
	f.finish(b, onejob.OutcomeSucceeded)
	f.wantJob(a.JobID, onejob.JobSucceeded)
	f.wantAttempt(a.ID, onejob.AttemptUnknown)
}

func testLaneCancelled(f *fixture) {
	a := f.running("k1", racing(2, "a", "b"))
	f.cancel(a.JobID)
	if r := f.tryStart(laneOf(a.JobID, 1, "b")); r.Err == nil {
		f.Error("a racing lane started on a job that is to be cancelled")
	}
}
