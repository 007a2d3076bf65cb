package cli_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a person sees of a job or an attempt, and what helps.
func TestAPersonSeesWhatHappenedAndWhatHelps(t *testing.T) {
	t.Parallel()

	const blocked = `{"id":"job_1","kind":"charge","owner":"shop","state":"blocked","attempts":[],"cost":[],"created_at":"2026-03-01T00:00:00Z","blocked":`
	const attempt = `{"id":"att_2","job_id":"job_1","number":2,"lane":1,"target":"b","phase":"answered","started_at":"2026-03-01T00:00:00Z",`
	tests := []struct{ name, command, answer, want string }{
		{"AJobHeldSinceARestore", "jobs", blocked + `{"reason":"needs_operator","since":"2026-03-01T00:00:02Z","detail":"the store was restored","actions":[]}}`, `
id       job_1
kind     charge
owner    shop
state    blocked (needs_operator)
since    2026-03-01T00:00:02Z
detail   the store was restored
created  2026-03-01T00:00:00Z
way on   look whether its work was done; if it was not: onejob jobs unblock job_1 --reason …
way on   give it up: onejob jobs cancel job_1
`},
		{"AParkedJob", "jobs", blocked + `{"reason":"parked","since":"2026-03-01T00:00:02Z","detail":"three workers were lost","actions":[]}}`, `
id       job_1
kind     charge
owner    shop
state    blocked (parked)
since    2026-03-01T00:00:02Z
detail   three workers were lost
created  2026-03-01T00:00:00Z
way on   look whether its work was done; if it was not: onejob jobs unblock job_1 --reason …
way on   give it up: onejob jobs cancel job_1
`},
		{"AJobInDoubt", "jobs", blocked + `{"reason":"attempt_unknown","since":"2026-03-01T00:00:02Z","detail":"silence","attempt_id":"att_1","actions":[]}}`, `
id       job_1
kind     charge
owner    shop
state    blocked (attempt_unknown)
since    2026-03-01T00:00:02Z
detail   silence
attempt  att_1
created  2026-03-01T00:00:00Z
way on   ask its provider now: onejob attempts reconcile att_1
way on   say what you found out: onejob attempts resolve att_1 --outcome … --evidence …
way on   give it up: onejob jobs cancel job_1
`},
		{"AJobWhoseTargetsMayNotTakeOver", "jobs", blocked + `{"reason":"failover_not_certified","since":"2026-03-01T00:00:02Z","detail":"none may","candidates":[{"target":"b","reason":"no_certificate"}],"actions":[{"href":"/v1/contracts/charge/verify"},{"href":"/v1/waivers"}]}}`, `
id       job_1
kind     charge
owner    shop
state    blocked (failover_not_certified)
since    2026-03-01T00:00:02Z
detail   none may
created  2026-03-01T00:00:00Z
way on   target b may not take over: no_certificate
way on   have one verified: onejob contract verify charge --target …
way on   let one take over in your name: onejob contract waive charge --target … --reason … --until …
way on   give it up: onejob jobs cancel job_1
`},
		{"ARace", "jobs", `{"id":"job_1","kind":"k","owner":"shop","state":"succeeded","completed_by":"att_2","cost":[{"currency":"EUR","micros":3000,"at_least":false}],"created_at":"2026-03-01T00:00:00Z","attempts":[
			{"id":"att_1","number":1,"lane":0,"target":"a","state":"discarded"},{"id":"att_2","number":2,"lane":1,"target":"b","state":"succeeded"}]}`, `
id         job_1
kind       k
owner      shop
state      succeeded
cost       0.003 EUR
created    2026-03-01T00:00:00Z
attempt 1  att_1 at a: discarded, came after att_2
attempt 2  att_2 at b: succeeded, raced in lane 1, won
`},
		{"ALoserWithItsCost", "attempts", attempt + `"state":"discarded","outcome":"succeeded","evidence":{"status":200,"bytes_written":12,"bytes_read":34,"ended_ms":1500},"finished_at":"2026-03-01T00:00:02Z","quarantine_until":"2026-03-02T00:00:00Z","cost_micros":1500,"currency":"EUR","discarded":{"winner":"att_1","after_ms":250}}`, `
id        att_2
job       job_1
number    2
target    b
state     discarded
phase     answered
outcome   succeeded
evidence  status 200, 12 bytes sent and 34 received, over after 1.5s
started   2026-03-01T00:00:00Z
finished  2026-03-01T00:00:02Z
lane      1
cost      0.0015 EUR
lost to   att_1, by 250ms
`},
		{"ASuccessAfterTheJobHadClosed", "attempts", attempt + `"state":"discarded","outcome":"succeeded","waiver_id":"waiv_1","evidence":{},"discarded":{"after_ms":60000},"ruling":{"by":"olga","outcome":"not_executed","evidence":"the books","at":"2026-03-01T00:00:01Z","risk_acknowledged":true}}`, `
id       att_2
job      job_1
number   2
target   b
waiver   waiv_1
state    discarded
phase    answered
outcome  succeeded
started  2026-03-01T00:00:00Z
lane     1
lost to  nobody: the job had closed, by 1m0s
ruled    not_executed by olga at 2026-03-01T00:00:01Z: the books (risk acknowledged)
`},
		{"AnAttemptThatARestoreLeftInDoubt", "attempts", attempt + `"state":"unknown","outcome":"unknown","error":{"code":"restored","message":"the store was restored"},"evidence":{"error":"the store was restored","excerpt":"<html>"},"quarantine_until":"2026-03-02T00:00:00Z","asked_at":"2026-03-01T01:00:00Z"}`, `
id                att_2
job               job_1
number            2
target            b
state             unknown
phase             answered
outcome           unknown
error             restored: the store was restored
evidence          it began "<html>"
started           2026-03-01T00:00:00Z
people asked      2026-03-01T01:00:00Z
no ruling before  2026-03-02T00:00:00Z
lane              1
`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(tt.answer))
			}))
			t.Cleanup(srv.Close)
			got := run(t.Context(), map[string]string{"ONEJOB_SERVER": srv.URL, "ONEJOB_API_KEY": "oj_x"}, "", tt.command, "get", "x")
			if diff := cmp.Diff(tt.want[1:], got.stdout); diff != "" || got.code != 0 {
				t.Errorf("code %d, %s\n%s", got.code, got.stderr, diff)
			}
		})
	}
}
