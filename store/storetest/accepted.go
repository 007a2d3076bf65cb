package storetest

import (
	"time"

	"github.com/onejob-dev/onejob"
)

func testAcceptedSurvives(f *fixture) {
	a := f.accepted("k1")
	f.advance(lease + time.Hour)
	if refs := f.expired(); len(refs) != 0 {
		f.Errorf("%v are over; want none: the provider is at it", refs)
	}
	if changed := f.expire([]onejob.AttemptRef{refOf(a)}); len(changed) != 0 {
		f.Errorf("the sweep changed %v; want nothing", changed)
	}
	if got := f.wantAttempt(a.ID, onejob.AttemptRunning); got.ProviderID != "theirs-1" || got.Outcome != onejob.OutcomeAccepted {
		f.Errorf("the accepted attempt is %+v; want it as it was", got)
	}
	f.wantJob(a.JobID, onejob.JobRunning)
}

func testAcceptedAsked(f *fixture) {
	a := f.accepted("k1", askAfter(time.Hour))
	f.probe(answer(a, onejob.OutcomeAccepted))
	f.advance(time.Hour - time.Minute)
	if refs := f.ask(); len(refs) != 0 {
		f.Errorf("%v were asked about too early", refs)
	}
	f.advance(time.Minute)
	if refs := f.ask(); !refsEqual(refs, []onejob.AttemptRef{refOf(a)}) {
		f.Fatalf("%v were asked about; want the accepted attempt", refs)
	}
	got := f.wantAttempt(a.ID, onejob.AttemptUnknown)
	if got.ProviderID != "theirs-1" || got.Outcome != onejob.OutcomeUnknown {
		f.Errorf("the attempt is %+v; want it unknown, the provider's id kept", got)
	}
	f.wantJob(a.JobID, onejob.JobBlocked, onejob.BlockAttemptUnknown)
	f.wantDue(a.ID)
	f.probe(answer(a, onejob.OutcomeSucceeded))
	f.wantJob(a.JobID, onejob.JobSucceeded)
}

func testAcceptedWait(f *fixture) {
	a := f.accepted("k1", askAfter(time.Hour))
	f.advance(40 * time.Minute)
	f.finish(a, onejob.OutcomeUnknown)
	f.wantDue(a.ID)
	f.advance(20 * time.Minute)
	if refs := f.ask(); !refsEqual(refs, []onejob.AttemptRef{refOf(a)}) {
		f.Errorf("an hour after the acceptance %v were asked about; want the attempt", refs)
	}
}

func testAcceptedSettled(f *fixture) {
	a := f.accepted("k1")
	if r := f.probe(answer(a, onejob.OutcomeRefused)); r.State != onejob.AttemptFailed {
		f.Errorf("a refusal of what was accepted answers %+v; want failed", r)
	}
	b := f.accepted("k2")
	if r := f.probe(answer(b, onejob.OutcomeSucceeded)); r.State != onejob.AttemptSucceeded || r.JobState != onejob.JobSucceeded {
		f.Errorf("a success of what was accepted answers %+v; want it to win", r)
	}
}

func testAcceptedTimes(f *fixture) {
	a := f.accepted("k1", askAfter(time.Hour))
	first := f.attempt(a.ID)
	if first.AcceptedAt.IsZero() || !first.NextProbeAt.Equal(first.AcceptedAt) || !first.AskedAt.IsZero() {
		f.Errorf("accepted at %s, asked about at %s, a person at %s; want the first two at once, and no person",
			first.AcceptedAt, first.NextProbeAt, first.AskedAt)
	}
	f.advance(time.Minute)
	f.probe(answer(a, onejob.OutcomeAccepted, func(p *onejob.ProbeRecordParams) { p.ProviderID = "theirs-1" }))
	later := f.attempt(a.ID)
	if next := f.probesOf(a)[0].NextAt; !later.AcceptedAt.Equal(first.AcceptedAt) || !later.NextProbeAt.Equal(next) || next.IsZero() {
		f.Errorf("accepted at %s, asked about at %s; want still %s, and %s as the probe says", later.AcceptedAt, later.NextProbeAt, first.AcceptedAt, next)
	}
	f.advance(time.Hour)
	f.ask()
	if asked := f.attempt(a.ID); asked.AskedAt.IsZero() || asked.AskedAt.Before(later.AcceptedAt.Add(time.Hour)) {
		f.Errorf("a person was asked at %s; want an hour after %s", asked.AskedAt, later.AcceptedAt)
	}
	f.probe(answer(a, onejob.OutcomeSucceeded))
	if ended := f.attempt(a.ID); !ended.NextProbeAt.IsZero() || ended.AcceptedAt.IsZero() || ended.AskedAt.IsZero() {
		f.Errorf("when it has ended it is asked about at %s; want never, the other times kept", ended.NextProbeAt)
	}
	b := f.unknown("k2")
	f.probe(answer(b, onejob.OutcomeAccepted, func(p *onejob.ProbeRecordParams) { p.ProviderID = "theirs-2" }))
	if got := f.attempt(b.ID); got.AcceptedAt.IsZero() {
		f.Errorf("a look-up that found the work at its provider does not say since when it is known")
	}
}

func askAfter(d time.Duration) func(*onejob.JobCreateParams) {
	return withPolicy(func(p *onejob.Policy) { p.AskAfter = d })
}

func testAskOnce(f *fixture) {
	a := f.unknown("k1", askAfter(time.Hour))
	if refs := f.ask(); len(refs) != 0 {
		f.Errorf("%v were asked about at once; want to wait", refs)
	}
	f.probe(answer(a, onejob.OutcomeUnknown))
	f.advance(time.Hour)
	if refs := f.ask(); !refsEqual(refs, []onejob.AttemptRef{refOf(a)}) {
		f.Fatalf("%v were asked about; want the unknown attempt", refs)
	}
	f.advance(time.Hour)
	if refs := f.ask(); len(refs) != 0 {
		f.Errorf("%v were asked about again; want once", refs)
	}
	if n := f.eventsOf(f.get(a.JobID), onejob.EventAsked); n != 1 {
		f.Errorf("%d questions to a person were written down; want 1", n)
	}
}

func testAskAtOnce(f *fixture) {
	a := f.running("k1")
	f.sweep()
	if refs := f.ask(); !refsEqual(refs, []onejob.AttemptRef{refOf(a)}) {
		f.Errorf("%v were asked about; want the attempt whose worker was lost", refs)
	}
}

func testAskEnded(f *fixture) {
	a := f.unknown("k1")
	f.finish(a, onejob.OutcomeSucceeded)
	f.advance(time.Hour)
	if refs := f.ask(); len(refs) != 0 {
		f.Errorf("%v were asked about; want none", refs)
	}
}
