package storetest

import (
	"time"

	"github.com/onejob-dev/onejob"
)

// What the gate says, by the rows there are. The job failed at a; b might take over.
func gating() []promise {
	all := []promise{
		{name: "Gate/ACertificateLetsATargetTakeOver", test: testGateCertified},
		{name: "Gate/AWaiverLetsATargetTakeOver", test: testGateWaived},
		{name: "Gate/AContractAloneOpensNothing", test: testGateDeclaredAlone},
		{name: "Gate/ADeclarationStandsInForAFallback", test: testGateDeclared},
		{name: "Gate/ADeclarationNeverStandsInForARace", test: testGateDeclaredRace},
		{name: "Gate/ACertificateOrWaiverLetsATargetRace", test: testGateRace},
		{name: "Gate/AJobKeepsTheContractItWasCreatedWith", test: testGatePinned},
		{name: "Gate/TheFirstTargetStandsInForNobody", test: testGateFirst},
		{name: "Gate/ASecondAttemptNeedsTheVerdictAnew", test: testGateRepeat},
		{name: "Gate/TheButtonIsRefusedWithTheReason", test: testGateButton},
		{name: "Gate/TheFirstTargetThatMayTakesOver", test: testGateNext},
		{name: "Gate/NothingTakesOverByItselfWithAutomaticOff", test: testGateManual},
		{name: "Gate/OnUncertifiedFailEndsTheJob", test: testGateFail},
		{name: "Gate/OnUncertifiedManualWaitsForTheButton", test: testGateAwaitsButton},
		{name: "Gate/AnEffectWithoutProofComesFirst", test: testGateUnproven},
		{name: "Gate/IsReadForPeople", test: testGateRead},
		{name: "Gate/ABlockedJobGoesOnOnceATargetIsCertified", test: testGateFreed},
		{name: "Gate/ABlockedJobTellsTheReasonOfNow", test: testGateReasonChanges},
		{name: "Gate/AnExpiredCertificateStaysExpired", test: testGateNoWayBack},
	}
	for _, r := range refusals() {
		all = append(all, promise{name: "Gate/Refuses" + r.name, test: func(f *fixture) { testGateRefuses(f, r) }})
	}
	return all
}

// refusal is a world in which b may not take over, and why.
type refusal struct {
	name   string
	reason string
	detail string
	about  bool // the candidate names the certificate
	pair   bool // the contract has an equivalence section
	world  func(f *fixture) onejob.Certificate
}

func refusals() []refusal {
	return []refusal{
		{name: "WithoutACertificate", reason: onejob.GateNoCertificate, world: func(*fixture) (c onejob.Certificate) { return c }},
		{name: "AnExpiredOne", reason: onejob.GateExpired, about: true, world: func(f *fixture) onejob.Certificate {
			c := f.certify("b")
			f.advance(certificateIn)
			return c
		}},
		{name: "OneSuspendedByDrift", reason: onejob.GateSuspendedDrift, detail: "the model is now med-2", about: true, world: func(f *fixture) onejob.Certificate {
			c := f.certify("b")
			f.end(driftOf("b"))
			return c
		}},
		{name: "OneSuspendedByViolations", reason: onejob.GateSuspendedViolations, detail: "fenced", about: true, world: func(f *fixture) onejob.Certificate {
			c := f.certify("b")
			f.observe(outputs("b", 50, 3, 40))
			return c
		}},
		{name: "ARevokedOne", reason: onejob.GateNoCertificate, about: true, world: func(f *fixture) onejob.Certificate {
			c := f.certify("b")
			f.end(revocationOf(c.ID))
			return c
		}},
		{name: "AfterAContractEdit", reason: onejob.GateContractChanged, world: func(f *fixture) (c onejob.Certificate) {
			run := runOf("b")
			run.ContractDigest = otherContract
			f.noError(f.records().ContractPut(f.Context(), contractVersion(contract, "charge")))
			f.verify(run, onejob.RunCertified)
			return c
		}},
		{name: "AfterATargetEdit", reason: onejob.GateTargetChanged, world: func(f *fixture) (c onejob.Certificate) {
			run := runOf("b")
			run.TargetDigest = "v1:target-b-before"
			f.verify(run, onejob.RunCertified)
			return c
		}},
		{name: "AnotherKindsContract", reason: onejob.GateNoCertificate, world: func(f *fixture) (c onejob.Certificate) {
			run := runOf("b")
			run.ContractDigest, run.Kind = "v1:refund", "refund"
			f.noError(f.records().ContractPut(f.Context(), contractVersion(contract, "charge")))
			f.verify(run, onejob.RunCertified)
			return c
		}},
		{name: "AnotherEnvironment", reason: onejob.GateNoCertificate, world: func(f *fixture) (c onejob.Certificate) {
			run := runOf("b")
			run.Environment = ""
			f.verify(run, onejob.RunCertified)
			return c
		}},
		{name: "AnotherTarget", reason: onejob.GateNoCertificate, world: func(f *fixture) (c onejob.Certificate) {
			f.certify("c")
			return c
		}},
		{name: "AnInconclusiveRun", reason: onejob.GateInconclusive, about: true, world: func(f *fixture) onejob.Certificate {
			return f.verify(runOf("b"), onejob.RunInconclusive)
		}},
		{name: "ARefusedRunAfterACertificate", reason: onejob.GateRefused, detail: "schema_nonce", about: true, world: func(f *fixture) onejob.Certificate {
			f.certify("b")
			return f.verify(runOf("b"), onejob.RunRefused)
		}},
		{name: "WithoutAPair", reason: onejob.GatePairNotEquivalent, about: true, pair: true, world: func(f *fixture) onejob.Certificate {
			return f.certify("b")
		}},
		{name: "APairThatIsNotEquivalent", reason: onejob.GatePairNotEquivalent, about: true, pair: true, world: func(f *fixture) onejob.Certificate {
			return f.certify("b", equivalent(false))
		}},
		{name: "APairThatIsOver", reason: onejob.GatePairNotEquivalent, about: true, pair: true, world: func(f *fixture) onejob.Certificate {
			c := f.certify("b", equivalent(true))
			f.extend(c, c.ExpiresAt.Add(time.Hour))
			f.advance(certificateIn)
			return f.certificate(c.ID)
		}},
		{name: "APairWithAnotherPrimary", reason: onejob.GatePairNotEquivalent, about: true, pair: true, world: func(f *fixture) onejob.Certificate {
			return f.certify("b", equivalent(true), func(p *onejob.RunFinishParams) { p.Pair.PrimaryDigest = digestOf("c") })
		}},
		{name: "AWaiverThatIsOver", reason: onejob.GateNoCertificate, world: func(f *fixture) (c onejob.Certificate) {
			f.waive("b", time.Minute)
			f.advance(time.Minute)
			return c
		}},
		{name: "ARevokedWaiver", reason: onejob.GateNoCertificate, world: func(f *fixture) (c onejob.Certificate) {
			w := f.waive("b", time.Hour)
			_, err := f.records().WaiverRevoke(f.Context(), w.ID, "otto")
			f.noError(err)
			return c
		}},
		{name: "AWaiverOfAnotherDigest", reason: onejob.GateNoCertificate, world: func(f *fixture) (c onejob.Certificate) {
			f.waive("b", time.Hour, func(w *onejob.Waiver) { w.TargetDigest = "v1:target-b-before" })
			f.waive("b", time.Hour, func(w *onejob.Waiver) { w.ContractDigest = otherContract })
			f.waive("b", time.Hour, func(w *onejob.Waiver) { w.Environment = "staging" })
			f.waive("c", time.Hour)
			return c
		}},
	}
}

func testGateRefuses(f *fixture, r refusal) {
	f.useGate(nil)
	about := r.world(f)
	job := f.refusedAtA("k1", withTerms(func(c *onejob.ContractTerms) { c.Pair = r.pair }))
	want := onejob.Candidate{Target: "b", Reason: r.reason, Detail: r.detail}
	if r.about {
		want.CertificateID = about.ID
	}
	if r.reason == onejob.GateExpired {
		want.ExpiredAt = about.ExpiresAt
	}
	f.wantCandidates(job.ID, want)
	if len(job.Attempts) != 1 {
		f.Errorf("the job has %d attempts; want 1", len(job.Attempts))
	}
	f.claimNothing()

	button := f.tryStart(buttonOf(job.ID, "click", "b"))
	e := f.wantError(button.Err, onejob.CodeFailoverNotCertified)
	if e.Reason != r.reason || e.Contract != contract || e.TargetDigest != digestOf("b") || e.JobID != job.ID {
		f.Errorf("the button was refused with %+v; want the reason %s, contract and target", e, r.reason)
	}
	if changed := f.decide(); len(changed) != 0 {
		f.Errorf("with nothing changed the job was decided again: %v", changed)
	}
}

// wantTakeover checks that the next attempt is at b, and what let it start.
func (f *fixture) wantTakeover(certificate, waiver string) onejob.Attempt {
	f.Helper()
	a := f.claimOne().Attempt
	if a.Target != "b" || a.CertificateID != certificate || a.WaiverID != waiver {
		f.Fatalf("the attempt is at %s by certificate %q and waiver %q; want b, %q, %q", a.Target, a.CertificateID, a.WaiverID, certificate, waiver)
	}
	if kept := f.attempt(a.ID); kept.CertificateID != certificate || kept.WaiverID != waiver {
		f.Fatalf("the attempt keeps certificate %q and waiver %q", kept.CertificateID, kept.WaiverID)
	}
	return a
}

func testGateCertified(f *fixture) {
	c := f.certify("b", equivalent(true))
	job := f.refusedAtA("k1", withTerms(func(c *onejob.ContractTerms) { c.Pair = true }))
	a := f.mark(f.wantTakeover(c.ID, ""))
	f.finish(a, onejob.OutcomeSucceeded)
	f.wantJob(job.ID, onejob.JobSucceeded)
}

func testGateWaived(f *fixture) {
	f.verify(runOf("b"), onejob.RunRefused)
	w := f.waive("b", time.Hour)
	f.refusedAtA("k1", withTerms(func(c *onejob.ContractTerms) { c.Pair = true }))
	f.mark(f.wantTakeover("", w.ID))
}

func testGateDeclaredAlone(f *fixture) {
	f.certify("b")
	f.useGate(func(terms *onejob.GateTerms) { terms.Targets = nil }) // nobody knows what b is
	f.wantCandidates(f.refusedAtUnknown().ID, onejob.Candidate{Target: "b", Reason: onejob.GateNoCertificate})
}

// refusedAtUnknown is refusedAtA with the gate as it is.
func (f *fixture) refusedAtUnknown() *onejob.Job {
	f.Helper()
	a := f.running("k1", contracted("a", "b"))
	f.finish(a, onejob.OutcomeRefused)
	return f.get(a.JobID)
}

func declared(p *onejob.JobCreateParams) {
	p.Policy.Failover, p.Policy.FailoverWhy = onejob.FailoverDeclared, "same account"
}

func testGateDeclared(f *fixture) {
	f.verify(runOf("b"), onejob.RunRefused)
	f.refusedAtA("k1", declared)
	f.mark(f.wantTakeover("", ""))
}

func racingPair(p *onejob.JobCreateParams) { p.Policy.Lanes = 2 }

func testGateDeclaredRace(f *fixture) {
	f.useGate(nil)
	plainly := f.running("k1", contracted("a", "b"), racingPair, declared, withPolicy(func(p *onejob.Policy) { p.Contract = nil }))
	contracted := f.running("k2", contracted("a", "b"), racingPair, declared)
	for _, a := range []onejob.Attempt{plainly, contracted} {
		e := f.wantError(f.tryStart(laneOf(a.JobID, 1, "b")).Err, onejob.CodeAttemptUnresolved)
		if e.Reason != onejob.GateNoCertificate {
			f.Errorf("the race was refused with the reason %q; want no_certificate", e.Reason)
		}
	}
}

func testGateRace(f *fixture) {
	w := f.waive("c", time.Hour)
	c := f.certify("b")
	job := f.running("k1", contracted("a", "b", "c"), func(p *onejob.JobCreateParams) { p.Policy.Lanes = 3 }).JobID
	b := f.start(laneOf(job, 1, ""))
	second := f.start(laneOf(job, 2, ""))
	if b.Target != "b" || b.CertificateID != c.ID || second.Target != "c" || second.WaiverID != w.ID {
		f.Errorf("the lanes are %+v and %+v; want b by its certificate and c by its waiver", b, second)
	}
	f.mark(b)
	f.mark(second)
	manual := f.running("k2", contracted("a", "b"), racingPair, withTerms(func(c *onejob.ContractTerms) { c.Manual = true })).JobID
	if e := f.wantError(f.tryStart(laneOf(manual, 1, "b")).Err, onejob.CodeAttemptUnresolved); e.Reason != onejob.GateAutomaticOff {
		f.Errorf("the race was refused with the reason %q; want automatic_off", e.Reason)
	}
}

// An edit of the contract after a job was created is not the job's business.
func testGatePinned(f *fixture) {
	c := f.certify("b")
	before := f.running("k1", contracted("a", "b"))
	edited := runOf("b")
	edited.ContractDigest = otherContract
	f.verify(edited, onejob.RunRefused)
	after := f.running("k2", contracted("a", "b"), withTerms(func(c *onejob.ContractTerms) { c.Digest = otherContract }))
	f.finish(before, onejob.OutcomeRefused)
	f.finish(after, onejob.OutcomeRefused)
	if a := f.wantTakeover(c.ID, ""); a.JobID != before.JobID {
		f.Errorf("the job of the edited contract went on")
	}
	f.wantJob(after.JobID, onejob.JobBlocked, onejob.BlockFailoverNotCertified)
}

func testGateFirst(f *fixture) {
	f.useGate(nil)
	first := f.create("k1", contracted("a", "b"), func(p *onejob.JobCreateParams) { p.Target = "b" })
	a := f.claimOne().Attempt
	if a.Target != "b" || a.CertificateID != "" {
		f.Fatalf("the first attempt is at %s by %q; want b, which was asked for", a.Target, a.CertificateID)
	}
	f.finish(f.mark(a), onejob.OutcomeRefused, withNext(onejob.NextAgain))
	if again := f.claimAgain(); again.Target != "b" {
		f.Errorf("the second attempt is at %s; want b", again.Target)
	} else {
		f.finish(again, onejob.OutcomeRefused)
	}
	f.wantCandidates(first.ID, onejob.Candidate{Target: "a", Reason: onejob.GateNoCertificate})
}

// What let the first attempt at a fallback target start lets no second one start.
func testGateRepeat(f *fixture) {
	c := f.certify("b")
	job := f.refusedAtA("k1")
	f.finish(f.mark(f.wantTakeover(c.ID, "")), onejob.OutcomeRefused, withNext(onejob.NextAgain))
	again := f.verify(runOf("b"), onejob.RunCertified)
	f.finish(f.claimAgainBy(again.ID), onejob.OutcomeRefused, withNext(onejob.NextAgain))
	f.end(driftOf("b"))
	f.advance(onejob.DefaultBackoffMax + time.Second)
	f.claimNothing()
	f.wantCandidates(job.ID, onejob.Candidate{
		Target: "b", Reason: onejob.GateSuspendedDrift, Detail: "the model is now med-2", CertificateID: again.ID,
	})
}

func (f *fixture) claimAgainBy(certificate string) onejob.Attempt {
	f.Helper()
	f.advance(onejob.DefaultBackoffMax + time.Second)
	return f.mark(f.wantTakeover(certificate, ""))
}

func testGateButton(f *fixture) {
	c := f.verify(runOf("b"), onejob.RunRefused)
	job := f.refusedAtA("k1")
	e := f.wantError(f.tryStart(buttonOf(job.ID, "click", "b")).Err, onejob.CodeFailoverNotCertified)
	if len(e.Candidates) != 1 || e.Candidates[0].CertificateID != c.ID || e.Candidates[0].Detail != "schema_nonce" {
		f.Errorf("the refusal names the candidates %+v", e.Candidates)
	}
	if want := "b is not certified for charge: refused_by_verification (schema_nonce)"; e.Message != want {
		f.Errorf("the refusal says %q; want %q", e.Message, want)
	}
	w := f.waive("b", time.Hour)
	if a := f.start(buttonOf(job.ID, "click", "b")); a.WaiverID != w.ID || a.Target != "b" {
		f.Errorf("the attempt is at %s by waiver %q; want b by %q", a.Target, a.WaiverID, w.ID)
	}
}

func testGateNext(f *fixture) {
	c := f.certify("c")
	f.refusedAtA("k1", contracted("a", "b", "c"))
	if a := f.claimOne().Attempt; a.Target != "c" || a.CertificateID != c.ID {
		f.Errorf("the attempt is at %s by %q; want c by its certificate", a.Target, a.CertificateID)
	}
}

func testGateManual(f *fixture) {
	c := f.certify("b")
	job := f.refusedAtA("k1", contracted("a", "b", "c"), withTerms(func(c *onejob.ContractTerms) { c.Manual, c.OnUncertified = true, onejob.UncertifiedFail }))
	f.wantCandidates(job.ID,
		onejob.Candidate{Target: "b", Reason: onejob.GateAutomaticOff, CertificateID: c.ID},
		onejob.Candidate{Target: "c", Reason: onejob.GateNoCertificate},
	)
	f.claimNothing()
	if a := f.start(buttonOf(job.ID, "click", "b")); a.CertificateID != c.ID {
		f.Errorf("the button started an attempt by certificate %q; want %q", a.CertificateID, c.ID)
	}
	f.refusedAtA("k2", declared, withTerms(func(c *onejob.ContractTerms) { c.Manual = true }))
	f.claimNothing()
}

func testGateFail(f *fixture) {
	f.useGate(nil)
	f.verify(runOf("b"), onejob.RunRefused)
	a := f.running("k1", contracted("a", "b", "c"), withTerms(func(c *onejob.ContractTerms) { c.OnUncertified = onejob.UncertifiedFail }))
	f.finish(a, onejob.OutcomeRefused)
	job := f.wantJob(a.JobID, onejob.JobFailed)
	want := "no target is certified to take over: b: refused_by_verification, c: no_certificate"
	if job.Error == nil || job.Error.Code != onejob.FailureNotCertified || job.Error.Message != want {
		f.Errorf("the job failed with %+v; want %s: %s", job.Error, onejob.FailureNotCertified, want)
	}
}

func testGateAwaitsButton(f *fixture) {
	job := f.refusedAtA("k1", withTerms(func(c *onejob.ContractTerms) { c.OnUncertified = onejob.UncertifiedManual }))
	f.wantCandidates(job.ID, onejob.Candidate{Target: "b", Reason: onejob.GateNoCertificate})
	c := f.certify("b")
	f.decide()
	f.wantCandidates(job.ID, onejob.Candidate{Target: "b", Reason: onejob.GateAutomaticOff, CertificateID: c.ID})
	f.claimNothing()
	f.start(buttonOf(job.ID, "click", "b"))

	f.refusedAtA("k2", withTerms(func(c *onejob.ContractTerms) { c.OnUncertified = onejob.UncertifiedManual }))
	f.wantTakeover(c.ID, "") // it never wanted for one
}

// No certificate says anything about what may have happened already.
func testGateUnproven(f *fixture) {
	f.certify("b")
	a := f.running("k1", contracted("a", "b"), withPolicy(func(p *onejob.Policy) { p.Effect = onejob.EffectExternal }))
	f.finish(a, onejob.OutcomeExecutedFailed)
	f.wantJob(a.JobID, onejob.JobBlocked, onejob.BlockFailoverUnproven)
	e := f.wantError(f.tryStart(buttonOf(a.JobID, "click", "b")).Err, onejob.CodeFailoverNotCertified)
	if e.Reason != string(onejob.BlockFailoverUnproven) {
		f.Errorf("the button was refused with the reason %q; want %s", e.Reason, onejob.BlockFailoverUnproven)
	}
	b := f.unknown("k2", contracted("a", "b"))
	f.wantCode(f.tryStart(buttonOf(b.JobID, "click2", "b")).Err, onejob.CodeAttemptUnresolved)
}

func testGateRead(f *fixture) {
	c, w := f.certify("b"), f.waive("c", time.Hour)
	policy := f.intent("k1", contracted("a", "b", "c", "d")).Policy
	got, err := f.recordsOf(f.s).GateRead(f.Context(), policy, "a")
	f.noError(err)
	if len(got) != 3 || !got["b"].Allowed || got["b"].CertificateID != c.ID || !got["c"].Allowed || got["c"].WaiverID != w.ID ||
		got["d"].Allowed || got["d"].Reason != onejob.GateNoCertificate {
		f.Errorf("the gate says %+v", got)
	}
	policy.Contract = nil
	got, err = f.recordsOf(f.s).GateRead(f.Context(), policy, "a")
	f.noError(err)
	if got["b"].Allowed || got["b"].Reason != onejob.GateNoCertificate {
		f.Errorf("without a contract the gate says %+v", got)
	}
}

func testGateFreed(f *fixture) {
	certified, waived := f.refusedAtA("k1"), f.refusedAtA("k2", contracted("a", "c"))
	paired := f.refusedAtA("k3", contracted("a", "d"), withTerms(func(c *onejob.ContractTerms) { c.Pair = true }))
	if changed := f.decide(); len(changed) != 0 {
		f.Fatalf("with nothing changed the jobs were decided again: %v", changed)
	}
	f.certify("b")
	f.waive("c", time.Hour)
	f.certify("d", equivalent(true))
	if changed := f.decide(); len(changed) != 3 {
		f.Errorf("%d jobs were decided again; want 3", len(changed))
	}
	for _, job := range []*onejob.Job{certified, waived, paired} {
		f.wantJob(job.ID, onejob.JobQueued)
	}
	if n := len(f.claimWith(onejob.AttemptClaimParams{StartParams: claimer("b", "c", "d"), Max: 10}).Claimed); n != 3 {
		f.Errorf("%d attempts were claimed; want 3", n)
	}
}

func testGateReasonChanges(f *fixture) {
	job := f.refusedAtA("k1")
	c := f.verify(runOf("b"), onejob.RunRefused)
	if changed := f.decide(); len(changed) != 1 {
		f.Errorf("the job was not decided again")
	}
	f.wantCandidates(job.ID, onejob.Candidate{Target: "b", Reason: onejob.GateRefused, Detail: "schema_nonce", CertificateID: c.ID})
	if got := f.get(job.ID).Blocked.Since; !got.Equal(job.Blocked.Since) {
		f.Errorf("it is blocked since %s; want %s", got, job.Blocked.Since)
	}
}

// Only the database's clock is asked, and what it once found over is over: a claim
// under an earlier one finds nothing.
func testGateNoWayBack(f *fixture) {
	c := f.certify("b", func(p *onejob.RunFinishParams) { p.TTL = time.Hour })
	job := f.refusedAtA("k1")
	f.wantJob(job.ID, onejob.JobQueued)
	f.advance(time.Hour)
	f.claimNothing() // it was queued for b while that was certified
	f.wantCandidates(job.ID, onejob.Candidate{Target: "b", Reason: onejob.GateExpired, CertificateID: c.ID, ExpiredAt: c.ExpiresAt})
	f.extend(c, c.ExpiresAt.Add(time.Hour))
	f.decide()
	f.wantJob(job.ID, onejob.JobBlocked, onejob.BlockFailoverNotCertified)
}
