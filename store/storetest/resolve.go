package storetest

import (
	"reflect"
	"time"

	"github.com/onejob-dev/onejob"
)

func resolving() []promise {
	return []promise{
		{name: "AttemptResolve/ASuccessNeedsNoQuarantine", test: testResolveSucceeded},
		{name: "AttemptResolve/NotExecutedLetsTheJobGoOn", test: testResolveNotExecuted},
		{name: "AttemptResolve/LeavesNoFaultOfOurs", test: testResolveOwnFault},
		{name: "AttemptResolve/ExecutedFailedIsNotRetriedUnderAnEffect", test: testResolveExecutedFailed},
		{name: "AttemptResolve/ALostResultIsASuccess", test: testResolveLost},
		{name: "AttemptResolve/ALostResultNeedsAnEffect", test: testResolveLostWithoutEffect},
		{name: "AttemptResolve/CancelledNeedsAnOperator", test: testResolveCancelled},
		{name: "AttemptResolve/OnlyTheUnknown", test: testResolveOnlyUnknown},
		{name: "AttemptResolve/NeedsEvidenceAndAResult", test: testResolveNeeds},
		{name: "AttemptResolve/QuarantineSaysWhenToComeBack", test: testResolveQuarantine},
		{name: "AttemptResolve/WithoutMaxExecutionAPersonTakesTheRisk", test: testResolveRisk},
		{name: "AttemptResolve/AnAcknowledgedRiskIsNoProof", test: testResolveRiskBlocks},
		{name: "AttemptResolve/TheSecondPersonIsTooLate", test: testResolveTwice, handles: 2},
		{name: "AttemptResolve/EachRowOfABatchIsJudgedByItself", test: testResolveBatch},
		{name: "AttemptResolve/ALoserOfARaceIsDiscarded", test: testResolveLoser},
		{name: "AttemptResolve/IsWrittenDown", test: testResolveIsWrittenDown},
	}
}

func testResolveSucceeded(f *fixture) {
	a := f.unknown("k1")
	before := f.get(a.JobID)
	r := f.resolve(a, onejob.OutcomeSucceeded)
	if r.Attempt.State != onejob.AttemptSucceeded || r.Job.State != onejob.JobSucceeded || r.Job.CompletedBy != a.ID || r.Job.Version != before.Version+1 {
		f.Errorf("the ruling left attempt %s and job %s by %q; want both succeeded", r.Attempt.State, r.Job.State, r.Job.CompletedBy)
	}
	if job := f.get(a.JobID); job.Result == nil || string(job.Result.Body) != `{"by":"hand"}` || job.Result.ContentType != "application/json" || job.Blocked != nil {
		f.Errorf("the job has result %+v, blocked %+v; want what the person said", job.Result, job.Blocked)
	}
	got := f.wantAttempt(a.ID, onejob.AttemptSucceeded)
	if got.Ruling == nil || got.Ruling.By != "olga" || got.Ruling.Outcome != onejob.OutcomeSucceeded || got.Ruling.Evidence == "" ||
		got.Ruling.At.IsZero() || got.Ruling.RiskAcknowledged {
		f.Errorf("the ruling is kept as %+v", got.Ruling)
	}
}

func testResolveNotExecuted(f *fixture) {
	a := f.ruledOut("k1")
	got := f.wantAttempt(a.ID, onejob.AttemptFailed)
	if got.Outcome != onejob.OutcomeNotExecuted || got.FinishedAt.IsZero() || got.Evidence.Error != "no answer" {
		f.Errorf("the attempt is %+v; want not_executed, finished, with its first evidence", got)
	}
	f.wantJob(a.JobID, onejob.JobQueued)
	b := f.claimAgain()
	if b.Number != 2 || b.ProviderKey != a.ProviderKey {
		f.Errorf("the next attempt is %+v; want number 2 under the same provider key", b)
	}
}

// A budget of our own is for what we know of: a ruling is about the target.
func testResolveOwnFault(f *fixture) {
	a := f.running("k1")
	f.finish(a, onejob.OutcomeUnknown, func(p *onejob.AttemptFinishParams) { p.OwnFault = true })
	f.advance(quarantine + time.Second)
	f.resolve(a, onejob.OutcomeNotExecuted)
	if got := f.wantAttempt(a.ID, onejob.AttemptFailed); got.OwnFault {
		f.Error("what was ruled not to have happened counts as our own fault; want it to count against the target")
	}
}

func testResolveExecutedFailed(f *fixture) {
	a := f.unknown("k1", targets("a", "b"))
	f.advance(quarantine + time.Second)
	r := f.resolve(a, onejob.OutcomeExecutedFailed)
	if r.Attempt.State != onejob.AttemptFailed {
		f.Errorf("the attempt is %s; want failed", r.Attempt.State)
	}
	f.wantJob(a.JobID, onejob.JobBlocked, onejob.BlockFailoverUnproven)
	f.claimNothing()
}

func testResolveLost(f *fixture) {
	a := f.running("k1")
	f.finish(a, onejob.OutcomeResultLost)
	r := f.resolve(a, onejob.OutcomeResultLost)
	if r.Attempt.State != onejob.AttemptSucceeded || r.Job.State != onejob.JobSucceeded {
		f.Errorf("the ruling left %s and %s; want both succeeded: it happened", r.Attempt.State, r.Job.State)
	}
	if job := f.get(a.JobID); job.Result == nil || !job.Result.Lost || len(job.Result.Body) != 0 {
		f.Errorf("the job's result is %+v; want it said to be lost", job.Result)
	}
}

func testResolveLostWithoutEffect(f *fixture) {
	a := f.unknown("k1", withPolicy(func(p *onejob.Policy) { p.Effect = onejob.EffectNone }))
	f.wantCode(f.tryResolve(rulingOf(a, onejob.OutcomeResultLost)).Err, onejob.CodeInvalidResolution)
}

func testResolveCancelled(f *fixture) {
	a := f.unknown("k1")
	f.advance(quarantine + time.Second)
	r := f.resolve(a, onejob.OutcomeCancelled)
	if r.Attempt.State != onejob.AttemptCancelled {
		f.Errorf("the attempt is %s; want cancelled", r.Attempt.State)
	}
	f.wantJob(a.JobID, onejob.JobBlocked, onejob.BlockNeedsOperator) // nobody asked to cancel the job
	f.claimNothing()
}

func testResolveOnlyUnknown(f *fixture) {
	a := f.starting("k1")
	f.wantCode(f.tryResolve(rulingOf(a, onejob.OutcomeSucceeded)).Err, onejob.CodeAttemptNotUnknown)
	f.mark(a)
	f.wantCode(f.tryResolve(rulingOf(a, onejob.OutcomeSucceeded)).Err, onejob.CodeAttemptNotUnknown)
	f.finish(a, onejob.OutcomeRefused)
	f.wantCode(f.tryResolve(rulingOf(a, onejob.OutcomeSucceeded)).Err, onejob.CodeAttemptTerminal)
	none := a
	none.ID = onejob.NewAttemptID(a.JobID, a.Number)
	f.wantCode(f.tryResolve(rulingOf(none, onejob.OutcomeSucceeded)).Err, onejob.CodeNotFound)
}

func testResolveNeeds(f *fixture) {
	a := f.unknown("k1")
	f.advance(quarantine + time.Second)
	for name, p := range map[string]onejob.AttemptResolveParams{
		"no evidence": rulingOf(a, onejob.OutcomeNotExecuted, func(p *onejob.AttemptResolveParams) { p.Evidence = "" }),
		"no result":   rulingOf(a, onejob.OutcomeSucceeded, func(p *onejob.AttemptResolveParams) { p.Result = nil }),
		"no ruling":   rulingOf(a, onejob.OutcomeUnknown),
		"an answer":   rulingOf(a, onejob.OutcomeRefused),
	} {
		if e := f.wantError(f.tryResolve(p).Err, onejob.CodeInvalidResolution); e.AttemptID != a.ID {
			f.Errorf("%s: the refusal names %q; want %s", name, e.AttemptID, a.ID)
		}
	}
	f.wantAttempt(a.ID, onejob.AttemptUnknown)
}

func testResolveQuarantine(f *fixture) {
	a := f.unknown("k1")
	for _, outcome := range []onejob.Outcome{onejob.OutcomeNotExecuted, onejob.OutcomeExecutedFailed, onejob.OutcomeCancelled} {
		e := f.wantError(f.tryResolve(rulingOf(a, outcome, acknowledgeRisk)).Err, onejob.CodeQuarantined)
		if e.RetryAfter <= 0 || e.RetryAfter > quarantine {
			f.Errorf("%s: come back after %s; want at most %s", outcome, e.RetryAfter, quarantine)
		}
	}
	f.advance(quarantine - 30*time.Second)
	f.wantCode(f.tryResolve(rulingOf(a, onejob.OutcomeNotExecuted)).Err, onejob.CodeQuarantined)
	f.advance(31 * time.Second)
	f.resolve(a, onejob.OutcomeNotExecuted)
}

// undeclared records an intent whose attempt fell silent at a target that does not
// say how long it can work.
func (f *fixture) undeclared(key string) onejob.Attempt {
	f.Helper()
	p := markOf(f.starting(key))
	p.Pins.MaxExecution = 0
	a, err := f.tryMark(p)
	f.noError(err)
	f.finish(a, onejob.OutcomeUnknown)
	return a
}

func testResolveRisk(f *fixture) {
	a := f.undeclared("k1")
	f.wantCode(f.tryResolve(rulingOf(a, onejob.OutcomeNotExecuted, acknowledgeRisk)).Err, onejob.CodeQuarantined) // before send_by
	f.advance(sendWithin + time.Second)
	f.wantCode(f.tryResolve(rulingOf(a, onejob.OutcomeNotExecuted)).Err, onejob.CodeInvalidResolution)
	f.advance(365 * 24 * time.Hour) // absence never rules
	f.wantCode(f.tryResolve(rulingOf(a, onejob.OutcomeNotExecuted)).Err, onejob.CodeInvalidResolution)
	f.resolve(a, onejob.OutcomeNotExecuted, acknowledgeRisk)
	if got := f.wantAttempt(a.ID, onejob.AttemptFailed); got.Ruling == nil || !got.Ruling.RiskAcknowledged {
		f.Errorf("the ruling is %+v; want the risk on record", got.Ruling)
	}
}

func testResolveRiskBlocks(f *fixture) {
	f.create("k1", withPolicy(func(p *onejob.Policy) { p.PerTarget = 1 }))
	p := markOf(f.claimOne().Attempt)
	p.Pins.MaxExecution = 0
	a, err := f.tryMark(p)
	f.noError(err)
	f.finish(a, onejob.OutcomeUnknown)
	f.advance(sendWithin + time.Second)
	f.resolve(a, onejob.OutcomeNotExecuted, acknowledgeRisk)
	f.wantJob(a.JobID, onejob.JobBlocked, onejob.BlockTargetsExhaustedUnproven)
}

func testResolveTwice(f *fixture) {
	a := f.unknown("k1")
	first := f.resolve(a, onejob.OutcomeSucceeded)
	second := rulingOf(a, onejob.OutcomeSucceeded, func(p *onejob.AttemptResolveParams) {
		p.Actor, p.Result = "otto", &onejob.Result{Body: []byte("otto's")}
	})
	results, err := f.handle(1).AttemptResolve(f.Context(), []onejob.AttemptResolveParams{second})
	f.noError(err)
	f.wantCode(results[0].Err, onejob.CodeAttemptTerminal)
	if got := f.attempt(a.ID); !reflect.DeepEqual(got.Ruling, first.Attempt.Ruling) {
		f.Errorf("the ruling is %+v; want the first person's", got.Ruling)
	}
}

func testResolveBatch(f *fixture) {
	a, b := f.unknown("k1"), f.running("k2")
	results, err := f.s.AttemptResolve(f.Context(), []onejob.AttemptResolveParams{
		rulingOf(b, onejob.OutcomeSucceeded),
		{ID: "att_none", Outcome: onejob.OutcomeSucceeded},
		rulingOf(a, onejob.OutcomeSucceeded), rulingOf(a, onejob.OutcomeSucceeded),
	})
	f.noError(err)
	f.wantCode(results[0].Err, onejob.CodeAttemptNotUnknown)
	f.wantCode(results[1].Err, onejob.CodeNotFound)
	f.noError(results[2].Err)
	f.wantCode(results[3].Err, onejob.CodeAttemptTerminal)
	f.wantJob(a.JobID, onejob.JobSucceeded)
}

func testResolveLoser(f *fixture) {
	first, second := f.twoLanes("k1")
	f.finish(first, onejob.OutcomeUnknown)
	f.finish(second, onejob.OutcomeSucceeded)
	won := f.get(first.JobID)
	r := f.resolve(first, onejob.OutcomeSucceeded)
	if r.Attempt.State != onejob.AttemptDiscarded || r.Attempt.Discarded == nil || r.Attempt.Discarded.Winner != second.ID {
		f.Errorf("the ruled success is %s, %+v; want discarded, beaten by %s", r.Attempt.State, r.Attempt.Discarded, second.ID)
	}
	if job := f.get(first.JobID); job.CompletedBy != second.ID || job.Version != won.Version || !reflect.DeepEqual(job.Result, won.Result) {
		f.Errorf("the ruling changed the job to %+v; want the winner's", job)
	}
	f.wantIncidents(first.JobID)
}

func testResolveIsWrittenDown(f *fixture) {
	a := f.unknown("k1")
	f.resolve(a, onejob.OutcomeSucceeded)
	for _, e := range f.events(f.get(a.JobID)) {
		if e.Kind == onejob.EventRuled {
			if e.AttemptID != a.ID || e.Actor != "olga" || e.At.IsZero() {
				f.Errorf("the ruling was written down as %+v; want who ruled what", e)
			}
			return
		}
	}
	f.Error("a ruling left no event")
}
