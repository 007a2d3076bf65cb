package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"time"

	_ "modernc.org/sqlite" // database/sql's driver, the same engine
	"zombiezen.com/go/sqlite"

	"github.com/onejob-dev/onejob"
)

// openFlags leave URIs out: a path is a path, whatever it contains.
const openFlags = sqlite.OpenReadWrite | sqlite.OpenCreate | sqlite.OpenWAL

// synchronousFull flushes the log before a commit returns. NORMAL does not, and
// loses acknowledged jobs when the power goes.
const synchronousFull = 2

// prepare sets up one connection and verifies that it is as safe as promised.
func prepare(db *connection, busy time.Duration, own ...string) error {
	db.SetBusyTimeout(busy)
	for _, pragma := range append([]string{
		`PRAGMA synchronous = FULL`,
		`PRAGMA fullfsync = ON`, // on macOS fsync alone does not flush the drive
		`PRAGMA checkpoint_fullfsync = ON`,
		`PRAGMA foreign_keys = ON`,
		`PRAGMA temp_store = MEMORY`,
		`PRAGMA trusted_schema = OFF`,
	}, own...) {
		if err := db.query(pragma, func(*row) error { return nil }); err != nil {
			return fmt.Errorf("%s: %w", pragma, err)
		}
	}
	return verify(db)
}

// connect opens one more connection to the file. own are pragmas of its own.
func connect(path string, busy time.Duration, own ...string) (*connection, error) {
	conn, err := sqlite.OpenConn(path, openFlags)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	db := connected(conn)
	if err := prepare(db, busy, own...); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), db.Close())
	}
	return db, nil
}

// verify asks the connection itself: a pragma that is not taken is no error.
func verify(db speaker) error {
	for _, want := range []struct{ pragma, value string }{
		{"journal_mode", "wal"},
		{"synchronous", strconv.Itoa(synchronousFull)},
		{"foreign_keys", "1"},
	} {
		got := ""
		if err := db.query("PRAGMA "+want.pragma, func(r *row) error { got = r.String(); return nil }); err != nil {
			return err
		}
		if got != want.value {
			return &onejob.Error{
				Code:    onejob.CodeStoreUnavailable,
				Message: fmt.Sprintf("unsafe database connection: %s is %q, must be %q", want.pragma, got, want.value),
			}
		}
	}
	return nil
}

// OpenDB opens the file for database/sql as [Tx] needs it: write-ahead log,
// flushed before a commit returns, foreign keys on, transactions that take the
// write lock when they begin. Close it after use.
func OpenDB(path string) (*sql.DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	dsn := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: url.Values{
		"_pragma": {
			"busy_timeout(5000)", "journal_mode(wal)", "synchronous(full)", "fullfsync(on)",
			"checkpoint_fullfsync(on)", "foreign_keys(on)",
		},
		"_txlock": {"immediate"},
	}.Encode()}
	return sql.Open("sqlite", dsn.String())
}
