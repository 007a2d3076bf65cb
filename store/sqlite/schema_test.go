package sqlite_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/sqlite"
)

// What the database refuses, whoever asks. The statements are raw on purpose.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()

	const (
		another = `INSERT INTO attempts (seq, part, job_id, number, id, lane, lanes, target, target_digest, state, claim_token, worker,
			lease_expires_at, job_version, provider_key, phase, started_at)
			SELECT seq, part, job_id, 9, 'att_9', %d, %d, target, '', 'starting', 'token', 'w', 0, 1, 'pk', 'not_sent', 0 FROM attempts`
		state = `INSERT INTO job_states (seq, part, job_id, owner, state, priority, run_after, due, next_target)
			SELECT %s, part, %s, owner, 'queued', 0, 0, 0, '' FROM job_states`
		twin = `INSERT INTO jobs (part, id, owner, key_hash, key_prefix, fingerprint, fingerprint_version, create_token, kind, target,
			effect, lanes, policy, priority, supersedes, trace, created_at, input)
			SELECT part, %s, %s, key_hash, '', fingerprint, 1, '', kind, '', %s, %d, policy, 0, '', '', 0, input FROM jobs`
	)
	tests := []struct{ name, statement string }{
		{"ASecondAttemptInDoubtInALane", fmt.Sprintf(another, 0, 1)},
		{"ALaneThatTheJobDoesNotHave", fmt.Sprintf(another, 1, 1)},
		{"AnAttemptThatClaimsMoreLanesThanItsJob", fmt.Sprintf(another, 1, 2)},
		{"TheSameOwnerAndKeyTwice", fmt.Sprintf(twin, `'job_2'`, `owner`, `effect`, 1)},
		{"TheSameIDTwice", fmt.Sprintf(twin, `id`, `'bob'`, `effect`, 1)},
		{"ARaceOnAnEffect", fmt.Sprintf(twin, `'job_2'`, `'bob'`, `'external'`, 2)},
		{"AnUnknownEffect", fmt.Sprintf(twin, `'job_2'`, `'bob'`, `'some'`, 1)},
		{"AnotherOwner", `UPDATE jobs SET owner = 'bob'`},
		{"AnotherKey", `UPDATE jobs SET key_hash = x'00'`},
		{"AnotherFingerprint", `UPDATE jobs SET fingerprint = x'00'`},
		{"AnotherInput", `UPDATE jobs SET input = x'00'`},
		{"AnotherInputUnderCoverOfAPurge", `UPDATE jobs SET input = x'00', purged_at = 1`},
		{"AnotherOwnerUnderCoverOfAPurge", `UPDATE jobs SET owner = 'bob', input = NULL, purged_at = 1`},
		{"MoreLanes", `UPDATE jobs SET lanes = 2`},
		{"ForgettingAJob", `DELETE FROM jobs`},
		{"AnotherClaimToken", `UPDATE attempts SET claim_token = 'stolen'`},
		{"AnAttemptThatMovesToAnotherTarget", `UPDATE attempts SET target = 'b'`},
		{"RunningWithoutAMark", `UPDATE attempts SET marked_at = NULL`},
		{"AnUnknownAttemptWithoutATime", `UPDATE attempts SET state = 'unknown', outcome = 'unknown'`},
		{"ATerminalAttemptWithoutATime", `UPDATE attempts SET state = 'failed', outcome = 'refused'`},
		{"ASuccessWithoutAWinner", `UPDATE job_states SET state = 'succeeded', finished_at = 1`},
		{"AWinnerOfAnOpenJob", `UPDATE job_states SET completed_by = 'att_1'`},
		{"AnUnknownState", `UPDATE job_states SET state = 'lost'`},
		{"AnAttemptOfNoJob", fmt.Sprintf(strings.Replace(another, "SELECT seq, part, job_id, 9", "SELECT seq, part, 'job_9', 9", 1), 0, 1)},
		{"AnAttemptUnderTheNumberOfNoJob", fmt.Sprintf(strings.Replace(another, "SELECT seq, part, job_id, 9", "SELECT seq + 1, part, job_id, 9", 1), 0, 1)},
		{"AnAttemptThatMovesUnderAnotherNumber", `UPDATE attempts SET seq = seq + 1`},
		{"AStateUnderTheNumberOfNoJob", fmt.Sprintf(state, `seq + 1`, `job_id`)},
		{"AStateOfNoJob", fmt.Sprintf(state, `seq + 1`, `'job_9'`)},
		{"ASecondStateOfAJob", fmt.Sprintf(state, `seq`, `job_id`)},
		{"AStateThatMovesUnderAnotherNumber", `UPDATE job_states SET seq = seq + 1`},
		{"AJobThatTakesAnotherNumber", `UPDATE jobs SET seq = seq + 1, input = NULL, purged_at = 1`},
		{"AProbeOfNoAttempt", `INSERT INTO probes (part, job_id, attempt_id, number, method, at, detail, evidence)
			SELECT part, job_id, 'att_9', 1, 'lookup', 0, '', '{}' FROM attempts`},
		{"AProbeByGuessing", `INSERT INTO probes (part, job_id, attempt_id, number, method, at, detail, evidence)
			SELECT part, job_id, id, 1, 'guess', 0, '', '{}' FROM attempts`},
		{"TextForATime", `UPDATE job_states SET run_after = 'soon'`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			path, _ := startedJob(t)
			if _, err := openDB(t, path).ExecContext(t.Context(), tt.statement); err == nil {
				t.Errorf("the database took %q", tt.statement)
			}
		})
	}
}

func TestSchemaRefusesToChangeWhatHasEnded(t *testing.T) {
	t.Parallel()

	for _, statement := range []string{
		`UPDATE job_states SET state = 'failed', completed_by = NULL, error_code = 'x'`,
		`UPDATE job_states SET state = 'queued', completed_by = NULL, finished_at = NULL`,
		`UPDATE job_states SET completed_by = 'att_2'`,
		`UPDATE job_states SET finished_at = 1`,
	} {
		t.Run(statement, func(t *testing.T) {
			t.Parallel()

			path, s := startedJob(t)
			page, err := s.JobList(t.Context(), onejob.JobListParams{Limit: 1})
			if err != nil {
				t.Fatal(err)
			}
			a := page.Jobs[0].Attempts[0]
			results, err := s.AttemptFinish(t.Context(), []onejob.AttemptFinishParams{{
				Ref: onejob.AttemptRef{Part: a.Part, JobID: a.JobID, ID: a.ID}, ClaimToken: a.ClaimToken,
				Outcome: onejob.OutcomeSucceeded, Result: &onejob.Result{},
			}})
			if err != nil || results[0].Err != nil {
				t.Fatalf("finish: %v, %v", err, results)
			}
			if _, err := openDB(t, path).ExecContext(t.Context(), statement); err == nil {
				t.Errorf("the database took %q", statement)
			}
		})
	}
}

// startedJob is a database with one job whose first attempt is marked.
func startedJob(t *testing.T) (path string, s *sqlite.Store) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "onejob.db")
	s = open(t, path, sqlite.Options{})
	mustCreate(t, s, startedIntent(t, "k1"))
	return path, s
}

func mustCreate(t *testing.T, s onejob.JobCreator, p onejob.JobCreateParams) onejob.JobCreateResult {
	t.Helper()
	results, err := s.JobCreate(t.Context(), []onejob.JobCreateParams{p})
	if err != nil {
		t.Fatalf("JobCreate: %v", err)
	}
	if results[0].Err != nil {
		t.Fatalf("JobCreate: %v", results[0].Err)
	}
	return results[0]
}
