package cli

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"

	"github.com/onejob-dev/onejob/store/sqlite"
)

// largeWAL is more than the log of a store should ever be: it is copied into the file
// whenever 8,192 pages have gathered, and then written from its beginning.
const largeWAL = 256 << 20

// checkSQLite looks at the file beside the store itself.
func (x *examination) checkSQLite(ctx context.Context) {
	if info, err := os.Stat(x.store.SQLite + "-wal"); err == nil && info.Size() > largeWAL {
		x.problem("store: the log %s-wal has grown to %s: something has read the store for long, such as an open transaction of a backup or a shell, and keeps the log from being emptied; end it, and restart the server to shrink the log",
			x.store.SQLite, bytesOf(info.Size()))
	}
	x.checkFree(filepath.Dir(x.store.SQLite))
	if err := x.checkSQLiteFile(ctx); err != nil {
		x.problem("store: %s", oneLine(err))
	}
}

func (x *examination) checkSQLiteFile(ctx context.Context) (err error) {
	db, err := sqlite.OpenDB(x.store.SQLite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var size, free int64
	err = db.QueryRowContext(ctx, `SELECT p.page_count * s.page_size, f.freelist_count * s.page_size
	   FROM pragma_page_count() p, pragma_freelist_count() f, pragma_page_size() s`).Scan(&size, &free)
	if err != nil {
		return err
	}
	if free > littleSpace && free > size/2 {
		x.problem("store: %s of the %s of %s are free pages; they are used again, so nothing need be done; to give them back, with the server stopped: sqlite3 %s VACUUM",
			bytesOf(free), bytesOf(size), x.store.SQLite, shellQuote(x.store.SQLite))
	}
	return x.checkSQLiteIndexes(ctx, db)
}

// checkSQLiteIndexes compares with what the migrations make in a new file.
func (x *examination) checkSQLiteIndexes(ctx context.Context, db *sql.DB) (err error) {
	dir, err := os.MkdirTemp("", "onejob-doctor-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	fresh := filepath.Join(dir, "fresh.db")
	s, err := sqlite.Open(ctx, fresh, sqlite.Options{})
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	made, err := sqlite.OpenDB(fresh)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, made.Close()) }()
	have, err := sqliteIndexes(ctx, db)
	if err != nil {
		return err
	}
	want, err := sqliteIndexes(ctx, made)
	if err != nil {
		return err
	}
	for name, definition := range want {
		switch there, found := have[name]; {
		case !found:
			x.problem("store: index %s is missing, so that what it is for reads the whole table, or is not guarded; with the server stopped, make it again: %s", name, definition)
		case there != definition:
			x.problem("store: index %s is not the one that the migrations make; with the server stopped, drop it and make: %s", name, definition)
		}
	}
	return nil
}

// sqliteIndexes are those that a statement made: the others are part of their tables.
func sqliteIndexes(ctx context.Context, db *sql.DB) (_ map[string]string, err error) {
	rows, err := db.QueryContext(ctx, `SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL`)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	indexes := map[string]string{}
	for rows.Next() {
		var name, definition string
		if err := rows.Scan(&name, &definition); err != nil {
			return nil, err
		}
		indexes[name] = definition
	}
	return indexes, rows.Err()
}
