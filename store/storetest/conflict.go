package storetest

import (
	"reflect"
	"time"

	"github.com/onejob-dev/onejob"
)

// Checks of the payload stopped working in one state or another after an
// optimisation, silently (aws-powertools/powertools-lambda-python#3781).
//
// A key is judged the same in every state of its job: these are all of them, and
// two more that a job can be in once it is old.
var situations = []struct {
	name    string
	reach   func(f *fixture) string // returns the id of the job under "k1"
	expired bool                    // the same intent is answered with 410 instead of the job
	gone    bool                    // and the job itself can no longer be read
}{
	{name: "Queued", reach: func(f *fixture) string { return f.create("k1").ID }},
	{name: "Starting", reach: func(f *fixture) string { return f.starting("k1").JobID }},
	{name: "Running", reach: func(f *fixture) string { return f.running("k1").JobID }},
	{name: "Accepted", reach: func(f *fixture) string {
		a := f.running("k1")
		f.finish(a, onejob.OutcomeAccepted, func(p *onejob.AttemptFinishParams) { p.ProviderID = "op_1" })
		return a.JobID
	}},
	{name: "BackingOff", reach: func(f *fixture) string {
		a := f.running("k1")
		f.finish(a, onejob.OutcomeRefused, withNext(onejob.NextAgain), withRetryAfter(time.Hour))
		return f.wantJob(a.JobID, onejob.JobQueued).ID
	}},
	{name: "Unknown", reach: func(f *fixture) string { return f.unknown("k1").JobID }},
	{name: "Expired", reach: func(f *fixture) string {
		a := f.running("k1")
		f.sweep()
		return f.wantJob(a.JobID, onejob.JobBlocked, onejob.BlockAttemptUnknown).ID
	}},
	{name: "Blocked", reach: func(f *fixture) string { return f.blockedAtA("k1").ID }},
	{name: "CancelAsked", reach: func(f *fixture) string { return f.cancel(f.running("k1").JobID).ID }},
	{name: "Succeeded", reach: reachSucceeded},
	{name: "Failed", reach: reachFailed},
	{name: "Cancelled", reach: func(f *fixture) string { return f.cancel(f.create("k1").ID).ID }},
	{name: "Superseded", reach: func(f *fixture) string {
		id := reachFailed(f)
		f.create("k2", func(p *onejob.JobCreateParams) { p.Supersedes = id })
		return id
	}},
	{name: "Purged", expired: true, reach: func(f *fixture) string {
		id := reachSucceeded(f)
		f.purgeAll()
		return id
	}},
	{name: "Shrunk", expired: true, gone: true, reach: func(f *fixture) string {
		id := reachFailed(f)
		f.shrinkAll()
		return id
	}},
}

func reachSucceeded(f *fixture) string {
	f.Helper()
	a := f.running("k1")
	f.finish(a, onejob.OutcomeSucceeded)
	return f.wantJob(a.JobID, onejob.JobSucceeded).ID
}

func reachFailed(f *fixture) string {
	f.Helper()
	a := f.running("k1")
	f.finish(a, onejob.OutcomeRefused)
	return f.wantJob(a.JobID, onejob.JobFailed).ID
}

func conflicting() []promise {
	all := []promise{
		{name: "Conflict/AnotherKind", test: conflictOver(func(p *onejob.JobCreateParams) { p.Kind = "refund" })},
		{name: "Conflict/AnotherTarget", test: conflictOver(func(p *onejob.JobCreateParams) { p.Target = "b" })},
		{name: "Conflict/AnotherInput", test: conflictOver(withInput("other"))},
		{name: "Conflict/NeverTellsWhatDiffers", test: testConflictTellsNothing},
		{name: "Conflict/LeavesTheFirstAlone", test: testConflictLeavesFirst},
		{name: "Conflict/IsWrittenDown", test: testConflictIsWrittenDown},
	}
	for _, s := range situations {
		all = append(all,
			promise{name: "Conflict/While" + s.name, test: func(f *fixture) {
				id := s.reach(f)
				for range 2 {
					f.submit(f.intent("k1")) // whose answer may be kept somewhere
					e := f.wantError(f.submit(f.intent("k1", withInput("other"))).Err, onejob.CodeKeyConflict)
					if e.JobID != id {
						f.Errorf("the conflict names job %q; want %q", e.JobID, id)
					}
				}
			}},
			promise{name: "Repeat/While" + s.name, test: func(f *fixture) {
				testRepeatIn(f, s.reach(f), s.expired, s.gone)
			}},
		)
	}
	return all
}

func conflictOver(change func(*onejob.JobCreateParams)) func(*fixture) {
	return func(f *fixture) {
		f.create("k1")
		f.wantCode(f.submit(f.intent("k1", change)).Err, onejob.CodeKeyConflict)
	}
}

// testRepeatIn repeats the intent of a job: a replay, or 410 for ever, and never a
// second job.
func testRepeatIn(f *fixture, id string, expired, gone bool) {
	r := f.submit(f.intent("k1"))
	switch {
	case expired:
		if e := f.wantError(r.Err, onejob.CodeKeyExpired); e.JobID != id {
			f.Errorf("410 names job %q; want %q", e.JobID, id)
		}
	default:
		f.noError(r.Err)
		if !r.Existed || r.Job.ID != id {
			f.Errorf("the repeat answered %s, existed %t; want %s, true", r.Job.ID, r.Existed, id)
		}
	}
	if _, err := f.lookup(id, owner); gone {
		f.wantCode(err, onejob.CodeNotFound)
	} else {
		f.noError(err)
	}
	f.advance(100 * keyAge) // whatever the age
	again := f.submit(f.intent("k1"))
	if again.Err == nil && again.Job.ID != id {
		f.Errorf("much later the key was given job %s; want it never to be forgotten", again.Job.ID)
	}
}

func testConflictTellsNothing(f *fixture) {
	f.create("k1")
	var said []string
	for _, change := range []func(*onejob.JobCreateParams){
		withInput("other"),
		func(p *onejob.JobCreateParams) { p.Kind = "refund" },
		func(p *onejob.JobCreateParams) { p.Target = "b" },
		func(p *onejob.JobCreateParams) { p.RunAfter = time.UnixMilli(0) },
	} {
		said = append(said, f.wantError(f.submit(f.intent("k1", change)).Err, onejob.CodeKeyConflict).Message)
	}
	for _, s := range said[1:] {
		if s != said[0] {
			f.Errorf("two conflicts say %q and %q; want the same words whatever differs", said[0], s)
		}
	}
}

// A second start under one name, of something else, broke the first
// (dbos-inc/dbos-transact-ts#725).
func testConflictLeavesFirst(f *fixture) {
	a := f.running("k1")
	before := f.get(a.JobID)
	f.submit(f.intent("k1", func(p *onejob.JobCreateParams) {
		p.Kind, p.Input, p.Priority = "refund", []byte("other"), 9
		p.Policy = f.policy(func(p *onejob.Policy) { p.Effect = onejob.EffectNone })
	}))
	if after := f.get(a.JobID); !reflect.DeepEqual(before, after) {
		f.Errorf("a conflict changed the job from\n%+v\nto\n%+v", before, after)
	}
	f.finish(a, onejob.OutcomeSucceeded) // and it still ends as if nobody had asked
}

func testConflictIsWrittenDown(f *fixture) {
	job := f.create("k1")
	f.submit(f.intent("k1", withInput("other")))
	if f.eventsOf(job, onejob.EventConflicted) == 0 {
		f.Error("a conflict left no event")
	}
}
