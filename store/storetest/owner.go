package storetest

import (
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
)

func isolating() []promise {
	return []promise{
		{name: "Owner/AnothersJobIsAsIfItDidNotExist", test: testOwnerJobs},
		{name: "Owner/AnothersAttemptIsAsIfItDidNotExist", test: testOwnerAttempts},
		{name: "Owner/AnothersRowsAreInNoList", test: testOwnerLists},
		{name: "Owner/NobodyInParticularSeesAll", test: testOwnerEmpty},
	}
}

// A stranger's question about a job that exists and about one that does not are
// answered alike, word for word but for the id, and change nothing.
func testOwnerJobs(f *fixture) {
	job := f.awaitingB("k1")
	none := onejob.NewJobID(job.Part, time.UnixMilli(0))
	click := buttonOf("", "click", "b")
	click.Owner = "bob"
	for name, ask := range map[string]func(id string) error{
		"JobGet": func(id string) error {
			_, err := f.lookup(id, "bob")
			return err
		},
		"JobCancel": func(id string) error {
			_, err := f.tryCancel(onejob.JobCancelParams{ID: id, Owner: "bob"})
			return err
		},
		"JobUnblock": func(id string) error {
			_, err := f.tryUnblock(onejob.JobUnblockParams{ID: id, Owner: "bob", Reason: "try"})
			return err
		},
		"AttemptStart": func(id string) error {
			click.JobID = id
			return f.tryStart(click).Err
		},
		"JobCreate, superseding": func(id string) error {
			return f.submit(f.intent("bobs", withOwner("bob"), instead(id))).Err
		},
	} {
		f.sameRefusal(name, ask(job.ID), ask(none), job.ID, none)
	}
	if after := f.get(job.ID); after.Revision != job.Revision {
		f.Errorf("a stranger moved the revision from %d to %d", job.Revision, after.Revision)
	}
	if again := f.create("bobs", withOwner("bob")); again.Owner != "bob" { // and no key was taken
		f.Errorf("bob's job is %s's", again.Owner)
	}
}

func (f *fixture) sameRefusal(name string, foreign, missing error, id, none string) {
	f.Helper()
	a, b := f.wantError(foreign, onejob.CodeNotFound), f.wantError(missing, onejob.CodeNotFound)
	if strings.ReplaceAll(a.Message, id, none) != b.Message || (a.JobID == "") != (b.JobID == "") || (a.AttemptID == "") != (b.AttemptID == "") {
		f.Errorf("%s answers %+v for another's and %+v for none; want one answer", name, a, b)
	}
}

func testOwnerAttempts(f *fixture) {
	a := f.unknown("k1")
	none := a
	none.ID = onejob.NewAttemptID(a.JobID, a.Number)
	bobs := func(p *onejob.AttemptResolveParams) { p.Owner = "bob" }
	f.sameRefusal("AttemptResolve",
		f.tryResolve(rulingOf(a, onejob.OutcomeSucceeded, bobs)).Err,
		f.tryResolve(rulingOf(none, onejob.OutcomeSucceeded, bobs)).Err, a.ID, none.ID)
	f.wantAttempt(a.ID, onejob.AttemptUnknown)
	for _, p := range []onejob.AttemptListParams{{ID: a.ID, Owner: "bob"}, {JobID: a.JobID, Owner: "bob"}} {
		if page := f.attempts(p); len(page.Attempts) != 0 || page.More {
			f.Errorf("bob asked for %+v and got %+v; want none", p, page)
		}
	}
	f.resolve(a, onejob.OutcomeSucceeded, func(p *onejob.AttemptResolveParams) { p.Owner = owner })
}

func testOwnerLists(f *fixture) {
	f.unknown("k1")
	bobs := f.unknown("k1", withOwner("bob"))
	jobs := f.list(onejob.JobListParams{Owner: "bob"}).Jobs
	attempts := f.attempts(onejob.AttemptListParams{Owner: "bob", States: []onejob.AttemptState{onejob.AttemptUnknown}}).Attempts
	if len(jobs) != 1 || jobs[0].ID != bobs.JobID || len(attempts) != 1 || attempts[0].ID != bobs.ID {
		f.Errorf("bob's lists hold %q and %+v; want his own only", idsOf(jobs), attempts)
	}
	if page := f.list(onejob.JobListParams{Owner: "bob/sub"}); len(page.Jobs) != 0 {
		f.Errorf("a sub-owner's list holds %q; want none", idsOf(page.Jobs))
	}
}

func testOwnerEmpty(f *fixture) {
	a := f.unknown("k1", withOwner("bob"))
	if _, err := f.lookup(a.JobID, ""); err != nil {
		f.Errorf("asked for without an owner the job answers %v", err)
	}
	if n := len(f.list(onejob.JobListParams{}).Jobs); n != 1 {
		f.Errorf("the list of all owners holds %d jobs; want 1", n)
	}
	f.resolve(a, onejob.OutcomeSucceeded)
}
