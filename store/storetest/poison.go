package storetest

import (
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

// poison makes a row of a job unreadable: JSON, but not of our shape. It reports
// false when the database does not let that happen.
func (f *fixture) poison(statement string) bool {
	f.Helper()
	if f.Exec == nil {
		f.Skip("the store has no SQL")
	}
	return f.Exec(statement) == nil
}

// poisonedQueue records an intent that cannot be read and is due, with its
// deadline an hour away, ahead of all that come after it.
func (f *fixture) poisonedQueue(key string) (id string, poisoned bool) {
	f.Helper()
	hourly := withPolicy(func(p *onejob.Policy) { p.Deadline = time.Hour })
	a := f.running(key, targets("a", "b"), hourly)
	f.finish(a, onejob.OutcomeRefused)
	f.wantJob(a.JobID, onejob.JobQueued)
	return a.JobID, f.poison(`UPDATE attempts SET ruling = '{"by": 5}' WHERE id = '` + a.ID + `'`)
}

// One row that cannot be read halted all work (timgit/pg-boss#492). Whatever
// becomes of it, its neighbours are claimed, read, listed and ended.
func testPoisonedJob(f *fixture) {
	poisoned, ok := f.poisonedQueue("poisoned")
	if !ok {
		return
	}
	f.advance(time.Second)
	healthy := f.create("healthy")
	f.claimsWithin(3, healthy.ID)

	results, err := f.s.JobGet(f.Context(), []onejob.JobGetParams{{ID: poisoned}, {ID: healthy.ID}})
	f.noError(err)
	f.noError(results[1].Err)
	f.lists(onejob.JobListParams{Owner: owner, Limit: 1}, healthy.ID)
	f.lists(onejob.JobListParams{Limit: 100}, healthy.ID)

	overdue := f.create("overdue", func(p *onejob.JobCreateParams) {
		p.Policy.Targets, p.Policy.Deadline = []string{"nobody serves this"}, time.Hour
	})
	f.advance(2 * time.Hour)
	f.decidesWithin(3, overdue.ID)
	f.wantJob(overdue.ID, onejob.JobFailed)
}

// poisonPolicy makes what was pinned on a job unreadable, or skips.
func (f *fixture) poisonPolicy(jobID, policy string) {
	f.Helper()
	unlocked := f.poison(`DROP TRIGGER jobs_immutable`) || f.poison(`ALTER TABLE jobs DISABLE TRIGGER jobs_immutable`)
	if !unlocked || !f.poison(`UPDATE jobs SET policy = '`+policy+`' WHERE id = '`+jobID+`'`) {
		f.Skip("the database does not let a policy change")
	}
}

// What became of the jobs beside one whose policy cannot be read is recorded, and
// their leases end: else their callers try for ever, and nobody takes over.
func testPoisonedPolicy(f *fixture) {
	poisoned, silent, lost := f.running("poisoned"), f.running("silent"), f.running("lost")
	f.poisonPolicy(poisoned.JobID, "not JSON")
	results, err := f.s.AttemptFinish(f.Context(), []onejob.AttemptFinishParams{
		finishOf(poisoned, onejob.OutcomeUnknown), finishOf(silent, onejob.OutcomeUnknown),
	})
	f.noError(err)
	f.noError(results[1].Err)
	f.wantAttempt(silent.ID, onejob.AttemptUnknown)

	f.advance(lease + time.Second)
	if changed := f.expire([]onejob.AttemptRef{refOf(poisoned), refOf(lost)}); !slices.Contains(changed, refOf(lost)) {
		f.Errorf("the sweep changed %v; want the healthy attempt", changed)
	}
	f.wantAttempt(lost.ID, onejob.AttemptUnknown)

	f.restored()
	f.hold()
	f.confirm()
}

// A policy that breaks off says that there is a contract, and not which.
func testPoisonedContract(f *fixture) {
	f.useGate(nil)
	nobodys := withPolicy(func(p *onejob.Policy) { p.Targets, p.Deadline = []string{"nobody serves this"}, time.Hour })
	queued, overdue := f.create("queued"), f.create("overdue", nobodys)
	poisonedQueued, poisonedOverdue := f.create("poisoned queued"), f.create("poisoned overdue", nobodys)
	for _, job := range []*onejob.Job{poisonedQueued, poisonedOverdue} {
		f.poisonPolicy(job.ID, `{"effect":"external","contract":{"dig`)
	}
	f.claimsWithin(3, queued.ID)
	f.advance(2 * time.Hour)
	f.decidesWithin(3, overdue.ID)
	f.wantJob(overdue.ID, onejob.JobFailed)
}

func testPoisonedBlocked(f *fixture) {
	hourly := withPolicy(func(p *onejob.Policy) { p.Deadline = time.Hour })
	block := func(key string) *onejob.Job {
		f.Helper()
		f.advance(time.Second)
		return f.blockedAtA(key, hourly)
	}
	before, healthy := block("before"), block("healthy")
	for _, job := range []*onejob.Job{before, block("after"), block("last")} {
		if !f.poison(`UPDATE job_states SET blocked = '{"reason": 5}' WHERE job_id = '` + job.ID + `'`) {
			return
		}
	}
	f.lists(onejob.JobListParams{States: []onejob.JobState{onejob.JobBlocked}, Limit: 1}, healthy.ID)
	f.advance(2 * time.Hour)
	f.decidesWithin(3, healthy.ID)
	f.wantJob(healthy.ID, onejob.JobFailed)
}

// claimsWithin claims one at a time until the job is claimed, at most n times.
func (f *fixture) claimsWithin(n int, id string) {
	f.Helper()
	for range n {
		result := f.claimWith(onejob.AttemptClaimParams{StartParams: claimer(), Max: 1})
		if len(result.Claimed) == 1 && result.Claimed[0].Job.ID == id {
			return
		}
	}
	f.Errorf("%d claims did not reach the healthy job", n)
}

// decidesWithin decides about one at a time until the job has changed, at most n times.
func (f *fixture) decidesWithin(n int, id string) {
	f.Helper()
	for range n {
		changed, err := f.s.JobDecide(f.Context(), 1)
		f.noError(err)
		if slices.ContainsFunc(changed, func(ref onejob.JobRef) bool { return ref.ID == id }) {
			return
		}
	}
	f.Errorf("deciding %d times did not reach the healthy job", n)
}

// lists reads every page and checks that the job is on one of them.
func (f *fixture) lists(p onejob.JobListParams, id string) {
	f.Helper()
	for found := false; !found; {
		page, err := f.s.JobList(f.Context(), p)
		f.noError(err)
		found = slices.ContainsFunc(page.Jobs, func(j *onejob.Job) bool { return j.ID == id })
		if found || !page.More || len(page.Jobs) == 0 {
			if !found {
				f.Errorf("no page of %+v lists the healthy job", p)
			}
			return
		}
		last := page.Jobs[len(page.Jobs)-1]
		p.Before = &onejob.JobCursor{CreatedAt: last.CreatedAt, ID: last.ID}
	}
}
