package sqlite

import (
	"context"
	"time"

	"github.com/onejob-dev/onejob"
)

// JobPurge empties old jobs in place, oldest first, and shrinks tombstones. Their
// keys answer for ever.
func (s *Store) JobPurge(ctx context.Context, p onejob.JobPurgeParams) (purged int, err error) {
	err = s.write(ctx, func(x *tx) (err error) {
		if purged, err = x.forgetWaiters(p); err != nil {
			return err
		}
		steps := []struct {
			age  time.Duration
			list string
			one  func(ref onejob.JobRef, before time.Time) (bool, error)
		}{
			{p.PayloadAge, oldJobs, x.purge},
			{p.KeyAge, oldTombstones, x.shrink},
		}
		for _, step := range steps {
			if step.age <= 0 {
				continue
			}
			before := x.now.Add(-step.age)
			refs, err := x.old(step.list, before, p.Limit-purged)
			if err != nil {
				return err
			}
			for _, ref := range refs {
				done := false
				refused, err := x.row(func() (err error) { done, err = step.one(ref, before); return err })
				if err != nil {
					return err
				}
				if done && refused == nil {
					purged++
				}
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return purged, nil
}

func (x *tx) old(list string, before time.Time, limit int) (refs []onejob.JobRef, err error) {
	err = x.query(list, func(r *row) error {
		refs = append(refs, onejob.JobRef{Part: uint8(r.Int64()), ID: r.String()})
		return nil
	}, before, max(0, limit))
	return refs, err
}

const (
	// unneeded is the condition that nobody can still need the payload of a job
	// that is over: nothing is in doubt, nobody is yet to be told, and no incident is open.
	unneeded = `
		NOT EXISTS (SELECT 1 FROM attempts a WHERE a.seq = s.seq
			AND a.state IN ('starting', 'running', 'unknown'))
		AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.part = s.part AND d.job_id = s.job_id AND d.state = 'pending')
		AND NOT EXISTS (SELECT 1 FROM events e WHERE e.part = s.part AND e.job_id = s.job_id
			AND e.kind IN ('duplicate_effect', 'effect_after_close') AND e.closed_at IS NULL)`

	// settled is that of a job that is over, too.
	settled = `
		EXISTS (SELECT 1 FROM job_states s WHERE s.seq = jobs.seq AND s.finished_at <= ?
		AND ` + unneeded + `)`

	// These leave out what must stay, which would otherwise remain at the head for
	// ever and keep others from their turn.
	oldJobs = `
		SELECT s.part, s.job_id FROM job_states s
		WHERE s.finished_at <= ? AND s.purged = 0 AND ` + unneeded + `
		ORDER BY s.finished_at LIMIT ?`
	oldTombstones = `
		SELECT j.part, j.id FROM jobs j JOIN job_states s ON s.seq = j.seq
		WHERE j.created_at <= ? AND j.purged_at IS NOT NULL AND j.policy <> '' AND ` + unneeded + `
		ORDER BY j.created_at LIMIT ?`
)

// purge empties the payload. Zero rows: somebody may still need it.
func (x *tx) purge(ref onejob.JobRef, before time.Time) (purged bool, err error) {
	n, err := x.exec(`UPDATE jobs SET input = NULL, metadata = NULL, purged_at = ? WHERE part = ? AND id = ? AND purged_at IS NULL AND `+settled,
		x.now, int(ref.Part), ref.ID, before)
	if err != nil || n == 0 {
		return false, err
	}
	for _, statement := range []string{
		`UPDATE attempts SET result = NULL, result_type = NULL, usage = NULL,
			evidence = CASE WHEN json_valid(evidence) THEN json_remove(evidence, '$.excerpt') ELSE '{}' END WHERE seq = ` + seqOfJob,
		`UPDATE probes SET evidence = CASE WHEN json_valid(evidence) THEN json_remove(evidence, '$.excerpt') ELSE '{}' END
			WHERE part = ? AND attempt_id IN (SELECT a.id FROM attempts a JOIN jobs j ON j.seq = a.seq WHERE j.part = probes.part AND j.id = ?)`,
		`UPDATE deliveries SET body = NULL WHERE part = ? AND job_id = ?`,
		`DELETE FROM chunks WHERE seq = ` + seqOfJob,
		`UPDATE job_states SET purged = 1, revision = revision + 1 WHERE seq = ` + seqOfJob,
	} {
		if _, err := x.exec(statement, int(ref.Part), ref.ID); err != nil {
			return false, err
		}
	}
	return true, x.record(onejob.JobEvent{Part: ref.Part, JobID: ref.ID, Kind: onejob.EventPurged})
}

// shrink leaves what it takes to refuse the key.
func (x *tx) shrink(ref onejob.JobRef, before time.Time) (shrunk bool, err error) {
	n, err := x.exec(`
		UPDATE jobs SET key_prefix = '', create_token = '', kind = '', target = '', policy = '', priority = 0,
			supersedes = '', trace = '', webhooks = '', deadline = NULL
		WHERE part = ? AND id = ? AND purged_at IS NOT NULL AND `+settled,
		int(ref.Part), ref.ID, x.now)
	if err != nil || n == 0 {
		return false, err
	}
	for _, statement := range []string{
		`DELETE FROM events WHERE part = ? AND job_id = ?`,
		`DELETE FROM probes WHERE part = ? AND attempt_id IN (SELECT a.id FROM attempts a JOIN jobs j ON j.seq = a.seq WHERE j.part = probes.part AND j.id = ?)`,
		`DELETE FROM deliveries WHERE part = ? AND job_id = ?`,
		`DELETE FROM attempts WHERE seq = ` + seqOfJob,
		`DELETE FROM job_states WHERE seq = ` + seqOfJob,
	} {
		if _, err := x.exec(statement, int(ref.Part), ref.ID); err != nil {
			return false, err
		}
	}
	return true, nil
}
