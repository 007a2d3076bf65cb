package storetest

import "github.com/onejob-dev/onejob"

func superseding() []promise {
	return []promise{
		{name: "Supersede/AFinishedJobIsReplaced", test: testSupersede},
		{name: "Supersede/AnOpenJobIsNot", test: testSupersedeOpen},
		{name: "Supersede/NotWhileALaneIsInDoubt", test: testSupersedeInDoubt},
		{name: "Supersede/AnotherOwnersJobDoesNotExist", test: testSupersedeForeign},
		{name: "Supersede/OnlyOnce", test: testSupersedeOnce},
		{name: "Supersede/TwoInOneBatchHaveOneSuccessor", test: testSupersedeBatch},
		{name: "Supersede/ARefusalTakesNoKey", test: testSupersedeTakesNoKey},
	}
}

func instead(of string) func(*onejob.JobCreateParams) {
	return func(p *onejob.JobCreateParams) { p.Supersedes = of }
}

func testSupersede(f *fixture) {
	old := f.get(reachFailed(f))
	job := f.create("k2", instead(old.ID))
	after := f.get(old.ID)
	if job.Supersedes != old.ID || after.SupersededBy != job.ID {
		f.Errorf("the new job supersedes %q and the old is superseded by %q; want %q and %q", job.Supersedes, after.SupersededBy, old.ID, job.ID)
	}
	if after.Version != old.Version+1 || after.Revision <= old.Revision || after.State != old.State {
		f.Errorf("the old job went from version %d to %d, revision %d to %d, state %s to %s; want one more, more, the same",
			old.Version, after.Version, old.Revision, after.Revision, old.State, after.State)
	}
	if again := f.submit(f.intent("k2", instead(old.ID))); again.Err != nil || again.Job.ID != job.ID {
		f.Errorf("the repeat of a supersession answered %v; want its job", again.Err)
	}
}

func testSupersedeOpen(f *fixture) {
	for key, reach := range map[string]func(string, ...func(*onejob.JobCreateParams)) onejob.Attempt{
		"starting": f.starting, "running": f.running, "unknown": f.unknown,
	} {
		a := reach(key)
		e := f.wantError(f.submit(f.intent("after "+key, instead(a.JobID))).Err, onejob.CodeAttemptUnresolved)
		if e.JobID != a.JobID {
			f.Errorf("while %s: the refusal names job %q; want %q", key, e.JobID, a.JobID)
		}
	}
	queued := f.create("queued")
	f.wantCode(f.submit(f.intent("after queued", instead(queued.ID))).Err, onejob.CodeAttemptUnresolved)
}

func testSupersedeInDoubt(f *fixture) {
	winner, other := f.twoLanes("k1")
	f.finish(winner, onejob.OutcomeSucceeded)
	f.wantCode(f.submit(f.intent("k2", instead(winner.JobID))).Err, onejob.CodeAttemptUnresolved)
	f.finish(other, onejob.OutcomeSucceeded)
	f.create("k2", instead(winner.JobID))
}

func testSupersedeForeign(f *fixture) {
	id := reachFailed(f)
	foreign := f.submit(f.intent("k2", withOwner("bob"), instead(id)))
	f.wantCode(foreign.Err, onejob.CodeNotFound)
	if f.get(id).SupersededBy != "" {
		f.Error("another owner superseded the job")
	}
}

func testSupersedeOnce(f *fixture) {
	id := reachFailed(f)
	f.create("k2", instead(id))
	f.wantCode(f.submit(f.intent("k3", instead(id))).Err, onejob.CodeInvalidJob)
}

func testSupersedeBatch(f *fixture) {
	id := reachFailed(f)
	r := f.submitAll(f.intent("k2", instead(id)), f.intent("k3", instead(id)))
	f.noError(r[0].Err)
	f.wantCode(r[1].Err, onejob.CodeInvalidJob)
}

func testSupersedeTakesNoKey(f *fixture) {
	a := f.running("k1")
	f.wantCode(f.submit(f.intent("k2", instead(a.JobID))).Err, onejob.CodeAttemptUnresolved)
	f.create("k2", withInput("another intent"))
}
