package storetest

import (
	"sync"
	"time"

	"github.com/onejob-dev/onejob"
)

func restoring() []promise {
	return []promise{
		{name: "Generation/OnlyGrows", test: testGenerationGrows, handles: 2},
		{name: "Restore/AStoreThatIsNotBehindStaysAsItIs", test: testRestoreNotBehind},
		{name: "Restore/OfManyWhoSayItOneMovesTheStore", test: testRestoreDeclaredOnce, handles: 4},
		{name: "Restore/RefusesNewJobsAndAnswersKnownKeys", test: testRestoreCreate},
		{name: "Restore/RefusesWhatSupersedes", test: testRestoreSupersede},
		{name: "Restore/StartsNoAttempt", test: testRestoreStart},
		{name: "Restore/MarksNoAttempt", test: testRestoreMark},
		{name: "Restore/AnnouncesNoReplayAndKeepsAnswers", test: testRestoreReplay},
		{name: "Restore/ALeaseSaysNothing", test: testRestoreLease},
		{name: "Restore/ACancelProvesNothing", test: testRestoreCancel},
		{name: "RestoreHold/WhatWasUnderWayIsUnknown", test: testHoldAttempts},
		{name: "RestoreHold/OpenJobsNeedAnOperator", test: testHoldJobs},
		{name: "RestoreHold/TakesNoMoreThanItsLimit", test: testHoldLimit},
		{name: "RestoreHold/ChangesNothingOfAStoreThatLivesOn", test: testHoldNothing},
		{name: "RestoreHold/AnUnreadableJobDoesNotHoldItUp", test: testHoldPoisoned},
		{name: "RestoreHold/AnAnswerSettlesAnAttemptAllTheSame", test: testHoldAnswered},
		{name: "RestoreHold/ARulingLeavesTheJobHeld", test: testHoldRuled},
		{name: "RestoreConfirm/NotWhileSomethingIsLeft", test: testConfirmEarly},
		{name: "RestoreConfirm/TakesNewWorkAndLeavesHeldJobs", test: testConfirm},
		{name: "RestoreConfirm/ANodeThatWasAwayBringsNoOtherRestore", test: testConfirmAway},
		{name: "RestoreConfirm/ASecondRestoreHoldsAgain", test: testConfirmTwice},
	}
}

// restores returns the store as one that can be found to have gone back in time.
func (f *fixture) restores() onejob.RestoreStore {
	f.Helper()
	r, ok := f.s.(onejob.RestoreStore)
	if !ok {
		f.Fatal("the store is no onejob.RestoreStore")
	}
	return r
}

func (f *fixture) generation() onejob.Generation {
	f.Helper()
	g, err := f.restores().Generation(f.Context())
	f.noError(err)
	return g
}

// restored says that the store is behind, as whoever has seen it ahead does.
func (f *fixture) restored() onejob.Generation {
	f.Helper()
	f.advance(time.Second)
	seen := f.generation().Number + 7
	g, err := f.restores().RestoreDeclare(f.Context(), onejob.RestoreDeclareParams{Seen: seen})
	f.noError(err)
	if !g.Unconfirmed() || g.Number <= seen {
		f.Fatalf("behind %d the store is %+v; want it restored, and ahead", seen, g)
	}
	return g
}

// hold holds all there is, and returns it.
func (f *fixture) hold() (all onejob.RestoreHeld) {
	f.Helper()
	for {
		held, err := f.restores().RestoreHold(f.Context(), 100)
		f.noError(err)
		if held.None() {
			f.advance(time.Second)
			return all
		}
		all.Attempts, all.Jobs = append(all.Attempts, held.Attempts...), append(all.Jobs, held.Jobs...)
	}
}

func (f *fixture) confirm() {
	f.Helper()
	g, err := f.restores().RestoreConfirm(f.Context(), "olga")
	f.noError(err)
	if g.Unconfirmed() || g.ConfirmedBy != "olga" || g.ConfirmedAt.IsZero() {
		f.Fatalf("the confirmed store is %+v; want who confirmed it, and when", g)
	}
}

func (f *fixture) unblock(id string) {
	f.Helper()
	_, err := f.tryUnblock(onejob.JobUnblockParams{ID: id, Actor: "olga", Reason: "checked with the provider"})
	f.noError(err)
}

func testGenerationGrows(f *fixture) {
	first := f.generation()
	if first.Unconfirmed() || first.Number < 1 {
		f.Fatalf("a new store is %+v; want a number, and nothing to confirm", first)
	}
	for n := range int64(4) {
		r, ok := f.handle(int(n)).(onejob.RestoreStore)
		if !ok {
			f.Fatal("the store is no onejob.RestoreStore")
		}
		g, err := r.GenerationAdvance(f.Context())
		f.noError(err)
		if g.Number != first.Number+n+1 || f.generation() != g {
			f.Fatalf("advanced it is %+v and reads back %+v; want number %d", g, f.generation(), first.Number+n+1)
		}
	}
}

func testRestoreNotBehind(f *fixture) {
	was := f.generation()
	for _, seen := range []int64{0, was.Number - 1, was.Number} {
		g, err := f.restores().RestoreDeclare(f.Context(), onejob.RestoreDeclareParams{Seen: seen})
		f.noError(err)
		if g != was {
			f.Errorf("seen %d, the store is %+v; want it as it was: %+v", seen, g, was)
		}
	}
	f.create("k1")
}

// A node that was away while the restore was found and confirmed had seen more than
// the one that found it.
func testConfirmAway(f *fixture) {
	found := f.generation().Number + 7
	_, err := f.restores().RestoreDeclare(f.Context(), onejob.RestoreDeclareParams{Seen: found})
	f.noError(err)
	confirmed, err := f.restores().RestoreConfirm(f.Context(), "olga")
	f.noError(err)
	f.create("since")
	g, err := f.restores().RestoreDeclare(f.Context(), onejob.RestoreDeclareParams{Seen: found + 100_000})
	f.noError(err)
	if g != confirmed {
		f.Errorf("told of 100,000 more by a node that was away, the store is %+v; want it as it was confirmed: %+v", g, confirmed)
	}
}

func testRestoreDeclaredOnce(f *fixture) {
	seen := f.generation().Number + 1<<33
	answers := make([]onejob.Generation, 8)
	var all sync.WaitGroup
	for i := range answers {
		r, _ := f.handle(i).(onejob.RestoreStore)
		all.Go(func() {
			var err error
			if answers[i], err = r.RestoreDeclare(f.Context(), onejob.RestoreDeclareParams{Seen: seen}); err != nil {
				f.Error(err)
			}
		})
	}
	all.Wait()
	for _, g := range answers {
		if g.Number <= seen || !g.Unconfirmed() {
			f.Errorf("told of %d the store answered %+v; want restored, and ahead", seen, g)
		}
	}
}

func testRestoreCreate(f *fixture) {
	known := f.intent("known")
	first := f.submit(known)
	f.noError(first.Err)
	f.restored()
	again, other, fresh := known, f.intent("known", withInput(`{"amount":8}`)), f.intent("fresh")
	again.Token = onejob.NewToken()
	start := claimer()
	fresh.Start = &start
	results := f.submitAll(fresh, again, other, f.intent("nothing starts with it"))
	f.wantCode(results[0].Err, onejob.CodeRestoreUnconfirmed)
	f.noError(results[1].Err)
	if !results[1].Existed || results[1].Job.ID != first.Job.ID {
		f.Errorf("a known key was answered with %+v; want its job", results[1])
	}
	f.wantCode(results[2].Err, onejob.CodeKeyConflict)
	f.wantCode(results[3].Err, onejob.CodeRestoreUnconfirmed)

	f.hold()
	f.confirm()
	if r := f.submit(fresh); r.Err != nil || r.Existed {
		f.Errorf("the refused key is not free once the restore is confirmed: %+v", r)
	}
}

func testRestoreSupersede(f *fixture) {
	a := f.running("old")
	f.finish(a, onejob.OutcomeSucceeded)
	f.restored()
	r := f.submit(f.intent("new", func(p *onejob.JobCreateParams) { p.Supersedes = a.JobID }))
	f.wantCode(r.Err, onejob.CodeRestoreUnconfirmed)
	if old := f.get(a.JobID); old.SupersededBy != "" {
		f.Errorf("the old job is superseded by %s, which was refused", old.SupersededBy)
	}
}

func testRestoreStart(f *fixture) {
	waiting := f.awaitingB("button")
	queued := f.create("queued")
	f.restored()
	result, err := f.s.AttemptClaim(f.Context(), onejob.AttemptClaimParams{StartParams: claimer(), Max: 10})
	f.wantCode(err, onejob.CodeRestoreUnconfirmed)
	if len(result.Claimed) != 0 {
		f.Errorf("%+v were claimed; want nothing", result.Claimed)
	}
	f.wantCode(f.tryStart(buttonOf(waiting.ID, "click", "b")).Err, onejob.CodeRestoreUnconfirmed)
	if job := f.wantJob(queued.ID, onejob.JobQueued); job.AttemptsMade != 0 {
		f.Errorf("%d attempts were made; want none", job.AttemptsMade)
	}
}

func testRestoreMark(f *fixture) {
	a := f.starting("k1")
	f.restored()
	_, err := f.tryMark(markOf(a))
	f.wantCode(err, onejob.CodeRestoreUnconfirmed)
	f.wantAttempt(a.ID, onejob.AttemptStarting)
}

func testRestoreReplay(f *fixture) {
	a := f.unknown("k1")
	f.restored()
	byReplay := func(p *onejob.ProbeRecordParams) { p.Method = onejob.ProbeReplay }
	results, err := f.probes().ProbeRecord(f.Context(), []onejob.ProbeRecordParams{answer(a, "", byReplay)})
	f.noError(err)
	f.wantCode(results[0].Err, onejob.CodeRestoreUnconfirmed)
	if results[0].State != "" {
		f.Errorf("a replay that was refused says that the attempt is %s; want nothing, so that none is sent", results[0].State)
	}
	f.probe(answer(a, ""))
	f.probe(answer(a, onejob.OutcomeSucceeded, byReplay)) // sent before the restore
	f.wantJob(a.JobID, onejob.JobSucceeded)
}

func testRestoreLease(f *fixture) {
	starting, running := f.starting("k1"), f.running("k2")
	f.restored()
	f.advance(lease + time.Second)
	if refs := f.expired(); len(refs) != 0 {
		f.Errorf("%v are over; want none", refs)
	}
	if changed := f.expire([]onejob.AttemptRef{refOf(starting), refOf(running)}); len(changed) != 0 {
		f.Errorf("the sweep changed %v; want nothing", changed)
	}
	f.wantAttempt(starting.ID, onejob.AttemptStarting)
}

func testRestoreCancel(f *fixture) {
	a := f.starting("k1")
	f.restored()
	f.cancel(a.JobID)
	f.wantAttempt(a.ID, onejob.AttemptStarting)
	f.hold()
	f.wantAttempt(a.ID, onejob.AttemptUnknown)
	f.wantJob(a.JobID, onejob.JobBlocked, onejob.BlockAttemptUnknown)
}

func testHoldAttempts(f *fixture) {
	accepted, running, starting := f.accepted("accepted"), f.running("running"), f.starting("starting")
	f.restored()
	if held := f.hold(); len(held.Attempts) != 3 || len(held.Jobs) != 3 {
		f.Errorf("%+v were held; want three attempts and their jobs", held)
	}
	for _, a := range []onejob.Attempt{accepted, running, starting} {
		got := f.wantAttempt(a.ID, onejob.AttemptUnknown)
		if got.Outcome != onejob.OutcomeUnknown || got.Evidence.Error != onejob.EvidenceOfRestore || got.Error == nil || got.Error.Code != onejob.FailureRestored {
			f.Errorf("the attempt is %s, %q, %+v; want it to say that the store was restored", got.Outcome, got.Evidence.Error, got.Error)
		}
		f.wantJob(a.JobID, onejob.JobBlocked, onejob.BlockAttemptUnknown)
	}
	if got := f.attempt(accepted.ID); got.ProviderID != "theirs-1" {
		f.Errorf("the provider's id is %q; want it kept", got.ProviderID)
	}
	if due := f.dueIDs(); len(due) != 3 {
		f.Errorf("%q are due to be asked about; want all three", due)
	}
}

func testHoldJobs(f *fixture) {
	done := f.running("done")
	f.finish(done, onejob.OutcomeSucceeded)
	blocked := f.awaitingB("blocked")
	queued := f.create("queued")
	g := f.restored()
	f.hold()
	for _, id := range []string{queued.ID, blocked.ID} {
		if job := f.wantJob(id, onejob.JobBlocked, onejob.BlockNeedsOperator); !job.HeldAt.Equal(g.RestoredAt) {
			f.Errorf("the job is held since %v; want the restore: %v", job.HeldAt, g.RestoredAt)
		}
	}
	if job := f.wantJob(done.JobID, onejob.JobSucceeded); !job.HeldAt.IsZero() {
		f.Error("a job that has ended is held")
	}
}

func testHoldLimit(f *fixture) {
	for _, key := range []string{"k1", "k2", "k3"} {
		f.create(key)
	}
	f.claim()
	for _, key := range []string{"k4", "k5", "k6"} {
		f.create(key)
	}
	f.restored()
	attempts, jobs := 0, 0
	for batches := 0; ; batches++ {
		held, err := f.restores().RestoreHold(f.Context(), 2)
		f.noError(err)
		if held.None() {
			break
		}
		if len(held.Attempts) > 2 || len(held.Jobs) > 2 || batches > 6 {
			f.Fatalf("batch %d of 2 held %+v", batches, held)
		}
		attempts, jobs = attempts+len(held.Attempts), jobs+len(held.Jobs)
	}
	if attempts != 3 || jobs != 6 {
		f.Errorf("%d attempts and %d jobs were held; want 3 and 6", attempts, jobs)
	}
}

func testHoldNothing(f *fixture) {
	a := f.starting("k1")
	job := f.create("k2")
	if held, err := f.restores().RestoreHold(f.Context(), 10); err != nil || !held.None() {
		f.Errorf("%+v were held, %v; want nothing", held, err)
	}
	was := f.generation()
	if g, err := f.restores().RestoreConfirm(f.Context(), "olga"); err != nil || g != was {
		f.Errorf("confirming what was not restored answered %+v, %v; want %+v", g, err, was)
	}
	f.wantAttempt(a.ID, onejob.AttemptStarting)
	f.wantJob(job.ID, onejob.JobQueued)
}

func testHoldPoisoned(f *fixture) {
	id, ok := f.poisonedQueue("poisoned")
	if !ok {
		return
	}
	healthy := f.create("healthy")
	f.restored()
	held := f.hold()
	if len(held.Jobs) != 2 {
		f.Errorf("%+v were held; want both jobs, %s too", held.Jobs, id)
	}
	f.wantJob(healthy.ID, onejob.JobBlocked, onejob.BlockNeedsOperator)
	f.confirm()
	f.claimNothing()
}

func testHoldAnswered(f *fixture) {
	a := f.running("k1")
	f.restored()
	f.hold()
	f.finish(a, onejob.OutcomeSucceeded)
	f.wantAttempt(a.ID, onejob.AttemptSucceeded)
	f.wantJob(a.JobID, onejob.JobSucceeded)
}

func testHoldRuled(f *fixture) {
	a := f.running("k1")
	f.restored()
	f.hold()
	f.confirm()
	f.advance(quarantine)
	f.resolve(a, onejob.OutcomeNotExecuted)
	f.wantJob(a.JobID, onejob.JobBlocked, onejob.BlockNeedsOperator)
	f.claimNothing()
	f.unblock(a.JobID)
	f.advance(time.Hour) // past the backoff
	f.finish(f.mark(f.claimOne().Attempt), onejob.OutcomeSucceeded)
}

func testConfirmEarly(f *fixture) {
	early := func(what string) {
		f.Helper()
		g, err := f.restores().RestoreConfirm(f.Context(), "olga")
		if f.wantCode(err, onejob.CodeRestoreUnconfirmed); !g.Unconfirmed() && !f.generation().Unconfirmed() {
			f.Errorf("with %s left to hold the restore is confirmed", what)
		}
	}
	f.starting("attempt")
	f.create("job")
	f.restored()
	early("attempts and jobs")
	_, err := f.restores().RestoreHold(f.Context(), 1)
	f.noError(err)
	early("a job")
	f.hold()
	f.confirm()
}

func testConfirm(f *fixture) {
	held := f.create("held")
	f.restored()
	f.hold()
	f.confirm()
	f.wantJob(held.ID, onejob.JobBlocked, onejob.BlockNeedsOperator)
	fresh := f.create("fresh")
	a := f.claimOne().Attempt
	if a.JobID != fresh.ID {
		f.Fatalf("job %s was claimed; want the new one", a.JobID)
	}
	f.finish(f.mark(a), onejob.OutcomeSucceeded)
	f.unblock(held.ID)
	f.finish(f.mark(f.claimOne().Attempt), onejob.OutcomeSucceeded)
	f.wantJob(held.ID, onejob.JobSucceeded)
}

func testConfirmTwice(f *fixture) {
	job := f.create("k1")
	f.restored()
	f.hold()
	f.confirm()
	f.unblock(job.ID)
	f.wantJob(job.ID, onejob.JobQueued)
	f.restored()
	f.hold()
	f.wantJob(job.ID, onejob.JobBlocked, onejob.BlockNeedsOperator)
}
