package storetest

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/onejob-dev/onejob"
)

func probing() []promise {
	return []promise{
		{name: "ProbeClaim/AnUnknownAttemptIsDueAtOnce", test: testProbeDueAtOnce},
		{name: "ProbeClaim/SoIsOneWhoseWorkerWasLost", test: testProbeDueLost},
		{name: "ProbeClaim/SoIsAnAcceptedOne", test: testProbeDueAccepted},
		{name: "ProbeClaim/OnlyAtTargetsThatCanBeAskedAbout", test: testProbeTargets},
		{name: "ProbeClaim/LongestDueFirstAndAtMostMax", test: testProbeOrder},
		{name: "ProbeClaim/NobodyElseAsksDuringTheLease", test: testProbeLease},
		{name: "ProbeClaim/TwoAskersShareWhatIsDue", test: testProbeShared, handles: 2},
		{name: "ProbeRecord/DoubtOnlySetsWhenToAskAgain", test: testProbeDoubt},
		{name: "ProbeRecord/WithoutATimeItIsNotDueByItself", test: testProbeNever},
		{name: "ProbeRecord/ASuccessIsAdopted", test: testProbeSuccess},
		{name: "ProbeRecord/TheProvidersWordOfFailureSettles", test: testProbeFailure},
		{name: "ProbeRecord/AnAbsenceBeforeQuarantineResolvesNothing", test: testProbeAbsenceEarly},
		{name: "ProbeRecord/AnAbsenceAfterQuarantineIsARuling", test: testProbeAbsenceLate},
		{name: "ProbeRecord/AnAbsenceWithoutMaxExecutionNeverRules", test: testProbeAbsenceUndeclared},
		{name: "ProbeRecord/AnEndedAttemptStaysAndTheProbeIsKept", test: testProbeEnded},
		{name: "ProbeRecord/ARunningAttemptIsLeftToItsHolder", test: testProbeRunning},
		{name: "ProbeRecord/TwoAtOnceSettleOnce", test: testProbeTwice, handles: 2},
		{name: "ProbeRecord/AcceptedKeepsTheDoubtAndTheProvidersID", test: testProbeAccepted},
		{name: "ProbeRecord/ACancelledJobEndsWithItsLastAttempt", test: testProbeCancelled},
		{name: "ProbeRecord/TheHoldersLateSuccessProvesARulingWrong", test: testProbeLateSuccess},
		{name: "ProbeRecord/TheHoldersLateFailureLosesItsClaim", test: testProbeLateFailure},
		{name: "ProbeRecord/ALateSuccessLeavesARuling", test: testProbeSuccessAfterRuling},
		{name: "ProbeRecord/EachRowOfABatchIsJudgedByItself", test: testProbeBatch},
		{name: "ProbeRecord/StaysOnTheAttemptItNames", test: testProbeOtherJob},
		{name: "ProbeRecord/AReplayRestartsTheQuarantine", test: testReplayQuarantine},
		{name: "ProbeRecord/AReplayWithoutMaxExecutionMovesSendBy", test: testReplayUndeclared},
		{name: "ProbeRecord/AReplayIsRefusedForWhatMustNotBeSent", test: testReplayRefused},
		{name: "ProbeRecord/AReplayIsNotAnnouncedBesideARuling", test: testReplayBesideRuling, handles: 2},
		{name: "ProbeList/TheNewestOldestFirst", test: testProbeList},
		{name: "ProbeList/AnothersIsAsIfItDidNotExist", test: testProbeListOwner},
		{name: "ProbeList/APurgedJobKeepsWhatWasAskedAndAShrunkOneNothing", test: testProbePurge},
		{name: "ProbeNow/MakesDueAtOnce", test: testProbeNow},
		{name: "ProbeNow/RefusesWhatHasEndedOrIsUnderWay", test: testProbeNowRefuses},
		{name: "Accepted/NeedsNoLease", test: testAcceptedSurvives},
		{name: "Accepted/BecomesUnknownWhenAPersonIsAsked", test: testAcceptedAsked},
		{name: "Accepted/TheWaitForAPersonBeginsOnce", test: testAcceptedWait},
		{name: "Accepted/IsSettledByAProbe", test: testAcceptedSettled},
		{name: "Accepted/SaysSinceWhenAndWhenItIsAskedAbout", test: testAcceptedTimes},
		{name: "AttemptAsk/OnceAndOnlyAfterAskAfter", test: testAskOnce},
		{name: "AttemptAsk/AtOnceUnlessThePolicyWaits", test: testAskAtOnce},
		{name: "AttemptAsk/NotAboutWhatHasEnded", test: testAskEnded},
	}
}

// probes returns the first handle's questions.
func (f *fixture) probes() onejob.ProbeStore {
	f.Helper()
	p, ok := f.s.(onejob.ProbeStore)
	if !ok {
		f.Fatal("the store is no onejob.ProbeStore")
	}
	return p
}

const probeLease = 10 * time.Minute

// dueIDs claims what is due to be asked about.
func (f *fixture) dueIDs() []string {
	f.Helper()
	claimed, err := f.probes().ProbeClaim(f.Context(), onejob.ProbeClaimParams{Targets: []string{"a", "b"}, Lease: probeLease, Max: 10})
	f.noError(err)
	var ids []string
	for _, c := range claimed {
		ids = append(ids, c.Attempt.ID)
	}
	return ids
}

func (f *fixture) wantDue(ids ...string) {
	f.Helper()
	if got := f.dueIDs(); !reflect.DeepEqual(got, ids) {
		f.Fatalf("%q are due to be asked about; want %q", got, ids)
	}
}

// answer is what a look-up about an attempt found.
func answer(a onejob.Attempt, outcome onejob.Outcome, change ...func(*onejob.ProbeRecordParams)) onejob.ProbeRecordParams {
	p := onejob.ProbeRecordParams{
		Ref: refOf(a), Method: onejob.ProbeLookup, Outcome: outcome, Detail: "looked it up",
		Evidence: onejob.Evidence{Status: 200}, After: time.Minute,
	}
	if outcome == onejob.OutcomeSucceeded {
		p.Result = &onejob.Result{Body: []byte("found for " + a.ID), ContentType: "text/plain"}
	}
	for _, c := range change {
		c(&p)
	}
	return p
}

func absent(p *onejob.ProbeRecordParams) { p.Absence = true }

func (f *fixture) probe(p onejob.ProbeRecordParams) onejob.AttemptFinishResult {
	f.Helper()
	results, err := f.probes().ProbeRecord(f.Context(), []onejob.ProbeRecordParams{p})
	f.noError(err)
	f.noError(results[0].Err)
	return results[0]
}

func (f *fixture) probesOf(a onejob.Attempt) []onejob.Probe {
	f.Helper()
	probes, err := f.probes().ProbeList(f.Context(), onejob.ProbeListParams{AttemptID: a.ID, Limit: 200})
	f.noError(err)
	return probes
}

func (f *fixture) ask() []onejob.AttemptRef {
	f.Helper()
	refs, err := f.probes().AttemptAsk(f.Context(), 10)
	f.noError(err)
	return refs
}

// accepted records an intent whose first attempt the provider works on.
func (f *fixture) accepted(key string, change ...func(*onejob.JobCreateParams)) onejob.Attempt {
	f.Helper()
	a := f.running(key, change...)
	f.finish(a, onejob.OutcomeAccepted, func(p *onejob.AttemptFinishParams) { p.ProviderID = "theirs-1" })
	return a
}

func testProbeDueAtOnce(f *fixture) {
	a := f.unknown("k1")
	claimed, err := f.probes().ProbeClaim(f.Context(), onejob.ProbeClaimParams{Targets: []string{"a"}, Lease: probeLease, Max: 10})
	f.noError(err)
	if len(claimed) != 1 || claimed[0].Attempt.ID != a.ID || claimed[0].Attempt.State != onejob.AttemptUnknown {
		f.Fatalf("%+v are due; want the unknown attempt", claimed)
	}
	if job := claimed[0].Job; job.ID != a.JobID || string(job.Input) != `{"amount":7}` || len(job.Attempts) != 1 {
		f.Errorf("it comes with %+v; want its job, input and attempts included", job)
	}
}

func testProbeDueLost(f *fixture) {
	a := f.running("k1")
	f.wantDue()
	f.sweep()
	f.wantDue(a.ID)
}

func testProbeDueAccepted(f *fixture) {
	a := f.accepted("k1")
	f.wantDue(a.ID)
	f.wantAttempt(a.ID, onejob.AttemptRunning)
}

func testProbeTargets(f *fixture) {
	f.unknown("k1", targets("c"))
	a := f.unknown("k2")
	f.wantDue(a.ID)
}

func testProbeOrder(f *fixture) {
	first := f.unknown("k1")
	f.advance(time.Second)
	second := f.unknown("k2")
	claimed, err := f.probes().ProbeClaim(f.Context(), onejob.ProbeClaimParams{Targets: []string{"a"}, Lease: probeLease, Max: 1})
	f.noError(err)
	if len(claimed) != 1 || claimed[0].Attempt.ID != first.ID {
		f.Fatalf("%+v come first; want the one that is due longest", claimed)
	}
	f.wantDue(second.ID)
	claimed, err = f.probes().ProbeClaim(f.Context(), onejob.ProbeClaimParams{Targets: []string{"a"}, Lease: probeLease})
	f.noError(err)
	if len(claimed) != 0 {
		f.Errorf("a claim of none got %+v", claimed)
	}
}

func testProbeLease(f *fixture) {
	a := f.unknown("k1")
	f.wantDue(a.ID)
	f.wantDue()
	f.advance(probeLease + time.Second)
	f.wantDue(a.ID)
}

func testProbeShared(f *fixture) {
	want := map[string]int{}
	for _, key := range []string{"k1", "k2", "k3", "k4", "k5", "k6"} {
		want[f.unknown(key).ID] = 1
	}
	got := map[string]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			p, _ := f.handle(i).(onejob.ProbeStore)
			for range 3 {
				claimed, err := p.ProbeClaim(context.WithoutCancel(f.Context()), onejob.ProbeClaimParams{Targets: []string{"a"}, Lease: time.Hour, Max: 2})
				if err != nil {
					f.Errorf("ProbeClaim: %v", err)
				}
				mu.Lock()
				for _, c := range claimed {
					got[c.Attempt.ID]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if !reflect.DeepEqual(got, want) {
		f.Errorf("the askers got %v; want each attempt once: %v", got, want)
	}
}

func testProbeDoubt(f *fixture) {
	a := f.unknown("k1")
	before := f.get(a.JobID)
	for _, outcome := range []onejob.Outcome{"", onejob.OutcomeUnknown, onejob.OutcomeResultLost} {
		if r := f.probe(answer(a, outcome)); r.State != onejob.AttemptUnknown || r.JobState != onejob.JobBlocked {
			f.Errorf("a probe that found %q answers %+v; want the doubt to stay", outcome, r)
		}
	}
	f.wantDue()
	f.advance(time.Minute)
	f.wantDue(a.ID)
	after := f.get(a.JobID)
	before.Attempts[0].NextProbeAt, after.Attempts[0].NextProbeAt = time.Time{}, time.Time{}
	if !reflect.DeepEqual(after, before) {
		f.Errorf("what resolves nothing changed the job from %+v to %+v", before, after)
	}
	probes := f.probesOf(a)
	if len(probes) != 3 || probes[2].Number != 3 || !probes[2].NextAt.Equal(probes[2].At.Add(time.Minute)) {
		f.Errorf("the probes are %+v; want three, numbered, and when the next is due", probes)
	}
}

func testProbeNever(f *fixture) {
	a := f.unknown("k1")
	f.probe(answer(a, "", func(p *onejob.ProbeRecordParams) { p.After = 0 }))
	f.advance(365 * 24 * time.Hour)
	f.wantDue()
	if probes := f.probesOf(a); len(probes) != 1 || !probes[0].NextAt.IsZero() {
		f.Errorf("the probes are %+v; want one without a next", probes)
	}
}

func testProbeSuccess(f *fixture) {
	a := f.unknown("k1")
	r := f.probe(answer(a, onejob.OutcomeSucceeded, func(p *onejob.ProbeRecordParams) {
		p.ProviderID, p.CostMicros, p.Currency, p.Usage = "theirs-1", 7, "EUR", []byte(`{"tokens":3}`)
	}))
	if r.State != onejob.AttemptSucceeded || r.JobState != onejob.JobSucceeded || r.Incident != "" {
		f.Errorf("the answer that was found answers %+v; want it to win", r)
	}
	job := f.wantJob(a.JobID, onejob.JobSucceeded)
	if job.CompletedBy != a.ID || job.Result == nil || string(job.Result.Body) != "found for "+a.ID || len(job.Attempts) != 1 {
		f.Errorf("the job is %+v; want it done by its one attempt, with what was found", job)
	}
	got := f.wantAttempt(a.ID, onejob.AttemptSucceeded)
	if got.ProviderID != "theirs-1" || got.CostMicros != 7 || got.Currency != "EUR" || len(got.Usage) == 0 || got.Ruling != nil {
		f.Errorf("the attempt is %+v; want the provider's id, cost and usage, and no ruling", got)
	}
	if got.Phase != onejob.PhaseSent || got.Evidence.BytesWritten != 7 {
		f.Errorf("the attempt's own evidence is %s %+v; want it kept", got.Phase, got.Evidence)
	}
	f.advance(time.Hour)
	f.wantDue()
}

func testProbeFailure(f *fixture) {
	a := f.unknown("k1")
	r := f.probe(answer(a, onejob.OutcomeExecutedFailed, func(p *onejob.ProbeRecordParams) {
		p.Failure, p.Next = &onejob.Failure{Code: "declined", Message: "no funds"}, onejob.NextNowhere
	}))
	if r.State != onejob.AttemptFailed || r.JobState != onejob.JobFailed {
		f.Errorf("the failure that was found answers %+v; want both failed, quarantine or not", r)
	}
	got := f.wantAttempt(a.ID, onejob.AttemptFailed)
	if got.Ruling != nil || got.Error == nil || got.Error.Code != "declined" || got.Next != onejob.NextNowhere {
		f.Errorf("the attempt is %+v; want the provider's own failure and no ruling", got)
	}
}

func testProbeAbsenceEarly(f *fixture) {
	a := f.unknown("k1")
	r := f.probe(answer(a, onejob.OutcomeNotExecuted, absent))
	if r.State != onejob.AttemptUnknown || r.Err != nil {
		f.Errorf("an absence inside quarantine answers %+v; want the doubt to stay", r)
	}
	f.wantJob(a.JobID, onejob.JobBlocked, onejob.BlockAttemptUnknown)
	if probes := f.probesOf(a); len(probes) != 1 || probes[0].Outcome != onejob.OutcomeNotExecuted || probes[0].NextAt.IsZero() {
		f.Errorf("the probes are %+v; want the absence kept, and asked again", probes)
	}
	f.claimNothing()
}

func testProbeAbsenceLate(f *fixture) {
	a := f.unknown("k1")
	f.advance(quarantine + time.Second)
	r := f.probe(answer(a, onejob.OutcomeNotExecuted, absent))
	if r.State != onejob.AttemptFailed || r.JobState != onejob.JobQueued || r.Due.IsZero() {
		f.Errorf("an absence after quarantine answers %+v; want failed, and the job to go on", r)
	}
	got := f.wantAttempt(a.ID, onejob.AttemptFailed)
	if got.Ruling == nil || got.Ruling.By != "probe:lookup" || got.Ruling.Outcome != onejob.OutcomeNotExecuted || got.Ruling.Evidence != "looked it up" {
		f.Errorf("the attempt's ruling is %+v; want the probe's", got.Ruling)
	}
	b := f.claimAgain()
	if b.Number != 2 || b.ProviderKey != a.ProviderKey {
		f.Errorf("the next attempt is number %d with key %q; want 2 with %q", b.Number, b.ProviderKey, a.ProviderKey)
	}
	if n := f.eventsOf(f.get(a.JobID), onejob.EventRuled); n != 1 {
		f.Errorf("%d rulings were written down; want 1", n)
	}
}

func testProbeAbsenceUndeclared(f *fixture) {
	p := markOf(f.starting("k1"))
	p.Pins.MaxExecution = 0
	a, err := f.tryMark(p)
	f.noError(err)
	f.finish(a, onejob.OutcomeUnknown)
	f.advance(365 * 24 * time.Hour)
	if r := f.probe(answer(a, onejob.OutcomeNotExecuted, absent)); r.State != onejob.AttemptUnknown {
		f.Errorf("an absence without max_execution answers %+v; want the doubt to stay for ever", r)
	}
}

func testProbeEnded(f *fixture) {
	a := f.running("k1")
	f.finish(a, onejob.OutcomeSucceeded)
	before, job := f.attempt(a.ID), f.get(a.JobID)
	for _, outcome := range []onejob.Outcome{onejob.OutcomeSucceeded, onejob.OutcomeExecutedFailed, ""} {
		if r := f.probe(answer(a, outcome)); r.State != onejob.AttemptSucceeded || r.JobState != onejob.JobSucceeded {
			f.Errorf("a probe of %q answers %+v; want what the attempt is", outcome, r)
		}
	}
	if after := f.attempt(a.ID); !reflect.DeepEqual(after, before) {
		f.Errorf("the probe changed the attempt from %+v to %+v", before, after)
	}
	if after := f.get(a.JobID); !reflect.DeepEqual(after, job) {
		f.Errorf("the probe changed the job from %+v to %+v", job, after)
	}
	probes := f.probesOf(a)
	if len(probes) != 3 || !probes[2].NextAt.IsZero() {
		f.Errorf("the probes are %+v; want all three kept, and none to follow", probes)
	}
}

func testProbeRunning(f *fixture) {
	a := f.running("k1")
	if r := f.probe(answer(a, onejob.OutcomeSucceeded)); r.State != onejob.AttemptRunning {
		f.Errorf("a probe of a running attempt answers %+v; want it left running", r)
	}
	f.probe(answer(a, onejob.OutcomeAccepted, func(p *onejob.ProbeRecordParams) { p.ProviderID = "theirs-1" }))
	if got := f.wantAttempt(a.ID, onejob.AttemptRunning); got.Outcome != "" || got.ProviderID != "" {
		f.Errorf("the running attempt is %+v; want it untouched", got)
	}
	f.finish(a, onejob.OutcomeSucceeded)
}

func testProbeTwice(f *fixture) {
	a := f.unknown("k1")
	before := f.get(a.JobID)
	results := make([]onejob.AttemptFinishResult, 8)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			p, _ := f.handle(i).(onejob.ProbeStore)
			outcome := onejob.OutcomeSucceeded
			if i%2 == 1 {
				outcome = onejob.OutcomeUnknown
			}
			r, err := p.ProbeRecord(context.WithoutCancel(f.Context()), []onejob.ProbeRecordParams{answer(a, outcome)})
			if err != nil {
				f.Errorf("ProbeRecord: %v", err)
				return
			}
			results[i] = r[0]
		})
	}
	wg.Wait()
	for i, r := range results {
		if r.Err != nil || i%2 == 0 && r.State != onejob.AttemptSucceeded {
			f.Errorf("probe %d answers %+v; want a success", i, r)
		}
	}
	job := f.wantJob(a.JobID, onejob.JobSucceeded)
	if job.Version != before.Version+1 || f.eventsOf(job, onejob.EventRaceLost) != 0 {
		f.Errorf("the job is at version %d; want %d: settled once", job.Version, before.Version+1)
	}
	numbers := map[int]bool{}
	for _, p := range f.probesOf(a) {
		numbers[p.Number] = true
	}
	if len(numbers) != len(results) {
		f.Errorf("the probes have %d numbers; want %d", len(numbers), len(results))
	}
}

func testProbeAccepted(f *fixture) {
	a := f.unknown("k1")
	r := f.probe(answer(a, onejob.OutcomeAccepted, func(p *onejob.ProbeRecordParams) { p.ProviderID = "theirs-1" }))
	if r.State != onejob.AttemptUnknown {
		f.Errorf("work that goes on answers %+v; want the doubt to stay", r)
	}
	if got := f.wantAttempt(a.ID, onejob.AttemptUnknown); got.ProviderID != "theirs-1" || got.Outcome != onejob.OutcomeUnknown {
		f.Errorf("the attempt is %+v; want the provider's id on an unknown one", got)
	}
	f.probe(answer(a, onejob.OutcomeAccepted)) // without an id the known one stays
	if got := f.attempt(a.ID); got.ProviderID != "theirs-1" {
		f.Errorf("the provider's id is %q; want it kept", got.ProviderID)
	}
	f.wantDue()
	f.advance(time.Minute)
	f.wantDue(a.ID)
}

func testProbeCancelled(f *fixture) {
	a := f.accepted("k1")
	f.cancel(a.JobID)
	r := f.probe(answer(a, onejob.OutcomeCancelled))
	if r.State != onejob.AttemptCancelled || r.JobState != onejob.JobCancelled {
		f.Errorf("the cancel that was confirmed answers %+v; want both cancelled", r)
	}
	f.wantJob(a.JobID, onejob.JobCancelled)
}

// absentAfterQuarantine is an attempt that a probe has ruled failed.
func (f *fixture) absentAfterQuarantine(key string) onejob.Attempt {
	f.Helper()
	a := f.unknown(key)
	f.advance(quarantine + time.Second)
	f.probe(answer(a, onejob.OutcomeNotExecuted, absent))
	return a
}

func testProbeLateSuccess(f *fixture) {
	a := f.absentAfterQuarantine("k1")
	b := f.claimAgain()
	f.finish(b, onejob.OutcomeSucceeded)
	r := f.finish(a, onejob.OutcomeSucceeded)
	if r.State != onejob.AttemptDiscarded || r.Incident != onejob.EventDuplicateEffect {
		f.Errorf("the zombie's success answers %+v; want discarded, with a duplicate effect", r)
	}
}

func testProbeLateFailure(f *fixture) {
	a := f.absentAfterQuarantine("k1")
	f.lose(finishOf(a, onejob.OutcomeRefused), onejob.AttemptFailed)
	f.lose(finishOf(a, onejob.OutcomeUnknown), onejob.AttemptFailed)
	f.wantJob(a.JobID, onejob.JobQueued)
}

func testProbeSuccessAfterRuling(f *fixture) {
	a := f.absentAfterQuarantine("k1")
	if r := f.probe(answer(a, onejob.OutcomeExecutedFailed)); r.State != onejob.AttemptFailed {
		f.Errorf("a late failure answers %+v; want nothing changed", r)
	}
	r := f.probe(answer(a, onejob.OutcomeSucceeded))
	if r.State != onejob.AttemptSucceeded || r.JobState != onejob.JobSucceeded {
		f.Errorf("the success that was ruled out answers %+v; want it to win the open job", r)
	}
	b := f.absentAfterQuarantine("k2")
	f.finish(f.claimAgain(), onejob.OutcomeSucceeded)
	r = f.probe(answer(b, onejob.OutcomeSucceeded))
	if r.State != onejob.AttemptDiscarded || r.Incident != onejob.EventDuplicateEffect || r.Discarded == nil {
		f.Errorf("the success beside another answers %+v; want discarded, with a duplicate effect", r)
	}
}

func testProbeBatch(f *fixture) {
	a, b := f.unknown("k1"), f.unknown("k2")
	none := a
	none.ID = onejob.NewAttemptID(a.JobID, a.Number)
	results, err := f.probes().ProbeRecord(f.Context(), []onejob.ProbeRecordParams{
		answer(none, onejob.OutcomeSucceeded), answer(a, onejob.OutcomeUnknown),
		answer(b, onejob.OutcomeSucceeded), answer(a, onejob.OutcomeSucceeded),
	})
	f.noError(err)
	f.wantCode(results[0].Err, onejob.CodeNotFound)
	for i, want := range []onejob.AttemptState{onejob.AttemptUnknown, onejob.AttemptSucceeded, onejob.AttemptSucceeded} {
		if r := results[i+1]; r.Err != nil || r.State != want {
			f.Errorf("row %d answers %+v; want %s", i+1, r, want)
		}
	}
	if n := len(f.probesOf(a)); n != 2 {
		f.Errorf("%d probes of the one attempt are kept; want 2", n)
	}
}

func testProbeOtherJob(f *fixture) {
	a, b := f.unknown("k1"), f.unknown("k2")
	crossed := answer(a, onejob.OutcomeSucceeded)
	crossed.Ref.JobID = b.JobID
	results, err := f.probes().ProbeRecord(f.Context(), []onejob.ProbeRecordParams{crossed})
	f.noError(err)
	f.wantCode(results[0].Err, onejob.CodeNotFound)
	f.wantAttempt(a.ID, onejob.AttemptUnknown)
}

func testProbeList(f *fixture) {
	a := f.unknown("k1")
	for _, m := range onejob.ProbeMethods() {
		f.probe(answer(a, onejob.OutcomeUnknown, func(p *onejob.ProbeRecordParams) { p.Method = m }))
		f.advance(time.Second)
	}
	probes, err := f.probes().ProbeList(f.Context(), onejob.ProbeListParams{AttemptID: a.ID, Owner: owner, Limit: 2})
	f.noError(err)
	if len(probes) != 2 || probes[0].Method != onejob.ProbeSearch || probes[1].Method != onejob.ProbeReplay {
		f.Fatalf("the two newest are %+v; want the search and the replay", probes)
	}
	p := probes[1]
	if p.Part != a.Part || p.JobID != a.JobID || p.AttemptID != a.ID || p.Number != 4 || p.Detail != "looked it up" ||
		p.Evidence.Status != 200 || p.Outcome != onejob.OutcomeUnknown || !p.At.After(probes[0].At) {
		f.Errorf("the newest reads back as %+v; want what was recorded", p)
	}
}

func testProbeListOwner(f *fixture) {
	a := f.unknown("k1")
	none := onejob.NewAttemptID(a.JobID, a.Number)
	list := func(id string) error {
		_, err := f.probes().ProbeList(f.Context(), onejob.ProbeListParams{AttemptID: id, Owner: "bob", Limit: 1})
		return err
	}
	f.sameRefusal("ProbeList", list(a.ID), list(none), a.ID, none)
	now := func(id string) error {
		return f.probes().ProbeNow(f.Context(), onejob.ProbeNowParams{AttemptID: id, Owner: "bob"})
	}
	f.sameRefusal("ProbeNow", now(a.ID), now(none), a.ID, none)
	f.wantCode(list("no id"), onejob.CodeNotFound)
	f.wantCode(now("no id"), onejob.CodeNotFound)
}

func testProbePurge(f *fixture) {
	a := f.unknown("k1")
	f.probe(answer(a, onejob.OutcomeSucceeded, func(p *onejob.ProbeRecordParams) { p.Evidence.Excerpt = "Alice owes seven" }))
	f.purgeAll()
	if probes := f.probesOf(a); len(probes) != 1 || probes[0].Evidence.Excerpt != "" || probes[0].Outcome != onejob.OutcomeSucceeded {
		f.Errorf("the purged job's probes are %+v; want the one, without what was read", probes)
	}
	f.shrinkAll()
	_, err := f.probes().ProbeList(f.Context(), onejob.ProbeListParams{AttemptID: a.ID, Limit: 1})
	f.wantCode(err, onejob.CodeNotFound)
}

func testProbeNow(f *fixture) {
	a := f.unknown("k1")
	f.probe(answer(a, onejob.OutcomeUnknown))
	f.wantDue()
	f.noError(f.probes().ProbeNow(f.Context(), onejob.ProbeNowParams{AttemptID: a.ID, Owner: owner, Actor: "olga"}))
	f.wantDue(a.ID)
}

func testProbeNowRefuses(f *fixture) {
	a := f.running("k1")
	now := func() error { return f.probes().ProbeNow(f.Context(), onejob.ProbeNowParams{AttemptID: a.ID}) }
	f.wantCode(now(), onejob.CodeAttemptNotUnknown)
	f.finish(a, onejob.OutcomeSucceeded)
	f.wantCode(now(), onejob.CodeAttemptTerminal)
}
