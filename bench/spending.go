package main

import (
	"context"
	"time"
)

// spending is what was used so far.
type spending struct {
	client, database time.Duration
	wal              int64
}

// spent reads what this process and the server of a ground have used.
func (s *services) spent(ctx context.Context, g ground) (now spending, err error) {
	now.client, now.database = ownTime(), s.databaseTime(g)
	if g == onPostgres {
		err = s.admin.QueryRow(ctx, "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint").Scan(&now.wal)
	}
	return now, err
}

// databaseTime is the CPU time so far of the server of a ground. SQLite has none.
func (s *services) databaseTime(g ground) time.Duration {
	switch g {
	case onPostgres:
		return timeOf(s.postgres)
	case onRedis:
		return timeOf(s.redis.Process.Pid)
	case onSQLite, onNothing: // in whose process it is
	}
	return 0
}

// costs is what was spent on each of so many jobs since before.
func (s *services) costs(ctx context.Context, g ground, before spending, jobs int) (sample, error) {
	now, err := s.spent(ctx, g)
	if err != nil {
		return nil, err
	}
	each := func(total float64) float64 { return total / float64(max(jobs, 1)) }
	f := sample{clientCPU: each(float64((now.client - before.client).Microseconds()))}
	if g == onPostgres || g == onRedis {
		f[databaseCPU] = each(float64((now.database - before.database).Microseconds()))
	}
	if g == onPostgres {
		f[wal] = each(float64(now.wal - before.wal))
	}
	return f, nil
}

// pageImages are the bytes of images of whole pages in what was written to the log
// since a place in it.
func (s *services) pageImages(ctx context.Context, since int64) (bytes int64, err error) {
	if _, err = s.admin.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS pg_walinspect"); err != nil {
		return 0, err
	}
	err = s.admin.QueryRow(ctx, "SELECT coalesce(sum(fpi_size), 0)::bigint FROM pg_get_wal_stats('0/0'::pg_lsn + $1::bigint, pg_current_wal_flush_lsn())", since).Scan(&bytes)
	return bytes, err
}
