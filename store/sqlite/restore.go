package sqlite

import (
	"context"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
)

// unrestored is the condition that nobody waits for a restore to be confirmed.
const unrestored = `NOT EXISTS (SELECT 1 FROM store_generation WHERE restored_at IS NOT NULL)`

// unheld is the condition that a job is not held since a restore yet. Its parameter
// is when the store was restored.
const unheld = `(held_at IS NULL OR held_at < ?)`

// refusedByRestore reports whether a trigger kept new work out of a restored store.
func refusedByRestore(err error) bool {
	return err != nil && concernsRow(err) && strings.Contains(err.Error(), "restore unconfirmed")
}

// Generation reads where the store is.
func (s *Store) Generation(ctx context.Context) (g onejob.Generation, err error) {
	err = s.read(ctx, func(x *tx) error {
		g, err = x.generation()
		return err
	})
	return g, err
}

func (x *tx) generation() (g onejob.Generation, err error) {
	err = x.query(`SELECT number, restored_at, confirmed_at, confirmed_by FROM store_generation WHERE id = 1`, func(r *row) error {
		g = onejob.Generation{Number: r.Int64(), RestoredAt: r.Time(), ConfirmedAt: r.Time(), ConfirmedBy: r.String()}
		return nil
	})
	return g, err
}

// GenerationAdvance makes the number one higher.
func (s *Store) GenerationAdvance(ctx context.Context) (onejob.Generation, error) {
	return s.generationAfter(ctx, `UPDATE store_generation SET number = number + 1 WHERE id = 1`)
}

// RestoreDeclare says that somebody has seen a number. Zero rows: the store is not
// behind it.
func (s *Store) RestoreDeclare(ctx context.Context, p onejob.RestoreDeclareParams) (g onejob.Generation, err error) {
	err = s.write(ctx, func(x *tx) error {
		n, err := x.exec(`
			UPDATE store_generation SET number = ?, restored_at = ?
			WHERE id = 1 AND number < ?`, onejob.GenerationBeyond(p.Seen), x.now, p.Seen)
		if err != nil {
			return err
		}
		g, err = x.generation()
		if entry, byPerson := p.AuditOf(g); err == nil && n == 1 && byPerson {
			err = x.audit(entry)
		}
		return err
	})
	return g, err
}

func (s *Store) generationAfter(ctx context.Context, change string, args ...any) (g onejob.Generation, err error) {
	err = s.write(ctx, func(x *tx) error {
		if _, err := x.exec(change, args...); err != nil {
			return err
		}
		g, err = x.generation()
		return err
	})
	return g, err
}

// RestoreHold makes attempts under way unknown and holds open jobs, attempts first:
// they are few, and what is said of them is wrong the longest.
func (s *Store) RestoreHold(ctx context.Context, limit int) (held onejob.RestoreHeld, err error) {
	err = s.write(ctx, func(x *tx) error {
		held = onejob.RestoreHeld{}
		g, err := x.generation()
		if err != nil || !g.Unconfirmed() {
			return err
		}
		underWay, err := x.attemptRefs(`
			SELECT part, job_id, id FROM attempts WHERE state IN ('starting', 'running') LIMIT ?`, max(0, limit))
		if err != nil {
			return err
		}
		jobs := map[onejob.JobRef]bool{}
		for _, ref := range underWay {
			if err := x.restoreAttempt(ref); err != nil {
				return err
			}
			held.Attempts = append(held.Attempts, ref)
			jobs[onejob.JobRef{Part: ref.Part, ID: ref.JobID}] = true
		}
		open, err := x.jobsToHold(g.RestoredAt, max(0, limit-len(underWay)))
		for _, ref := range open {
			jobs[ref] = true
		}
		for ref := range jobs {
			if err == nil {
				err = s.hold(x, ref, g.RestoredAt, &held)
			}
		}
		return err
	})
	if err != nil {
		return onejob.RestoreHeld{}, err
	}
	return held, nil
}

// restoreAttempt makes one attempt unknown, and due to be asked about.
func (x *tx) restoreAttempt(ref onejob.AttemptRef) error {
	_, err := x.exec(`
		UPDATE attempts SET state = 'unknown', outcome = 'unknown', error_code = ?, error = ?, unknown_at = ?,
			evidence = json_set(CASE WHEN json_valid(evidence) THEN evidence ELSE '{}' END, '$.error', ?)
		WHERE `+thisAttempt+` AND `+sources(onejob.EventRestored),
		onejob.FailureRestored, onejob.EvidenceOfRestore, x.now, onejob.EvidenceOfRestore, int(ref.Part), ref.JobID, ref.ID)
	if err != nil {
		return err
	}
	return x.ask(ref)
}

// jobsToHold lists open jobs without an attempt under way that are not held yet.
func (x *tx) jobsToHold(since time.Time, limit int) (refs []onejob.JobRef, err error) {
	for _, state := range []string{"queued", "blocked"} {
		err = x.query(`SELECT part, job_id FROM job_states WHERE state = '`+state+`' AND `+unheld+` LIMIT ?`, func(r *row) error {
			refs = append(refs, onejob.JobRef{Part: uint8(r.Int64()), ID: r.String()})
			return nil
		}, since, limit-len(refs))
		if err != nil {
			return nil, err
		}
	}
	return refs, nil
}

// hold holds one job, unless it has ended. One whose rows cannot be read is blocked
// as it lies: it would keep the restore from being confirmed.
func (s *Store) hold(x *tx, ref onejob.JobRef, since time.Time, held *onejob.RestoreHeld) error {
	n, err := x.exec(`UPDATE job_states SET held_at = ? WHERE seq = `+seqOfJob+` AND `+open+` AND `+unheld,
		since, int(ref.Part), ref.ID, since)
	if err != nil {
		return err
	}
	if n == 1 {
		held.Jobs = append(held.Jobs, ref)
	}
	refused, err := x.row(func() error {
		_, err := x.changed(ref.Part, ref.ID)
		return err
	})
	if err != nil || refused == nil {
		return err
	}
	s.log.Error("a job of the restored store cannot be read; it is blocked as it is", "job_id", ref.ID, "error", refused)
	_, err = x.exec(`
		UPDATE job_states SET state = 'blocked', blocked = ?, blocked_reason = ?, revision = revision + 1
		WHERE seq = `+seqOfJob+` AND `+open,
		encode(onejob.Blocked{Reason: onejob.BlockNeedsOperator, Since: x.now, Detail: "its rows cannot be read since the store was restored"}),
		string(onejob.BlockNeedsOperator), int(ref.Part), ref.ID)
	return err
}

// RestoreConfirm lets the store take work again. Zero rows: there is something left
// to hold, or nothing to confirm.
func (s *Store) RestoreConfirm(ctx context.Context, actor string) (g onejob.Generation, err error) {
	err = s.write(ctx, func(x *tx) error {
		restored, err := x.generation()
		if err != nil {
			return err
		}
		n, err := x.exec(`
			UPDATE store_generation SET restored_at = NULL, confirmed_at = ?, confirmed_by = ?
			WHERE id = 1 AND restored_at IS NOT NULL
				AND NOT EXISTS (SELECT 1 FROM attempts WHERE state IN ('starting', 'running'))
				AND NOT EXISTS (SELECT 1 FROM job_states WHERE state = 'queued' AND (held_at IS NULL OR held_at < restored_at))
				AND NOT EXISTS (SELECT 1 FROM job_states WHERE state = 'blocked' AND (held_at IS NULL OR held_at < restored_at))`,
			x.now, actor)
		if err == nil && n == 1 {
			err = x.audit(restored.AuditOfConfirm(actor))
		}
		if err != nil {
			return err
		}
		if g, err = x.generation(); err == nil && g.Unconfirmed() {
			err = onejob.ErrorOfHold()
		}
		return err
	})
	return g, err
}
