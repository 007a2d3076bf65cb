package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/sqlite"
	"github.com/onejob-dev/onejob/store/storetest"
)

// wallClock is a clock that only tests move.
type wallClock struct {
	mu  sync.Mutex
	now time.Time
}

func newWallClock() *wallClock {
	return &wallClock{now: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)}
}

func (c *wallClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *wallClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func TestStore(t *testing.T) {
	t.Parallel()

	storetest.Run(t, func(t *testing.T, handles int) storetest.Opened {
		path, clock := filepath.Join(t.TempDir(), "onejob.db"), newWallClock()
		opened := storetest.Opened{Advance: clock.Advance}
		for range handles {
			opened.Stores = append(opened.Stores, open(t, path, sqlite.Options{NowFunc: clock.Now}))
		}
		db := openDB(t, path)
		opened.Exec = func(statement string) error {
			_, err := db.ExecContext(t.Context(), statement)
			return err
		}
		return opened
	})
}

func open(t *testing.T, path string, o sqlite.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func openDB(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sqlite.OpenDB(path)
	if err != nil {
		t.Fatalf("OpenDB: %v", err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

var _ onejob.JobCreator = sqlite.Tx(nil)
