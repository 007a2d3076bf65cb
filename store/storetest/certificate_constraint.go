package storetest

import "github.com/onejob-dev/onejob"

// Statements that a database refuses by itself, whatever program sends them.
func certificateConstraining() []promise {
	var all []promise
	for _, a := range certificateAttacks() {
		all = append(all, promise{name: "CertificateConstraint/" + a[0], test: func(f *fixture) { testCertificateAttack(f, a[1]) }})
	}
	return all
}

func certificateAttacks() [][2]string {
	return [][2]string{
		{"AContractVersionIsImmutable", "UPDATE contract_versions SET body = '{}'"},
		{"AContractVersionIsKept", "DELETE FROM contract_versions"},
		{"ATargetVersionIsImmutable", "UPDATE targets SET name = 'c'"},
		{"ATargetVersionIsKept", "DELETE FROM targets"},
		{"ARunStateIsOneOfTheKnown", "UPDATE contract_runs SET state = 'green'"},
		{"ARunThatEndedSaysWhen", "UPDATE contract_runs SET finished_at = NULL"},
		{"AnOutcomeIsOneOfTheKnown", "UPDATE contract_samples SET outcome = 'fine'"},
		{"ASampleHasARun", "UPDATE contract_samples SET run_id = 'run_none'"},
		{"AVerdictIsOneOfTheKnown", "UPDATE certificates SET verdict = 'good'"},
		{"AVerdictIsSetOnce", "UPDATE certificates SET verdict = 'certified', expires_at = issued_at WHERE verdict = 'refused'"},
		{"AStatusIsOneOfTheKnown", "UPDATE certificates SET status = 'fine'"},
		{"ALostStatusDoesNotComeBack", "UPDATE certificates SET status = 'active'"},
		{"OneVerdictStands", `INSERT INTO certificates (id, kind, contract_digest, target_digest, target_name, environment, verdict, status, sandbox,
			reason, detail, counts, bounds, observed, dropped, run_id, issued_at, expires_at, renew_at)
			SELECT id || '_2', kind, contract_digest, target_digest, target_name, environment, verdict, status, sandbox,
			reason, detail, counts, bounds, observed, dropped, run_id, issued_at, expires_at, renew_at FROM certificates WHERE status = 'active'`},
		{"ACertificateKeepsItsContract", "UPDATE certificates SET contract_digest = 'v1:other'"},
		{"ACertificateKeepsItsTarget", "UPDATE certificates SET target_digest = 'v1:other'"},
		{"ACertificateKeepsItsEnvironment", "UPDATE certificates SET environment = 'default'"},
		{"ACertificateHasAnEnd", "UPDATE certificates SET expires_at = NULL WHERE verdict = 'certified'"},
		{"ACertificateIsKept", "DELETE FROM certificates"},
		{"ARevocationIsFinal", "UPDATE certificates SET status = 'suspended' WHERE status = 'revoked'"},
		{"AWaiverKeepsItsEnd", "UPDATE waivers SET expires_at = granted_at"},
		{"AWaiverKeepsItsTarget", "UPDATE waivers SET target_digest = 'v1:other'"},
		{"ARevokedWaiverStaysSo", "UPDATE waivers SET revoked_at = NULL"},
		{"AWaiverIsKept", "DELETE FROM waivers"},
	}
}

func testCertificateAttack(f *fixture, attack string) {
	if f.Exec == nil {
		f.Skip("there is no SQL")
	}
	records := f.records()
	f.noError(records.ContractPut(f.Context(), contractVersion(contract, "charge")))
	f.noError(records.TargetPut(f.Context(), onejob.TargetVersion{Digest: digestOf("b"), Name: "b", Body: []byte(`{}`)}))
	run := f.begin(runOf("b"))
	f.noError(f.addSamples(sampleOf(run, "case-1", "resp_1"))[0])
	_, err := records.RunFinish(f.Context(), endOf(run, onejob.RunCertified, equivalent(true)))
	f.noError(err)
	f.verify(runOf("b"), onejob.RunRefused)
	f.end(revocationOf(f.certify("c").ID))
	w := f.waive("b", certificateIn)
	_, err = records.WaiverRevoke(f.Context(), w.ID, "otto")
	f.noError(err)
	f.finishClock()
	if f.Exec(attack) == nil {
		f.Errorf("the database carried out: %s", attack)
	}
}

// finishClock ends the runs that only told the time.
func (f *fixture) finishClock() {
	f.Helper()
	open, err := f.recordsOf(f.s).RunList(f.Context(), onejob.RunListParams{TargetDigest: digestOf("clock")})
	f.noError(err)
	for _, run := range open {
		_, err := f.recordsOf(f.s).RunFinish(f.Context(), endOf(run, onejob.RunInconclusive))
		f.noError(err)
	}
}
