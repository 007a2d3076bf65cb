package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Three jobs to attack: one running in the first of two lanes, one failed under a
// ruling, one succeeded.
const sqlVictims = `
INSERT INTO jobs (part, id, owner, key_hash, key_prefix, fingerprint, fingerprint_version, create_token,
                  kind, input, target, effect, lanes, policy, priority, supersedes, trace, created_at)
VALUES (1, 'job_racing', 'alice', '\x01', 'k', '\xaa', 1, 't1', 'k', 'in', '', 'none',     2, '{}', 0, '', '', now()),
       (1, 'job_charge', 'alice', '\x02', 'k', '\xbb', 1, 't2', 'k', 'in', '', 'external', 1, '{}', 0, '', '', now()),
       (1, 'job_done',   'alice', '\x03', 'k', '\xcc', 1, 't3', 'k', 'in', '', 'external', 1, '{}', 0, '', '', now());
INSERT INTO job_states (part, job_id, owner, due, state, priority, run_after, next_target, completed_by, finished_at)
VALUES (1, 'job_racing', 'alice', true, 'running',   0, now(), 'a', NULL,       NULL),
       (1, 'job_charge', 'alice', true, 'queued',    0, now(), 'a', NULL,       NULL),
       (1, 'job_done',  'alice', true, 'succeeded', 0, now(), '',  'att_done', now());
INSERT INTO attempts (part, job_id, number, id, lane, lanes, target, target_digest, state, claim_token, worker, lease_expires_at,
                      send_by, marked_at, finished_at, job_version, provider_key, phase, outcome, started_at)
VALUES (1, 'job_racing', 1, 'att_racing', 0, NULL, 'a', '', 'running',   'c1', 'w', now(), now(), now(), NULL,  1, 'p', 'sent',     NULL,        now()),
       (1, 'job_charge', 1, 'att_charge', 0, NULL, 'a', '', 'failed',    'c2', 'w', now(), now(), now(), now(), 1, 'p', 'answered', 'refused',   now()),
       (1, 'job_done',   1, 'att_done',   0, NULL, 'a', '', 'succeeded', 'c3', 'w', now(), now(), now(), now(), 1, 'p', 'answered', 'succeeded', now());`

// insertAttempt is a second attempt, of which only the given values differ.
func insertAttempt(job, number, lane, lanes, state string) string {
	return `INSERT INTO attempts (part, job_id, number, id, lane, lanes, target, target_digest, state, claim_token, worker, lease_expires_at, job_version, provider_key, phase, started_at)
	        VALUES (1, '` + job + `', ` + number + `, 'att_second', ` + lane + `, ` + lanes + `, 'b', '', '` + state + `', 'c9', 'w', now(), 1, 'p', 'not_sent', now())`
}

func insertJob(id, owner, key, effect, lanes string) string {
	return `INSERT INTO jobs (part, id, owner, key_hash, key_prefix, fingerprint, fingerprint_version, create_token,
	                          kind, input, target, effect, lanes, policy, priority, supersedes, trace, created_at)
	        VALUES (1, '` + id + `', '` + owner + `', '` + key + `', 'k', '\xdd', 1, 't9', 'k', 'in', '', '` + effect + `', ` + lanes + `, '{}', 0, '', '', now())`
}

func TestDatabaseRefuses(t *testing.T) {
	t.Parallel()

	url := schema(t)
	if err := execute(t, url, sqlVictims); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, sql, says string }{
		{"ASecondAttemptInDoubtInALane", insertAttempt("job_racing", "2", "0", "NULL", "starting"), "attempts_in_doubt"},
		{"TheSameNumberTwice", insertAttempt("job_racing", "1", "1", "2", "starting"), "attempts_pkey"},
		{"TheSameOwnerAndKeyTwice", insertJob("job_again", "alice", `\x01`, "external", "1"), "jobs_one_per_key"},
		{"TheSameIdTwice", "INSERT INTO job_states (part, job_id, owner, due, state, priority, run_after, next_target) VALUES (1, 'job_charge', 'alice', true, 'queued', 0, now(), 'a')", "job_states_pkey"},
		{"AnEventOfNoJob", "INSERT INTO events (part, job_id, kind, at) VALUES (1, 'job_none', 'replayed', now())", "foreign key"},
		{"ALaneOnAnEffect", insertAttempt("job_charge", "2", "1", "2", "starting"), "foreign key"},
		{"ALaneOfNoLanes", insertAttempt("job_charge", "2", "1", "NULL", "starting"), "attempts_lane"},
		{"ALaneBeyondTheJobs", insertAttempt("job_racing", "2", "2", "2", "starting"), "attempts_lane"},
		{"LanesUnderAnEffect", insertJob("job_lanes", "alice", `\x09`, "external", "2"), "jobs_race_without_effect"},
		{"LanesUnderAnIdempotentEffect", insertJob("job_lanes", "alice", `\x09`, "idempotent", "2"), "jobs_race_without_effect"},

		{"AProbeOfNoAttempt", "INSERT INTO probes (part, job_id, attempt, number, method, at, detail, evidence) VALUES (1, 'job_charge', 9, 1, 'lookup', now(), '', '{}')", "foreign key"},
		{"AProbeByGuessing", "INSERT INTO probes (part, job_id, attempt, number, method, at, detail, evidence) VALUES (1, 'job_charge', 1, 1, 'guess', now(), '', '{}')", "probes_method_check"},

		{"AnotherOwner", "UPDATE jobs SET owner = 'mallory' WHERE id = 'job_charge'", "immutable"},
		{"AnotherFingerprint", `UPDATE jobs SET fingerprint = '\xff' WHERE id = 'job_charge'`, "immutable"},
		{"AnotherInput", "UPDATE jobs SET input = 'other' WHERE id = 'job_charge'", "immutable"},
		{"AnotherFingerprintUnderAPurge", `UPDATE jobs SET input = NULL, purged_at = now(), fingerprint = '\xff' WHERE id = 'job_charge'`, "immutable"},
		{"AnotherKindUnderAPurge", "UPDATE jobs SET input = NULL, purged_at = now(), kind = 'other' WHERE id = 'job_charge'", "immutable"},
		{"AJobsEnd", "DELETE FROM jobs WHERE id = 'job_charge'", "kept"},

		{"ATerminalStateLeft", "UPDATE job_states SET state = 'queued', completed_by = NULL, finished_at = NULL WHERE job_id = 'job_done'", "final"},
		{"ATakenSlotTakenAgain", "UPDATE job_states SET completed_by = 'att_other' WHERE job_id = 'job_done'", "final"},
		{"AnotherOwnersTurn", "UPDATE job_states SET owner = 'mallory' WHERE job_id = 'job_charge'", "immutable"},
		{"ASuccessWithoutAWinner", "UPDATE job_states SET state = 'succeeded', finished_at = now() WHERE job_id = 'job_charge'", "job_states_winner"},

		{"AnotherClaimToken", "UPDATE attempts SET claim_token = 'stolen' WHERE id = 'att_racing'", "cannot change what it is"},
		{"AnotherTarget", "UPDATE attempts SET target = 'b' WHERE id = 'att_racing'", "cannot change what it is"},
		{"UnknownBackToRunning", "UPDATE attempts SET state = 'unknown', outcome = 'unknown' WHERE id = 'att_racing'; UPDATE attempts SET state = 'running' WHERE id = 'att_racing'", "cannot go from unknown to running"},
		{"RunningBackToStarting", "UPDATE attempts SET state = 'starting', marked_at = NULL, send_by = NULL WHERE id = 'att_racing'", "cannot go from running to starting"},
		{"ASuccessOfWhatFailedUnruled", "UPDATE attempts SET state = 'succeeded' WHERE id = 'att_charge'", "cannot go from failed to succeeded"},
		{"TheWinnerDiscarded", `UPDATE attempts SET state = 'discarded', discarded = '{}' WHERE id = 'att_done'`, "cannot go from succeeded to discarded"},
		{"DoubtForgotten", "UPDATE attempts SET finished_at = now() WHERE id = 'att_racing'", "attempts_finished"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			err := execute(t, url, tt.sql)
			var pg *pgconn.PgError
			if !errors.As(err, &pg) || pg.Code[:2] != "23" || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%s: got %v; want an integrity violation that says %q", tt.sql, err, tt.says)
			}
		})
	}
}

func TestDatabasePermitsWhatPurgingDoes(t *testing.T) {
	t.Parallel()

	url := schema(t)
	for _, sql := range []string{
		sqlVictims,
		"UPDATE jobs SET input = NULL, metadata = NULL, purged_at = now() WHERE id = 'job_done'",
		"UPDATE jobs SET kind = '', policy = '', create_token = '' WHERE id = 'job_done'",
		insertAttempt("job_racing", "2", "1", "2", "starting"),
	} {
		if err := execute(t, url, sql); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// lines returns the rows of a query with one column of text.
func lines(t *testing.T, url, sql string, args ...any) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	rows, err := conn.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}
