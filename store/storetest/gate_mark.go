package storetest

import (
	"time"

	"github.com/onejob-dev/onejob"
)

// What let an attempt start is looked at again before it is marked.
func gatingAgain() []promise {
	return []promise{
		{name: "GateAtTheMark/ARevocationThatCameFirstWins", test: testMarkRevoked},
		{name: "GateAtTheMark/ASuspensionThatCameFirstWins", test: testMarkSuspended},
		{name: "GateAtTheMark/ARevokedWaiverWins", test: testMarkWaiver},
		{name: "GateAtTheMark/AnEndThatCameFirstWins", test: testMarkExpired},
		{name: "GateAtTheMark/AfterItARevocationIsTooLate", test: testMarkTooLate},
		{name: "GateAtTheMark/TheJobGoesOnElsewhere", test: testMarkElsewhere},
		{name: "GateAtTheMark/ARaceIsStoppedToo", test: testMarkRace},
		{name: "GateAtTheMark/ANewVerdictDecidesAnew", test: testMarkRenewed},
		{name: "GateAtTheMark/AClaimThatMarksLooksToo", test: testMarkAtOnce},
	}
}

// forbid checks that the mark is refused, and what becomes of the attempt.
func (f *fixture) forbid(a onejob.Attempt) {
	f.Helper()
	_, err := f.tryMark(markOf(a))
	e := f.wantError(err, onejob.CodeFailoverNotCertified)
	if e.AttemptID != a.ID || e.JobID != a.JobID {
		f.Errorf("the refusal names %s of %s; want %s of %s", e.AttemptID, e.JobID, a.ID, a.JobID)
	}
	got := f.wantAttempt(a.ID, onejob.AttemptFailed)
	if got.Outcome != onejob.OutcomeNotExecuted || !got.OwnFault || got.Phase != onejob.PhaseNotSent || got.FinishedAt.IsZero() ||
		got.Error == nil || got.Error.Code != onejob.FailureCertificateRevoked || !got.MarkedAt.IsZero() {
		f.Errorf("the attempt ended as %+v; want one of our own faults, with nothing sent", got)
	}
	_, err = f.tryMark(markOf(a))
	f.wantCode(err, onejob.CodeClaimLost)
}

// startedAtB is an attempt at b under its certificate, in starting.
func (f *fixture) startedAtB(key string) (onejob.Attempt, onejob.Certificate) {
	f.Helper()
	c := f.certify("b")
	f.refusedAtA(key)
	return f.wantTakeover(c.ID, ""), c
}

func testMarkRevoked(f *fixture) {
	a, c := f.startedAtB("k1")
	f.end(revocationOf(c.ID))
	f.forbid(a)
	f.wantCandidates(a.JobID, onejob.Candidate{Target: "b", Reason: onejob.GateNoCertificate, CertificateID: c.ID})
}

func testMarkSuspended(f *fixture) {
	a, c := f.startedAtB("k1")
	f.observe(outputs("b", 2, 1, 2))
	f.forbid(a)
	f.wantCandidates(a.JobID, onejob.Candidate{Target: "b", Reason: onejob.GateSuspendedViolations, Detail: "fenced", CertificateID: c.ID})
}

func testMarkWaiver(f *fixture) {
	w := f.waive("b", time.Hour)
	job := f.refusedAtA("k1")
	a := f.wantTakeover("", w.ID)
	_, err := f.records().WaiverRevoke(f.Context(), w.ID, "otto")
	f.noError(err)
	f.forbid(a)
	f.wantCandidates(job.ID, onejob.Candidate{Target: "b", Reason: onejob.GateNoCertificate})
}

func testMarkExpired(f *fixture) {
	c := f.certify("b", func(p *onejob.RunFinishParams) { p.TTL = lease / 2 })
	w := f.waive("c", lease/2)
	f.refusedAtA("k1")
	b := f.wantTakeover(c.ID, "")
	f.refusedAtA("k2", contracted("a", "c"))
	waived := f.claimOne().Attempt
	f.advance(lease / 2)
	f.forbid(b)
	if waived.WaiverID != w.ID {
		f.Fatalf("the attempt was started by waiver %q; want %q", waived.WaiverID, w.ID)
	}
	f.forbid(waived)
}

func testMarkTooLate(f *fixture) {
	a, c := f.startedAtB("k1")
	a = f.mark(a)
	f.end(revocationOf(c.ID))
	f.wantAttempt(a.ID, onejob.AttemptRunning)
	f.finish(a, onejob.OutcomeSucceeded)
	f.wantJob(a.JobID, onejob.JobSucceeded)
}

func testMarkElsewhere(f *fixture) {
	b, c := f.certify("b"), f.certify("c")
	f.refusedAtA("k1", contracted("a", "b", "c"))
	a := f.wantTakeover(b.ID, "")
	f.end(revocationOf(b.ID))
	f.forbid(a)
	if next := f.claimOne().Attempt; next.Target != "c" || next.CertificateID != c.ID {
		f.Errorf("the job goes on at %s by %q; want c by its certificate", next.Target, next.CertificateID)
	}
}

func testMarkRace(f *fixture) {
	c := f.certify("b")
	first := f.running("k1", contracted("a", "b"), racingPair)
	lane := f.start(laneOf(first.JobID, 1, "b"))
	f.end(revocationOf(c.ID))
	f.forbid(lane)
	f.wantAttempt(first.ID, onejob.AttemptRunning)
	f.wantJob(first.JobID, onejob.JobRunning)
	f.finish(first, onejob.OutcomeSucceeded)
}

func testMarkRenewed(f *fixture) {
	a, _ := f.startedAtB("k1")
	c := f.verify(runOf("b"), onejob.RunCertified) // the first is superseded
	f.forbid(a)
	f.mark(f.wantTakeover(c.ID, ""))
}

func testMarkAtOnce(f *fixture) {
	c := f.certify("b")
	job := f.refusedAtA("k1")
	f.end(driftOf("b"))
	f.claimedMarked(0)
	f.certify("b")
	f.decide()
	f.claimedMarked(1)
	if a := f.get(job.ID).Attempts[1]; a.CertificateID == c.ID || a.CertificateID == "" || a.State != onejob.AttemptRunning {
		f.Errorf("the attempt is %s by %q; want it running by the second certificate", a.State, a.CertificateID)
	}
}

func (f *fixture) claimedMarked(want int) {
	f.Helper()
	if n := len(f.claimWith(onejob.AttemptClaimParams{StartParams: claimer(), Max: 10, Mark: true}).Claimed); n != want {
		f.Fatalf("%d attempts were claimed; want %d", n, want)
	}
}
