package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob/store/sqlite"
)

// doctored makes a store, has something done to its file, and returns what doctor
// says of it.
func doctored(t *testing.T, statements ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.db")
	url := "sqlite:" + path
	run(t.Context(), nil, "", "keys", "create", "--owner", "shop", "--store", url)
	db, err := sqlite.OpenDB(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range statements {
		if _, err := db.ExecContext(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return run(t.Context(), nil, "", "doctor", "--store", url).stderr
}

func TestDoctorFindsNothingAmissInANewSQLite(t *testing.T) {
	t.Parallel()

	if said := doctored(t); strings.Contains(said, "store:") {
		t.Errorf("doctor says:\n%s", said)
	}
}

func TestDoctorSaysWhatIsWrongWithASQLiteAndWhatToDo(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		sql  []string
		says string
	}{
		"AMissingIndex":         {[]string{"DROP INDEX job_states_due"}, "index job_states_due is missing"},
		"AnotherIndexOfTheName": {[]string{"DROP INDEX job_states_due", "CREATE INDEX job_states_due ON job_states (owner)"}, "index job_states_due is not the one"},
		"FreePages": {[]string{
			"CREATE TABLE filler (x)", "INSERT INTO filler SELECT zeroblob(1000000) FROM generate_series", "DROP TABLE filler",
		}, "are free pages"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			for i, sql := range tt.sql {
				tt.sql[i] = strings.Replace(sql, "FROM generate_series", "FROM (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 70) SELECT i FROM n)", 1)
			}
			if said := doctored(t, tt.sql...); !strings.Contains(said, tt.says) {
				t.Errorf("doctor says:\n%s\nwant %q", said, tt.says)
			}
		})
	}
}

func TestDoctorFindsALogThatIsNeverEmptied(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "x.db")
	url := "sqlite:" + path
	run(t.Context(), nil, "", "keys", "create", "--owner", "shop", "--store", url)
	db, err := sqlite.OpenDB(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.PingContext(t.Context()); err != nil { // keeps the log from being removed
		t.Fatal(err)
	}
	if err := os.Truncate(path+"-wal", 300<<20); err != nil { // a hole: it takes no space
		t.Fatal(err)
	}
	if said := run(t.Context(), nil, "", "doctor", "--store", url).stderr; !strings.Contains(said, "has grown to 300.0 MiB") {
		t.Errorf("doctor says:\n%s\nwant it to speak of the log", said)
	}
}
