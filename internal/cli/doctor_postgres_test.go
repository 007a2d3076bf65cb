package cli_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob/internal/cli"
	"github.com/onejob-dev/onejob/internal/pgtest"
	"github.com/onejob-dev/onejob/store/postgres"
)

// troubled is a database of its own for one trouble.
type troubled struct {
	t    *testing.T
	url  string
	conn *pgx.Conn
}

func newTroubled(t *testing.T) *troubled {
	t.Helper()
	d := &troubled{t: t, url: pgtest.URL(t)}
	d.conn = d.connect()
	d.exec(postgres.Print())
	return d
}

func (d *troubled) connect() *pgx.Conn {
	d.t.Helper()
	conn, err := pgx.Connect(d.t.Context(), d.url)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (d *troubled) exec(sql string) {
	d.t.Helper()
	if _, err := d.conn.Exec(d.t.Context(), sql); err != nil {
		d.t.Fatal(err)
	}
}

// doctor returns what doctor says of the store, looked at so much later.
func (d *troubled) doctor(later time.Duration, args ...string) string {
	d.t.Helper()
	var stdout, stderr lockedBuffer
	set := map[string]string{"ONEJOB_SECRET": "a-secret-for-this-test-only"}
	cli.Main(d.t.Context(), cli.Env{
		Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
		Getenv:  func(name string) string { return set[name] },
		NowFunc: func() time.Time { return time.Now().Add(later) },
	}, append([]string{"onejob", "doctor", "--store", d.url}, args...))
	return stderr.String()
}

func TestDoctorFindsNothingAmissInANewPostgres(t *testing.T) {
	t.Parallel()

	said := newTroubled(t).doctor(0)
	for _, word := range []string{"index", "table ", "vacuum", "session", "WAL", "permission", "ERROR"} {
		if strings.Contains(said, word) {
			t.Errorf("doctor speaks of %q:\n%s", word, said)
		}
	}
}

func TestDoctorSaysWhatIsWrongWithAPostgresAndWhatToDo(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ sql, says, todo string }{
		"AMissingIndex": {
			"DROP INDEX job_states_due", "index job_states_due of table job_states is missing",
			"CREATE INDEX CONCURRENTLY job_states_due ON job_states USING btree",
		},
		"AMissingGuard": {
			"DROP INDEX attempts_in_doubt", "index attempts_in_doubt of table attempts is missing", "CREATE UNIQUE INDEX CONCURRENTLY attempts_in_doubt",
		},
		"AnInvalidIndex": {
			"UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'jobs_by_time'::regclass",
			"index jobs_by_time of table jobs is not valid", "REINDEX INDEX CONCURRENTLY jobs_by_time",
		},
		"AnotherIndexOfTheName": {
			"DROP INDEX jobs_by_time; CREATE INDEX jobs_by_time ON jobs (owner)", "index jobs_by_time is not the one", "ON jobs USING btree (created_at)",
		},
		"LostSettings": {
			"ALTER TABLE attempts RESET (autovacuum_vacuum_scale_factor)", "table attempts has not the settings",
			"ALTER TABLE attempts SET (autovacuum_vacuum_scale_factor = 0.02)",
		},
		"NoAutovacuum": {
			"ALTER TABLE job_states SET (autovacuum_enabled = off)", "autovacuum is off for table job_states", "RESET (autovacuum_enabled)",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			d := newTroubled(t)
			d.exec(tt.sql)
			if said := d.doctor(0); !strings.Contains(said, tt.says) || !strings.Contains(said, tt.todo) {
				t.Errorf("after %s doctor says:\n%s\nwant %q and %q", tt.sql, said, tt.says, tt.todo)
			}
		})
	}
}

// sqlFinished makes jobs that have ended, as far as their states go.
const sqlFinished = `
INSERT INTO job_states (part, job_id, owner, state, priority, run_after, due, next_target, cancel_requested_at, finished_at)
SELECT n % 256, 'job_' || n, 'o', 'cancelled', 0, now(), true, '', now(), now() FROM generate_series(1, 30000) n; `

func TestDoctorFindsDeadRowsThatNobodyCleansUp(t *testing.T) {
	t.Parallel()

	d := newTroubled(t)
	d.exec("ALTER TABLE job_states SET (autovacuum_enabled = off); " + sqlFinished)
	d.exec("UPDATE job_states SET revision = revision + 1")
	said := ""
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(said, "VACUUM job_states"); time.Sleep(100 * time.Millisecond) {
		if said = d.doctor(0); time.Now().After(deadline) {
			t.Fatalf("doctor says:\n%s\nwant it to speak of dead rows", said)
		}
	}
	if !strings.Contains(said, "table job_states has 30000 dead rows beside 30000 live ones and was last vacuumed never") {
		t.Errorf("doctor says:\n%s", said)
	}
}

func TestDoctorFindsATableAndAnIndexThatAreMostlyAir(t *testing.T) {
	t.Parallel()

	d := newTroubled(t)
	d.exec("ALTER TABLE job_states SET (autovacuum_enabled = off)")
	long := strings.Replace(sqlFinished, "'job_' || n", "(SELECT string_agg(md5(n || ' ' || i), '') FROM generate_series(1, 30) i)", 1) // few rows, much space
	d.exec(strings.Replace(long, "generate_series(1, 30000)", "generate_series(1, 80000)", 1))
	d.exec("DELETE FROM job_states WHERE part > 0")
	d.exec("ANALYZE job_states")
	said := d.doctor(0)
	for _, want := range []string{"table job_states takes ", "VACUUM FULL job_states", "REINDEX INDEX CONCURRENTLY job_states_pkey"} {
		if !strings.Contains(said, want) {
			t.Errorf("doctor says:\n%s\nwant %q", said, want)
		}
	}
}

func TestDoctorFindsATransactionThatIsLongOpen(t *testing.T) {
	t.Parallel()

	d := newTroubled(t)
	other := d.connect()
	if _, err := other.Exec(t.Context(), "SET application_name = 'somebodys-report'; BEGIN; SELECT count(*) FROM jobs"); err != nil {
		t.Fatal(err)
	}
	for later, spoken := range map[time.Duration]bool{4 * time.Minute: false, 6 * time.Minute: true} {
		said := d.doctor(later)
		if strings.Contains(said, "(somebodys-report, idle in transaction) has had a transaction open") != spoken {
			t.Errorf("%s later doctor says:\n%s\nwant it to speak of the session: %t", later, said, spoken)
		}
	}
}

func TestDoctorMissesTheStandbyThatDurabilityNeeds(t *testing.T) {
	t.Parallel()

	server, err := pgtest.New(t.Context())
	if errors.Is(err, pgtest.ErrNoPrograms) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Remove() })
	if err := server.Start(t.Context(), "synchronous_standby_names=standby"); err != nil {
		t.Fatal(err)
	}
	d := &troubled{t: t, url: server.URL()}
	d.conn = d.connect()
	d.exec("SET synchronous_commit = local")
	d.exec(postgres.Print())
	config := filepath.Join(t.TempDir(), "onejob.yaml")
	if err := os.WriteFile(config, []byte("durability: replicated\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := d.doctor(0, "--config", config); !strings.Contains(said, "no synchronous standby is connected") {
		t.Errorf("doctor says:\n%s\nwant it to miss the standby", said)
	}
}
