package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/onejob-dev/onejob"
)

// What is written into the outbox, and when.
func telling() []promise {
	return []promise{
		{name: "Webhooks/ArePinnedOnTheJob", test: testWebhooksPinned},
		{name: "Webhooks/NothingIsToldBeforeTheEnd", test: testNothingBeforeTheEnd},
		{name: "Webhooks/NobodyIsToldWhoDidNotSubscribe", test: testNobodySubscribed},
		{name: "Webhooks/ASuccessIsToldOnceToEachEndpoint", test: testToldSuccess},
		{name: "Webhooks/ASuccessFoundByAProbeIsTold", test: testToldProbe},
		{name: "Webhooks/ARulingIsTold", test: testToldRuling},
		{name: "Webhooks/AFailureIsToldOnceToEachEndpoint", test: testToldFailure},
		{name: "Webhooks/ADeadlineThatPassedIsTold", test: testToldDeadline},
		{name: "Webhooks/ADeadlineThatHadPassedAtCreationIsTold", test: testToldStillborn},
		{name: "Webhooks/ACancellationIsToldOnceToEachEndpoint", test: testToldCancellation},
		{name: "Webhooks/ACancellationThatWaitedIsTold", test: testToldLateCancellation},
		{name: "Webhooks/SupersedingTellsNothingAgain", test: testToldSuperseded},
		{name: "Webhooks/ALateLoserTellsOnlyTheIncident", test: testToldLoser},
		{name: "Webhooks/ALateEffectIsToldThoughTheJobHasClosed", test: testToldLateEffect},
		{name: "Webhooks/ARulingProvenWrongTellsTheEndOnce", test: testToldReopened},
		{name: "Webhooks/OneEndpointSubscribedTwiceIsToldOnce", test: testToldTwin},
		{name: "Webhooks/UnknownIsToldOncePerEntry", test: testToldUnknown},
		{name: "Webhooks/ALostWorkerIsTold", test: testToldLostWorker},
		{name: "Webhooks/AskingAPersonIsTold", test: testToldAsked},
		{name: "Webhooks/BlockedForTheSameReasonIsToldOnce", test: testToldBlocked},
		{name: "Webhooks/EachRowOfABatchTellsItsOwn", test: testToldBatch},
		{name: "Webhooks/TwoSuccessesAtOnceTellOne", test: testToldRace, handles: 2},
	}
}

func testWebhooksPinned(f *fixture) {
	var p onejob.JobCreateParams
	hooked(&p)
	created := f.create("k1", hooked)
	for name, job := range map[string]*onejob.Job{"created": created, "read": f.get(created.ID), "repeated": f.submit(f.intent("k1", told)).Job} {
		if got, want := onejob.EncodeSubscriptions(job.Webhooks), onejob.EncodeSubscriptions(p.Webhooks); got != want {
			f.Errorf("the job that was %s has webhooks %s; want %s", name, got, want)
		}
	}
	if job := f.create("k2"); f.get(job.ID).Webhooks != nil {
		f.Errorf("a job without webhooks has %v", f.get(job.ID).Webhooks)
	}
}

func testNothingBeforeTheEnd(f *fixture) {
	job := f.create("k1", hooked)
	f.wantTold(job.ID)
	a := f.claimOne().Attempt
	f.wantTold(job.ID)
	a = f.mark(a)
	f.wantTold(job.ID)
	f.finish(a, onejob.OutcomeAccepted, func(p *onejob.AttemptFinishParams) { p.ProviderID = "theirs-1" })
	f.submit(f.intent("k1", hooked))
	f.submit(f.intent("k1", hooked, withInput("other")))
	f.wantTold(job.ID)
	f.finish(a, onejob.OutcomeSucceeded)
	f.wantTold(job.ID, both(onejob.WebhookJobSucceeded)...)
}

func testNobodySubscribed(f *fixture) {
	a := f.unknown("k1")
	f.ask()
	f.finish(a, onejob.OutcomeSucceeded)
	f.cancel(f.create("k2").ID)
	if page := f.deliveries(onejob.DeliveryListParams{}); len(page.Deliveries) != 0 {
		f.Errorf("the outbox holds %+v; nobody subscribed", page.Deliveries)
	}
}

func testToldSuccess(f *fixture) {
	a := f.running("k1", hooked)
	f.finish(a, onejob.OutcomeSucceeded)
	f.wantTold(a.JobID, both(onejob.WebhookJobSucceeded)...)
	job := f.get(a.JobID)
	for _, d := range f.deliveries(onejob.DeliveryListParams{JobID: a.JobID}).Deliveries {
		part, ok := onejob.PartOfDeliveryID(d.ID)
		if !ok || part != job.Part || d.Part != job.Part {
			f.Errorf("the delivery's id is %q in part %d; want one of part %d", d.ID, d.Part, job.Part)
		}
		if d.Owner != owner || d.State != onejob.DeliveryPending || d.Tries != 0 || d.Status != 0 || d.Error != "" || d.AttemptID != "" {
			f.Errorf("the delivery is %+v; want alice's, pending and not tried", d)
		}
		if !d.CreatedAt.Equal(job.FinishedAt) || !d.DueAt.Equal(d.CreatedAt) || !d.FinishedAt.IsZero() {
			f.Errorf("it was made at %s, due %s, finished %s; want as the job ended, at %s", d.CreatedAt, d.DueAt, d.FinishedAt, job.FinishedAt)
		}
	}
	f.finish(a, onejob.OutcomeSucceeded) // repeated
	f.wantTold(a.JobID, both(onejob.WebhookJobSucceeded)...)
}

func testToldProbe(f *fixture) {
	a := f.unknown("k1", told)
	f.probe(answer(a, onejob.OutcomeSucceeded))
	f.wantTold(a.JobID, plain+" job.succeeded")
}

func testToldRuling(f *fixture) {
	a := f.unknown("k1", told)
	f.resolve(a, onejob.OutcomeSucceeded)
	f.wantTold(a.JobID, plain+" job.succeeded")
}

func testToldFailure(f *fixture) {
	a := f.running("k1", hooked)
	f.finish(a, onejob.OutcomeRefused)
	f.wantJob(a.JobID, onejob.JobFailed)
	f.wantTold(a.JobID, both(onejob.WebhookJobFailed)...)
}

func testToldDeadline(f *fixture) {
	job := f.create("k1", told, withPolicy(func(p *onejob.Policy) { p.Deadline = time.Hour }))
	f.advance(2 * time.Hour)
	f.claim()
	f.wantJob(job.ID, onejob.JobFailed)
	f.wantTold(job.ID, plain+" job.failed")
}

func testToldStillborn(f *fixture) {
	past := f.create("clock").CreatedAt.Add(-time.Hour)
	job := f.create("k1", hooked, func(p *onejob.JobCreateParams) { p.Deadline = past })
	_, err := f.s.JobDecide(f.Context(), 10)
	f.noError(err)
	f.wantJob(job.ID, onejob.JobFailed)
	f.wantTold(job.ID, both(onejob.WebhookJobFailed)...)
}

func testToldCancellation(f *fixture) {
	job := f.create("k1", hooked)
	f.cancel(job.ID)
	f.wantTold(job.ID, both(onejob.WebhookJobCancelled)...)
	f.cancel(job.ID)
	f.wantTold(job.ID, both(onejob.WebhookJobCancelled)...)
}

func testToldLateCancellation(f *fixture) {
	a := f.running("k1", told)
	f.cancel(a.JobID)
	f.wantTold(a.JobID)
	f.finish(a, onejob.OutcomeCancelled)
	f.wantTold(a.JobID, plain+" job.cancelled")
}

func testToldSuperseded(f *fixture) {
	old := f.create("k1", told)
	f.cancel(old.ID)
	job := f.create("k2", told, instead(old.ID))
	f.wantTold(old.ID, plain+" job.cancelled")
	f.wantTold(job.ID)
	f.finish(f.mark(f.claimOne().Attempt), onejob.OutcomeSucceeded)
	f.wantTold(old.ID, plain+" job.cancelled")
	f.wantTold(job.ID, plain+" job.succeeded")
}

func testToldLoser(f *fixture) {
	a := f.ruledOut("k1", hooked)
	f.finish(f.claimAgain(), onejob.OutcomeSucceeded)
	before := append(both(onejob.WebhookJobSucceeded), asked(onejob.WebhookAttemptUnknown), asked(onejob.WebhookJobBlocked))
	f.wantTold(a.JobID, before...)
	f.finish(a, onejob.OutcomeSucceeded)
	f.wantAttempt(a.ID, onejob.AttemptDiscarded)
	f.wantTold(a.JobID, append(before, asked(onejob.WebhookDuplicateEffect))...)
	for _, d := range f.deliveries(onejob.DeliveryListParams{JobID: a.JobID}).Deliveries {
		if d.Event == onejob.WebhookDuplicateEffect && d.AttemptID != a.ID {
			f.Errorf("the incident is told of attempt %q; want %s", d.AttemptID, a.ID)
		}
	}
}

func testToldLateEffect(f *fixture) {
	a := f.unknown("k1", hooked)
	f.cancel(a.JobID)
	f.advance(quarantine + time.Second)
	f.resolve(a, onejob.OutcomeNotExecuted)
	f.wantJob(a.JobID, onejob.JobCancelled)
	f.finish(a, onejob.OutcomeSucceeded)
	f.wantTold(a.JobID, append(both(onejob.WebhookJobCancelled),
		asked(onejob.WebhookAttemptUnknown), asked(onejob.WebhookJobBlocked), asked(onejob.WebhookLateEffect))...)
}

func testToldReopened(f *fixture) {
	a := f.ruledOut("k1", told)
	f.wantTold(a.JobID)
	f.finish(a, onejob.OutcomeSucceeded)
	f.wantTold(a.JobID, plain+" job.succeeded")
}

func testToldTwin(f *fixture) {
	a := f.unknown("k1", func(p *onejob.JobCreateParams) {
		hooked(p)
		p.Webhooks = append(p.Webhooks, p.Webhooks...)
	})
	f.finish(a, onejob.OutcomeSucceeded)
	f.wantTold(a.JobID, append(both(onejob.WebhookJobSucceeded), asked(onejob.WebhookAttemptUnknown), asked(onejob.WebhookJobBlocked))...)
}

func testToldUnknown(f *fixture) {
	a := f.unknown("k1", hooked)
	want := []string{asked(onejob.WebhookAttemptUnknown), asked(onejob.WebhookJobBlocked)}
	f.wantTold(a.JobID, want...)
	for _, d := range f.deliveries(onejob.DeliveryListParams{JobID: a.JobID}).Deliveries {
		if since := f.get(a.JobID).Blocked.Since; d.AttemptID != a.ID || !d.CreatedAt.Equal(since) {
			f.Errorf("%s is told of attempt %q at %s; want %s at %s", d.Event, d.AttemptID, d.CreatedAt, a.ID, since)
		}
	}
	f.advance(time.Minute)
	f.finish(a, onejob.OutcomeUnknown) // still
	f.probe(answer(a, onejob.OutcomeUnknown))
	f.probe(answer(a, onejob.OutcomeAccepted, func(p *onejob.ProbeRecordParams) { p.ProviderID = "theirs-1" }))
	f.wantTold(a.JobID, want...)
}

func testToldLostWorker(f *fixture) {
	a := f.running("k1", hooked)
	f.sweep()
	f.wantTold(a.JobID, asked(onejob.WebhookAttemptUnknown), asked(onejob.WebhookJobBlocked))
}

func testToldAsked(f *fixture) {
	a := f.accepted("k1", hooked)
	f.wantTold(a.JobID)
	f.advance(365 * 24 * time.Hour)
	if refs := f.ask(); len(refs) != 1 {
		f.Fatalf("a person is asked about %v; want the attempt", refs)
	}
	f.ask()
	f.wantTold(a.JobID, asked(onejob.WebhookAttemptAsked), asked(onejob.WebhookAttemptUnknown), asked(onejob.WebhookJobBlocked))
}

func testToldBlocked(f *fixture) {
	job := f.blockedAtA("k1", hooked)
	want := []string{asked(onejob.WebhookJobBlocked)}
	f.wantTold(job.ID, want...)
	_, err := f.s.JobDecide(f.Context(), 10)
	f.noError(err)
	f.wantTold(job.ID, want...)
}

func testToldBatch(f *fixture) {
	const n = 50
	var params []onejob.JobCreateParams
	for i := range n {
		change := func(*onejob.JobCreateParams) {}
		if i%2 == 0 {
			change = hooked
		}
		params = append(params, f.intent(fmt.Sprintf("k%d", i), change))
	}
	f.submitAll(params...)
	r := f.claimWith(onejob.AttemptClaimParams{StartParams: claimer("a"), Max: n, Mark: true})
	var finishes []onejob.AttemptFinishParams
	outcomes := []onejob.Outcome{onejob.OutcomeSucceeded, onejob.OutcomeSucceeded, onejob.OutcomeRefused, onejob.OutcomeUnknown, onejob.OutcomeUnknown}
	for i, c := range r.Claimed {
		finishes = append(finishes, finishOf(c.Attempt, outcomes[i%len(outcomes)]))
	}
	results, err := f.s.AttemptFinish(f.Context(), finishes)
	f.noError(err)
	if len(results) != n {
		f.Fatalf("%d attempts were finished; want %d", len(results), n)
	}
	for i, c := range r.Claimed {
		f.noError(results[i].Err)
		var want []string
		switch e, ended := f.get(c.Job.ID).State.Webhook(); {
		case len(c.Job.Webhooks) == 0:
		case ended:
			want = both(e)
		default:
			want = []string{asked(onejob.WebhookAttemptUnknown), asked(onejob.WebhookJobBlocked)}
		}
		f.wantTold(c.Job.ID, want...)
	}
}

func testToldRace(f *fixture) {
	for i := range rounds() {
		first, second := f.twoLanes(fmt.Sprintf("k%d", i), hooked)
		lanes := []onejob.Attempt{first, second}
		f.race(len(lanes), func(ctx context.Context, i int, s onejob.Store) error {
			results, err := s.AttemptFinish(ctx, []onejob.AttemptFinishParams{finishOf(lanes[i], onejob.OutcomeSucceeded)})
			if err != nil {
				return err
			}
			return results[0].Err
		})
		f.wantTold(first.JobID, both(onejob.WebhookJobSucceeded)...)
	}
}
