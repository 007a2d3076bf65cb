package memory

import (
	"context"
	"time"

	"github.com/onejob-dev/onejob"
)

// Stats counts live rows.
func (s *Store) Stats(ctx context.Context) (onejob.Stats, error) {
	stats := onejob.Stats{
		Jobs: map[onejob.JobState]int64{}, Blocked: map[onejob.BlockReason]int64{}, UnknownByTarget: map[string]int64{},
	}
	now, end, err := s.begin(ctx)
	if err != nil {
		return stats, err
	}
	defer end()
	for r := range s.live {
		count(&stats, &r.job, now)
	}
	for _, d := range s.outbox {
		if d.State == onejob.DeliveryPending {
			stats.PendingDeliveries++
			stats.OldestDelivery = earliest(stats.OldestDelivery, d.since)
		}
	}
	return stats, nil
}

func count(stats *onejob.Stats, j *onejob.Job, now time.Time) {
	if !j.State.Terminal() {
		stats.Jobs[j.State]++
	}
	if j.Blocked != nil {
		stats.Blocked[j.Blocked.Reason]++
	}
	if j.State == onejob.JobQueued && !j.RunAfter.After(now) {
		stats.OldestQueued = earliest(stats.OldestQueued, j.RunAfter)
	}
	for i := range j.Attempts {
		if a := &j.Attempts[i]; a.State == onejob.AttemptUnknown {
			stats.UnknownByTarget[a.Target]++
			stats.OldestUnknown = earliest(stats.OldestUnknown, unknownSince(j, a))
		}
	}
}

// unknownSince is when the doubt began, as near as the job tells.
func unknownSince(j *onejob.Job, a *onejob.Attempt) time.Time {
	if j.Blocked != nil && j.Blocked.AttemptID == a.ID {
		return j.Blocked.Since
	}
	return a.StartedAt
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
