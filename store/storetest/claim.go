package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

func claiming() []promise {
	return []promise{
		{name: "AttemptClaim/StartsADueJob", test: testClaimStarts},
		{name: "AttemptClaim/OneAttemptInDoubt", test: testClaimOnce, handles: 3},
		{name: "AttemptClaim/NeverMoreThanMax", test: testClaimMax},
		{name: "AttemptClaim/HigherPriorityFirst", test: testClaimPriority},
		{name: "AttemptClaim/LongestDueFirst", test: testClaimLongestDue},
		{name: "AttemptClaim/OnlyTargetsTheClaimerKnows", test: testClaimTargets},
		{name: "AttemptClaim/SaysWhenTheNextIsDue", test: testClaimNextDue},
		{name: "AttemptClaim/TheNextIsDueInTheFuture", test: testClaimNextDueLater},
		{name: "AttemptClaim/EndsAJobPastItsDeadline", test: testClaimDeadline},
		{name: "AttemptClaim/NeverEndsAJobInDoubtForItsDeadline", test: testDeadlineInDoubt},
		{name: "AttemptClaim/AnotherTryCountsItself", test: testClaimAgain},
		{name: "AttemptClaim/WaitsOutRetryAfter", test: testClaimRetryAfter},
		{name: "AttemptClaim/WaitsOutABackoff", test: testClaimBackoff},
		{name: "AttemptClaim/EndsWithTheBudget", test: testClaimBudget},
		{name: "ProviderKey/StaysUntilTheProviderExecutedAndFailed", test: testProviderKey},
		{name: "ProviderKey/IsEachTargetsOwn", test: testProviderKeyOfTarget},
	}
}

func testClaimStarts(f *fixture) {
	job := f.create("k1")
	c := f.claimOne()
	a := c.Attempt
	if a.JobID != job.ID || a.Number != 1 || a.Lane != 0 || a.Target != "a" || a.State != onejob.AttemptStarting || a.Worker != worker {
		f.Errorf("the claim is %+v; want attempt 1 of %s at a, starting", a, job.ID)
	}
	if a.ClaimToken == "" || a.ProviderKey == "" || a.JobVersion != job.Version || !a.SendBy.IsZero() || !a.MarkedAt.IsZero() {
		f.Errorf("the claim is %+v; want a token, a provider key, the job's version %d and no mark", a, job.Version)
	}
	if got := a.LeaseExpiresAt.Sub(a.StartedAt); got != lease {
		f.Errorf("the lease is %s long; want %s", got, lease)
	}
	if string(c.Job.Input) != `{"amount":7}` || c.Job.State != onejob.JobRunning || len(c.Job.Attempts) != 1 {
		f.Errorf("the claimed job is %s with input %q and %d attempts; want running, its input, 1", c.Job.State, c.Job.Input, len(c.Job.Attempts))
	}
	if after := f.wantJob(job.ID, onejob.JobRunning); after.AttemptsMade != 1 || after.Version != job.Version || after.Revision <= job.Revision {
		f.Errorf("%d attempts made, version %d to %d, revision %d to %d; want 1, the same, more",
			after.AttemptsMade, job.Version, after.Version, job.Revision, after.Revision)
	}
}

// Whatever is in doubt keeps the next attempt from starting, and a second handle
// sees it as the first does.
func testClaimOnce(f *fixture) {
	a := f.starting("k1")
	for _, state := range []onejob.AttemptState{onejob.AttemptStarting, onejob.AttemptRunning, onejob.AttemptUnknown} {
		switch state {
		case onejob.AttemptRunning:
			f.mark(a)
		case onejob.AttemptUnknown:
			f.finish(a, onejob.OutcomeUnknown)
		default:
		}
		f.wantAttempt(a.ID, state)
		for i, s := range f.Stores {
			result, err := s.AttemptClaim(f.Context(), onejob.AttemptClaimParams{StartParams: claimer(), Max: 10})
			f.noError(err)
			if len(result.Claimed) != 0 {
				f.Errorf("with attempt 1 %s, handle %d claimed %d more; want none", state, i, len(result.Claimed))
			}
		}
	}
}

func testClaimMax(f *fixture) {
	for _, key := range []string{"k1", "k2", "k3", "k4", "k5"} {
		f.create(key)
	}
	for _, c := range []struct{ max, want int }{{0, 0}, {-1, 0}, {1, 1}, {3, 3}, {3, 1}, {3, 0}} {
		result := f.claimWith(onejob.AttemptClaimParams{StartParams: claimer(), Max: c.max})
		if len(result.Claimed) != c.want {
			f.Errorf("with max %d, %d were claimed; want %d", c.max, len(result.Claimed), c.want)
		}
	}
}

func testClaimPriority(f *fixture) {
	want := map[int]string{}
	for _, priority := range []int{0, 5, -5} {
		want[priority] = f.create(fmt.Sprintf("k%d", priority), func(p *onejob.JobCreateParams) { p.Priority = priority }).ID
	}
	for _, priority := range []int{5, 0, -5} {
		result := f.claimWith(onejob.AttemptClaimParams{StartParams: claimer(), Max: 1})
		if len(result.Claimed) != 1 || result.Claimed[0].Job.ID != want[priority] {
			f.Fatalf("claimed %+v; want the job of priority %d", result.Claimed, priority)
		}
	}
}

func testClaimLongestDue(f *fixture) {
	now := f.create("clock", func(p *onejob.JobCreateParams) { p.Target = "z" }).CreatedAt
	later := f.create("k1", func(p *onejob.JobCreateParams) { p.RunAfter = now.Add(2 * time.Hour).Truncate(time.Second) })
	sooner := f.create("k2", func(p *onejob.JobCreateParams) { p.RunAfter = now.Add(time.Hour).Truncate(time.Second) })
	f.advance(3 * time.Hour)
	for _, want := range []string{sooner.ID, later.ID} {
		result := f.claimWith(onejob.AttemptClaimParams{StartParams: claimer(), Max: 1})
		if len(result.Claimed) != 1 || result.Claimed[0].Job.ID != want {
			f.Fatalf("claimed %+v; want %s, which is due longer", result.Claimed, want)
		}
	}
}

func testClaimTargets(f *fixture) {
	job := f.create("k1", targets("a", "b"))
	for _, p := range []onejob.StartParams{claimer("b"), claimer("z"), {Worker: worker, Lease: lease}} {
		if result := f.claimWith(onejob.AttemptClaimParams{StartParams: p, Max: 10}); len(result.Claimed) != 0 {
			f.Errorf("a worker that cannot call a claimed %+v", result.Claimed)
		}
	}
	a := f.mark(f.claimOne().Attempt)
	f.finish(a, onejob.OutcomeRefused) // elsewhere
	if next := f.wantJob(job.ID, onejob.JobQueued).NextTarget; next != "b" {
		f.Errorf("the next target is %q; want b", next)
	}
	if result := f.claimWith(onejob.AttemptClaimParams{StartParams: claimer("a"), Max: 10}); len(result.Claimed) != 0 {
		f.Errorf("a worker that cannot call b claimed %+v", result.Claimed)
	}
	result := f.claimWith(onejob.AttemptClaimParams{StartParams: claimer("b"), Max: 10})
	if len(result.Claimed) != 1 || result.Claimed[0].Attempt.Target != "b" {
		f.Errorf("claimed %+v; want one attempt at b", result.Claimed)
	}
}

func testClaimNextDue(f *fixture) {
	if due := f.claim().NextDue; !due.IsZero() {
		f.Errorf("an empty store's next job is due at %s; want none known", due)
	}
	now := f.create("clock").CreatedAt
	f.claimOne()
	at := now.Add(time.Hour).Truncate(time.Second)
	f.create("k1", func(p *onejob.JobCreateParams) { p.RunAfter = at.Add(time.Hour) })
	f.create("k2", func(p *onejob.JobCreateParams) { p.RunAfter = at })
	if due := f.claim().NextDue; !due.Equal(at) {
		f.Errorf("the next job is due at %s; want %s", due, at)
	}
}

// A claimer that is told of a job which is due and was left would ask for it again
// and again.
func testClaimNextDueLater(f *fixture) {
	now := f.create("k1").CreatedAt
	f.create("k2")
	at := now.Add(time.Hour).Truncate(time.Second)
	if due := f.claimWith(onejob.AttemptClaimParams{StartParams: claimer(), Max: 1}).NextDue; !due.IsZero() {
		f.Errorf("with one job left that is due, the next is due at %s; want none known", due)
	}
	f.create("k3", func(p *onejob.JobCreateParams) { p.RunAfter = at })
	for range 2 {
		if due := f.claimWith(onejob.AttemptClaimParams{StartParams: claimer(), Max: 1}).NextDue; !due.Equal(at) {
			f.Errorf("the next job is due at %s; want %s", due, at)
		}
	}
}

func testClaimDeadline(f *fixture) {
	job := f.create("k1", withPolicy(func(p *onejob.Policy) { p.Deadline = time.Hour }))
	neighbour := f.create("k2")
	f.advance(time.Hour + time.Second)
	result := f.claim()
	if len(result.Claimed) != 1 || result.Claimed[0].Job.ID != neighbour.ID {
		f.Errorf("claimed %+v; want only the job without a deadline", result.Claimed)
	}
	if !slices.Equal(result.Settled, []onejob.JobRef{{Part: job.Part, ID: job.ID}}) {
		f.Errorf("settled %v; want the job past its deadline", result.Settled)
	}
	after := f.wantJob(job.ID, onejob.JobFailed)
	if after.Error == nil || after.Error.Code != onejob.FailureDeadlineExceeded || after.Version != job.Version+1 || after.FinishedAt.IsZero() {
		f.Errorf("the job ended with %+v at version %d; want %s, one version on", after.Error, after.Version, onejob.FailureDeadlineExceeded)
	}
}

func testDeadlineInDoubt(f *fixture) {
	hour := withPolicy(func(p *onejob.Policy) { p.Deadline = time.Hour })
	a, b := f.running("k1", hour), f.running("k2", hour)
	f.advance(time.Hour + time.Second)
	f.claimNothing()
	f.wantJob(a.JobID, onejob.JobRunning)
	f.finish(a, onejob.OutcomeSucceeded) // a deadline starts nothing, and stops nothing
	f.wantJob(a.JobID, onejob.JobSucceeded)
	if r := f.finish(b, onejob.OutcomeRefused, withNext(onejob.NextAgain)); r.JobState != onejob.JobFailed {
		f.Errorf("with its deadline past and nothing in doubt the job is %s; want failed", r.JobState)
	}
	if job := f.get(b.JobID); job.Error == nil || job.Error.Code != onejob.FailureDeadlineExceeded {
		f.Errorf("the job failed with %+v; want %s", job.Error, onejob.FailureDeadlineExceeded)
	}
}

func testClaimAgain(f *fixture) {
	first := f.running("k1")
	f.finish(first, onejob.OutcomeNotExecuted, withNext(onejob.NextAgain))
	second := f.claimAgain()
	if second.Number != 2 || second.Target != "a" || second.ClaimToken == first.ClaimToken || second.ID == first.ID {
		f.Errorf("the second attempt is %+v; want number 2 at a under a token of its own", second)
	}
	job := f.wantJob(first.JobID, onejob.JobRunning)
	if job.AttemptsMade != 2 || len(job.Attempts) != 2 || job.Attempts[0].ID != first.ID {
		f.Errorf("the job has %d attempts, %+v; want 2, oldest first", job.AttemptsMade, job.Attempts)
	}
}

func testClaimRetryAfter(f *fixture) {
	a := f.running("k1")
	result := f.finish(a, onejob.OutcomeRefused, withNext(onejob.NextAgain), withRetryAfter(10*time.Minute))
	if result.JobState != onejob.JobQueued || result.Due.IsZero() {
		f.Errorf("the job is %s, due at %s; want queued, in ten minutes", result.JobState, result.Due)
	}
	if due := f.claim().NextDue; !due.Equal(result.Due) {
		f.Errorf("the next job is due at %s; want %s", due, result.Due)
	}
	f.advance(9 * time.Minute)
	f.claimNothing()
	f.advance(61 * time.Second)
	f.claimOne()
}

func testClaimBackoff(f *fixture) {
	a := f.running("k1", withPolicy(func(p *onejob.Policy) {
		p.Backoff = onejob.Backoff{Initial: time.Hour, Max: time.Hour}
	}))
	result := f.finish(a, onejob.OutcomeNotExecuted, withNext(onejob.NextAgain))
	finished := f.attempt(a.ID).FinishedAt
	if wait := result.Due.Sub(finished); wait < 0 || wait > time.Hour {
		f.Errorf("the next try is due %s after the failure; want between none and an hour", wait)
	}
	f.advance(time.Hour + time.Second)
	f.claimOne()
}

func testClaimBudget(f *fixture) {
	a := f.running("k1", withPolicy(func(p *onejob.Policy) { p.PerTarget = 2 }))
	f.finish(a, onejob.OutcomeNotExecuted, withNext(onejob.NextAgain))
	a = f.claimAgain()
	result := f.finish(a, onejob.OutcomeNotExecuted, withNext(onejob.NextAgain))
	if result.JobState != onejob.JobFailed || !result.Due.IsZero() {
		f.Errorf("after two tries of two the job is %s, due at %s; want failed", result.JobState, result.Due)
	}
	job := f.wantJob(a.JobID, onejob.JobFailed)
	if job.Error == nil || job.Error.Code != onejob.FailureAttemptsExhausted {
		f.Errorf("the job failed with %+v; want %s", job.Error, onejob.FailureAttemptsExhausted)
	}
}

// A key that a fallback shares, or that a retry mints anew, makes the provider's own
// guard useless (ubicloud/ubicloud#5898, medusajs/medusa#16681).
func testProviderKey(f *fixture) {
	first := f.running("k1", withPolicy(func(p *onejob.Policy) {
		p.Effect, p.PerTarget, p.MaxAttempts = onejob.EffectNone, 9, 9
	}))
	want := first.ProviderKey
	a := first
	for _, outcome := range []onejob.Outcome{onejob.OutcomeNotExecuted, onejob.OutcomeRefused, onejob.OutcomeUnknown} {
		f.finish(a, outcome, withNext(onejob.NextAgain))
		if outcome == onejob.OutcomeUnknown {
			f.advance(quarantine + time.Second)
			f.resolve(a, onejob.OutcomeNotExecuted)
		}
		if a = f.claimAgain(); a.ProviderKey != want {
			f.Errorf("after %s the provider key went from %s to %s; want the same", outcome, want, a.ProviderKey)
		}
	}
	f.finish(a, onejob.OutcomeExecutedFailed, withNext(onejob.NextAgain))
	if a = f.claimAgain(); a.ProviderKey == want {
		f.Error("after the provider executed and failed the provider key stayed; want another")
	}
}

func testProviderKeyOfTarget(f *fixture) {
	a := f.running("k1", targets("a", "b"))
	f.finish(a, onejob.OutcomeRefused)
	if b := f.claimAgain(); b.ProviderKey == a.ProviderKey {
		f.Errorf("two targets were given one provider key, %s", b.ProviderKey)
	}
	if other := f.running("k2"); other.ProviderKey == a.ProviderKey {
		f.Errorf("two jobs were given one provider key, %s", other.ProviderKey)
	}
}
