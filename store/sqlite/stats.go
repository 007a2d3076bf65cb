package sqlite

import (
	"context"
	"time"

	"github.com/onejob-dev/onejob"
)

// Stats counts live rows, by indexes over live rows.
func (s *Store) Stats(ctx context.Context) (onejob.Stats, error) {
	stats := onejob.Stats{
		Jobs: map[onejob.JobState]int64{}, Blocked: map[onejob.BlockReason]int64{}, UnknownByTarget: map[string]int64{},
	}
	err := s.read(ctx, func(x *tx) error {
		for _, count := range []func(*onejob.Stats) error{x.countQueued, x.countRunning, x.countBlocked, x.countUnknown, x.countDeliveries} {
			if err := count(&stats); err != nil {
				return err
			}
		}
		return nil
	})
	return stats, err
}

func (x *tx) countQueued(stats *onejob.Stats) error {
	return x.query(`
		SELECT sum(n), min(oldest) FROM (
			SELECT count(*) AS n, min(run_after) AS oldest FROM job_states WHERE state = 'queued' AND due = 1
			UNION ALL
			SELECT count(*), min(CASE WHEN run_after <= ? THEN run_after END) FROM job_states WHERE state = 'queued' AND due = 0)`, func(r *row) error {
		keep(stats.Jobs, onejob.JobQueued, r.Int64())
		stats.OldestQueued = r.Time()
		return nil
	}, x.now)
}

// countRunning comes by the attempts: a running job has one in starting or running.
func (x *tx) countRunning(stats *onejob.Stats) error {
	return x.query(`
		SELECT count(DISTINCT a.job_id) FROM attempts a JOIN job_states s ON s.seq = a.seq
		WHERE a.state IN ('starting', 'running') AND s.state = 'running'`, func(r *row) error {
		keep(stats.Jobs, onejob.JobRunning, r.Int64())
		return nil
	})
}

func (x *tx) countBlocked(stats *onejob.Stats) error {
	return x.query(`SELECT blocked_reason, count(*) FROM job_states WHERE state = 'blocked' GROUP BY blocked_reason`, func(r *row) error {
		reason, n := onejob.BlockReason(r.String()), r.Int64()
		stats.Blocked[reason] = n
		stats.Jobs[onejob.JobBlocked] += n
		return nil
	})
}

func (x *tx) countUnknown(stats *onejob.Stats) error {
	return x.query(`
		SELECT a.target, a.id, a.started_at, s.blocked FROM attempts a JOIN job_states s ON s.seq = a.seq
		WHERE a.state = 'unknown'`, func(r *row) error {
		target, id, since := r.String(), r.String(), r.Time()
		if text, isBlocked := r.Text(); isBlocked {
			var b onejob.Blocked
			if decode(text, &b) == nil && b.AttemptID == id {
				since = b.Since
			}
		}
		stats.UnknownByTarget[target]++
		stats.OldestUnknown = earliest(stats.OldestUnknown, since)
		return nil
	})
}

func (x *tx) countDeliveries(stats *onejob.Stats) error {
	return x.query(`SELECT count(*), min(since) FROM deliveries WHERE state = 'pending'`, func(r *row) error {
		stats.PendingDeliveries, stats.OldestDelivery = r.Int64(), r.Time()
		return nil
	})
}

func keep[K comparable](counts map[K]int64, of K, n int64) {
	if n > 0 {
		counts[of] = n
	}
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
