package main

// mutations are the guards that must hold, each taken away on every store that
// has it.
var mutations = []mutation{
	{
		name:  "slot taken twice, SQLite",
		edits: []edit{{"store/sqlite/slot.go", "AND completed_by IS NULL ", ""}},
		tests: []string{"-run", "TestStore", "./store/sqlite"},
	},
	{
		name: "slot taken twice, PostgreSQL",
		edits: []edit{
			{"store/postgres/slot.go", "AND s.completed_by IS NULL ", ""},
			{"store/postgres/success.go", "AND s.completed_by IS NULL AND s.state", "AND s.state"},
		},
		tests: []string{"-run", "TestStore/(LateSuccess|Race|AttemptFinish)", "./store/postgres"},
	},
	{
		name:  "no key constraint, SQLite",
		edits: []edit{{"store/sqlite/migration/00001_tables.sql", "UNIQUE (part, owner, key_hash)", "CHECK (true)"}},
		tests: []string{"./store/sqlite"},
	},
	{
		name:  "no in-doubt index, SQLite",
		edits: []edit{{"store/sqlite/migration/00001_tables.sql", "CREATE UNIQUE INDEX attempts_in_doubt", "CREATE INDEX attempts_in_doubt"}},
		tests: []string{"./store/sqlite"},
	},
	{
		name:  "no in-doubt index, PostgreSQL",
		edits: []edit{{"store/postgres/migration/00001_tables.sql", "CREATE UNIQUE INDEX attempts_in_doubt", "CREATE INDEX attempts_in_doubt"}},
		tests: []string{"-run", "TestStore/(Database|AttemptStart|AttemptClaim)", "./store/postgres"},
	},
	{
		name:  "blind sweep, SQLite",
		edits: []edit{{"store/sqlite/attempt_expire.go", "AND lease_expires_at <= ? AND `+needsWorker+` AND `+sources", "AND ? IS NOT NULL AND `+needsWorker+` AND `+sources"}},
		tests: []string{"./store/sqlite"},
	},
	{
		name:  "blind sweep, PostgreSQL",
		edits: []edit{{"store/postgres/expire.go", "AND a.state IN ('starting', 'running') AND a.lease_expires_at <= onejob_now()", ""}},
		tests: []string{"-run", "TestStore/AttemptExpire", "./store/postgres"},
	},
	{
		name:  "webhook before the result is durable, SQLite",
		edits: []edit{{"store/sqlite/migration/00002_triggers.sql", "WHEN NEW.hooked AND NEW.state IN ('succeeded', 'failed', 'cancelled') AND OLD.state NOT IN ('succeeded', 'failed', 'cancelled')", "WHEN NEW.hooked"}, {"store/sqlite/migration/00001_tables.sql", "event IN ('job.succeeded', 'job.failed', 'job.cancelled', 'job.blocked',", "event IN ('job.succeeded', 'job.failed', 'job.cancelled', 'job.blocked', 'job.queued', 'job.running',"}},
		tests: []string{"-run", "TestStore/Webhooks", "./store/sqlite"},
	},
	{
		name:  "webhook before the result is durable, PostgreSQL",
		edits: []edit{{"store/postgres/migration/00001_tables.sql", "    ELSIF NEW.finished_at IS NOT NULL THEN", "    ELSE"}, {"store/postgres/migration/00001_tables.sql", "event IN ('job.succeeded', 'job.failed', 'job.cancelled', 'job.blocked',", "event IN ('job.succeeded', 'job.failed', 'job.cancelled', 'job.blocked', 'job.queued', 'job.running',"}},
		tests: []string{"-run", "TestStore/Webhooks", "./store/postgres"},
	},
	{
		name:  "an end told twice, SQLite",
		edits: []edit{{"store/sqlite/migration/00001_tables.sql", "CREATE UNIQUE INDEX deliveries_one_end", "CREATE INDEX deliveries_one_end"}},
		tests: []string{"-run", "TestStore/Database", "./store/sqlite"},
	},
	{
		name:  "an end told twice, PostgreSQL",
		edits: []edit{{"store/postgres/migration/00001_tables.sql", "CREATE UNIQUE INDEX deliveries_one_end", "CREATE INDEX deliveries_one_end"}},
		tests: []string{"-run", "TestStore/Database", "./store/postgres"},
	},
	{
		name:  "a stale try recorded, SQLite",
		edits: []edit{{"store/sqlite/delivery.go", "AND tries = ? AND resent", "AND ? IS NOT NULL AND resent"}},
		tests: []string{"-run", "TestStore/DeliveryRecord", "./store/sqlite"},
	},
	{
		name:  "a stale try recorded, PostgreSQL",
		edits: []edit{{"store/postgres/delivery.go", "AND d.tries = u.tries AND d.resent", "AND d.resent"}},
		tests: []string{"-run", "TestStore/DeliveryRecord", "./store/postgres"},
	},
	{
		name:  "a try under way in the place of a resending, SQLite",
		edits: []edit{{"store/sqlite/delivery.go", "resent = resent + 1", "resent = resent"}},
		tests: []string{"-run", "TestStore/DeliveryResend", "./store/sqlite"},
	},
	{
		name:  "a try under way in the place of a resending, PostgreSQL",
		edits: []edit{{"store/postgres/delivery.go", "resent = d.resent + 1", "resent = d.resent"}},
		tests: []string{"-run", "TestStore/DeliveryResend", "./store/postgres"},
	},
	{
		name:  "purged before it was told, SQLite",
		edits: []edit{{"store/sqlite/job_purge.go", "AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.part = s.part AND d.job_id = s.job_id AND d.state = 'pending')", ""}},
		tests: []string{"-run", "TestStore/JobPurge", "./store/sqlite"},
	},
	{
		name:  "purged before it was told, PostgreSQL",
		edits: []edit{{"store/postgres/purge.go", "OR EXISTS (SELECT FROM deliveries d WHERE d.part = s.part AND d.job_id = s.job_id AND d.state = 'pending')", ""}},
		tests: []string{"-run", "TestStore/JobPurge", "./store/postgres"},
	},
	{
		name:  "a job taken over from who waits, SQLite",
		edits: []edit{{"store/sqlite/waiter.go", "OR until <= ? AND until > ?", "OR ? IS NOT NULL AND until > ?"}},
		tests: []string{"-run", "TestStore/(Waiter|Concurrent)", "./store/sqlite"},
	},
	{
		name:  "a job taken over from who waits, PostgreSQL",
		edits: []edit{{"store/postgres/waiter.go", "OR until <= onejob_now() AND until", "OR until"}},
		tests: []string{"-run", "TestStore/(Waiter|Concurrent)", "./store/postgres"},
	},
	{
		name:  "a job taken over twice, PostgreSQL",
		edits: []edit{{"store/postgres/waiter.go", "       FOR UPDATE SKIP LOCKED\n)\nUPDATE waiters w SET token = $5", ")\nUPDATE waiters w SET token = $5"}},
		tests: []string{"-run", "TestStore/Concurrent/EachRetryTakesAnotherJob", "./store/postgres"},
	},
	{
		name: "two answers shown as one, SQLite",
		edits: []edit{
			{"store/sqlite/stream.go", "c.seq = a.seq AND c.attempt = a.number AND c.number = ?1 - 1", "c.seq = a.seq AND c.number = ?1 - 1"},
			{"store/sqlite/migration/00001_tables.sql", "    FOREIGN KEY (seq, attempt, previous) REFERENCES chunks (seq, attempt, number)\n", "    CHECK (true)\n"},
		},
		tests: []string{"-run", "TestStore/(Chunk|Concurrent/OneAttemptIsShown)", "./store/sqlite"},
	},
	{
		name: "two answers shown as one, PostgreSQL",
		edits: []edit{
			{"store/postgres/stream.go", "c.job_id = a.job_id AND c.attempt = a.number AND c.number = u.number - 1", "c.job_id = a.job_id AND c.number = u.number - 1"},
			{"store/postgres/migration/00001_tables.sql", ",\n    FOREIGN KEY (part, follows, attempt, previous) REFERENCES chunks (part, job_id, attempt, number)", ""},
		},
		tests: []string{"-run", "TestStore/(Chunk|Concurrent/OneAttemptIsShown)", "./store/postgres"},
	},
	{
		name:  "a fallback after something was shown",
		edits: []edit{{"engine/stream.go", "p.Next = onejob.NextNowhere\n\t\t\tif", "p.Next = onejob.NextElsewhere\n\t\t\tif"}},
		tests: []string{"./engine"},
	},
	{
		name:  "a cut stream as a success",
		edits: []edit{{"provider/wire/outcome.go", "ends before the one that ends it\", lost", "ends before the one that ends it\", succeeded"}},
		tests: []string{"./provider/openai", "./provider/anthropic"},
	},
	{
		name:  "timeout as failed",
		edits: []edit{{"engine/try.go", "Outcome: onejob.OutcomeUnknown, Phase: phase,", "Outcome: onejob.OutcomeNotExecuted, Next: onejob.NextAgain, Phase: phase,"}},
		tests: []string{"./engine"},
	},
	{
		name:  "no mark before the wire",
		edits: []edit{{"engine/try.go", "if t.Attempt.State == onejob.AttemptRunning {", "if true {"}},
		tests: []string{"./engine"},
	},
	{
		name:  "an error proves failure",
		edits: []edit{{"engine/settle.go", "p := onejob.AttemptFinishParams{Outcome: onejob.OutcomeUnknown, Phase: onejob.PhaseSent}", "p := onejob.AttemptFinishParams{Outcome: onejob.OutcomeNotExecuted, Phase: onejob.PhaseSent}"}},
		tests: []string{"./engine"},
	},
	{
		name:  "a start beside doubt",
		edits: []edit{{"decide.go", "case AttemptUnknown:\n\t\t\tunknown = a", "case AttemptUnknown:"}},
		tests: []string{"."},
	},
	{
		name:  "no quarantine",
		edits: []edit{{"judge.go", "if now.Before(end) {", "if false {"}},
		tests: []string{"."},
	},
	{
		name:  "a replay without quarantine, SQLite",
		edits: []edit{{"store/sqlite/probe_record.go", "SET send_by = ?, quarantine_until = ?\n", "SET send_by = ?, quarantine_until = coalesce(quarantine_until, ?)\n"}},
		tests: []string{"-run", "TestStore/ProbeRecord", "./store/sqlite"},
	},
	{
		name:  "a replay without quarantine, PostgreSQL",
		edits: []edit{{"store/postgres/proberecord.go", "               + greatest(interval '0', onejob_now() + u.send_within * interval '1 microsecond' - a.send_by)\n", ""}},
		tests: []string{"-run", "TestStore/ProbeRecord", "./store/postgres"},
	},
	{
		name:  "a replay announced without its bytes",
		edits: []edit{{"engine/replay.go", "SendWithin: policy.SendWithin,", ""}},
		tests: []string{"-run", "Replay", "./engine"},
	},
	{
		name:  "a forged report believed",
		edits: []edit{{"provider/http/signature.go", "good = hmac.Equal(given, mac.Sum(nil)) || good", "good = true"}},
		tests: []string{"./provider/http"},
	},
	{
		name:  "a report at another target believed",
		edits: []edit{{"callback.go", "callback v1\\x00\" + target + \"\\x00\" + attemptID", "callback v1\\x00\" + attemptID"}},
		tests: []string{"-run", "Report|Callback", ".", "./internal/httpapi"},
	},
	{
		name:  "given up is proof of nothing done",
		edits: []edit{{"engine/ask.go", "if q.Job.CancelRequestedAt.IsZero() { // it had", "if false { // it had"}},
		tests: []string{"-run", "GivenUp", "./engine"},
	},
	{
		name:  "another response taken for ours",
		edits: []edit{{"provider/openai/responses.go", "case idOf(s) != req.ProviderID:", "case idOf(s) == \"\":"}},
		tests: []string{"./provider/openai"},
	},
	{
		name:  "probe not final",
		edits: []edit{{"engine/ask.go", "case !q.target.Reconcile.Authoritative || !q.byAttempt(p.Method):", "case !q.byAttempt(p.Method):"}},
		tests: []string{"./engine"},
	},
	{
		name:  "probe not final, provider",
		edits: []edit{{"provider/http/lookup.go", "case s.Status == http.StatusNotFound && p.opts.Lookup.Authoritative:", "case s.Status == http.StatusNotFound:"}},
		tests: []string{"./provider/http"},
	},
	{
		name:  "absence in quarantine",
		edits: []edit{{"judge_probe.go", "if a.QuarantineUntil.IsZero() || now.Before(a.QuarantineUntil) {", "if a.QuarantineUntil.IsZero() {"}},
		tests: []string{"."},
	},
	{
		name:  "retry unknown, by decision",
		edits: []edit{{"decide.go", "if unknown == nil {", "if unknown == nil || unknown.Lane == 0 {"}},
		tests: []string{"."},
	},
	{
		name: "retry unknown, by sweep, SQLite",
		edits: []edit{
			{"store/sqlite/attempt_expire.go", "THEN 'failed'       ELSE 'unknown' END", "THEN 'failed' ELSE 'failed' END"},
			{"store/sqlite/attempt_expire.go", "THEN 'not_executed' ELSE 'unknown' END", "THEN 'not_executed' ELSE 'not_executed' END"},
			{"store/sqlite/attempt_expire.go", "THEN 'again'        ELSE next      END", "THEN 'again' ELSE 'again' END"},
			{"store/sqlite/attempt_expire.go", "THEN ?                             END", "THEN ? ELSE lease_expires_at END"},
		},
		tests: []string{"-run", "TestStore/AttemptExpire", "./store/sqlite"},
	},
	{
		name: "retry unknown, by sweep, PostgreSQL",
		edits: []edit{
			{"store/postgres/expire.go", "THEN 'failed' ELSE 'unknown' END", "THEN 'failed' ELSE 'failed' END"},
			{"store/postgres/expire.go", "THEN 'not_executed' ELSE 'unknown' END", "THEN 'not_executed' ELSE 'not_executed' END"},
			{"store/postgres/expire.go", "next        = CASE a.state WHEN 'starting' THEN 'again' END", "next        = 'again'"},
			{"store/postgres/expire.go", "finished_at = CASE a.state WHEN 'starting' THEN onejob_now() END", "finished_at = onejob_now()"},
			{"store/postgres/expire.go", "probe_at    = CASE a.state WHEN 'running' THEN onejob_now() END", "probe_at    = NULL"},
			{"store/postgres/expire.go", "ask_at      = CASE a.state WHEN 'running' THEN coalesce(a.ask_at, onejob_now() + u.ask_after * interval '1 microsecond') END", "ask_at      = NULL"},
		},
		tests: []string{"-run", "TestStore/AttemptExpire", "./store/postgres"},
	},
	{
		name:  "request replayed by the transport",
		edits: []edit{{"provider/wire/exchange.go", "hr.Body = io.NopCloser(bytes.NewReader(m.Body))", "hr.Body = io.NopCloser(bytes.NewReader(m.Body))\n\t\thr.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(m.Body)), nil }"}},
		tests: []string{"./provider/wire"},
	},
	{
		name:  "a zone hides an address",
		edits: []edit{{"webhook/guard.go", `a.WithZone("").Unmap()`, "a.Unmap()"}},
		tests: []string{"-run", "TestWhatTheOperatorAllows", "./webhook"},
	},
	{
		name:  "an address is not judged when it is dialled",
		edits: []edit{{"webhook/post.go", "Control: guard.control(scheme), ", ""}},
		tests: []string{"-run", "TestANameThatChangesItsMind", "./webhook"},
	},
	{
		name:  "an empty key signs",
		edits: []edit{{"webhook/secret.go", "len(key) < minSecretBytes || ", ""}},
		tests: []string{"-run", "TestWhatIsNotGenuine", "./webhook"},
	},
	{
		name:  "a slow endpoint takes the others' room",
		edits: []edit{{"webhook/sender.go", "; room > 0 {", "; room > -1000 {"}},
		tests: []string{"-run", "TestAnEndpointThatIsSlow", "./webhook"},
	},
	{
		name:  "a try that was cut off is written down",
		edits: []edit{{"webhook/try.go", "if err != nil && ctx.Err() != nil {", "if err != nil && ctx.Err() != nil && false {"}},
		tests: []string{"-run", "TestAStopCutsOff", "./webhook"},
	},
	{
		name:  "every try makes its own body",
		edits: []edit{{"webhook/try.go", "if len(d.Body) > 0 {", "if len(d.Body) > 1<<30 {"}},
		tests: []string{"-run", "TestAnEndpointThatIsDown", "./webhook"},
	},
	{
		name:  "every claim begins with the same owner",
		edits: []edit{{"turn.go", "if c.after = t.Jobs[len(t.Jobs)-1].Owner; c.after == t.Owners[len(t.Owners)-1] {", "if true {"}},
		tests: []string{"-run", "TestTakeTurns", "."},
	},
	{
		name:  "one owner takes a whole claim, PostgreSQL",
		edits: []edit{{"store/postgres/due.go", "THEN ($2 + count(*) - 1) / greatest(count(*), 1) ELSE 1 END", "THEN $2::bigint ELSE 1 END"}},
		tests: []string{"-run", "TestStore/Claim", "./store/postgres"},
	},
	{
		name:  "restored jobs go on",
		edits: []edit{{"decide_park.go", "if d.held() {", "if false {"}},
		tests: []string{".", "./store/memory"},
	},
	{
		name:  "a restored store takes jobs, SQLite",
		edits: []edit{{"store/sqlite/migration/00002_triggers.sql", "CREATE TRIGGER jobs_unrestored BEFORE INSERT ON jobs", "CREATE TRIGGER jobs_unrestored BEFORE DELETE ON jobs"}},
		tests: []string{"-run", "TestStore/Restore", "./store/sqlite"},
	},
	{
		name:  "a restored store takes work, PostgreSQL",
		edits: []edit{{"store/postgres/migration/00001_tables.sql", "IF EXISTS (SELECT FROM store_generation WHERE restored_at IS NOT NULL) THEN", "IF false THEN"}},
		tests: []string{"-run", "TestStore/Restore", "./store/postgres"},
	},
	{
		name:  "a new connection looks at nothing",
		edits: []edit{{"store/postgres/restore.go", "case g.Number < known:", "case false:"}},
		tests: []string{"-run", "Tells", "./store/postgres"},
	},
	{
		name:  "a restored lease proves, SQLite",
		edits: []edit{{"store/sqlite/attempt_expire.go", "sources(onejob.EventLeaseOver)+` AND `+unrestored,", "sources(onejob.EventLeaseOver),"}},
		tests: []string{"-run", "TestStore/Restore", "./store/sqlite"},
	},
	{
		name:  "killers are tried for ever",
		edits: []edit{{"decide_park.go", "if len(d.attempts) < ParkAfter {", "if true {"}},
		tests: []string{".", "./store/memory"},
	},
	{
		name:  "a webhook resent that the audit does not tell, SQLite",
		edits: []edit{{"store/sqlite/delivery.go", "return x.audit(p.AuditOf(d))", "return nil"}},
		tests: []string{"-run", "TestStore/Audit", "./store/sqlite"},
	},
	{
		name:  "a restore confirmed that the audit does not tell, PostgreSQL",
		edits: []edit{{"store/postgres/restore.go", "[]onejob.AuditEntry{restored.AuditOfConfirm(actor)}, nil", "[]onejob.AuditEntry{restored.AuditOfConfirm(actor)}[:0], nil"}},
		tests: []string{"-run", "TestStore/Audit", "./store/postgres"},
	},
	{
		name:  "contract: a lucky run undoes a failure",
		edits: []edit{{"contract/pool.go", "case c.failed > 0:", "case c.failed > c.passed:"}},
		tests: []string{"./contract"},
	},
	{
		name:  "contract: repeats count as samples",
		edits: []edit{{"contract/pool.go", "\t\tdefault:\n\t\t\tt.Cases++", "\t\tdefault:\n\t\t\tt.Cases += c.passed"}},
		tests: []string{"./contract"},
	},
	{
		name:  "contract: an approximate bound decides",
		edits: []edit{{"contract/statistics.go", "return n > failures && Power(n, failures, rate) <= 1-confidence", "return n > failures && Wilson(n, failures, confidence) >= rate"}},
		tests: []string{"./contract"},
	},
	{
		name:  "contract: a duplicate name passes",
		edits: []edit{{"contract/text.go", "if _, twice := object[key]; twice {", "if _, twice := object[key]; twice && r == nil {"}},
		tests: []string{"./contract"},
	},
	{
		name:  "contract: 1200.0 is an integer",
		edits: []edit{{"contract/validate.go", "if k.output.Integers == \"literal\" {", "if k.output.Integers == \"\" {"}},
		tests: []string{"./contract"},
	},
	{
		name:  "contract: a fence is stripped",
		edits: []edit{{"contract/validate.go", "text := bytes.Trim(raw, jsonSpace)", "text := bytes.Trim(bytes.TrimPrefix(raw, []byte(\"```json\")), jsonSpace+\"`\")"}},
		tests: []string{"./contract"},
	},
	{
		name:  "contract: what follows is ignored",
		edits: []edit{{"contract/validate.go", "case len(rest) > 0:", "case len(rest) > 0 && err != nil:"}},
		tests: []string{"./contract"},
	},
	{
		name:  "contract: no answer is a yes",
		edits: []edit{{"contract/checker.go", "case err != nil:\n\t\t\tfound = append", "case err != nil && e == nil:\n\t\t\tfound = append"}, {"contract/checker.go", "case !holds:", "case err == nil && !holds:"}},
		tests: []string{"./contract"},
	},
	{
		name:  "contract: an open object lints",
		edits: []edit{{"contract/lint_schema.go", "if object[\"additionalProperties\"] != false {", "if object[\"additionalProperties\"] == true {"}},
		tests: []string{"./contract"},
	},
	{
		name:  "contract: a schema from a network",
		edits: []edit{{"contract/lint_schema.go", "return ok && (text == \"#\" || strings.HasPrefix(text, \"#/\"))", "return ok && text != \"\""}},
		tests: []string{"./contract"},
	},
	{
		name:  "contract: an expression without a bound",
		edits: []edit{{"contract/expression.go", "if estimate.Max > MaxExpressionCost {", "if estimate.Max > MaxExpressionCost && v == nil {"}},
		tests: []string{"./contract"},
	},
	{
		name:  "contract: a threshold in the digest",
		edits: []edit{{"contract/file.go", "Gates Gates `yaml:\"gates\" required:\"true\" digest:\"out\"`", "Gates Gates `yaml:\"gates\" required:\"true\" digest:\"in\"`"}},
		tests: []string{"./contract"},
	},
	{
		name:  "contract: a case out of the digest",
		edits: []edit{{"contract/digest.go", "verifiable[\"cases\"] = cases", "verifiable[\"cases\"] = len(cases)"}},
		tests: []string{"./contract"},
	},
	{
		name:  "contract: the same input twice",
		edits: []edit{{"contract/lint_assertion.go", "err == nil && first != nil {", "err != nil && first != nil {"}},
		tests: []string{"./contract"},
	},
	{
		name:  "contract: a plan that shows nothing",
		edits: []edit{{"contract/lint_plan.go", "if shows(cases, g.MaxFailures, g.MinRate, confidence) {", "if cases > 0 {"}},
		tests: []string{"./contract"},
	},
	{
		name:  "contract: a live verification of an effect",
		edits: []edit{{"contract/lint_plan.go", "if l.Verify.Mode == \"live\" {", "if l.Verify.Mode == \"\" {"}},
		tests: []string{"./contract"},
	},
	{
		name:  "no gate, SQLite",
		edits: []edit{{"gate.go", "v := judgeFacts(policy.Contract, facts, now)", "v := Verdict{Allowed: true}"}},
		tests: []string{"-run", "TestStore/Gate", "./store/sqlite"},
	},
	{
		name:  "no gate, PostgreSQL",
		edits: []edit{{"gate.go", "v := judgeFacts(policy.Contract, facts, now)", "v := Verdict{Allowed: true}"}},
		tests: []string{"-run", "TestStore/Gate", "./store/postgres"},
	},
	{
		name:  "a declaration opens a race",
		edits: []edit{{"decide_fallback.go", "d.job.Policy.Failover == FailoverDeclared && d.ask.Lane == 0", "d.job.Policy.Failover == FailoverDeclared"}},
		tests: []string{"-run", "TestStore/Gate/ADeclaration", "./store/sqlite"},
	},
	{
		name:  "a second attempt inherits what let the first start",
		edits: []edit{{"decide_again.go", "if target == d.job.firstTarget() {\n\t\treturn Verdict{Allowed: true}", "if target != \"\" {\n\t\treturn Verdict{Allowed: true}"}},
		tests: []string{"-run", "TestStore/Gate/ASecondAttempt", "./store/sqlite"},
	},
	{
		name:  "a mark that does not look at the gate, SQLite",
		edits: []edit{{"store/sqlite/attempt_mark.go", "AND `+jobGoesOn+` AND `+permitted,", "AND `+jobGoesOn+` AND ? IS NOT NULL AND ? IS NOT NULL`,"}},
		tests: []string{"-run", "TestStore/(GateAtTheMark|Concurrent/Nothing)", "./store/sqlite"},
	},
	{
		name:  "a mark that does not look at the gate, PostgreSQL",
		edits: []edit{{"store/postgres/mark.go", "AND (a.certificate_id IS NULL AND a.waiver_id IS NULL OR ` + sqlPermittedOfAttempt + `)", ""}},
		tests: []string{"-run", "TestStore/(GateAtTheMark|Concurrent/Nothing)", "./store/postgres"},
	},
	{
		name:  "an attempt that nobody keeps a certificate for, PostgreSQL",
		edits: []edit{{"store/postgres/start.go", " WHERE ` + sqlPermitted + `\n", ""}},
		tests: []string{"-run", "TestStore/Concurrent/AStartWaitsFor", "./store/postgres"},
	},
	{
		name:  "several verdicts stand, SQLite",
		edits: []edit{{"store/sqlite/migration/00001_tables.sql", "CREATE UNIQUE INDEX certificates_standing", "CREATE INDEX certificates_standing"}},
		tests: []string{"-run", "TestStore/CertificateConstraint", "./store/sqlite"},
	},
	{
		name:  "several verdicts stand, PostgreSQL",
		edits: []edit{{"store/postgres/migration/00001_tables.sql", "CREATE UNIQUE INDEX certificates_standing", "CREATE INDEX certificates_standing"}},
		tests: []string{"-run", "TestStore/CertificateConstraint", "./store/postgres"},
	},
	{
		name:  "an answer counts twice, SQLite",
		edits: []edit{{"store/sqlite/verification.go", "WHERE response_id = ? OR run_id", "WHERE response_id <> ? AND run_id"}},
		tests: []string{"-run", "TestStore/Verification", "./store/sqlite"},
	},
	{
		name:  "a member lost in translation",
		edits: []edit{{"provider/translate/table.go", "case !slices.Contains(known, m.name):", "case false:"}},
		tests: []string{"./provider/translate"},
	},
	{
		name:  "a refusal of a translated request ends the job",
		edits: []edit{{"provider/translate/translate.go", "if told.Next == onejob.NextNowhere {", "if false {"}},
		tests: []string{"./provider/translate"},
	},
	{
		name:  "a rendered request is mapped once more",
		edits: []edit{{"provider/wire/fit.go", "if req.Rendered {", "if false {"}},
		tests: []string{"./provider/openai"},
	},
	{
		name:  "a response in doubt has failed",
		edits: []edit{{"internal/frontdoor/background.go", "case onejob.JobFailed:\n\t\treturn", "case onejob.JobFailed, onejob.JobBlocked:\n\t\treturn"}, {"internal/frontdoor/background.go", "onejob.JobRunning, onejob.JobBlocked, ", "onejob.JobRunning, "}},
		tests: []string{"./internal/frontdoor"},
	},
	{
		name:  "another owner's response",
		edits: []edit{{"internal/frontdoor/background.go", "Get(r.Context(), v.Scope, jobPrefix+id)", "Get(r.Context(), \"\", jobPrefix+id)"}},
		tests: []string{"./internal/frontdoor"},
	},
}
