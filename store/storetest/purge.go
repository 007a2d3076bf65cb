package storetest

import (
	"time"

	"github.com/onejob-dev/onejob"
)

func purging() []promise {
	return []promise{
		{name: "JobPurge/EmptiesThePayload", test: testPurgeEmpties},
		{name: "JobPurge/OnlyWhatFinishedLongEnoughAgo", test: testPurgeAge},
		{name: "JobPurge/OnlyWhatIsTerminal", test: testPurgeOpen},
		{name: "JobPurge/NotWhileALaneIsInDoubt", test: testPurgeInDoubt},
		{name: "JobPurge/NotWithAnOpenIncident", test: testPurgeIncident},
		{name: "JobPurge/WhatMustStayKeepsNobodyElse", test: testPurgePastKept},
		{name: "JobPurge/ATombstoneThatMustStayKeepsNobodyElse", test: testShrinkPastKept},
		{name: "JobPurge/KeepsForeverWhenToldTo", test: testPurgeForever},
		{name: "JobPurge/ShrinksTombstonesAndTheKeyStillAnswers", test: testPurgeShrinks},
		{name: "JobPurge/KeepsTombstonesWholeWhenToldTo", test: testPurgeKeepsTombstones},
		{name: "JobPurge/AtMostLimit", test: testPurgeLimit},
		{name: "JobPurge/AKeyIsJudgedTheSameAroundEveryAge", test: testPurgeEdges},
	}
}

func testPurgeEmpties(f *fixture) {
	a := f.running("k1", func(p *onejob.JobCreateParams) { p.Metadata = []byte(`{"name":"Alice"}`) })
	f.finish(a, onejob.OutcomeSucceeded, withCost(7))
	before := f.get(a.JobID)
	f.advance(payloadAge + time.Second)
	if n := f.purge(onejob.JobPurgeParams{PayloadAge: payloadAge}); n != 1 {
		f.Errorf("%d jobs were purged; want 1", n)
	}
	job := f.wantJob(a.JobID, onejob.JobSucceeded)
	if !job.Purged() || job.Input != nil || job.Metadata != nil || job.Result != nil && job.Result.Body != nil {
		f.Errorf("the purged job is %+v; want its payload gone", job)
	}
	if job.CompletedBy != a.ID || job.Version != before.Version || job.Revision <= before.Revision || !job.FinishedAt.Equal(before.FinishedAt) {
		f.Errorf("the purged job is %+v; want everything else as it was, and a newer revision", job)
	}
	if got := f.attempt(a.ID); got.CostMicros != 7 || got.Result != nil && got.Result.Body != nil {
		f.Errorf("the attempt is %+v; want its answer gone and its cost kept", got)
	}
	if n := f.purge(onejob.JobPurgeParams{PayloadAge: payloadAge}); n != 0 {
		f.Errorf("a second purge purged %d; want none", n)
	}
	if n := f.eventsOf(job, onejob.EventPurged); n != 1 {
		f.Errorf("the purge was written down %d times; want once", n)
	}
}

func testPurgeAge(f *fixture) {
	id := f.create("k1").ID
	f.advance(payloadAge) // it waited long, and finishes only now
	f.cancel(id)
	f.advance(payloadAge - time.Minute)
	if n := f.purge(onejob.JobPurgeParams{PayloadAge: payloadAge}); n != 0 || f.get(id).Purged() {
		f.Errorf("%d jobs were purged a minute early; want none", n)
	}
	f.advance(2 * time.Minute)
	if n := f.purge(onejob.JobPurgeParams{PayloadAge: payloadAge}); n != 1 {
		f.Errorf("%d jobs were purged; want 1", n)
	}
}

func testPurgeOpen(f *fixture) {
	running := f.running("k1")
	unknown := f.unknown("k2")
	blocked := f.blockedAtA("k3")
	queued := f.create("k4")
	f.advance(10 * payloadAge)
	if n := f.purge(onejob.JobPurgeParams{PayloadAge: payloadAge}); n != 0 {
		f.Errorf("%d open jobs were purged; want none", n)
	}
	for _, id := range []string{running.JobID, unknown.JobID, blocked.ID, queued.ID} {
		if job := f.get(id); job.Purged() || job.Input == nil {
			f.Errorf("a %s job lost its payload", job.State)
		}
	}
}

func testPurgeInDoubt(f *fixture) {
	first, second := f.twoLanes("k1")
	f.finish(first, onejob.OutcomeSucceeded)
	f.finish(second, onejob.OutcomeUnknown)
	f.advance(payloadAge + time.Second)
	if n := f.purge(onejob.JobPurgeParams{PayloadAge: payloadAge}); n != 0 {
		f.Errorf("%d jobs with an attempt in doubt were purged; want none", n)
	}
	f.resolve(second, onejob.OutcomeNotExecuted)
	if n := f.purge(onejob.JobPurgeParams{PayloadAge: payloadAge}); n != 1 {
		f.Errorf("%d jobs were purged once nothing was in doubt; want 1", n)
	}
}

func testPurgeIncident(f *fixture) {
	a := f.ruledOut("k1")
	f.finish(f.claimAgain(), onejob.OutcomeSucceeded)
	f.finish(a, onejob.OutcomeSucceeded)
	f.wantIncidents(a.JobID, onejob.EventDuplicateEffect)
	f.advance(payloadAge + time.Second)
	if n := f.purge(onejob.JobPurgeParams{PayloadAge: payloadAge}); n != 0 || f.get(a.JobID).Purged() {
		f.Errorf("%d jobs with an open incident were purged; want none", n)
	}
}

func testPurgePastKept(f *fixture) {
	first, second := f.twoLanes("k1")
	f.finish(first, onejob.OutcomeSucceeded)
	f.finish(second, onejob.OutcomeUnknown)
	f.advance(time.Second)
	later := f.running("k2")
	f.finish(later, onejob.OutcomeSucceeded)
	f.advance(payloadAge + time.Second)
	for range 3 {
		f.purge(onejob.JobPurgeParams{PayloadAge: payloadAge, Limit: 1})
	}
	if !f.get(later.JobID).Purged() || f.get(first.JobID).Purged() {
		f.Error("with limit 1 the job in doubt was purged, or kept the one behind it; want only the latter purged")
	}
}

// A purged job whose effect comes after all has an incident, which somebody looks into.
func testShrinkPastKept(f *fixture) {
	kept := f.ruledOut("k1")
	f.cancel(kept.JobID)
	f.advance(time.Second)
	later := f.create("k2")
	f.cancel(later.ID)
	f.purgeAll()
	f.finish(kept, onejob.OutcomeSucceeded)
	f.wantIncidents(kept.JobID, onejob.EventLateEffect)
	f.advance(keyAge)
	for range 3 {
		f.purge(onejob.JobPurgeParams{KeyAge: keyAge, Limit: 1})
	}
	f.get(kept.JobID)
	_, err := f.lookup(later.ID, owner)
	f.wantCode(err, onejob.CodeNotFound)
}

// A retention of "never" still deleted rows (riverqueue/river#1389).
func testPurgeForever(f *fixture) {
	id := reachSucceeded(f)
	f.advance(50 * keyAge)
	if n := f.purge(onejob.JobPurgeParams{}); n != 0 {
		f.Errorf("%d jobs were purged though everything is kept", n)
	}
	if job := f.get(id); job.Input == nil || job.Result == nil {
		f.Errorf("the job is %+v; want it whole", job)
	}
}

func testPurgeShrinks(f *fixture) {
	id := reachSucceeded(f)
	f.purgeAll()
	f.get(id)
	f.advance(keyAge)
	if n := f.purge(onejob.JobPurgeParams{PayloadAge: payloadAge, KeyAge: keyAge}); n != 1 {
		f.Errorf("%d tombstones shrank; want 1", n)
	}
	_, err := f.lookup(id, owner)
	f.wantCode(err, onejob.CodeNotFound)
	page, err := f.s.JobList(f.Context(), onejob.JobListParams{Owner: owner, Limit: 10})
	f.noError(err)
	if len(page.Jobs) != 0 {
		f.Errorf("a list still shows %d jobs; want none", len(page.Jobs))
	}
	f.wantCode(f.submit(f.intent("k1")).Err, onejob.CodeKeyExpired)
	f.wantCode(f.submit(f.intent("k1", withInput("other"))).Err, onejob.CodeKeyConflict)
	if n := f.purge(onejob.JobPurgeParams{PayloadAge: payloadAge, KeyAge: keyAge}); n != 0 {
		f.Errorf("a second purge changed %d; want none", n)
	}
}

// A key that is forgotten with its job lets the work be done again
// (taskforcesh/bullmq#1318).
func testPurgeKeepsTombstones(f *fixture) {
	id := reachSucceeded(f)
	f.purgeAll()
	f.advance(50 * keyAge)
	if n := f.purge(onejob.JobPurgeParams{PayloadAge: payloadAge}); n != 0 {
		f.Errorf("%d tombstones shrank though they are kept whole", n)
	}
	f.wantJob(id, onejob.JobSucceeded)
}

func testPurgeLimit(f *fixture) {
	for _, key := range []string{"k1", "k2", "k3"} {
		f.cancel(f.create(key).ID)
	}
	f.advance(payloadAge + time.Second)
	for _, want := range []int{2, 1, 0} {
		if n := f.purge(onejob.JobPurgeParams{PayloadAge: payloadAge, Limit: 2}); n != want {
			f.Errorf("with limit 2, %d jobs were purged; want %d", n, want)
		}
	}
}

// A key that somebody remembers for as long as they like: around a day, the
// payload's age and the key's, it answers its job or 410 and never a second job.
func testPurgeEdges(f *fixture) {
	id := reachSucceeded(f)
	start := f.get(id).CreatedAt
	for _, age := range []time.Duration{24 * time.Hour, payloadAge, keyAge} {
		for _, edge := range []time.Duration{-time.Minute, time.Minute} {
			// As far as the clock has not got there by itself.
			now := f.create("clock " + age.String() + edge.String()).CreatedAt
			f.advance(max(0, age+edge-now.Sub(start)))
			f.purge(onejob.JobPurgeParams{PayloadAge: payloadAge, KeyAge: keyAge})
			r := f.submit(f.intent("k1"))
			if wantGone := age+edge > payloadAge; wantGone {
				f.wantCode(r.Err, onejob.CodeKeyExpired)
			} else if r.Err != nil || r.Job.ID != id {
				f.Errorf("at %s the key answered %+v, %v; want job %s", age+edge, r.Job, r.Err, id)
			}
			f.wantCode(f.submit(f.intent("k1", withInput("other"))).Err, onejob.CodeKeyConflict)
		}
	}
}
