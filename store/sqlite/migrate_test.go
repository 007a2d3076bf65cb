package sqlite_test

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

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
}
