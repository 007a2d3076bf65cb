package storetest

import (
	"bytes"
	"errors"
	"reflect"
	"time"

	"github.com/onejob-dev/onejob"
)

func creating() []promise {
	return []promise{
		{name: "JobCreate/ANewIntentIsAQueuedJob", test: testCreateQueues},
		{name: "JobCreate/KeepsWhatItWasGiven", test: testCreateKeeps},
		{name: "JobCreate/KeepsCopies", test: testCreateCopies},
		{name: "JobCreate/TheDeadlineCountsFromCreation", test: testCreateDeadline},
		{name: "JobCreate/ALaterRunAfterWaits", test: testCreateRunAfter},
		{name: "JobCreate/TheSameIntentIsTheSameJob", test: testCreateReplays, handles: 3},
		{name: "JobCreate/ARepeatChangesNothing", test: testRepeatChangesNothing},
		{name: "JobCreate/ARepeatIsWrittenDown", test: testRepeatIsWrittenDown},
		{name: "JobCreate/ManyRepeatsAreFewEvents", test: testRepeatsAreFewEvents},
		{name: "JobCreate/ARepeatAnswersTheResult", test: testRepeatAnswersResult},
		{name: "JobCreate/ALostAcknowledgementIsRecognised", test: testLostAcknowledgement, handles: 2},
		{name: "JobCreate/TwoOwnersShareAKey", test: testOwnersShareKey},
		{name: "JobCreate/TheFirstInABatchWins", test: testFirstInBatchWins},
		{name: "JobCreate/EachRowOfABatchIsJudgedByItself", test: testCreateBatch},
		{name: "JobCreate/ARefusalTakesNoKey", test: testRefusalTakesNoKey},
		{name: "JobCreate/AnExistingJobAnswersAheadOfARefusal", test: testExistingAheadOfRefusal},
		{name: "JobCreate/ComparesUnderTheStoredFingerprintVersion", test: testFingerprintVersion},
		{name: "JobCreate/NoRacingLaneOnAnEffect", test: testNoLaneOnEffect},
		{name: "JobCreate/StartMarksTheFirstAttempt", test: testCreateStarts},
		{name: "JobCreate/StartLeavesAJobThatIsNotDue", test: testCreateStartsNothingEarly},
		{name: "JobCreate/StartLeavesATargetItDoesNotKnow", test: testCreateStartsNothingUnknown},
		{name: "JobCreate/ARepeatStartsNothing", test: testRepeatStartsNothing},
	}
}

func testCreateQueues(f *fixture) {
	job := f.create("k1")
	if job.State != onejob.JobQueued || job.NextTarget != "a" || job.AttemptsMade != 0 || job.CompletedBy != "" {
		f.Errorf("a new job is %s, next at %q, %d attempts made; want queued, %q, 0", job.State, job.NextTarget, job.AttemptsMade, "a")
	}
}

func testCreateKeeps(f *fixture) {
	p := f.intent("k1", func(p *onejob.JobCreateParams) {
		p.Input, p.Metadata = []byte("\x00 not text \xff"), []byte(`{"order":"1"}`)
		p.Target, p.Priority, p.Trace = "b", -3, "00-trace-01"
		p.Policy = f.policy(func(y *onejob.Policy) {
			y.Effect, y.Lanes, y.Targets, y.RaceAfter = onejob.EffectNone, 2, []string{"a", "b"}, time.Second
			y.Contract = &onejob.ContractTerms{Digest: "v1:contract"}
		})
	})
	f.noError(f.submit(p).Err)
	got := f.get(p.ID)
	want := *got // whatever the store adds
	want.Part, want.ID, want.Owner, want.KeyHash, want.KeyPrefix = p.Part, p.ID, p.Owner, p.KeyHash, p.KeyPrefix
	want.Fingerprint, want.FingerprintVersion = p.Fingerprint, p.FingerprintVersion
	want.Kind, want.Input, want.Target, want.Policy = p.Kind, p.Input, p.Target, p.Policy
	want.Metadata, want.Priority, want.Trace = p.Metadata, p.Priority, p.Trace
	want.NextTarget = "b"
	if !reflect.DeepEqual(*got, want) {
		f.Errorf("the job reads back as\n%+v\nwant\n%+v", *got, want)
	}
}

func testCreateCopies(f *fixture) {
	p := f.intent("k1", withInput("first"))
	f.submit(p)
	copy(p.Input, "later")
	f.get(p.ID).Input[0] = 'X'
	if got := f.get(p.ID).Input; string(got) != "first" {
		f.Errorf("the input reads back as %q; want %q, whatever callers do to their bytes", got, "first")
	}
}

func testCreateDeadline(f *fixture) {
	job := f.create("k1", withPolicy(func(p *onejob.Policy) { p.Deadline = time.Hour }))
	if got := job.Deadline.Sub(job.CreatedAt); got != time.Hour {
		f.Errorf("the deadline is %s after creation; want 1h", got)
	}
	at := job.CreatedAt.Add(90 * time.Second).Truncate(time.Second)
	job = f.create("k2", func(p *onejob.JobCreateParams) { p.Deadline, p.Policy.Deadline = at, time.Hour })
	if !job.Deadline.Equal(at) {
		f.Errorf("the deadline is %s; want %s, which was asked for", job.Deadline, at)
	}
}

func testCreateRunAfter(f *fixture) {
	now := f.create("k1", func(p *onejob.JobCreateParams) { p.Kind = "clock" }).CreatedAt
	f.claimOne()
	at := now.Add(time.Hour).Truncate(time.Second)
	job := f.create("k2", func(p *onejob.JobCreateParams) { p.RunAfter = at })
	if job.State != onejob.JobQueued || !job.RunAfter.Equal(at) {
		f.Errorf("the job is %s, to run after %s; want queued, %s", job.State, job.RunAfter, at)
	}
	f.claimNothing()
	f.advance(time.Hour + time.Second)
	f.claimOne()
}

func testCreateReplays(f *fixture) {
	first := f.create("k1")
	for i, s := range f.Stores {
		results, err := s.JobCreate(f.Context(), []onejob.JobCreateParams{f.intent("k1")})
		f.noError(err)
		r := results[0]
		f.noError(r.Err)
		if !r.Existed || r.Job.ID != first.ID {
			f.Errorf("handle %d answered job %s, existed %t; want %s, true", i, r.Job.ID, r.Existed, first.ID)
		}
	}
}

// An upsert that touches the row changed the kind of the job that was there
// (riverqueue/river#1421).
//
// A repeat may come with other metadata and priority, which are no part of the
// intent, and with another policy, since the configuration may have changed.
func testRepeatChangesNothing(f *fixture) {
	a := f.running("k1")
	before := f.get(a.JobID)
	again := f.submit(f.intent("k1", func(p *onejob.JobCreateParams) {
		p.Metadata, p.Priority, p.Trace = []byte(`{"other":1}`), 9, "00-other-01"
		p.Policy.MaxAttempts, p.Policy.Targets = 99, []string{"z"}
	}))
	f.noError(again.Err)
	if after := f.get(a.JobID); !reflect.DeepEqual(before, after) {
		f.Errorf("a repeat changed the job from\n%+v\nto\n%+v", before, after)
	}
	if after := f.attempt(a.ID); after.State != onejob.AttemptRunning || after.ClaimToken != a.ClaimToken {
		f.Errorf("a repeat changed the attempt to %+v", after)
	}
}

func testRepeatIsWrittenDown(f *fixture) {
	job := f.create("k1")
	if n := f.eventsOf(job, onejob.EventReplayed); n != 0 {
		f.Fatalf("a creation left %d replay events; want none", n)
	}
	f.submit(f.intent("k1"))
	if f.eventsOf(job, onejob.EventReplayed) == 0 {
		f.Error("a repeat left no event; want its answer to be as durable as the first")
	}
}

func testRepeatsAreFewEvents(f *fixture) {
	job := f.create("k1")
	for hour := range 2 {
		for range 5 {
			f.submitAll(f.intent("k1"), f.intent("k1", withInput("other")), f.intent("k1"))
		}
		for _, kind := range []onejob.EventKind{onejob.EventReplayed, onejob.EventConflicted} {
			if n := f.eventsOf(job, kind); n != hour+1 {
				f.Errorf("in hour %d there are %d events that say %s; want %d, one an hour", hour+1, n, kind, hour+1)
			}
		}
		f.advance(onejob.RepeatEventInterval + time.Second)
	}
}

func testRepeatAnswersResult(f *fixture) {
	a := f.running("k1")
	f.finish(a, onejob.OutcomeSucceeded)
	again := f.submit(f.intent("k1"))
	f.noError(again.Err)
	if r := again.Job.Result; r == nil || string(r.Body) != "result of "+a.ID || r.ContentType != "text/plain" {
		f.Errorf("the repeat answered result %+v; want the winner's", r)
	}
	if again.Job.State != onejob.JobSucceeded || len(again.Job.Attempts) != 1 {
		f.Errorf("the repeat answered a %s job with %d attempts; want it as it is now", again.Job.State, len(again.Job.Attempts))
	}
}

// A creation whose commit was acknowledged to nobody must know itself again, or its
// own retry waits for it (idempot-dev/idempot-js#185).
func testLostAcknowledgement(f *fixture) {
	p := f.intent("k1")
	f.noError(f.submit(p).Err)
	f.claimOne() // and meanwhile it went on
	results, err := f.handle(1).JobCreate(f.Context(), []onejob.JobCreateParams{p})
	f.noError(err)
	r := results[0]
	f.noError(r.Err)
	if r.Existed || r.Job.ID != p.ID {
		f.Errorf("our own creation was answered with job %s, existed %t; want %s, false", r.Job.ID, r.Existed, p.ID)
	}
	if again := f.submit(f.intent("k1")); !again.Existed {
		f.Error("a repeat with another token was taken for the creation")
	}
}

func testOwnersShareKey(f *fixture) {
	alices := f.create("k1")
	bobs := f.create("k1", withOwner("bob"), withInput("other"))
	if alices.ID == bobs.ID {
		f.Fatalf("two owners with one key were given one job")
	}
	if again := f.submit(f.intent("k1", withOwner("bob"), withInput("other"))); again.Err != nil || again.Job.ID != bobs.ID {
		f.Errorf("bob's repeat answered %+v, %v; want his own job", again.Job, again.Err)
	}
}

func testFirstInBatchWins(f *fixture) {
	r := f.submitAll(f.intent("k1"), f.intent("k2"), f.intent("k1"), f.intent("k1", withInput("other")))
	f.noError(errors.Join(r[0].Err, r[1].Err, r[2].Err))
	f.wantCode(r[3].Err, onejob.CodeKeyConflict)
	if r[0].Existed || !r[2].Existed || r[0].Job.ID != r[2].Job.ID || r[1].Job.ID == r[0].Job.ID {
		f.Errorf("rows 1 and 3 existed: %t, %t, jobs %s, %s; want the first to be the job of both",
			r[0].Existed, r[2].Existed, r[0].Job.ID, r[2].Job.ID)
	}
}

func testCreateBatch(f *fixture) {
	f.create("taken")
	unreadable := f.intent("taken")
	unreadable.FingerprintVersion = 2
	unreadable.FingerprintFunc = func(int) ([]byte, error) { return nil, errors.New("no such version") }
	r := f.submitAll(
		f.intent("k1"),
		f.intent("taken", withInput("other")),
		f.intent("k2", func(p *onejob.JobCreateParams) { p.Refuse = &onejob.Error{Code: onejob.CodeQuotaExceeded} }),
		f.intent("k3", withPolicy(func(p *onejob.Policy) { p.Lanes = 2 })), // on an effect
		f.intent("k4", func(p *onejob.JobCreateParams) { p.Supersedes = "job_none" }),
		unreadable,
		f.intent("k5"),
	)
	f.noError(errors.Join(r[0].Err, r[6].Err))
	f.wantCode(r[1].Err, onejob.CodeKeyConflict)
	f.wantCode(r[2].Err, onejob.CodeQuotaExceeded)
	f.wantCode(r[4].Err, onejob.CodeNotFound)
	if r[3].Err == nil || r[5].Err == nil {
		f.Errorf("a lane on an effect answered %v, an unreadable fingerprint %v; want errors", r[3].Err, r[5].Err)
	}
	f.get(r[0].Job.ID)
	f.get(r[6].Job.ID)
}

func testRefusalTakesNoKey(f *fixture) {
	refused := f.intent("k1", func(p *onejob.JobCreateParams) {
		p.Refuse = &onejob.Error{Code: onejob.CodeInvalidJob, Message: "no such kind"}
	})
	f.wantCode(f.submit(refused).Err, onejob.CodeInvalidJob)
	f.create("k1", withInput("another intent altogether"))
}

func testExistingAheadOfRefusal(f *fixture) {
	job := f.create("k1")
	refuse := func(p *onejob.JobCreateParams) { p.Refuse = &onejob.Error{Code: onejob.CodeInvalidJob} }
	again := f.submit(f.intent("k1", refuse))
	f.noError(again.Err)
	if !again.Existed || again.Job.ID != job.ID {
		f.Errorf("the repeat answered %s, existed %t; want the job that was acknowledged", again.Job.ID, again.Existed)
	}
	f.wantCode(f.submit(f.intent("k1", withInput("other"), refuse)).Err, onejob.CodeKeyConflict)
}

func testFingerprintVersion(f *fixture) {
	first := f.create("k1")
	newer := f.intent("k1")
	newer.Fingerprint, newer.FingerprintVersion = []byte("under version 2"), 2
	asked := 0
	newer.FingerprintFunc = func(version int) ([]byte, error) {
		asked = version
		return first.Fingerprint, nil
	}
	f.noError(f.submit(newer).Err)
	if asked != 1 {
		f.Errorf("the fingerprint was asked for under version %d; want 1, the stored one", asked)
	}
	newer.FingerprintFunc = func(int) ([]byte, error) { return []byte("another intent"), nil }
	f.wantCode(f.submit(newer).Err, onejob.CodeKeyConflict)
}

func testNoLaneOnEffect(f *fixture) {
	for _, effect := range []onejob.Effect{onejob.EffectExternal, onejob.EffectIdempotent} {
		p := f.intent("k-"+string(effect), withPolicy(func(p *onejob.Policy) { p.Effect, p.Lanes = effect, 2 }))
		if r := f.submit(p); r.Err == nil {
			f.Errorf("a job with effect %s and two lanes was recorded", effect)
		}
	}
}

func testCreateStarts(f *fixture) {
	p := f.intent("k1")
	start := claimer()
	p.Start = &start
	r := f.submit(p)
	f.noError(r.Err)
	if r.Started == nil {
		f.Fatal("a job that is due was not started")
	}
	a := f.wantAttempt(r.Started.Attempt.ID, onejob.AttemptRunning)
	if a.ClaimToken == "" || a.ClaimToken != r.Started.Attempt.ClaimToken || a.MarkedAt.IsZero() || a.TargetDigest != pins.Digest {
		f.Errorf("the first attempt is %+v; want it claimed, marked and pinned", a)
	}
	if got := a.SendBy.Sub(a.MarkedAt); got != p.Policy.SendWithin {
		f.Errorf("send_by is %s after the mark; want %s", got, p.Policy.SendWithin)
	}
	if !bytes.Equal(r.Started.Job.Input, p.Input) {
		f.Errorf("the started job has input %q; want %q", r.Started.Job.Input, p.Input)
	}
	if job := f.wantJob(p.ID, onejob.JobRunning); job.AttemptsMade != 1 {
		f.Errorf("%d attempts were made; want 1", job.AttemptsMade)
	}
	f.finish(r.Started.Attempt, onejob.OutcomeSucceeded)
}

func testCreateStartsNothingEarly(f *fixture) {
	now := f.create("clock", func(p *onejob.JobCreateParams) { p.Kind = "clock" }).CreatedAt
	start := claimer()
	r := f.submit(f.intent("k1", func(p *onejob.JobCreateParams) { p.Start, p.RunAfter = &start, now.Add(time.Hour) }))
	f.noError(r.Err)
	if r.Started != nil || r.Job.State != onejob.JobQueued || len(r.Job.Attempts) != 0 {
		f.Errorf("a job for later is %s with %d attempts; want queued with none", r.Job.State, len(r.Job.Attempts))
	}
}

func testCreateStartsNothingUnknown(f *fixture) {
	start := claimer("elsewhere")
	r := f.submit(f.intent("k1", func(p *onejob.JobCreateParams) { p.Start = &start }))
	f.noError(r.Err)
	if r.Started != nil || r.Job.State != onejob.JobQueued {
		f.Errorf("a job for a target that its creator cannot call was started: %+v", r.Started)
	}
	f.claimOne()
}

func testRepeatStartsNothing(f *fixture) {
	a := f.starting("k1")
	start := claimer()
	again := f.submit(f.intent("k1", func(p *onejob.JobCreateParams) { p.Start = &start }))
	f.noError(again.Err)
	if again.Started != nil {
		f.Errorf("a repeat started attempt %s beside %s", again.Started.Attempt.ID, a.ID)
	}
}
