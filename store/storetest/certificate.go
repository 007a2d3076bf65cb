package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

func certifying() []promise {
	return []promise{
		{name: "Contract/AVersionIsKeptAsItWasPut", test: testContractKept},
		{name: "Contract/TheNewestOfAKind", test: testContractNewest},
		{name: "Contract/ATargetIsKeptAsItWasPut", test: testTargetKept},
		{name: "Contract/AVersionSaysWhatItIsOf", test: testVersionRefused},
		{name: "Verification/ARunIsKeptFromBeginToEnd", test: testRunKept},
		{name: "Verification/ARunEndsOnce", test: testRunOnce},
		{name: "Verification/SamplesAreKept", test: testSamples},
		{name: "Verification/AnAnswerIsCountedOnce", test: testSampleSeen},
		{name: "Verification/ASampleIsOfARunUnderWay", test: testSampleOfNoRun},
		{name: "Verification/NothingOfItIsAJob", test: testSampleIsNoJob},
		{name: "Certificate/IsIssuedWithTheRun", test: testCertificateIssued},
		{name: "Certificate/ALaterVerdictTakesItsPlace", test: testCertificateSuperseded},
		{name: "Certificate/AnInconclusiveRunLeavesAVerdictThatStands", test: testCertificateInconclusive},
		{name: "Certificate/ListsWhatIsAskedFor", test: testCertificateList},
		{name: "Certificate/IsSuspendedOrRevoked", test: testCertificateEnd},
		{name: "Certificate/APersonsRevocationIsInTheAudit", test: testCertificateAudit},
		{name: "Certificate/ItsEndMovesOnlyOn", test: testCertificateExtend},
		{name: "Pair/TheLastOneStands", test: testPairKept},
		{name: "Waiver/IsKeptAndInTheAudit", test: testWaiverKept},
		{name: "Waiver/NeedsWhoWhyAndAnEnd", test: testWaiverRefused},
	}
}

func contractVersion(digest, kind string) onejob.ContractVersion {
	return onejob.ContractVersion{Digest: digest, Kind: kind, Body: json.RawMessage(`{"kind": "` + kind + `", "n": 1.0}`)}
}

func testContractKept(f *fixture) {
	records, want := f.records(), contractVersion(contract, "charge")
	f.noError(records.ContractPut(f.Context(), want))
	changed := want
	changed.Body = json.RawMessage(`{}`)
	f.noError(records.ContractPut(f.Context(), changed)) // one that is there already stays
	got, err := records.ContractGet(f.Context(), onejob.ContractGetParams{Digest: contract})
	f.noError(err)
	if got.Kind != "charge" || !bytes.Equal(got.Body, want.Body) || got.CreatedAt.IsZero() {
		f.Errorf("the version reads back as %+v; want %s, byte for byte", got, want.Body)
	}
	_, err = records.ContractGet(f.Context(), onejob.ContractGetParams{Digest: otherContract})
	f.wantCode(err, onejob.CodeNotFound)
}

func testContractNewest(f *fixture) {
	records := f.records()
	for _, v := range []onejob.ContractVersion{contractVersion(contract, "charge"), contractVersion("v1:refund", "refund"), contractVersion(otherContract, "charge")} {
		f.noError(records.ContractPut(f.Context(), v))
	}
	got, err := records.ContractGet(f.Context(), onejob.ContractGetParams{Kind: "charge"})
	f.noError(err)
	if got.Digest != otherContract {
		f.Errorf("the newest is %s; want %s", got.Digest, otherContract)
	}
	_, err = records.ContractGet(f.Context(), onejob.ContractGetParams{Kind: "nothing"})
	f.wantCode(err, onejob.CodeNotFound)
	for kind, want := range map[string][]string{"charge": {otherContract, contract}, "": {otherContract, "v1:refund", contract}} {
		listed, err := records.ContractList(f.Context(), kind, 10)
		f.noError(err)
		var digests []string
		for _, v := range listed {
			digests = append(digests, v.Digest)
		}
		if !slices.Equal(digests, want) {
			f.Errorf("the versions of kind %q are %q; want %q", kind, digests, want)
		}
	}
}

func testTargetKept(f *fixture) {
	records := f.records()
	want := onejob.TargetVersion{Digest: digestOf("b"), Name: "b", Body: json.RawMessage(`{"model": "med"}`)}
	f.noError(records.TargetPut(f.Context(), want))
	f.noError(records.TargetPut(f.Context(), want))
	got, err := records.TargetGet(f.Context(), want.Digest)
	f.noError(err)
	if got.Name != "b" || !bytes.Equal(got.Body, want.Body) || got.CreatedAt.IsZero() {
		f.Errorf("the target reads back as %+v; want %+v", got, want)
	}
	_, err = records.TargetGet(f.Context(), "v1:other")
	f.wantCode(err, onejob.CodeNotFound)
}

func testVersionRefused(f *fixture) {
	records := f.records()
	f.wantCode(records.ContractPut(f.Context(), onejob.ContractVersion{Digest: contract, Body: json.RawMessage(`{}`)}), onejob.CodeInvalidArgument)
	f.wantCode(records.TargetPut(f.Context(), onejob.TargetVersion{Name: "b", Body: json.RawMessage(`{}`)}), onejob.CodeInvalidArgument)
}

func testRunKept(f *fixture) {
	records := f.records()
	run := f.begin(runOf("b"))
	if run.ID == "" || run.State != onejob.RunUnderWay || run.StartedAt.IsZero() {
		f.Fatalf("the run begins as %+v", run)
	}
	c, err := records.RunFinish(f.Context(), endOf(run, onejob.RunCertified))
	f.noError(err)
	found, err := records.RunList(f.Context(), onejob.RunListParams{ID: run.ID})
	f.noError(err)
	if len(found) != 1 {
		f.Fatalf("%d runs are listed; want 1", len(found))
	}
	want := run
	want.State, want.Calls, want.SpendMicros, want.Report = onejob.RunCertified, 7, 1234, json.RawMessage(`{"stages": []}`)
	want.FinishedAt = c.IssuedAt
	if got := found[0]; !reflect.DeepEqual(got, want) {
		f.Errorf("the run reads back as %+v; want %+v", got, want)
	}
	f.advance(time.Second)
	f.begin(runOf("c"))
	all, err := records.RunList(f.Context(), onejob.RunListParams{ContractDigest: contract, Environment: environment, Limit: 10})
	f.noError(err)
	if len(all) != 2 || all[0].TargetName != "c" || all[1].Report != nil {
		f.Errorf("the list holds %+v; want c's before b's, without reports", all)
	}
}

func testRunOnce(f *fixture) {
	records := f.records()
	run := f.begin(runOf("b"))
	_, err := records.RunFinish(f.Context(), endOf(run, onejob.RunUnderWay))
	f.wantCode(err, onejob.CodeInvalidArgument)
	_, err = records.RunFinish(f.Context(), endOf(run, onejob.RunCertified, func(p *onejob.RunFinishParams) { p.TTL = 0 }))
	f.wantCode(err, onejob.CodeInvalidArgument)
	_, err = records.RunFinish(f.Context(), endOf(run, onejob.RunRefused))
	f.noError(err)
	_, err = records.RunFinish(f.Context(), endOf(run, onejob.RunCertified))
	f.wantCode(err, onejob.CodeInvalidArgument)
	_, err = records.RunFinish(f.Context(), endOf(onejob.VerificationRun{ID: "run_none"}, onejob.RunCertified))
	f.wantCode(err, onejob.CodeNotFound)
	if found, err := records.CertificateList(f.Context(), onejob.CertificateListParams{}); err != nil || len(found) != 1 {
		f.Errorf("%d certificates were issued, %v; want 1", len(found), err)
	}
}

func sampleOf(run onejob.VerificationRun, caseID, response string) onejob.VerificationSample {
	return onejob.VerificationSample{
		RunID: run.ID, CaseID: caseID, Repeat: 1, Stage: "S4", Outcome: onejob.SampleFailed, FaultClass: "fenced", Detail: "it begins with a fence",
		LatencyMS: 1900, TokensIn: 300, TokensOut: 40, CostMicros: 1100, ResponseID: response,
		Observed: json.RawMessage(`{"model": "med"}`), Output: []byte("```json\x00"),
	}
}

func (f *fixture) addSamples(samples ...onejob.VerificationSample) []error {
	f.Helper()
	errs, err := f.recordsOf(f.s).SampleAdd(f.Context(), samples)
	f.noError(err)
	if len(errs) != len(samples) {
		f.Fatalf("%d samples had %d answers", len(samples), len(errs))
	}
	return errs
}

func testSamples(f *fixture) {
	records := f.records()
	run := f.begin(runOf("b"))
	want := sampleOf(run, "case-1", "resp_1")
	for _, err := range f.addSamples(want, sampleOf(run, "case-2", "")) {
		f.noError(err)
	}
	found, err := records.SampleList(f.Context(), onejob.SampleListParams{RunID: run.ID, WithOutput: true})
	f.noError(err)
	if len(found) != 2 || found[0].At.IsZero() {
		f.Fatalf("the run has the samples %+v; want 2", found)
	}
	found[0].At = time.Time{}
	if !reflect.DeepEqual(found[0], want) {
		f.Errorf("the sample reads back as %+v; want %+v", found[0], want)
	}
	again := f.begin(runOf("b"))
	f.noError(f.addSamples(sampleOf(again, "case-1", ""))[0])
	pooled, err := records.SampleList(f.Context(), onejob.SampleListParams{ContractDigest: contract, TargetDigest: digestOf("b"), Environment: environment})
	f.noError(err)
	if len(pooled) != 3 || pooled[2].RunID != again.ID || pooled[0].Output != nil {
		f.Errorf("the pool holds %+v; want those of both runs, oldest first, without outputs", pooled)
	}
}

func testSampleSeen(f *fixture) {
	records := f.records()
	run := f.begin(runOf("b"))
	errs := f.addSamples(sampleOf(run, "case-1", "resp_1"), sampleOf(run, "case-2", "resp_1"), sampleOf(run, "case-3", ""), sampleOf(run, "case-4", ""))
	if errs[0] != nil || !errors.Is(errs[1], onejob.ErrSampleSeen) || errs[2] != nil || errs[3] != nil {
		f.Errorf("the samples were answered %v; want the second refused alone", errs)
	}
	other := f.begin(runOf("c"))
	errs = f.addSamples(sampleOf(other, "case-1", "resp_1"), sampleOf(other, "case-2", "resp_2"), sampleOf(other, "case-2", "resp_3"))
	if !errors.Is(errs[0], onejob.ErrSampleSeen) || errs[1] != nil {
		f.Errorf("another run's samples were answered %v; want the first refused: it was seen", errs)
	}
	f.wantCode(errs[2], onejob.CodeInvalidArgument)
	found, err := records.SampleList(f.Context(), onejob.SampleListParams{ContractDigest: contract, Environment: environment})
	f.noError(err)
	if len(found) != 4 {
		f.Errorf("%d samples are kept; want 4", len(found))
	}
}

func testSampleOfNoRun(f *fixture) {
	records := f.records()
	run := f.begin(runOf("b"))
	bad := sampleOf(run, "case-2", "")
	bad.Outcome = "fine"
	errs := f.addSamples(sampleOf(onejob.VerificationRun{ID: "run_none"}, "case-1", ""), bad, sampleOf(run, "case-1", ""))
	f.wantCode(errs[0], onejob.CodeNotFound)
	f.wantCode(errs[1], onejob.CodeInvalidArgument)
	f.noError(errs[2])
	_, err := records.RunFinish(f.Context(), endOf(run, onejob.RunRefused))
	f.noError(err)
	f.wantCode(f.addSamples(sampleOf(run, "case-3", ""))[0], onejob.CodeInvalidArgument)
}

// A call of a verification must never win a job, nor be seen among attempts.
func testSampleIsNoJob(f *fixture) {
	f.records()
	run := f.begin(runOf("b"))
	f.noError(f.addSamples(sampleOf(run, "case-1", "resp_1"))[0])
	f.verify(runOf("c"), onejob.RunCertified)
	page, err := f.s.JobList(f.Context(), onejob.JobListParams{Limit: 10})
	f.noError(err)
	attempts, err := f.s.AttemptList(f.Context(), onejob.AttemptListParams{Limit: 10})
	f.noError(err)
	if len(page.Jobs) != 0 || len(attempts.Attempts) != 0 {
		f.Errorf("a verification made the jobs %v and the attempts %v", page.Jobs, attempts.Attempts)
	}
	f.claimNothing()
}

func testCertificateIssued(f *fixture) {
	f.records()
	run := f.begin(runOf("b"))
	p := endOf(run, onejob.RunCertified)
	p.Certificate = onejob.Certificate{
		Sandbox: true, Counts: json.RawMessage(`{"structure":[104,0]}`), Bounds: json.RawMessage(`{"structure":0.972}`),
		Observed: onejob.Observed{Model: "med-1", Fingerprint: "fp_9a1"}, Dropped: []string{"seed"}, Detail: "at the limit",
		ContractDigest: "v1:forged", Status: onejob.CertificateRevoked,
	}
	c, err := f.recordsOf(f.s).RunFinish(f.Context(), p)
	f.noError(err)
	want := p.Certificate
	want.ID, want.RunID, want.IssuedAt = c.ID, run.ID, c.IssuedAt
	want.Kind, want.ContractDigest, want.TargetDigest, want.TargetName, want.Environment = "charge", contract, digestOf("b"), "b", environment
	want.Verdict, want.Status = onejob.RunCertified, onejob.CertificateActive
	want.ExpiresAt, want.RenewAt = c.IssuedAt.Add(certificateIn), c.IssuedAt.Add(certificateIn/2)
	if c.ID == "" || c.IssuedAt.Before(run.StartedAt) || !reflect.DeepEqual(c, want) {
		f.Errorf("the certificate is %+v; want %+v", c, want)
	}
	if got := f.certificate(c.ID); !reflect.DeepEqual(got, want) {
		f.Errorf("it reads back as %+v; want %+v", got, want)
	}
}

func (f *fixture) wantStatus(c onejob.Certificate, status onejob.CertificateStatus) {
	f.Helper()
	if got := f.certificate(c.ID); got.Status != status {
		f.Errorf("the certificate is %s; want %s", got.Status, status)
	}
}

func testCertificateSuperseded(f *fixture) {
	first := f.certify("b")
	other := f.certify("c")
	suspended := f.certify("d")
	f.end(driftOf("d"))
	refused := f.verify(runOf("b"), onejob.RunRefused)
	f.certify("d")
	f.wantStatus(first, onejob.CertificateSuperseded)
	f.wantStatus(suspended, onejob.CertificateSuperseded)
	f.wantStatus(refused, onejob.CertificateActive)
	f.wantStatus(other, onejob.CertificateActive)
	if !refused.ExpiresAt.IsZero() || !refused.RenewAt.IsZero() {
		f.Errorf("a refusal ends at %s; want never", refused.ExpiresAt)
	}
}

func testCertificateInconclusive(f *fixture) {
	certified := f.certify("b")
	f.wantStatus(f.verify(runOf("b"), onejob.RunInconclusive), onejob.CertificateSuperseded)
	f.wantStatus(certified, onejob.CertificateActive)
	f.end(driftOf("b"))
	f.verify(runOf("b"), onejob.RunInconclusive)
	f.wantStatus(certified, onejob.CertificateSuspended)

	first := f.verify(runOf("c"), onejob.RunInconclusive)
	f.wantStatus(first, onejob.CertificateActive)
	second := f.verify(runOf("c"), onejob.RunInconclusive)
	f.wantStatus(first, onejob.CertificateSuperseded)
	f.wantStatus(second, onejob.CertificateActive)
}

func testCertificateList(f *fixture) {
	b, c := f.certify("b"), f.certify("c")
	d := f.verify(runOf("d"), onejob.RunRefused)
	short := f.certify("e", func(p *onejob.RunFinishParams) { p.TTL = time.Minute })
	f.end(revocationOf(c.ID))
	f.advance(time.Hour)
	for _, tt := range []struct {
		name string
		p    onejob.CertificateListParams
		want []string
	}{
		{"all", onejob.CertificateListParams{}, []string{short.ID, d.ID, c.ID, b.ID}},
		{"of a kind", onejob.CertificateListParams{Kind: "refund"}, nil},
		{"of a target", onejob.CertificateListParams{TargetName: "b", Kind: "charge"}, []string{b.ID}},
		{"of digests", onejob.CertificateListParams{ContractDigest: contract, TargetDigest: digestOf("d")}, []string{d.ID}},
		{"elsewhere", onejob.CertificateListParams{Environment: "staging"}, nil},
		{"live", onejob.CertificateListParams{Live: true}, []string{b.ID}},
		{"the newest", onejob.CertificateListParams{Limit: 2}, []string{short.ID, d.ID}},
	} {
		found, err := f.recordsOf(f.s).CertificateList(f.Context(), tt.p)
		f.noError(err)
		var ids []string
		for _, c := range found {
			ids = append(ids, c.ID)
		}
		if got, want := slices.Sorted(slices.Values(ids)), slices.Sorted(slices.Values(tt.want)); !slices.Equal(got, want) && tt.name != "the newest" {
			f.Errorf("%s: the list holds %q; want %q", tt.name, ids, tt.want)
		}
		if len(ids) != len(tt.want) {
			f.Errorf("%s: the list holds %d; want %d", tt.name, len(ids), len(tt.want))
		}
	}
}

func testCertificateEnd(f *fixture) {
	records, b := f.records(), f.certify("b")
	if ended := f.end(driftOf("b")); len(ended) != 1 || ended[0].ID != b.ID || ended[0].Status != onejob.CertificateSuspended ||
		ended[0].Reason != onejob.GateSuspendedDrift || ended[0].Detail != "the model is now med-2" {
		f.Errorf("the end of it was answered %+v", ended)
	}
	if ended := f.end(driftOf("b")); len(ended) != 0 { // it is suspended already
		f.Errorf("a second suspension was answered %+v", ended)
	}
	if ended := f.end(revocationOf(b.ID)); len(ended) != 1 || ended[0].Status != onejob.CertificateRevoked {
		f.Errorf("the revocation of a suspended one was answered %+v", ended)
	}
	if ended := f.end(revocationOf(b.ID)); len(ended) != 0 {
		f.Errorf("a second revocation was answered %+v", ended)
	}
	f.wantStatus(b, onejob.CertificateRevoked)
	_, err := records.CertificateEnd(f.Context(), revocationOf("cert_none"))
	f.wantCode(err, onejob.CodeNotFound)
	for _, bad := range []onejob.CertificateEndParams{{Status: onejob.CertificateRevoked}, {ID: b.ID, Status: onejob.CertificateActive}} {
		_, err := records.CertificateEnd(f.Context(), bad)
		f.wantCode(err, onejob.CodeInvalidArgument)
	}
}

func testCertificateAudit(f *fixture) {
	b, c := f.certify("b"), f.certify("c")
	f.end(driftOf("c")) // the machine's own
	p := driftOf("b")
	p.Actor = "olga"
	f.end(p)
	f.end(revocationOf(b.ID))
	f.end(revocationOf(b.ID))
	f.wantEntries(onejob.InstanceOwner,
		onejob.AuditEntry{
			Actor: "olga", Action: onejob.AuditCertificateSuspend, Subject: b.ID,
			Detail: "target b for kind charge in prod: the model is now med-2",
		},
		onejob.AuditEntry{
			Actor: "otto", Action: onejob.AuditCertificateRevoke, Subject: b.ID,
			Detail: "target b for kind charge in prod: the model misbehaves",
		},
	)
	f.wantStatus(c, onejob.CertificateSuspended)
}

func (f *fixture) extend(c onejob.Certificate, until time.Time) onejob.Certificate {
	f.Helper()
	got, err := f.recordsOf(f.s).CertificateExtend(f.Context(), c.ID, until)
	f.noError(err)
	return got
}

func testCertificateExtend(f *fixture) {
	records, c := f.records(), f.certify("b")
	later := c.ExpiresAt.Add(time.Hour)
	f.advance(time.Hour)
	if got := f.extend(c, later); !got.ExpiresAt.Equal(later) || !got.RenewAt.After(c.RenewAt) {
		f.Errorf("it ends at %s and is to be renewed at %s; want %s, and later than %s", got.ExpiresAt, got.RenewAt, later, c.RenewAt)
	}
	if got := f.extend(c, c.ExpiresAt); !got.ExpiresAt.Equal(later) {
		f.Errorf("it was moved back to %s", got.ExpiresAt)
	}
	_, err := records.CertificateExtend(f.Context(), "cert_none", later)
	f.wantCode(err, onejob.CodeNotFound)
	f.advance(2 * certificateIn)
	if got := f.extend(c, later.Add(10*certificateIn)); !got.ExpiresAt.Equal(later) {
		f.Errorf("one that was over was moved to %s", got.ExpiresAt)
	}
}

func testPairKept(f *fixture) {
	records := f.records()
	f.certify("b", equivalent(true))
	f.verify(runOf("b"), onejob.RunInconclusive, equivalent(false)) // shows nothing
	pairs, err := records.PairList(f.Context(), contract, environment)
	f.noError(err)
	if len(pairs) != 1 || !pairs[0].Equivalent || pairs[0].PrimaryDigest != digestOf("a") || pairs[0].FallbackDigest != digestOf("b") ||
		pairs[0].Agreed != 97 || pairs[0].Cases != 104 || pairs[0].SelfAgreed != 101 || pairs[0].RunID == "" ||
		!pairs[0].ExpiresAt.Equal(pairs[0].IssuedAt.Add(certificateIn)) || pairs[0].Environment != environment || pairs[0].ContractDigest != contract {
		f.Errorf("the pairs are %+v", pairs)
	}
	f.certify("b", equivalent(false))
	f.certify("c", equivalent(true))
	pairs, err = records.PairList(f.Context(), contract, environment)
	f.noError(err)
	if len(pairs) != 2 || pairs[0].Equivalent || !pairs[1].Equivalent {
		f.Errorf("the pairs are %+v; want b's replaced and c's beside it", pairs)
	}
	if elsewhere, err := records.PairList(f.Context(), contract, ""); err != nil || len(elsewhere) != 0 {
		f.Errorf("in the default environment there are the pairs %+v, %v", elsewhere, err)
	}
}

func testWaiverKept(f *fixture) {
	records, w := f.records(), f.waive("b", time.Hour)
	if w.ID == "" || w.GrantedAt.IsZero() || !w.RevokedAt.IsZero() {
		f.Fatalf("the waiver is %+v", w)
	}
	over := f.waive("c", time.Minute)
	first, err := records.WaiverRevoke(f.Context(), w.ID, "otto")
	f.noError(err)
	again, err := records.WaiverRevoke(f.Context(), w.ID, "mallory")
	f.noError(err)
	if first.RevokedAt.IsZero() || !again.RevokedAt.Equal(first.RevokedAt) {
		f.Errorf("it was revoked at %s and then at %s; want the first time kept", first.RevokedAt, again.RevokedAt)
	}
	found, err := records.WaiverList(f.Context(), onejob.CertificateListParams{ID: w.ID})
	f.noError(err)
	if len(found) != 1 || !reflect.DeepEqual(found[0], first) {
		f.Errorf("it reads back as %+v; want %+v", found, first)
	}
	live, err := records.WaiverList(f.Context(), onejob.CertificateListParams{Live: true, Environment: environment})
	f.noError(err)
	if len(live) != 1 || live[0].ID != over.ID {
		f.Errorf("the live waivers are %+v; want c's", live)
	}
	_, err = records.WaiverRevoke(f.Context(), "waiv_none", "otto")
	f.wantCode(err, onejob.CodeNotFound)
	granted := func(w onejob.Waiver, target string) onejob.AuditEntry {
		return onejob.AuditEntry{
			Actor: "olga", Action: onejob.AuditWaiverGrant, Subject: w.ID,
			Detail: "target " + target + " for kind charge in prod until " + w.ExpiresAt.UTC().Format(time.RFC3339) + ": the primary is down",
		}
	}
	f.wantEntries(onejob.InstanceOwner, granted(w, "b"), granted(over, "c"), onejob.AuditEntry{
		Actor: "otto", Action: onejob.AuditWaiverRevoke, Subject: w.ID, Detail: "target b for kind charge in prod",
	})
}

func testWaiverRefused(f *fixture) {
	records := f.records()
	whole := onejob.Waiver{
		Kind: "charge", ContractDigest: contract, TargetDigest: digestOf("b"), Actor: "olga", Reason: "outage", ExpiresAt: f.now().Add(time.Hour),
	}
	for name, change := range map[string]func(*onejob.Waiver){
		"no contract": func(w *onejob.Waiver) { w.ContractDigest = "" },
		"no target":   func(w *onejob.Waiver) { w.TargetDigest = "" },
		"nobody":      func(w *onejob.Waiver) { w.Actor = "" },
		"no reason":   func(w *onejob.Waiver) { w.Reason = "" },
		"no end":      func(w *onejob.Waiver) { w.ExpiresAt = time.Time{} },
		"over":        func(w *onejob.Waiver) { w.ExpiresAt = f.now() },
	} {
		w := whole
		change(&w)
		if _, err := records.WaiverGrant(f.Context(), w); onejob.CodeOf(err) != onejob.CodeInvalidArgument {
			f.Errorf("%s: a waiver was answered %v; want it refused", name, err)
		}
	}
	f.wantEntries(onejob.InstanceOwner)
}
