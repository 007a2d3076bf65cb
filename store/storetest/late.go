package storetest

import (
	"reflect"
	"time"

	"github.com/onejob-dev/onejob"
)

// Successes that come after the fact.
func arrivingLate() []promise {
	return []promise{
		{name: "Race/ReverseOrderKeepsTheWinner", test: testReverseOrder},
		{name: "Race/TwoFinishesInOneBatchHaveOneWinner", test: testLanesInOneBatch},
		{name: "Race/AFailedLaneLeavesTheOther", test: testLaneFails},
		{name: "Race/ALaneInDoubtMayStillWin", test: testLaneInDoubtWins},
		{name: "Race/LosersAreNoIncident", test: testLosersAreNoIncident},
		{name: "LateSuccess/WinsAnOpenJobThoughRuledOut", test: testRuledOutWins},
		{name: "LateSuccess/ADoneJobIsADuplicateEffect", test: testRuledOutLoses},
		{name: "LateSuccess/TheOtherWayRoundIsADuplicateEffectToo", test: testRuledOutWinsFirst},
		{name: "LateSuccess/AClosedJobIsALateEffect", test: testLateAfterClose},
		{name: "LateSuccess/AClosedJobStaysClosed", test: testLateKeepsClosed},
		{name: "LateSuccess/BringsNoPayloadBack", test: testLateAfterPurge},
		{name: "LateSuccess/OnlyOfAnAttemptThatWasRuled", test: testLateUnruled},
		{name: "LateSuccess/AStaleAttemptClosesNoNewerOne", test: testStaleAttempt},
	}
}

func testReverseOrder(f *fixture) {
	first, second := f.twoLanes("k1")
	f.finish(second, onejob.OutcomeSucceeded, withCost(200))
	won := f.wantJob(first.JobID, onejob.JobSucceeded)
	f.advance(25 * time.Second)
	r := f.finish(first, onejob.OutcomeSucceeded, withCost(1000))
	if r.State != onejob.AttemptDiscarded || r.JobState != onejob.JobSucceeded || r.Discarded == nil || r.Discarded.Winner != second.ID {
		f.Fatalf("the later success answers %+v; want discarded, beaten by %s", r, second.ID)
	}
	if late := r.Discarded.After; late < 25*time.Second || late > time.Minute {
		f.Errorf("it came %s after the winner; want about 25 s", late)
	}
	loser := f.wantAttempt(first.ID, onejob.AttemptDiscarded)
	if !reflect.DeepEqual(loser.Discarded, r.Discarded) || loser.Result == nil || string(loser.Result.Body) != "result of "+first.ID || loser.CostMicros != 1000 {
		f.Errorf("the loser keeps %+v, %+v, %d; want whom it lost to, its result and its cost", loser.Discarded, loser.Result, loser.CostMicros)
	}
	job := f.wantJob(first.JobID, onejob.JobSucceeded)
	if job.CompletedBy != second.ID || job.Version != won.Version || !job.FinishedAt.Equal(won.FinishedAt) || !reflect.DeepEqual(job.Result, won.Result) {
		f.Errorf("the late success changed the job to %+v; want the winner's, at version %d", job, won.Version)
	}
	if want := []onejob.Cost{{Currency: "EUR", Micros: 1200}}; !reflect.DeepEqual(job.Costs(), want) {
		f.Errorf("the job cost %+v; want %+v, the loser included", job.Costs(), want)
	}
	if n := f.eventsOf(job, onejob.EventRaceLost); n != 1 {
		f.Errorf("%d races were written down; want 1", n)
	}
}

func testLanesInOneBatch(f *fixture) {
	first, second := f.twoLanes("k1")
	version := f.get(first.JobID).Version
	results, err := f.s.AttemptFinish(f.Context(), []onejob.AttemptFinishParams{
		finishOf(first, onejob.OutcomeSucceeded), finishOf(second, onejob.OutcomeSucceeded),
	})
	f.noError(err)
	f.noError(results[0].Err)
	f.noError(results[1].Err)
	job := f.wantJob(first.JobID, onejob.JobSucceeded)
	if job.CompletedBy != first.ID || results[0].State != onejob.AttemptSucceeded || results[1].State != onejob.AttemptDiscarded || job.Version != version+1 {
		f.Errorf("the batch ended %s and %s, completed by %q; want the first to win and the second discarded", results[0].State, results[1].State, job.CompletedBy)
	}
}

func testLaneFails(f *fixture) {
	first, second := f.twoLanes("k1")
	if r := f.finish(first, onejob.OutcomeRefused); r.JobState != onejob.JobRunning {
		f.Errorf("with one lane failed and one running the job is %s; want running", r.JobState)
	}
	f.claimNothing()
	f.finish(second, onejob.OutcomeSucceeded)
	f.wantJob(first.JobID, onejob.JobSucceeded)
}

func testLaneInDoubtWins(f *fixture) {
	first, second := f.twoLanes("k1")
	f.finish(first, onejob.OutcomeUnknown)
	f.wantJob(first.JobID, onejob.JobRunning)
	f.finish(second, onejob.OutcomeRefused)
	f.wantJob(first.JobID, onejob.JobBlocked, onejob.BlockAttemptUnknown)
	f.finish(first, onejob.OutcomeSucceeded)
	if job := f.wantJob(first.JobID, onejob.JobSucceeded); job.CompletedBy != first.ID {
		f.Errorf("the job was completed by %q; want %s", job.CompletedBy, first.ID)
	}
}

func testLosersAreNoIncident(f *fixture) {
	first, second := f.twoLanes("k1")
	f.finish(second, onejob.OutcomeUnknown)
	f.finish(first, onejob.OutcomeSucceeded)
	if r := f.finish(second, onejob.OutcomeSucceeded); r.State != onejob.AttemptDiscarded || r.Incident != "" {
		f.Errorf("the loser of a declared race answers %+v; want discarded and no incident", r)
	}
	f.wantIncidents(first.JobID)
}

// wantIncidents checks which incidents were written down about a job.
func (f *fixture) wantIncidents(id string, want ...onejob.EventKind) {
	f.Helper()
	var got []onejob.EventKind
	for _, e := range f.events(f.get(id)) {
		if e.Kind.Incident() {
			got = append(got, e.Kind)
		}
	}
	if !reflect.DeepEqual(got, want) {
		f.Errorf("the incidents are %q; want %q", got, want)
	}
}

func testRuledOutWins(f *fixture) {
	a := f.ruledOut("k1")
	before := f.wantJob(a.JobID, onejob.JobQueued)
	r := f.finish(a, onejob.OutcomeSucceeded)
	if r.State != onejob.AttemptSucceeded || r.JobState != onejob.JobSucceeded || r.Incident != "" {
		f.Errorf("the success that was ruled out answers %+v; want it to win the open job", r)
	}
	job := f.wantJob(a.JobID, onejob.JobSucceeded)
	if job.CompletedBy != a.ID || job.Version != before.Version+1 {
		f.Errorf("the job was completed by %q at version %d; want %s at %d", job.CompletedBy, job.Version, a.ID, before.Version+1)
	}
	if got := f.attempt(a.ID); got.Ruling == nil || got.Ruling.Outcome != onejob.OutcomeNotExecuted {
		f.Errorf("the attempt's ruling is %+v; want it kept, though it was wrong", got.Ruling)
	}
	f.claimNothing()
}

func testRuledOutLoses(f *fixture) {
	a := f.ruledOut("k1")
	b := f.claimAgain()
	f.finish(b, onejob.OutcomeSucceeded)
	won := f.get(a.JobID)
	r := f.finish(a, onejob.OutcomeSucceeded)
	if r.State != onejob.AttemptDiscarded || r.Incident != onejob.EventDuplicateEffect || r.Discarded == nil || r.Discarded.Winner != b.ID {
		f.Errorf("the success that was ruled out answers %+v; want discarded, with a duplicate effect beside %s", r, b.ID)
	}
	f.wantIncidents(a.JobID, onejob.EventDuplicateEffect)
	if job := f.get(a.JobID); job.CompletedBy != b.ID || job.Version != won.Version {
		f.Errorf("the job is completed by %q at version %d; want %s at %d", job.CompletedBy, job.Version, b.ID, won.Version)
	}
	if again := f.finish(a, onejob.OutcomeSucceeded); again.Incident != r.Incident || again.State != r.State {
		f.Errorf("the repeat answers %+v; want %+v", again, r)
	}
	f.wantIncidents(a.JobID, onejob.EventDuplicateEffect)
}

// A ruling let a second attempt start and was wrong: the effect happened twice,
// whichever of the two comes first. Here the one that was ruled out wins, and it
// is the innocent second that finds the slot taken.
func testRuledOutWinsFirst(f *fixture) {
	a := f.ruledOut("k1")
	b := f.claimAgain()
	f.finish(a, onejob.OutcomeSucceeded)
	r := f.finish(b, onejob.OutcomeSucceeded)
	if r.State != onejob.AttemptDiscarded || r.Incident != onejob.EventDuplicateEffect {
		f.Errorf("the second effect answers %+v; want discarded, with a duplicate effect", r)
	}
	f.wantIncidents(a.JobID, onejob.EventDuplicateEffect)
}

func testLateAfterClose(f *fixture) {
	a := f.unknown("k1")
	f.cancel(a.JobID)
	f.advance(quarantine + time.Second)
	f.resolve(a, onejob.OutcomeNotExecuted)
	closed := f.wantJob(a.JobID, onejob.JobCancelled)
	r := f.finish(a, onejob.OutcomeSucceeded, withCost(1000))
	if r.State != onejob.AttemptDiscarded || r.Incident != onejob.EventLateEffect || r.Discarded == nil || r.Discarded.Winner != "" {
		f.Errorf("the success after the close answers %+v; want discarded without a winner, and an incident", r)
	}
	f.wantIncidents(a.JobID, onejob.EventLateEffect)
	if job := f.wantJob(a.JobID, onejob.JobCancelled); job.Version != closed.Version || job.Result != nil || job.CompletedBy != "" {
		f.Errorf("the closed job is now %+v; want it as it was", job)
	}
	if got := f.attempt(a.ID); got.CostMicros != 1000 || got.Result == nil {
		f.Errorf("the late success keeps %d and %+v; want its cost and result as evidence", got.CostMicros, got.Result)
	}
}

func testLateKeepsClosed(f *fixture) {
	a := f.unknown("k1", withPolicy(func(p *onejob.Policy) { p.PerTarget = 1 }))
	f.advance(quarantine + time.Second)
	f.resolve(a, onejob.OutcomeExecutedFailed)
	before := f.wantJob(a.JobID, onejob.JobFailed)
	r := f.finish(a, onejob.OutcomeSucceeded)
	if r.State != onejob.AttemptDiscarded || r.JobState != onejob.JobFailed || r.Incident != onejob.EventLateEffect {
		f.Errorf("the success after the failure answers %+v; want discarded, failed, and an incident", r)
	}
	if after := f.wantJob(a.JobID, onejob.JobFailed); after.Version != before.Version || !reflect.DeepEqual(after.Error, before.Error) {
		f.Errorf("the failed job is now %+v; want it as it was", after)
	}
}

// What was removed stays so: nothing would remove it again.
func testLateAfterPurge(f *fixture) {
	finished := f.ruledOut("k1")
	f.cancel(finished.JobID)
	probed := f.ruledOut("k2")
	f.cancel(probed.JobID)
	f.purgeAll()
	r := f.finish(finished, onejob.OutcomeSucceeded, withCost(1000))
	if r.State != onejob.AttemptDiscarded || r.Incident != onejob.EventLateEffect {
		f.Errorf("the success after the purge answers %+v; want discarded, and an incident", r)
	}
	answers, err := f.probes().ProbeRecord(f.Context(), []onejob.ProbeRecordParams{{
		Ref: refOf(probed), Method: onejob.ProbeCallback, Outcome: onejob.OutcomeSucceeded, Result: &onejob.Result{Body: []byte("late")},
	}})
	f.noError(err)
	if answers[0].Err != nil || answers[0].State != onejob.AttemptDiscarded {
		f.Errorf("the report after the purge answers %+v; want discarded", answers[0])
	}
	for _, a := range []onejob.Attempt{finished, probed} {
		if got := f.attempt(a.ID); got.Result != nil {
			f.Errorf("the late success of a purged job keeps %+v; want no answer", got.Result)
		}
	}
	if got := f.attempt(finished.ID); got.CostMicros != 1000 {
		f.Errorf("the late success cost %d; want it booked", got.CostMicros)
	}
}

func testLateUnruled(f *fixture) {
	refused := f.running("k1")
	f.finish(refused, onejob.OutcomeRefused, withNext(onejob.NextAgain), withRetryAfter(time.Hour))
	f.lose(finishOf(refused, onejob.OutcomeSucceeded), onejob.AttemptFailed)
	lost := f.starting("k2")
	f.sweep()
	f.lose(finishOf(lost, onejob.OutcomeSucceeded), onejob.AttemptFailed) // it has no mark
}

// The first attempt falls silent and is ruled out, the second runs; then the first
// reports a failure, and the second its result.
func testStaleAttempt(f *fixture) {
	a := f.ruledOut("k1")
	b := f.claimAgain()
	f.lose(finishOf(a, onejob.OutcomeRefused), onejob.AttemptFailed)
	f.lose(finishOf(a, onejob.OutcomeUnknown), onejob.AttemptFailed)
	crossed := finishOf(b, onejob.OutcomeSucceeded)
	crossed.ClaimToken = a.ClaimToken
	f.lose(crossed, onejob.AttemptRunning)
	f.wantJob(a.JobID, onejob.JobRunning)
	f.finish(b, onejob.OutcomeSucceeded)
	if job := f.wantJob(a.JobID, onejob.JobSucceeded); job.CompletedBy != b.ID || string(job.Result.Body) != "result of "+b.ID {
		f.Errorf("the job was completed by %q with %q; want %s and its own result", job.CompletedBy, job.Result.Body, b.ID)
	}
}
