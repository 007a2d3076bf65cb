package main

import (
	"context"
	"crypto/sha256"
	"fmt"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// The limit on SQLite: the tables of the raw PostgreSQL contestant, one connection
// that writes, prepared statements, WAL, synchronous=FULL.
const rawSQLiteSchema = `
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY, owner TEXT NOT NULL, key_hash BLOB NOT NULL, fingerprint BLOB NOT NULL,
    kind TEXT NOT NULL, input BLOB NOT NULL, created_at INTEGER NOT NULL, UNIQUE (owner, key_hash)
);
CREATE TABLE states (job_id INTEGER PRIMARY KEY, state TEXT NOT NULL, version INTEGER NOT NULL DEFAULT 1, completed_by INTEGER);
CREATE TABLE attempts (id INTEGER PRIMARY KEY, job_id INTEGER NOT NULL, state TEXT NOT NULL, token TEXT NOT NULL, lease INTEGER NOT NULL, result BLOB);
CREATE UNIQUE INDEX in_doubt ON attempts (job_id) WHERE state IN ('starting', 'running', 'unknown');`

// rawSQLite is the limit: callers share transactions, and a life is two commits.
type rawSQLite struct {
	conn   *sqlite.Conn
	ids    counter
	commit *committer[rawStep]
}

// rawStep is one half of a life.
type rawStep struct {
	rawJob
	finishes bool
}

func openRawSQLite(_ context.Context, s *services, _ int) (entrant, error) {
	path, err := s.newFile()
	if err != nil {
		return nil, err
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite, sqlite.OpenCreate, sqlite.OpenWAL)
	if err != nil {
		return nil, err
	}
	for _, sql := range []string{"PRAGMA synchronous = FULL", "PRAGMA cache_size = -16384", "PRAGMA wal_autocheckpoint = 8192"} {
		if err := sqlitex.ExecuteTransient(conn, sql, nil); err != nil {
			return nil, err
		}
	}
	if err := sqlitex.ExecuteScript(conn, rawSQLiteSchema, nil); err != nil {
		return nil, err
	}
	r := &rawSQLite{conn: conn}
	r.commit = newCommitter(r.flush)
	return r, nil
}

func (r *rawSQLite) close() error { return r.conn.Close() }

func (r *rawSQLite) live(ctx context.Context, key string) error {
	hash := sha256.Sum256([]byte(key))
	job := rawJob{id: r.ids.next(), key: key, hash: hash[:]}
	if err := r.commit.do(ctx, rawStep{rawJob: job}); err != nil {
		return err
	}
	return r.commit.do(ctx, rawStep{rawJob: job, finishes: true})
}

func (r *rawSQLite) flush(_ context.Context, steps []rawStep) error {
	if err := r.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, s := range steps {
		act := r.create
		if s.finishes {
			act = r.finish
		}
		if err := act(s.rawJob); err != nil {
			return err
		}
	}
	return r.exec("COMMIT")
}

func (r *rawSQLite) create(j rawJob) error {
	if err := r.exec(`INSERT INTO jobs (id, owner, key_hash, fingerprint, kind, input, created_at) VALUES (?, ?, ?, ?, ?, ?, 0) ON CONFLICT DO NOTHING`, j.id, owner, j.hash, j.hash, kind, input); err != nil {
		return err
	}
	if err := r.exec(`INSERT INTO states (job_id, state) VALUES (?, 'running')`, j.id); err != nil {
		return err
	}
	return r.exec(`INSERT INTO attempts (id, job_id, state, token, lease) VALUES (?, ?, 'running', ?, ?)`, j.id, j.id, j.key, leaseTime.Milliseconds())
}

func (r *rawSQLite) finish(j rawJob) error {
	if err := r.exec(`UPDATE attempts SET state = 'succeeded', result = ? WHERE id = ? AND token = ? AND state = 'running'`, result, j.id, j.key); err != nil {
		return err
	}
	if err := r.exec(`UPDATE states SET state = 'succeeded', completed_by = ?, version = version + 1 WHERE job_id = ? AND completed_by IS NULL`, j.id, j.id); err != nil {
		return err
	}
	if n := r.conn.Changes(); n != 1 {
		return fmt.Errorf("%d of 1 rows", n)
	}
	return nil
}

func (r *rawSQLite) exec(sql string, args ...any) error {
	stmt, err := r.conn.Prepare(sql)
	if err != nil {
		return err
	}
	for i, a := range args {
		switch a := a.(type) {
		case int64:
			stmt.BindInt64(i+1, a)
		case string:
			stmt.BindText(i+1, a)
		case []byte:
			stmt.BindBytes(i+1, a)
		}
	}
	if _, err := stmt.Step(); err != nil {
		return err
	}
	return stmt.Reset()
}
