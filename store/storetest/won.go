package storetest

import (
	"reflect"

	"github.com/onejob-dev/onejob"
)

func winning() []promise {
	return []promise{
		{name: "AfterWin/IsWhatReadingAnswers", test: testAfterWin},
		{name: "AfterWin/IsNotToldWhenMoreHappened", test: testAfterWinMore},
	}
}

// testAfterWin: whoever waits for a job that was tried from its creation on need
// not read it again.
func testAfterWin(f *fixture) {
	bare := f.startedAt("k1")
	rich := f.startedAt("k2", func(p *onejob.JobCreateParams) {
		p.Metadata, p.Priority, p.Trace = []byte(`{"a":1}`), 7, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	})
	for _, c := range []struct {
		*onejob.Claimed
		p onejob.AttemptFinishParams
	}{
		{bare, finishOf(bare.Attempt, onejob.OutcomeSucceeded)},
		{rich, finishOf(rich.Attempt, onejob.OutcomeSucceeded, withCost(1500), func(p *onejob.AttemptFinishParams) {
			p.ProviderID, p.Evidence = "theirs-1", onejob.Evidence{Status: 200, BytesWritten: 12, Model: "m"}
		})},
	} {
		r := f.tryFinish(c.p)
		told, known := onejob.AfterWin(c.Job, &c.p, &r)
		if !known {
			f.Fatalf("a plain success of job %s answers %+v, which does not tell what the job is now", c.Job.ID, r)
		}
		read := f.get(c.Job.ID)
		if read.Input = nil; !reflect.DeepEqual(told, read) {
			f.Errorf("the job is told to be\n%+v\nand reads\n%+v", told, read)
		}
	}
}

func testAfterWinMore(f *fixture) {
	c := f.startedAt("k1")
	f.cancel(c.Job.ID) // asked for while it runs: a change that the winner has not seen
	p := finishOf(c.Attempt, onejob.OutcomeSucceeded)
	r := f.tryFinish(p)
	if told, known := onejob.AfterWin(c.Job, &p, &r); known {
		f.Errorf("the job is told to be %+v, without the cancellation that was asked for", told)
	}
	f.wantJob(c.Job.ID, onejob.JobSucceeded)
}

// startedAt records an intent whose first attempt starts, marked, in the same commit.
func (f *fixture) startedAt(key string, change ...func(*onejob.JobCreateParams)) *onejob.Claimed {
	f.Helper()
	start := claimer()
	r := f.submit(f.intent(key, append(change, func(p *onejob.JobCreateParams) { p.Start = &start })...))
	f.noError(r.Err)
	if r.Started == nil {
		f.Fatalf("the job %s was not started with its creation", r.Job.ID)
	}
	return r.Started
}
