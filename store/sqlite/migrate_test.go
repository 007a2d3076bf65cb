package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/sqlite"
)

func TestMigrate(t *testing.T) {
	t.Parallel()

	t.Run("ManyAtOnceAreOne", func(t *testing.T) {
		t.Parallel()

		path := filepath.Join(t.TempDir(), "onejob.db")
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if err := sqlite.Migrate(t.Context(), path); err != nil {
					t.Errorf("Migrate: %v", err)
				}
			})
		}
		all.Wait()
		open(t, path, sqlite.Options{})
	})
	t.Run("StatusTellsWhatIsApplied", func(t *testing.T) {
		t.Parallel()

		path := filepath.Join(t.TempDir(), "onejob.db")
		before, err := sqlite.Status(t.Context(), path)
		must(t, err)
		must(t, sqlite.Migrate(t.Context(), path))
		after, err := sqlite.Status(t.Context(), path)
		must(t, err)
		if len(before) != 2 || !before[0].AppliedAt.IsZero() || len(after) != 2 || after[1].AppliedAt.IsZero() {
			t.Errorf("status was %+v and is %+v; want two steps, then applied", before, after)
		}
		if text := sqlite.Print(); !strings.Contains(text, after[0].Name) || !strings.Contains(text, "attempts_in_doubt") {
			t.Errorf("Print lacks %s or the guard:\n%s", after[0].Name, text)
		}
	})
	t.Run("ADatabaseOfANewerProgramIsRefused", func(t *testing.T) {
		t.Parallel()

		path := filepath.Join(t.TempDir(), "onejob.db")
		must(t, sqlite.Migrate(t.Context(), path))
		_, err := openDB(t, path).ExecContext(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)`)
		must(t, err)
		if s, err := sqlite.Open(t.Context(), path, sqlite.Options{}); err == nil || !strings.Contains(err.Error(), "newer") {
			t.Errorf("Open = %v, %v; want a refusal that names the newer program", s, err)
		}
	})
	for name, change := range map[string]string{
		"ADatabaseOfAnotherBuildIsRefused":                     `UPDATE schema_steps SET digest = 'of another text' WHERE version = 1`,
		"ADatabaseThatDoesNotRememberItsStepsIsRefused":        `DROP TABLE schema_steps`,
		"ADatabaseOfAnotherBuildThatLacksAStepIsNotGoneOnFrom": `UPDATE schema_steps SET digest = 'of another text'; DELETE FROM goose_db_version WHERE version_id = 2`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			path := filepath.Join(t.TempDir(), "onejob.db")
			must(t, sqlite.Migrate(t.Context(), path))
			db := openDB(t, path)
			_, err := db.ExecContext(t.Context(), change)
			must(t, err)
			before := everything(t, db)
			s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
			if onejob.CodeOf(err) != onejob.CodeStoreUnavailable || !strings.Contains(err.Error(), "another build") || !strings.Contains(err.Error(), "mv FILE* old/") {
				t.Errorf("Open = %v, %v; want a refusal that says what to do", s, err)
			}
			steps, err := sqlite.Status(t.Context(), path)
			if len(steps) != 2 || !steps[0].Foreign || err == nil || !strings.Contains(err.Error(), "another build") {
				t.Errorf("Status = %+v, %v; want the first step of another build", steps, err)
			}
			if after := everything(t, db); after != before {
				t.Errorf("the file was changed from\n%s\nto\n%s", before, after)
			}
		})
	}
	t.Run("AStoreWhoseSchemaBecomesAnotherIsNotWell", func(t *testing.T) {
		t.Parallel()

		path := filepath.Join(t.TempDir(), "onejob.db")
		s := open(t, path, sqlite.Options{})
		must(t, s.Check(t.Context()))
		_, err := openDB(t, path).ExecContext(t.Context(), `UPDATE schema_steps SET digest = 'of another text'`)
		must(t, err)
		if err := s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "another build") {
			t.Errorf("Check = %v; want a refusal", err)
		}
	})
}

// everything is the schema of a database, and what says how it was made.
func everything(t *testing.T, db *sql.DB) string {
	t.Helper()
	var all string
	must(t, db.QueryRowContext(t.Context(), `SELECT group_concat(sql, ';') || (SELECT group_concat(version_id) FROM goose_db_version) FROM sqlite_schema`).Scan(&all))
	return all
}
