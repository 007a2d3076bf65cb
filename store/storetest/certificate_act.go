package storetest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/onejob-dev/onejob"
)

// This file is what verifications and people do to certificates, as one line each.

// Digests of the suite's own world. Targets are called a, b, c …
const (
	contract      = "v1:contract"
	otherContract = "v1:contract-edited"
	raceContract  = "v1:contract-of-races"
	environment   = "prod"
	certificateIn = 30 * 24 * time.Hour // the life of a certificate
)

// digestOf is a target's digest. It is edited by giving it another revision.
func digestOf(target string) string { return "v1:target-" + target }

// records is the first handle's certificates, with the gate in use on every handle.
func (f *fixture) records() onejob.CertificateStore {
	f.Helper()
	f.useGate(nil)
	return f.recordsOf(f.s)
}

func (f *fixture) recordsOf(s onejob.Store) onejob.CertificateStore {
	f.Helper()
	certificates, ok := s.(onejob.CertificateStore)
	if !ok {
		f.Skip("the store keeps no certificates")
	}
	return certificates
}

// useGate tells every handle what targets there are now.
func (f *fixture) useGate(change func(*onejob.GateTerms)) {
	f.Helper()
	terms := onejob.GateTerms{Environment: environment, Targets: map[string]string{}}
	for _, t := range []string{"a", "b", "c", "d"} {
		terms.Targets[t] = digestOf(t)
	}
	for lane := range 16 {
		t := fmt.Sprintf("t%d", lane)
		terms.Targets[t] = digestOf(t)
	}
	if change != nil {
		change(&terms)
	}
	for _, s := range f.Stores {
		f.recordsOf(s).UseGate(terms)
	}
}

func runOf(target string) onejob.VerificationRun {
	return onejob.VerificationRun{
		ContractDigest: contract, TargetDigest: digestOf(target), TargetName: target, Kind: "charge",
		Environment: environment, Trigger: "olga", Tool: "1.2.3",
	}
}

func (f *fixture) begin(r onejob.VerificationRun) onejob.VerificationRun {
	f.Helper()
	run, err := f.recordsOf(f.s).RunStart(f.Context(), r)
	f.noError(err)
	return run
}

// endOf is what a run came to.
func endOf(run onejob.VerificationRun, state onejob.RunState, change ...func(*onejob.RunFinishParams)) onejob.RunFinishParams {
	run.State, run.Calls, run.SpendMicros, run.Report = state, 7, 1234, json.RawMessage(`{"stages": []}`)
	p := onejob.RunFinishParams{Run: run, TTL: certificateIn}
	if state == onejob.RunRefused {
		p.Certificate.Reason = "schema_nonce"
	}
	for _, c := range change {
		c(&p)
	}
	return p
}

// verify runs one verification from begin to end.
func (f *fixture) verify(r onejob.VerificationRun, state onejob.RunState, change ...func(*onejob.RunFinishParams)) onejob.Certificate {
	f.Helper()
	c, err := f.recordsOf(f.s).RunFinish(f.Context(), endOf(f.begin(r), state, change...))
	f.noError(err)
	return c
}

// certify gives a target its certificate.
func (f *fixture) certify(target string, change ...func(*onejob.RunFinishParams)) onejob.Certificate {
	f.Helper()
	f.useGate(nil)
	return f.verify(runOf(target), onejob.RunCertified, change...)
}

// equivalent says how far the target agreed with a.
func equivalent(yes bool) func(*onejob.RunFinishParams) {
	return func(p *onejob.RunFinishParams) {
		p.Pair = &onejob.PairResult{PrimaryDigest: digestOf("a"), Agreed: 97, Cases: 104, SelfAgreed: 101, Equivalent: yes}
	}
}

// certifyRace certifies the targets of jobs that race, once each, and for longer than
// any clock of the suite goes.
func (f *fixture) certifyRace(names []string) {
	f.Helper()
	f.useGate(nil)
	for _, t := range names {
		if !f.certified[t] {
			run := runOf(t)
			run.ContractDigest = raceContract
			f.verify(run, onejob.RunCertified, func(p *onejob.RunFinishParams) { p.TTL = 100 * keyAge })
			f.certified[t] = true
		}
	}
}

func (f *fixture) end(p onejob.CertificateEndParams) []onejob.Certificate {
	f.Helper()
	ended, err := f.recordsOf(f.s).CertificateEnd(f.Context(), p)
	f.noError(err)
	return ended
}

func revocationOf(id string) onejob.CertificateEndParams {
	return onejob.CertificateEndParams{ID: id, Status: onejob.CertificateRevoked, Reason: "revoked", Detail: "the model misbehaves", Actor: "otto"}
}

func driftOf(target string) onejob.CertificateEndParams {
	return onejob.CertificateEndParams{
		ContractDigest: contract, TargetDigest: digestOf(target), Environment: environment,
		Status: onejob.CertificateSuspended, Reason: onejob.GateSuspendedDrift, Detail: "the model is now med-2",
	}
}

func (f *fixture) certificate(id string) onejob.Certificate {
	f.Helper()
	found, err := f.recordsOf(f.s).CertificateList(f.Context(), onejob.CertificateListParams{ID: id})
	f.noError(err)
	if len(found) != 1 {
		f.Fatalf("there are %d certificates %q; want 1", len(found), id)
	}
	return found[0]
}

// outputs are n outputs of production at a target, of which those at violations broke
// the contract.
func outputs(target string, n int, violations ...int) onejob.CertificateObserveParams {
	return onejob.CertificateObserveParams{
		ContractDigest: contract, TargetDigest: digestOf(target), Environment: environment,
		Outputs: n, Violations: violations, SuspendAfter: 2, Window: 50, Detail: "fenced",
	}
}

func (f *fixture) observe(params ...onejob.CertificateObserveParams) []onejob.Certificate {
	f.Helper()
	suspended, err := f.recordsOf(f.s).CertificateObserve(f.Context(), params)
	f.noError(err)
	return suspended
}

// now is about the database's time: that of the last thing that happened in it.
func (f *fixture) now() time.Time {
	f.Helper()
	return f.begin(runOf("clock")).StartedAt
}

func (f *fixture) waive(target string, d time.Duration, change ...func(*onejob.Waiver)) onejob.Waiver {
	f.Helper()
	f.useGate(nil)
	w := onejob.Waiver{
		Kind: "charge", ContractDigest: contract, TargetDigest: digestOf(target), TargetName: target,
		Environment: environment, Actor: "olga", Reason: "the primary is down", ExpiresAt: f.now().Add(d),
	}
	for _, c := range change {
		c(&w)
	}
	w, err := f.recordsOf(f.s).WaiverGrant(f.Context(), w)
	f.noError(err)
	return w
}

// contracted pins the contract on a job without effect that may go from one target to
// the next.
func contracted(names ...string) func(*onejob.JobCreateParams) {
	return withPolicy(func(p *onejob.Policy) {
		p.Effect, p.Targets, p.Contract = onejob.EffectNone, names, &onejob.ContractTerms{Digest: contract}
	})
}

func withTerms(change func(*onejob.ContractTerms)) func(*onejob.JobCreateParams) {
	return func(p *onejob.JobCreateParams) { change(p.Policy.Contract) }
}

// refusedAtA records a contracted job whose attempt at a was refused there.
func (f *fixture) refusedAtA(key string, change ...func(*onejob.JobCreateParams)) *onejob.Job {
	f.Helper()
	f.useGate(nil)
	a := f.running(key, append([]func(*onejob.JobCreateParams){contracted("a", "b")}, change...)...)
	f.finish(a, onejob.OutcomeRefused)
	return f.get(a.JobID)
}

// wantCandidates checks that a job is blocked for want of a certificate, and why.
func (f *fixture) wantCandidates(id string, want ...onejob.Candidate) {
	f.Helper()
	job := f.wantJob(id, onejob.JobBlocked, onejob.BlockFailoverNotCertified)
	if got := fmt.Sprintf("%+v", job.Blocked.Candidates); got != fmt.Sprintf("%+v", want) {
		f.Fatalf("the job is blocked with the candidates %s; want %+v", got, want)
	}
}

// decide decides again about blocked jobs.
func (f *fixture) decide() []onejob.JobRef {
	f.Helper()
	changed, err := f.s.JobDecide(f.Context(), 100)
	f.noError(err)
	return changed
}
