package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
)

func parking() []promise {
	return []promise{
		{name: "Parked/AfterThreeWorkersWereLostBeforeTheMark", test: testParkStarting},
		{name: "Parked/AfterThreeWorkersWereLostAndNothingWasExecuted", test: testParkRunning},
		{name: "Parked/NotWhenTheProcessLived", test: testParkOneWorker},
		{name: "Parked/NotWhenAWorkerSpokeAfterAll", test: testParkSpoke},
		{name: "Parked/GoesOnWhenUnblocked", test: testParkUnblock},
	}
}

// loseWith claims the one job that is due with a worker of its own and loses it.
func (f *fixture) loseWith(name string, marked bool) onejob.Attempt {
	f.Helper()
	p := claimer()
	p.Worker = name
	result := f.claimWith(onejob.AttemptClaimParams{StartParams: p, Max: 1})
	if len(result.Claimed) != 1 {
		f.Fatalf("%s claimed %d attempts; want 1", name, len(result.Claimed))
	}
	a := result.Claimed[0].Attempt
	if marked {
		a = f.mark(a)
	}
	f.sweep()
	return f.attempt(a.ID)
}

// wantLost checks that an attempt says how its worker was lost.
func (f *fixture) wantLost(a onejob.Attempt) {
	f.Helper()
	if a.LeaseOverAt.IsZero() || a.Error == nil || a.Error.Code != onejob.FailureLeaseOver || !strings.Contains(a.Error.Message, a.Worker) {
		f.Errorf("the lost attempt says %v, %+v; want when, %s, and the worker", a.LeaseOverAt, a.Error, onejob.FailureLeaseOver)
	}
}

func testParkStarting(f *fixture) {
	job := f.create("k1")
	for n := range onejob.ParkAfter {
		f.wantJob(job.ID, onejob.JobQueued)
		f.wantLost(f.loseWith(fmt.Sprint("engine-", n), false))
	}
	parked := f.wantJob(job.ID, onejob.JobBlocked, onejob.BlockParked)
	for n := range onejob.ParkAfter {
		if want := fmt.Sprintf("%d with engine-%d", n+1, n); !strings.Contains(parked.Blocked.Detail, want) {
			f.Errorf("the detail is %q; want it to name attempt and worker: %q", parked.Blocked.Detail, want)
		}
	}
	f.claimNothing()
}

// rule rules an attempt that was lost with its worker not executed.
func (f *fixture) rule(a onejob.Attempt) {
	f.Helper()
	f.advance(quarantine)
	f.resolve(a, onejob.OutcomeNotExecuted)
	if ruled := f.wantAttempt(a.ID, onejob.AttemptFailed); !ruled.LeaseOverAt.Equal(a.LeaseOverAt) {
		f.Errorf("after the ruling the lease was over at %v; want %v still", ruled.LeaseOverAt, a.LeaseOverAt)
	}
}

func testParkRunning(f *fixture) {
	job := f.create("k1")
	a := f.loseWith("engine-0", true)
	f.wantLost(a)
	f.rule(a)
	b := f.loseWith("engine-1", true)
	f.advance(quarantine)
	f.probe(answer(b, onejob.OutcomeNotExecuted, absent))
	f.rule(f.loseWith("engine-2", true))
	f.wantJob(job.ID, onejob.JobBlocked, onejob.BlockParked)
}

func testParkOneWorker(f *fixture) {
	job := f.create("k1")
	for _, name := range []string{"engine-0", "engine-1", "engine-0"} {
		f.loseWith(name, false)
	}
	f.wantJob(job.ID, onejob.JobQueued)
}

func testParkSpoke(f *fixture) {
	job := f.create("k1")
	f.loseWith("engine-0", false)
	f.loseWith("engine-1", false)
	a := f.loseWith("engine-2", true)
	f.finish(a, onejob.OutcomeUnknown)
	if spoke := f.attempt(a.ID); !spoke.LeaseOverAt.IsZero() {
		f.Errorf("its worker spoke, and the attempt was still lost at %v", spoke.LeaseOverAt)
	}
	f.advance(quarantine)
	f.resolve(a, onejob.OutcomeNotExecuted)
	f.wantJob(job.ID, onejob.JobQueued)
}

func testParkUnblock(f *fixture) {
	job := f.create("k1", withPolicy(func(p *onejob.Policy) { p.PerTarget = 1 }))
	for n := range onejob.ParkAfter {
		f.loseWith(fmt.Sprint("engine-", n), false)
	}
	f.advance(time.Second)
	freed, err := f.tryUnblock(onejob.JobUnblockParams{ID: job.ID, Actor: "olga", Reason: "the memory was doubled"})
	f.noError(err)
	if freed.State != onejob.JobQueued {
		f.Fatalf("the unblocked job is %s, %+v; want queued", freed.State, freed.Blocked)
	}
	f.finish(f.mark(f.claimOne().Attempt), onejob.OutcomeSucceeded)
	f.wantJob(job.ID, onejob.JobSucceeded)
}
