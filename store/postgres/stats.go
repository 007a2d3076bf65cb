package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onejob-dev/onejob"
)

// Every count walks a partial index over live rows: history does not slow it.
const (
	sqlStatsQueued = `
SELECT sum(n)::bigint, min(oldest)
  FROM (SELECT count(*) AS n, min(run_after) AS oldest FROM job_states WHERE waiting = 'queued' AND due
        UNION ALL
        SELECT count(*), min(run_after) FILTER (WHERE run_after <= onejob_now()) FROM job_states WHERE waiting = 'queued' AND NOT due) q`

	// A job is running by an attempt that is.
	sqlStatsRunning = `
SELECT count(*) FROM (SELECT DISTINCT part, job_id FROM attempts WHERE state IN ('starting', 'running')) a
  JOIN job_states s ON s.part = a.part AND s.job_id = a.job_id AND s.state = 'running'`

	sqlStatsBlocked = `SELECT blocked_reason, count(*) FROM job_states WHERE waiting = 'blocked' GROUP BY blocked_reason`

	// The doubt began when the attempt blocked its job, and otherwise some time
	// after it started.
	sqlStatsUnknown = `
SELECT a.target, count(*),
       min(CASE WHEN s.blocked_reason = 'attempt_unknown' AND s.blocked LIKE '%"attempt_id":"' || a.id || '"%'
                THEN substring(s.blocked FROM '"since":"([^"]+)"')::timestamptz
                ELSE a.started_at END)
  FROM attempts a JOIN job_states s ON s.part = a.part AND s.job_id = a.job_id
 WHERE a.state = 'unknown'
 GROUP BY a.target`

	sqlStatsDeliveries = `SELECT count(*), min(since) FROM deliveries WHERE state = 'pending'`
)

// Stats implements [onejob.Store].
func (s *Store) Stats(ctx context.Context) (onejob.Stats, error) {
	stats := onejob.Stats{
		Jobs:            map[onejob.JobState]int64{},
		Blocked:         map[onejob.BlockReason]int64{},
		UnknownByTarget: map[string]int64{},
	}
	counted := counting{&stats}
	err := s.read(ctx, func(t *txn) error {
		b := t.batch()
		b.Queue(sqlStatsQueued).QueryRow(func(row pgx.Row) error {
			var n int64
			var oldest pgtype.Timestamptz
			err := row.Scan(&n, &oldest)
			stats.OldestQueued = timeOf(oldest)
			count(stats.Jobs, onejob.JobQueued, n)
			return err
		})
		b.Queue(sqlStatsRunning).QueryRow(func(row pgx.Row) error {
			var n int64
			err := row.Scan(&n)
			count(stats.Jobs, onejob.JobRunning, n)
			return err
		})
		b.Queue(sqlStatsBlocked).Query(func(rows pgx.Rows) error { return forEach(rows, counted.addBlocked) })
		b.Queue(sqlStatsUnknown).Query(func(rows pgx.Rows) error { return forEach(rows, counted.addUnknown) })
		b.Queue(sqlStatsDeliveries).QueryRow(func(row pgx.Row) error {
			var oldest pgtype.Timestamptz
			err := row.Scan(&stats.PendingDeliveries, &oldest)
			stats.OldestDelivery = timeOf(oldest)
			return err
		})
		return t.commit(ctx, b)
	})
	return stats, onejob.Unavailable(err)
}

type counting struct{ *onejob.Stats }

func (c counting) addBlocked(row pgx.Row) error {
	var reason onejob.BlockReason
	var n int64
	err := row.Scan(&reason, &n)
	count(c.Blocked, reason, n)
	count(c.Jobs, onejob.JobBlocked, n)
	return err
}

func (c counting) addUnknown(row pgx.Row) error {
	var target string
	var n int64
	var since time.Time
	err := row.Scan(&target, &n, &since)
	count(c.UnknownByTarget, target, n)
	if c.OldestUnknown.IsZero() || since.Before(c.OldestUnknown) {
		c.OldestUnknown = since.UTC()
	}
	return err
}

// count adds to a count, and makes no entry for none.
func count[K comparable](counts map[K]int64, key K, n int64) {
	if n > 0 {
		counts[key] += n
	}
}
