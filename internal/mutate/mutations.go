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
			{"store/postgres/success.go", "AND s.completed_by IS NULL AND s.state NOT IN ('failed', 'cancelled')\n), swapped", "AND s.state NOT IN ('failed', 'cancelled')\n), swapped"},
			{"store/postgres/success.go", "AND s.completed_by IS NULL AND s.state NOT IN ('failed', 'cancelled')\nRETURNING", "AND s.state NOT IN ('failed', 'cancelled')\nRETURNING"},
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
		name:  "request replayed by the transport",
		edits: []edit{{"provider/wire/exchange.go", "hr.Body = io.NopCloser(bytes.NewReader(m.Body))", "hr.Body = io.NopCloser(bytes.NewReader(m.Body))\n\t\thr.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(m.Body)), nil }"}},
		tests: []string{"./provider/wire"},
	},
}
