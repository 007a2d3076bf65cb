package storetest

import (
	"time"

	"github.com/onejob-dev/onejob"
)

func cancelling() []promise {
	return []promise{
		{name: "JobCancel/NothingInDoubtIsCancelledAtOnce", test: testCancelQueued},
		{name: "JobCancel/StartingBecomesCancelledAndItsMarkFails", test: testCancelStarting},
		{name: "JobCancel/RunningStaysAndMayStillSucceed", test: testCancelRunning},
		{name: "JobCancel/TheLastInDoubtEndsIt", test: testCancelEnds},
		{name: "JobCancel/AnUnknownStaysBlocked", test: testCancelUnknown},
		{name: "JobCancel/ABlockedJobIsCancelledAtOnce", test: testCancelBlocked},
		{name: "JobCancel/ABackoffIsCancelledAtOnce", test: testCancelBackoff},
		{name: "JobCancel/ALostWorkerEndsIt", test: testCancelLostWorker},
		{name: "JobCancel/ARulingEndsIt", test: testCancelRuled},
		{name: "JobCancel/AnotherEndIsTerminal", test: testCancelTerminal},
		{name: "JobCancel/TwiceIsOnce", test: testCancelTwice},
		{name: "JobCancel/NoAttemptStartsAfterwards", test: testCancelStarts},
		{name: "JobCancel/EachRowOfABatchIsJudgedByItself", test: testCancelBatch},
		{name: "JobUnblock/OnlyWhatNeedsAnOperator", test: testUnblockOther},
		{name: "JobUnblock/NotWhileInDoubtNorAfterTheEnd", test: testUnblockRefused},
		{name: "JobUnblock/IsWrittenDown", test: testUnblockIsWrittenDown},
		{name: "JobUnblock/LetsARuledCancellationGoOn", test: testUnblockRuled},
		{name: "JobDecide/EndsABlockedJobPastItsDeadline", test: testDecideDeadline},
		{name: "JobDecide/EndsAQueuedJobPastItsDeadlineWhoeverServesIt", test: testDecideQueuedDeadline},
		{name: "JobDecide/NeverFreesAnUnknown", test: testDecideUnknown},
		{name: "JobDecide/AtMostLimit", test: testDecideLimit},
		{name: "IfRevision/AnotherRevisionChangesNothing", test: testIfRevision},
	}
}

func testCancelQueued(f *fixture) {
	before := f.create("k1")
	job := f.cancel(before.ID)
	if job.State != onejob.JobCancelled || job.CancelRequestedAt.IsZero() || job.FinishedAt.IsZero() || job.Version != before.Version+1 {
		f.Errorf("the job is %s, asked at %s, finished at %s, version %d; want cancelled, one version on", job.State, job.CancelRequestedAt, job.FinishedAt, job.Version)
	}
	if got := f.wantJob(job.ID, onejob.JobCancelled); got.Version != job.Version || got.NextTarget != "" {
		f.Errorf("the job reads back as %+v; want what the cancel answered", got)
	}
	f.claimNothing()
	if n := f.eventsOf(job, onejob.EventCancelAsked); n != 1 {
		f.Errorf("the cancel was written down %d times; want once", n)
	}
}

func testCancelStarting(f *fixture) {
	a := f.starting("k1")
	f.cancel(a.JobID)
	got := f.wantAttempt(a.ID, onejob.AttemptCancelled)
	if got.Outcome != onejob.OutcomeCancelled || got.FinishedAt.IsZero() {
		f.Errorf("the attempt is %+v; want it given up, with nothing sent", got)
	}
	_, err := f.tryMark(markOf(a))
	f.wantCode(err, onejob.CodeClaimLost)
	f.wantCode(f.tryRenew(a).Err, onejob.CodeClaimLost)
	f.wantJob(a.JobID, onejob.JobCancelled)
}

func testCancelRunning(f *fixture) {
	a := f.running("k1")
	job := f.cancel(a.JobID)
	if job.State != onejob.JobRunning || job.CancelRequestedAt.IsZero() {
		f.Errorf("the job is %s, asked at %s; want running still", job.State, job.CancelRequestedAt)
	}
	f.wantAttempt(a.ID, onejob.AttemptRunning)
	r := f.finish(a, onejob.OutcomeSucceeded)
	if r.State != onejob.AttemptSucceeded || r.JobState != onejob.JobSucceeded || r.Incident != "" {
		f.Errorf("a success after the request answers %+v; want it to win: it happened and was paid", r)
	}
}

func testCancelEnds(f *fixture) {
	for _, outcome := range []onejob.Outcome{
		onejob.OutcomeNotExecuted, onejob.OutcomeRefused, onejob.OutcomeExecutedFailed, onejob.OutcomeCancelled,
	} {
		a := f.running("k-"+string(outcome), targets("a", "b"))
		f.cancel(a.JobID)
		r := f.finish(a, outcome, withNext(onejob.NextAgain))
		if r.JobState != onejob.JobCancelled || !r.Due.IsZero() {
			f.Errorf("after %s the job is %s, due at %s; want cancelled", outcome, r.JobState, r.Due)
		}
		f.wantJob(a.JobID, onejob.JobCancelled)
	}
}

func testCancelUnknown(f *fixture) {
	a := f.unknown("k1")
	f.cancel(a.JobID)
	f.wantJob(a.JobID, onejob.JobBlocked, onejob.BlockAttemptUnknown)
	f.finish(a, onejob.OutcomeSucceeded)
	f.wantJob(a.JobID, onejob.JobSucceeded)
}

func testCancelBlocked(f *fixture) {
	job := f.blockedAtA("k1")
	f.cancel(job.ID)
	f.wantJob(job.ID, onejob.JobCancelled)
}

func testCancelBackoff(f *fixture) {
	a := f.running("k1")
	f.finish(a, onejob.OutcomeRefused, withNext(onejob.NextAgain), withRetryAfter(time.Hour))
	f.cancel(a.JobID)
	f.wantJob(a.JobID, onejob.JobCancelled)
	f.advance(2 * time.Hour)
	f.claimNothing()
}

func testCancelLostWorker(f *fixture) {
	a := f.running("k1")
	f.cancel(a.JobID)
	f.sweep()
	f.wantJob(a.JobID, onejob.JobBlocked, onejob.BlockAttemptUnknown)
	f.finish(a, onejob.OutcomeRefused)
	f.wantJob(a.JobID, onejob.JobCancelled)
}

func testCancelRuled(f *fixture) {
	a := f.unknown("k1")
	f.cancel(a.JobID)
	f.advance(quarantine + time.Second)
	f.resolve(a, onejob.OutcomeCancelled)
	f.wantJob(a.JobID, onejob.JobCancelled)
}

func testCancelTerminal(f *fixture) {
	id := reachSucceeded(f)
	before := f.get(id)
	_, err := f.tryCancel(onejob.JobCancelParams{ID: id})
	if e := f.wantError(err, onejob.CodeJobTerminal); e.JobID != id {
		f.Errorf("the refusal names %q; want %q", e.JobID, id)
	}
	if after := f.get(id); after.State != before.State || after.Revision != before.Revision || !after.CancelRequestedAt.IsZero() {
		f.Errorf("a refused cancel changed the job to %+v", after)
	}
}

func testCancelTwice(f *fixture) {
	first := f.cancel(f.create("k1").ID)
	again := f.cancel(first.ID)
	if again.Revision != first.Revision || again.Version != first.Version || !again.CancelRequestedAt.Equal(first.CancelRequestedAt) {
		f.Errorf("the second cancel answered revision %d, version %d; want %d and %d", again.Revision, again.Version, first.Revision, first.Version)
	}
	a := f.running("k2")
	asked := f.cancel(a.JobID)
	f.advance(time.Second)
	if again := f.cancel(a.JobID); !again.CancelRequestedAt.Equal(asked.CancelRequestedAt) || again.Revision != asked.Revision {
		f.Errorf("the second request moved the first from %s to %s", asked.CancelRequestedAt, again.CancelRequestedAt)
	}
}

func testCancelStarts(f *fixture) {
	a := f.running("k1", targets("a", "b"))
	f.cancel(a.JobID)
	f.wantCode(f.tryStart(buttonOf(a.JobID, "click", "b")).Err, onejob.CodeAttemptUnresolved)
	f.finish(a, onejob.OutcomeRefused)
	f.wantCode(f.tryStart(buttonOf(a.JobID, "click", "b")).Err, onejob.CodeJobTerminal)
	f.claimNothing()
}

func testCancelBatch(f *fixture) {
	done := reachSucceeded(f)
	job := f.create("k2")
	results, err := f.s.JobCancel(f.Context(), []onejob.JobCancelParams{
		{ID: "job_none"}, {ID: done}, {ID: job.ID}, {ID: job.ID},
	})
	f.noError(err)
	f.wantCode(results[0].Err, onejob.CodeNotFound)
	f.wantCode(results[1].Err, onejob.CodeJobTerminal)
	f.noError(results[2].Err)
	f.noError(results[3].Err)
	f.wantJob(job.ID, onejob.JobCancelled)
}

// needingOperator records an intent whose attempt was ruled cancelled though
// nobody had asked to cancel the job.
func (f *fixture) needingOperator(key string) *onejob.Job {
	f.Helper()
	a := f.unknown(key)
	f.advance(quarantine + time.Second)
	f.resolve(a, onejob.OutcomeCancelled)
	return f.wantJob(a.JobID, onejob.JobBlocked, onejob.BlockNeedsOperator)
}

func testUnblockOther(f *fixture) {
	job := f.blockedAtA("k1")
	_, _ = f.tryUnblock(onejob.JobUnblockParams{ID: job.ID, Actor: "olga", Reason: "try"}) // answered or refused, but
	f.wantJob(job.ID, onejob.JobBlocked, onejob.BlockFailoverNotCertified)                 // it frees nothing
	f.claimNothing()
	_, err := f.tryUnblock(onejob.JobUnblockParams{ID: "job_none", Reason: "try"})
	f.wantCode(err, onejob.CodeNotFound)
}

func testUnblockRefused(f *fixture) {
	unknown := f.unknown("k1")
	_, err := f.tryUnblock(onejob.JobUnblockParams{ID: unknown.JobID, Reason: "try"})
	f.wantCode(err, onejob.CodeAttemptUnresolved)
	f.wantJob(unknown.JobID, onejob.JobBlocked, onejob.BlockAttemptUnknown)
	done := f.cancel(f.create("k2").ID)
	_, err = f.tryUnblock(onejob.JobUnblockParams{ID: done.ID, Reason: "try"})
	f.wantCode(err, onejob.CodeJobTerminal)
}

func testUnblockIsWrittenDown(f *fixture) {
	job := f.needingOperator("k1")
	f.advance(time.Second)
	_, err := f.tryUnblock(onejob.JobUnblockParams{ID: job.ID, Actor: "olga", Reason: "asked them"})
	f.noError(err)
	for _, e := range f.events(job) {
		if e.Kind == onejob.EventUnblocked {
			if e.Actor != "olga" || e.Detail != "asked them" {
				f.Errorf("the unblocking was written down as %+v; want who and why", e)
			}
			return
		}
	}
	f.Error("an unblocking left no event")
}

func testUnblockRuled(f *fixture) {
	job := f.needingOperator("k1")
	f.advance(time.Second)
	after, err := f.tryUnblock(onejob.JobUnblockParams{ID: job.ID, Actor: "olga", Reason: "do it after all"})
	f.noError(err)
	if after.State == onejob.JobBlocked && after.Blocked.Reason == onejob.BlockNeedsOperator || after.UnblockedAt.IsZero() {
		f.Errorf("the unblocked job is %s, %+v, since %s; want it to go on", after.State, after.Blocked, after.UnblockedAt)
	}
}

func testDecideDeadline(f *fixture) {
	job := f.blockedAtA("k1", withPolicy(func(p *onejob.Policy) { p.Deadline = time.Hour }))
	f.advance(time.Hour + time.Second)
	changed, err := f.s.JobDecide(f.Context(), 10)
	f.noError(err)
	if len(changed) != 1 || changed[0] != (onejob.JobRef{Part: job.Part, ID: job.ID}) {
		f.Errorf("deciding again changed %v; want the one job", changed)
	}
	if after := f.wantJob(job.ID, onejob.JobFailed); after.Error == nil || after.Error.Code != onejob.FailureDeadlineExceeded {
		f.Errorf("the job failed with %+v; want %s", after.Error, onejob.FailureDeadlineExceeded)
	}
}

func testDecideQueuedDeadline(f *fixture) {
	hourly := withPolicy(func(p *onejob.Policy) { p.Deadline = time.Hour })
	nobodys := func(p *onejob.JobCreateParams) { p.Policy.Targets = []string{"nobody serves this"} }
	waits := f.create("k0", nobodys)
	want := map[string]bool{f.create("k1", hourly, nobodys).ID: true}
	backingOff := f.running("k2", hourly)
	f.finish(backingOff, onejob.OutcomeRefused, withNext(onejob.NextAgain), withRetryAfter(24*time.Hour))
	want[f.wantJob(backingOff.JobID, onejob.JobQueued).ID] = true

	decide := func(limit int) []onejob.JobRef {
		f.Helper()
		changed, err := f.s.JobDecide(f.Context(), limit)
		f.noError(err)
		return changed
	}
	f.advance(time.Hour - time.Minute)
	if changed := decide(10); len(changed) != 0 {
		f.Errorf("before the deadline deciding again changed %v; want nothing", changed)
	}
	f.advance(2 * time.Minute)
	for range len(want) {
		changed := decide(1)
		if len(changed) != 1 || !want[changed[0].ID] {
			f.Fatalf("with limit 1 deciding again changed %v; want one job past its deadline", changed)
		}
		delete(want, changed[0].ID)
		job := f.wantJob(changed[0].ID, onejob.JobFailed)
		if job.Error == nil || job.Error.Code != onejob.FailureDeadlineExceeded {
			f.Errorf("the job failed with %+v; want %s", job.Error, onejob.FailureDeadlineExceeded)
		}
	}
	if changed := decide(10); len(changed) != 0 {
		f.Errorf("deciding once more changed %v; want nothing", changed)
	}
	f.wantJob(waits.ID, onejob.JobQueued)
}

func testDecideUnknown(f *fixture) {
	a := f.unknown("k1", withPolicy(func(p *onejob.Policy) { p.Deadline = time.Hour }))
	before := f.get(a.JobID)
	f.advance(24 * time.Hour)
	changed, err := f.s.JobDecide(f.Context(), 10)
	f.noError(err)
	if len(changed) != 0 {
		f.Errorf("deciding again changed %v; want nothing", changed)
	}
	if after := f.wantJob(a.JobID, onejob.JobBlocked, onejob.BlockAttemptUnknown); after.Revision != before.Revision {
		f.Errorf("deciding again moved the revision from %d to %d", before.Revision, after.Revision)
	}
}

func testDecideLimit(f *fixture) {
	hourly := withPolicy(func(p *onejob.Policy) { p.Deadline = time.Hour })
	for _, key := range []string{"k1", "k2", "k3"} {
		f.blockedAtA(key, hourly)
	}
	f.advance(time.Hour + time.Second)
	for _, want := range []int{2, 1, 0} {
		changed, err := f.s.JobDecide(f.Context(), 2)
		f.noError(err)
		if len(changed) != want {
			f.Errorf("with limit 2, %d jobs changed; want %d", len(changed), want)
		}
	}
}

func testIfRevision(f *fixture) {
	a := f.unknown("k1", targets("a", "b"))
	job := f.get(a.JobID)
	stale := job.Revision - 1
	_, err := f.tryCancel(onejob.JobCancelParams{ID: job.ID, IfRevision: &stale})
	f.wantCode(err, onejob.CodeVersionMismatch)
	f.wantCode(f.tryResolve(rulingOf(a, onejob.OutcomeSucceeded, func(p *onejob.AttemptResolveParams) { p.IfRevision = &stale })).Err, onejob.CodeVersionMismatch)
	click := buttonOf(job.ID, "click", "b")
	click.IfRevision = &stale
	f.wantCode(f.tryStart(click).Err, onejob.CodeVersionMismatch)
	needing := f.needingOperator("k2")
	_, err = f.tryUnblock(onejob.JobUnblockParams{ID: needing.ID, Reason: "try", IfRevision: new(int64)})
	f.wantCode(err, onejob.CodeVersionMismatch)
	if after := f.get(job.ID); after.Revision != job.Revision {
		f.Errorf("refused changes moved the revision from %d to %d", job.Revision, after.Revision)
	}
	_, err = f.tryCancel(onejob.JobCancelParams{ID: job.ID, IfRevision: &job.Revision})
	f.noError(err)
}
