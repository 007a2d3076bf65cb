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
}
