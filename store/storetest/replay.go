package storetest

import (
	"context"
	"sync"
	"time"

	"github.com/onejob-dev/onejob"
)

// announced is the announcement that an attempt's bytes are about to be sent once more.
func announced(a onejob.Attempt) onejob.ProbeRecordParams {
	return onejob.ProbeRecordParams{
		Ref: refOf(a), Method: onejob.ProbeReplay, Detail: "sending the same bytes", After: time.Minute, SendWithin: sendWithin,
	}
}

// The person who rules right after a replay rules about bytes that may still arrive.
func testReplayQuarantine(f *fixture) {
	a := f.unknown("k1")
	f.advance(quarantine + time.Second)
	before := f.attempt(a.ID)
	f.probe(announced(a))
	got := f.wantAttempt(a.ID, onejob.AttemptUnknown)
	at := f.probesOf(a)[0].At
	if d := got.SendBy.Sub(at); d < sendWithin || d > sendWithin+time.Millisecond {
		f.Errorf("the replay must be out %s after it was announced; want %s", d, sendWithin)
	}
	if moved, quarantined := got.SendBy.Sub(before.SendBy), got.QuarantineUntil.Sub(before.QuarantineUntil); moved != quarantined {
		f.Errorf("send_by moved by %s and the quarantine by %s; want the same", moved, quarantined)
	}
	r := f.tryResolve(rulingOf(a, onejob.OutcomeNotExecuted))
	if e := f.wantError(r.Err, onejob.CodeQuarantined); e != nil && e.RetryAfter <= 0 {
		f.Errorf("the ruling is refused without saying when to come back")
	}
	if r := f.probe(answer(a, onejob.OutcomeNotExecuted, absent)); r.State != onejob.AttemptUnknown {
		f.Errorf("an absence right after the replay answers %+v; want it to resolve nothing", r)
	}
	f.advance(quarantine + time.Second)
	f.resolve(a, onejob.OutcomeNotExecuted)
	f.wantAttempt(a.ID, onejob.AttemptFailed)
}

func testReplayUndeclared(f *fixture) {
	p := markOf(f.starting("k1"))
	p.Pins.MaxExecution = 0
	a, err := f.tryMark(p)
	f.noError(err)
	f.finish(a, onejob.OutcomeUnknown)
	f.advance(time.Hour)
	f.probe(announced(a))
	got := f.wantAttempt(a.ID, onejob.AttemptUnknown)
	if !got.QuarantineUntil.IsZero() || !got.SendBy.After(a.SendBy.Add(time.Hour-time.Minute)) {
		f.Errorf("the attempt has send_by %s, quarantine %s; want a later send_by than %s, and still none", got.SendBy, got.QuarantineUntil, a.SendBy)
	}
	f.wantCode(f.tryResolve(rulingOf(a, onejob.OutcomeNotExecuted, acknowledged)).Err, onejob.CodeQuarantined)
}

func acknowledged(p *onejob.AttemptResolveParams) { p.AcknowledgeRisk = true }

func testReplayRefused(f *fixture) {
	refused := func(a onejob.Attempt, code onejob.Code) {
		f.Helper()
		before := f.attempt(a.ID)
		results, err := f.probes().ProbeRecord(f.Context(), []onejob.ProbeRecordParams{announced(a)})
		f.noError(err)
		f.wantCode(results[0].Err, code)
		if after := f.attempt(a.ID); !after.SendBy.Equal(before.SendBy) || !after.QuarantineUntil.Equal(before.QuarantineUntil) || len(f.probesOf(a)) != 0 {
			f.Errorf("the refused replay left send_by %s, quarantine %s and %d probes; want nothing changed", after.SendBy, after.QuarantineUntil, len(f.probesOf(a)))
		}
	}
	refused(f.accepted("k1"), onejob.CodeAttemptNotUnknown)
	refused(f.running("k2"), onejob.CodeAttemptNotUnknown)
	cancelled := f.unknown("k3")
	f.cancel(cancelled.JobID)
	refused(cancelled, onejob.CodeJobTerminal)
	ended := f.unknown("k4")
	f.resolve(ended, onejob.OutcomeSucceeded)
	refused(ended, onejob.CodeAttemptTerminal)
}

// Whoever comes first keeps the other out: bytes that are about to leave, or the
// word of a person that nothing happened.
func testReplayBesideRuling(f *fixture) {
	for i := range 8 {
		a := f.unknown("k" + string(rune('0'+i)))
		f.advance(quarantine + time.Second)
		var sent onejob.AttemptFinishResult
		var ruled onejob.AttemptResolveResult
		var wg sync.WaitGroup
		wg.Go(func() {
			p, _ := f.handle(0).(onejob.ProbeStore)
			r, err := p.ProbeRecord(context.WithoutCancel(f.Context()), []onejob.ProbeRecordParams{announced(a)})
			if err != nil {
				f.Errorf("ProbeRecord: %v", err)
				return
			}
			sent = r[0]
		})
		wg.Go(func() {
			r, err := f.handle(1).AttemptResolve(context.WithoutCancel(f.Context()), []onejob.AttemptResolveParams{rulingOf(a, onejob.OutcomeNotExecuted)})
			if err != nil {
				f.Errorf("AttemptResolve: %v", err)
				return
			}
			ruled = r[0]
		})
		wg.Wait()
		if (sent.Err == nil) == (ruled.Err == nil) {
			f.Fatalf("the replay was answered %v and the ruling %v; want exactly one of them to be refused", sent.Err, ruled.Err)
		}
		f.cancel(a.JobID) // so that the next round finds nothing to claim
	}
}
