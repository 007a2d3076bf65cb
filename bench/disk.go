package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/postgres"
	"github.com/onejob-dev/onejob/store/sqlite"
)

const (
	rowBytes     figure = "table_bytes_per_job"
	indexBytes   figure = "index_bytes_per_job"
	againBytes   figure = "bytes_per_job_after_emptying"
	shrunkBytes  figure = "bytes_per_job_after_shrinking"
	emptiedRate  figure = "emptied_per_s"
	longestBatch figure = "longest_purge_ms"
)

// purgeAtOnce is how many jobs the engine purges in one transaction.
const purgeAtOnce = 100

// disk is about bytes, which do not depend on what else the machine does.
func disk() contest {
	return contest{
		name: "disk", title: "What jobs take on disk", once: true,
		about: "Lives of jobs of one kilobyte, from a new store on: bytes a job of tables, of indexes and of WAL, vacuumed; then all of them are emptied as retention does, " +
			"and as many are done again: what the store has grown by for each of these; and the same once keys' tombstones are shrunk, too.",
		columns: []column{
			{rowBytes, "bytes a job: tables", "%.0f"},
			{indexBytes, "indexes", "%.0f"},
			{wal, "WAL", "%.0f"},
			{againBytes, "grown by, after emptying", "%.0f"},
			{shrunkBytes, "after shrinking", "%.0f"},
			{emptiedRate, "emptied/s", "%.0f"},
			{longestBatch, "longest batch of 100, ms", "%.0f"},
		},
		entries: func(s settings) []contestant {
			return []contestant{
				{name: "onejob", on: onPostgres, turn: takes(s.lives, openSizedPostgres)},
				{name: "onejob", on: onSQLite, turn: takes(s.lives, openSizedSQLite)},
			}
		},
	}
}

// sized is a library whose store can be measured.
type sized struct {
	*library
	store onejob.Store
	// size cleans up as the store does by itself from time to time, and tells what it takes.
	size func(ctx context.Context) (tables, indexes int64, err error)
	wal  func(ctx context.Context) (int64, error)
}

func takes(lives int, open func(context.Context, *services) (*sized, error)) func(context.Context, *services, time.Duration) (sample, error) {
	return func(ctx context.Context, s *services, _ time.Duration) (_ sample, err error) {
		at, err := open(ctx, s)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, at.close()) }()
		return at.measure(ctx, float64(lives))
	}
}

func (at *sized) measure(ctx context.Context, lives float64) (f sample, err error) {
	f = sample{}
	if err := at.firstLives(ctx, lives, f); err != nil {
		return nil, err
	}
	payloads := onejob.JobPurgeParams{PayloadAge: time.Nanosecond}
	if f[emptiedRate], f[longestBatch], err = at.purge(ctx, payloads); err != nil {
		return nil, err
	}
	if f[againBytes], err = at.grows(ctx, "second", lives); err != nil {
		return nil, err
	}
	payloads.KeyAge = time.Nanosecond
	if _, _, err = at.purge(ctx, payloads); err != nil {
		return nil, err
	}
	f[shrunkBytes], err = at.grows(ctx, "third", lives)
	return f, err
}

// firstLives does jobs in the new store, and notes what they take.
func (at *sized) firstLives(ctx context.Context, lives float64, f sample) error {
	empty, _, err := at.size(ctx)
	if err != nil {
		return err
	}
	before, err := at.wal(ctx)
	if err != nil {
		return err
	}
	if err := at.liveAll(ctx, "first", int(lives)); err != nil {
		return err
	}
	after, err := at.wal(ctx)
	if err != nil {
		return err
	}
	tables, indexes, err := at.size(ctx)
	if err != nil {
		return err
	}
	f[rowBytes] = float64(tables-empty) / lives
	if after > 0 {
		f[wal], f[indexBytes] = float64(after-before)/lives, float64(indexes)/lives
	}
	return nil
}

// grows does as many jobs again, and tells what the store has grown by for each.
func (at *sized) grows(ctx context.Context, prefix string, lives float64) (float64, error) {
	tables, indexes, err := at.size(ctx)
	if err != nil {
		return 0, err
	}
	if err := at.liveAll(ctx, prefix, int(lives)); err != nil {
		return 0, err
	}
	t, i, err := at.size(ctx)
	return float64(t+i-tables-indexes) / lives, err
}

func (at *sized) liveAll(ctx context.Context, prefix string, lives int) error {
	const callers = 64
	failed := make([]error, callers)
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for i := c; i < lives && failed[c] == nil; i += callers {
				failed[c] = at.live(ctx, fmt.Sprintf("%s-%d", prefix, i))
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// purge does all that retention has to do, without its pauses.
func (at *sized) purge(ctx context.Context, p onejob.JobPurgeParams) (perSecond, longest float64, err error) {
	p.Limit = purgeAtOnce
	began, purged := time.Now(), 0
	for {
		batch := time.Now()
		n, err := at.store.JobPurge(ctx, p)
		if err != nil {
			return 0, 0, err
		}
		longest = max(longest, milliseconds(time.Since(batch)))
		if purged += n; n == 0 {
			return float64(purged) / time.Since(began).Seconds(), longest, nil
		}
	}
}

func openSizedPostgres(ctx context.Context, s *services) (*sized, error) {
	url, err := s.newDatabase(ctx)
	if err != nil {
		return nil, err
	}
	store, err := postgres.Open(ctx, url, postgres.Options{Migrate: true, MaxConns: 16})
	if err != nil {
		return nil, err
	}
	at := &sized{store: store}
	if at.library, err = newLibrary(ctx, store, instant{}); err != nil {
		return nil, err
	}
	one := func(ctx context.Context, query string, to ...any) error {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, "VACUUM ANALYZE")
		return errors.Join(err, conn.QueryRow(ctx, query).Scan(to...), conn.Close(ctx))
	}
	at.size = func(ctx context.Context) (tables, indexes int64, err error) {
		err = one(ctx, `SELECT sum(pg_table_size(oid))::bigint, sum(pg_indexes_size(oid))::bigint FROM pg_class
			WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`, &tables, &indexes)
		return tables, indexes, err
	}
	at.wal = func(ctx context.Context) (written int64, err error) {
		err = s.admin.QueryRow(ctx, `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint`).Scan(&written)
		return written, err
	}
	return at, nil
}

func openSizedSQLite(ctx context.Context, s *services) (*sized, error) {
	path, err := s.newFile()
	if err != nil {
		return nil, err
	}
	store, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return nil, err
	}
	at := &sized{store: store}
	if at.library, err = newLibrary(ctx, store, instant{}); err != nil {
		return nil, err
	}
	at.size = func(ctx context.Context) (file, _ int64, err error) {
		db, err := sqlite.OpenDB(path)
		if err != nil {
			return 0, 0, err
		}
		if err := errors.Join(checkpoint(ctx, db), db.Close()); err != nil {
			return 0, 0, err
		}
		info, err := os.Stat(path)
		if err != nil {
			return 0, 0, err
		}
		return info.Size(), 0, nil
	}
	at.wal = func(context.Context) (int64, error) { return 0, nil } // it is written over again and again
	return at, nil
}

// checkpoint has the log copied into the file, whose size then says everything.
func checkpoint(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
	return err
}
