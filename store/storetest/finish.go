package storetest

import (
	"reflect"
	"time"

	"github.com/onejob-dev/onejob"
)

func finishing() []promise {
	return []promise{
		{name: "AttemptFinish/ASuccessTakesTheSlot", test: testFinishSucceeds},
		{name: "AttemptFinish/KeepsWhatWasSeen", test: testFinishKeeps},
		{name: "AttemptFinish/SilenceIsUnknownNotFailed", test: testFinishSilence},
		{name: "AttemptFinish/ALostResultIsUnknown", test: testFinishLost},
		{name: "AttemptFinish/OnlyProofIsAFailure", test: testFinishProof},
		{name: "AttemptFinish/AcceptedStaysRunning", test: testFinishAccepted},
		{name: "AttemptFinish/AcceptedOnAnUnknownKeepsTheDoubt", test: testFinishAcceptedUnknown},
		{name: "AttemptFinish/MoreSilenceRefreshesTheEvidence", test: testFinishMoreSilence},
		{name: "AttemptFinish/WhatIsKnownInDoubtIsKept", test: testFinishInDoubt},
		{name: "AttemptFinish/ALateAnswerSettlesAnUnknown", test: testFinishLate},
		{name: "AttemptFinish/ALateRefusalSettlesAnUnknown", test: testFinishLateRefusal},
		{name: "AttemptFinish/NothingWithoutTheToken", test: testFinishToken},
		{name: "AttemptFinish/NoSuccessWithoutAMark", test: testFinishUnmarked},
		{name: "AttemptFinish/WhatWasNeverSentMayBeGivenBack", test: testFinishNotSent},
		{name: "AttemptFinish/ARepeatAnswersTheSame", test: testFinishRepeat},
		{name: "AttemptFinish/AnotherOutcomeAfterwardsIsLost", test: testFinishOther},
		{name: "AttemptFinish/EachRowOfABatchIsJudgedByItself", test: testFinishBatch},
		{name: "AttemptFinish/NothingExecutedIsRetriedUnderAnEffect", test: testFinishNeverRetried},
		{name: "AttemptFinish/AContractViolationIsExecuted", test: testFinishViolation},
		{name: "Version/CountsTheSlotOnly", test: testVersion},
		{name: "Revision/CountsEveryVisibleChange", test: testRevision},
		{name: "Revision/StaysWhenNothingHappens", test: testRevisionStays},
	}
}

func testFinishSucceeds(f *fixture) {
	a := f.running("k1")
	before := f.get(a.JobID)
	r := f.finish(a, onejob.OutcomeSucceeded)
	if r.State != onejob.AttemptSucceeded || r.JobState != onejob.JobSucceeded || r.Discarded != nil || r.Incident != "" || !r.Due.IsZero() {
		f.Errorf("the finish answers %+v; want both succeeded and nothing else", r)
	}
	job := f.wantJob(a.JobID, onejob.JobSucceeded)
	if job.CompletedBy != a.ID || job.Result == nil || string(job.Result.Body) != "result of "+a.ID || job.Result.ContentType != "text/plain" {
		f.Errorf("the job was completed by %q with %+v; want %s and its result", job.CompletedBy, job.Result, a.ID)
	}
	if job.Version != before.Version+1 || job.FinishedAt.IsZero() || job.NextTarget != "" {
		f.Errorf("version %d to %d, finished at %s, next %q; want one more, a time, none", before.Version, job.Version, job.FinishedAt, job.NextTarget)
	}
	if after := f.attempt(a.ID); after.Result == nil || string(after.Result.Body) != "result of "+a.ID || after.FinishedAt.IsZero() {
		f.Errorf("the attempt is %+v; want its result and when it finished", after)
	}
	f.claimNothing()
}

func testFinishKeeps(f *fixture) {
	a := f.running("k1")
	evidence := onejob.Evidence{
		Status: 402, BytesWritten: 120, BytesRead: 40, ProviderRequestID: "req_1", Model: "m", ReusedConnection: true,
		ConnectedMS: 1, SentMS: 2, FirstByteMS: 3, EndedMS: 4, Excerpt: "declined\n", Rule: "r",
	}
	f.finish(a, onejob.OutcomeRefused, withCost(1500), func(p *onejob.AttemptFinishParams) {
		p.Evidence, p.ProviderID = evidence, "theirs-1"
	})
	got := f.wantAttempt(a.ID, onejob.AttemptFailed)
	if got.Evidence != evidence || got.Outcome != onejob.OutcomeRefused || got.Phase != onejob.PhaseAnswered || got.ProviderID != "theirs-1" {
		f.Errorf("the attempt keeps %s, %s, %q and %+v; want what was seen", got.Outcome, got.Phase, got.ProviderID, got.Evidence)
	}
	if got.CostMicros != 1500 || got.Currency != "EUR" || string(got.Usage) != `{"tokens":3}` {
		f.Errorf("the attempt cost %d %s for %s; want 1500 EUR for what was told", got.CostMicros, got.Currency, got.Usage)
	}
	if !reflect.DeepEqual(got.Error, &onejob.Failure{Code: "declined", Message: "the provider declined"}) {
		f.Errorf("the attempt failed with %+v", got.Error)
	}
	want := []onejob.Cost{{Currency: "EUR", Micros: 1500}}
	if costs := f.get(a.JobID).Costs(); !reflect.DeepEqual(costs, want) {
		f.Errorf("the job cost %+v; want %+v", costs, want)
	}
}

func testFinishSilence(f *fixture) {
	a := f.running("k1")
	version := f.get(a.JobID).Version
	r := f.finish(a, onejob.OutcomeUnknown)
	if r.State != onejob.AttemptUnknown || r.JobState != onejob.JobBlocked || !r.Due.IsZero() {
		f.Errorf("the finish answers %+v; want unknown and blocked, with nothing due", r)
	}
	job := f.wantJob(a.JobID, onejob.JobBlocked, onejob.BlockAttemptUnknown)
	if job.Blocked.AttemptID != a.ID || job.Blocked.Detail == "" || job.Version != version || !job.FinishedAt.IsZero() {
		f.Errorf("the job is blocked by %+v, version %d; want by %s at version %d, not finished", job.Blocked, job.Version, a.ID, version)
	}
	if after := f.attempt(a.ID); !after.FinishedAt.IsZero() || after.Evidence.Error != "no answer" || after.Phase != onejob.PhaseSent {
		f.Errorf("the attempt is %+v; want its evidence and no end", after)
	}
	f.advance(365 * 24 * time.Hour) // silence proves nothing, however long
	f.claimNothing()
	f.expire(f.expired())
	f.wantAttempt(a.ID, onejob.AttemptUnknown)
	if n := f.eventsOf(job, onejob.EventBlocked); n != 1 {
		f.Errorf("the job entered blocked %d times; want once", n)
	}
}

func testFinishLost(f *fixture) {
	a := f.running("k1")
	r := f.finish(a, onejob.OutcomeResultLost)
	if r.State != onejob.AttemptUnknown || r.JobState != onejob.JobBlocked {
		f.Errorf("a lost result answers %+v; want unknown and blocked", r)
	}
	if got := f.attempt(a.ID).Outcome; got != onejob.OutcomeResultLost {
		f.Errorf("the outcome is %s; want result_lost", got)
	}
}

func testFinishProof(f *fixture) {
	for outcome, want := range map[onejob.Outcome]onejob.AttemptState{
		onejob.OutcomeNotExecuted:       onejob.AttemptFailed,
		onejob.OutcomeRefused:           onejob.AttemptFailed,
		onejob.OutcomeExecutedFailed:    onejob.AttemptFailed,
		onejob.OutcomeContractViolation: onejob.AttemptFailed,
		onejob.OutcomeCancelled:         onejob.AttemptCancelled,
		onejob.OutcomeUnknown:           onejob.AttemptUnknown,
		onejob.OutcomeResultLost:        onejob.AttemptUnknown,
	} {
		a := f.running("k-" + string(outcome))
		if r := f.finish(a, outcome, withNext(onejob.NextNowhere)); r.State != want {
			f.Errorf("%s made the attempt %s; want %s", outcome, r.State, want)
		}
		f.wantAttempt(a.ID, want)
	}
}

func testFinishAccepted(f *fixture) {
	a := f.running("k1")
	r := f.finish(a, onejob.OutcomeAccepted, func(p *onejob.AttemptFinishParams) { p.ProviderID = "theirs-1" })
	if r.State != onejob.AttemptRunning || r.JobState != onejob.JobRunning {
		f.Errorf("accepted answers %+v; want both running", r)
	}
	if got := f.wantAttempt(a.ID, onejob.AttemptRunning); got.ProviderID != "theirs-1" || got.Outcome != onejob.OutcomeAccepted {
		f.Errorf("the attempt has provider id %q, outcome %q; want theirs-1, accepted", got.ProviderID, got.Outcome)
	}
	f.noError(f.tryRenew(a).Err)
	f.finish(a, onejob.OutcomeSucceeded)
	if got := f.wantAttempt(a.ID, onejob.AttemptSucceeded); got.ProviderID != "theirs-1" {
		f.Errorf("the provider id is %q after the answer; want it kept", got.ProviderID)
	}
}

func testFinishAcceptedUnknown(f *fixture) {
	a := f.unknown("k1")
	r := f.finish(a, onejob.OutcomeAccepted, func(p *onejob.AttemptFinishParams) { p.ProviderID = "theirs-1" })
	if r.State != onejob.AttemptUnknown || r.JobState != onejob.JobBlocked {
		f.Errorf("accepted on an unknown answers %+v; want it to stay in doubt", r)
	}
	if got := f.wantAttempt(a.ID, onejob.AttemptUnknown); got.ProviderID != "theirs-1" {
		f.Errorf("the provider id is %q; want theirs-1, to ask with", got.ProviderID)
	}
}

func testFinishMoreSilence(f *fixture) {
	a := f.unknown("k1")
	since := f.get(a.JobID).Blocked.Since
	f.advance(time.Minute)
	r := f.finish(a, onejob.OutcomeUnknown, func(p *onejob.AttemptFinishParams) {
		p.Evidence = onejob.Evidence{Error: "reset", BytesRead: 3}
	})
	if r.State != onejob.AttemptUnknown {
		f.Errorf("more silence made the attempt %s", r.State)
	}
	if got := f.attempt(a.ID).Evidence; got.Error != "reset" || got.BytesRead != 3 {
		f.Errorf("the evidence is %+v; want the newer", got)
	}
	job := f.wantJob(a.JobID, onejob.JobBlocked, onejob.BlockAttemptUnknown)
	if !job.Blocked.Since.Equal(since) {
		f.Errorf("the job is blocked since %s; want since %s, when the doubt began", job.Blocked.Since, since)
	}
	if n := f.eventsOf(job, onejob.EventBlocked); n != 1 {
		f.Errorf("the job entered blocked %d times; want once", n)
	}
}

// An answer that proves nothing may still say what it cost, whose it is, and when the
// provider wants to hear of us.
func testFinishInDoubt(f *fixture) {
	known := func(p *onejob.AttemptFinishParams) { p.ProviderID = "theirs-1" }
	for key, outcome := range map[string]onejob.Outcome{
		"silent": onejob.OutcomeUnknown, "lost": onejob.OutcomeResultLost, "accepted": onejob.OutcomeAccepted,
	} {
		a := f.unknown(key)
		f.finish(a, outcome, known, withCost(5))
		if got := f.wantAttempt(a.ID, onejob.AttemptUnknown); got.ProviderID != "theirs-1" || got.CostMicros != 5 || got.Currency != "EUR" || string(got.Usage) != `{"tokens":3}` {
			f.Errorf("after %q the attempt is %q of the provider's, cost %d %s and used %s; want all of it kept", outcome, got.ProviderID, got.CostMicros, got.Currency, got.Usage)
		}
	}
	a := f.running("taken")
	f.finish(a, onejob.OutcomeAccepted, known, withCost(5))
	if got := f.wantAttempt(a.ID, onejob.AttemptRunning); got.CostMicros != 5 {
		f.Errorf("an attempt that was accepted cost %d; want 5", got.CostMicros)
	}
	b := f.running("later")
	f.finish(b, onejob.OutcomeUnknown, withRetryAfter(time.Hour))
	first := f.attempt(b.ID).RetryAt
	f.finish(b, onejob.OutcomeRefused)
	if got := f.attempt(b.ID).RetryAt; first.IsZero() || !got.Equal(first) {
		f.Errorf("a refusal that says nothing of it moved the time to try again from %s to %s", first, got)
	}
}

func testFinishLate(f *fixture) {
	a := f.running("k1")
	f.sweep() // the worker was thought lost, and answers
	f.wantAttempt(a.ID, onejob.AttemptUnknown)
	r := f.finish(a, onejob.OutcomeSucceeded)
	if r.State != onejob.AttemptSucceeded || r.Incident != "" {
		f.Errorf("the late answer was taken as %+v; want a success like any", r)
	}
	if job := f.wantJob(a.JobID, onejob.JobSucceeded); job.CompletedBy != a.ID || job.AttemptsMade != 1 {
		f.Errorf("the job was completed by %q after %d attempts; want %s after 1", job.CompletedBy, job.AttemptsMade, a.ID)
	}
}

func testFinishLateRefusal(f *fixture) {
	a := f.unknown("k1")
	r := f.finish(a, onejob.OutcomeRefused, withNext(onejob.NextAgain))
	if r.State != onejob.AttemptFailed || r.JobState != onejob.JobQueued || r.Due.IsZero() {
		f.Errorf("the late refusal answers %+v; want failed, and the job queued with a time", r)
	}
}

func testFinishToken(f *fixture) {
	a := f.running("k1")
	for _, token := range []string{"", onejob.NewToken()} {
		p := finishOf(a, onejob.OutcomeSucceeded)
		p.ClaimToken = token
		f.lose(p, onejob.AttemptRunning)
	}
	f.wantJob(a.JobID, onejob.JobRunning)
	stranger := finishOf(a, onejob.OutcomeSucceeded)
	stranger.Ref.ID = onejob.NewAttemptID(a.JobID, a.Number)
	f.lose(stranger, "")
}

func testFinishUnmarked(f *fixture) {
	a := f.starting("k1")
	for _, outcome := range []onejob.Outcome{
		onejob.OutcomeSucceeded, onejob.OutcomeAccepted, onejob.OutcomeUnknown, onejob.OutcomeResultLost,
		onejob.OutcomeRefused, onejob.OutcomeExecutedFailed,
	} {
		f.lose(finishOf(a, outcome), onejob.AttemptStarting)
	}
	f.mark(a)
}

func testFinishNotSent(f *fixture) {
	a := f.starting("k1")
	r := f.finish(a, onejob.OutcomeNotExecuted, withNext(onejob.NextAgain), func(p *onejob.AttemptFinishParams) {
		p.OwnFault, p.Phase = true, onejob.PhaseNotSent
	})
	if r.State != onejob.AttemptFailed || r.JobState != onejob.JobQueued {
		f.Errorf("giving a claim back answers %+v; want failed and queued", r)
	}
	if got := f.attempt(a.ID); !got.OwnFault {
		f.Errorf("the attempt is %+v; want it to be our own fault", got)
	}
	f.claimOne()
}

func testFinishRepeat(f *fixture) {
	winner, loser := f.twoLanes("k1")
	for _, c := range []struct {
		a       onejob.Attempt
		outcome onejob.Outcome
	}{{winner, onejob.OutcomeSucceeded}, {loser, onejob.OutcomeSucceeded}} {
		first := f.finish(c.a, c.outcome)
		job := f.get(c.a.JobID)
		again := f.finish(c.a, c.outcome, func(p *onejob.AttemptFinishParams) {
			p.Result = &onejob.Result{Body: []byte("something else")}
		})
		first.Won, again.Won = nil, nil // a repeat has not won again
		if !reflect.DeepEqual(first, again) {
			f.Errorf("the repeat answers %+v; want %+v", again, first)
		}
		if after := f.get(c.a.JobID); !reflect.DeepEqual(job, after) {
			f.Errorf("the repeat changed the job from\n%+v\nto\n%+v", job, after)
		}
	}
	failed := f.running("k2")
	first := f.finish(failed, onejob.OutcomeRefused, withNext(onejob.NextAgain), withRetryAfter(time.Hour))
	again := f.finish(failed, onejob.OutcomeRefused, withNext(onejob.NextAgain), withRetryAfter(time.Hour))
	if !reflect.DeepEqual(first, again) {
		f.Errorf("the repeat of a failure answers %+v; want %+v", again, first)
	}
}

func testFinishOther(f *fixture) {
	failed := f.running("k1")
	f.finish(failed, onejob.OutcomeRefused)
	for _, outcome := range []onejob.Outcome{onejob.OutcomeSucceeded, onejob.OutcomeUnknown, onejob.OutcomeAccepted} {
		f.lose(finishOf(failed, outcome), onejob.AttemptFailed)
	}
	done := f.running("k2")
	f.finish(done, onejob.OutcomeSucceeded)
	for _, outcome := range []onejob.Outcome{onejob.OutcomeRefused, onejob.OutcomeUnknown, onejob.OutcomeResultLost} {
		f.lose(finishOf(done, outcome), onejob.AttemptSucceeded)
	}
	if job := f.wantJob(done.JobID, onejob.JobSucceeded); job.CompletedBy != done.ID {
		f.Errorf("the job was completed by %q; want %s", job.CompletedBy, done.ID)
	}
}

func testFinishBatch(f *fixture) {
	first, second := f.running("k1"), f.running("k2")
	stale := finishOf(first, onejob.OutcomeSucceeded)
	stale.ClaimToken = onejob.NewToken()
	results, err := f.s.AttemptFinish(f.Context(), []onejob.AttemptFinishParams{
		stale, finishOf(first, onejob.OutcomeRefused), {Outcome: onejob.OutcomeSucceeded}, finishOf(second, onejob.OutcomeSucceeded),
	})
	f.noError(err)
	f.wantCode(results[0].Err, onejob.CodeClaimLost)
	f.wantCode(results[2].Err, onejob.CodeClaimLost)
	if results[1].State != onejob.AttemptFailed || results[3].State != onejob.AttemptSucceeded {
		f.Errorf("the good rows ended %s and %s; want failed and succeeded", results[1].State, results[3].State)
	}
}

func testFinishNeverRetried(f *fixture) {
	for _, effect := range []onejob.Effect{onejob.EffectExternal, onejob.EffectIdempotent} {
		a := f.running("k-"+string(effect), withPolicy(func(p *onejob.Policy) { p.Effect = effect }))
		r := f.finish(a, onejob.OutcomeExecutedFailed, withNext(onejob.NextAgain))
		if r.JobState == onejob.JobQueued {
			f.Errorf("what was executed under effect %s is to be tried again", effect)
		}
		f.advance(onejob.DefaultBackoffMax + time.Second)
		f.claimNothing()
	}
	a := f.running("k-none", withPolicy(func(p *onejob.Policy) { p.Effect = onejob.EffectNone }))
	if r := f.finish(a, onejob.OutcomeExecutedFailed, withNext(onejob.NextAgain)); r.JobState != onejob.JobQueued {
		f.Errorf("what failed under effect none left the job %s; want queued", r.JobState)
	}
}

func testFinishViolation(f *fixture) {
	a := f.running("k1", withPolicy(func(p *onejob.Policy) { p.Effect = onejob.EffectNone }))
	f.finish(a, onejob.OutcomeContractViolation, withNext(onejob.NextElsewhere))
	job := f.wantJob(a.JobID, onejob.JobFailed)
	if job.Error == nil || job.Error.Code != onejob.FailureExecutedFailed {
		f.Errorf("the job failed with %+v; want %s", job.Error, onejob.FailureExecutedFailed)
	}
}

// steps is a job's life, one visible change at a time, by what the change is.
func (f *fixture) steps(then func(step string, job *onejob.Job)) {
	f.Helper()
	job := f.create("k1")
	then("created", job)
	a := f.claimOne().Attempt
	then("claimed", f.get(job.ID))
	f.mark(a)
	then("marked", f.get(job.ID))
	f.finish(a, onejob.OutcomeUnknown)
	then("silent", f.get(job.ID))
	f.finish(a, onejob.OutcomeRefused, withNext(onejob.NextAgain))
	then("refused", f.get(job.ID))
	a = f.claimAgain()
	then("claimed and marked again", f.get(job.ID))
	f.cancel(job.ID)
	then("asked to cancel", f.get(job.ID))
	f.finish(a, onejob.OutcomeSucceeded)
	then("succeeded", f.get(job.ID))
	f.create("k2", instead(job.ID))
	then("superseded", f.get(job.ID))
}

func testVersion(f *fixture) {
	last := int64(0)
	f.steps(func(step string, job *onejob.Job) {
		switch step {
		case "created":
		case "succeeded", "superseded":
			if job.Version != last+1 {
				f.Errorf("%s: the version went from %d to %d; want one more", step, last, job.Version)
			}
		default:
			if job.Version != last {
				f.Errorf("%s: the version went from %d to %d; want the same", step, last, job.Version)
			}
		}
		last = job.Version
	})
}

func testRevision(f *fixture) {
	last := int64(0)
	f.steps(func(step string, job *onejob.Job) {
		if job.Revision <= last {
			f.Errorf("%s: the revision went from %d to %d; want more", step, last, job.Revision)
		}
		last = job.Revision
	})
}

func testRevisionStays(f *fixture) {
	a := f.running("k1")
	want := f.get(a.JobID).Revision
	stale := markOf(a)
	_, err := f.tryMark(stale)
	f.wantCode(err, onejob.CodeClaimLost)
	f.submit(f.intent("k1"))
	f.submit(f.intent("k1", withInput("other")))
	f.tryStart(buttonOf(a.JobID, "click", "b"))
	f.tryResolve(rulingOf(a, onejob.OutcomeNotExecuted))
	f.claimNothing()
	f.expire([]onejob.AttemptRef{refOf(a)})
	other := finishOf(a, onejob.OutcomeSucceeded)
	other.ClaimToken = onejob.NewToken()
	f.tryFinish(other)
	if got := f.get(a.JobID).Revision; got != want {
		f.Errorf("what changed nothing moved the revision from %d to %d", want, got)
	}
}
