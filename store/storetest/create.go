package storetest

import "github.com/onejob-dev/onejob"

func creating() []promise {
	return []promise{
		{name: "JobCreate/ANewIntentIsAQueuedJob", test: testCreateQueues},
		{name: "JobCreate/TheSameIntentIsTheSameJob", test: testCreateReplays},
	}
}

func testCreateQueues(f *fixture) {
	job := f.create("k1")
	if job.State != onejob.JobQueued || job.NextTarget != "a" {
		f.Errorf("a new job is %s with next target %q; want queued with %q", job.State, job.NextTarget, "a")
	}
}

func testCreateReplays(f *fixture) {
	first := f.create("k1")
	again := f.submit(f.intent("k1"))
	f.noError(again.Err)
	if !again.Existed || again.Job.ID != first.ID {
		f.Errorf("the repeat answered job %s, existed %t; want %s, true", again.Job.ID, again.Existed, first.ID)
	}
}
