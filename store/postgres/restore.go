package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onejob-dev/onejob"
)

// stateRestored is the SQLSTATE of the triggers that keep new work out of a store
// whose restore is not confirmed.
const stateRestored = "OJ001"

func refusedByRestore(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == stateRestored
}

// sqlUnrestored is the condition that nobody waits for a restore to be confirmed.
const sqlUnrestored = `NOT EXISTS (SELECT FROM store_generation WHERE restored_at IS NOT NULL)`

const (
	sqlGenerationColumns = `number, restored_at, confirmed_at, coalesce(confirmed_by, '')`
	sqlGeneration        = `SELECT ` + sqlGenerationColumns + ` FROM store_generation WHERE id = 1`
	sqlGenerationAdvance = `UPDATE store_generation SET number = number + 1 WHERE id = 1 RETURNING ` + sqlGenerationColumns

	// Zero rows: the store is not behind. Whoever says so first moves it ahead of all
	// who have seen about as much.
	sqlRestoreDeclare = `
UPDATE store_generation SET number = $2::bigint, restored_at = onejob_now()
 WHERE id = 1 AND number < $1::bigint`

	// Zero rows: there is something left to hold, or nothing to confirm.
	sqlRestoreConfirm = `
UPDATE store_generation g SET restored_at = NULL, confirmed_at = onejob_now(), confirmed_by = $1
 WHERE g.id = 1 AND g.restored_at IS NOT NULL
   AND NOT EXISTS (SELECT FROM attempts a WHERE a.state IN ('starting', 'running') AND a.outcome IS DISTINCT FROM 'accepted')
   AND NOT EXISTS (SELECT FROM attempts a WHERE a.state = 'running' AND a.outcome = 'accepted')
   AND NOT EXISTS (SELECT FROM job_states s WHERE s.waiting = 'queued' AND (s.held_at IS NULL OR s.held_at < g.restored_at))
   AND NOT EXISTS (SELECT FROM job_states s WHERE s.waiting = 'blocked' AND s.held_at IS NULL)
   AND NOT EXISTS (SELECT FROM job_states s WHERE s.waiting = 'blocked' AND s.held_at < g.restored_at)`
)

func scanGeneration(row pgx.Row) (g onejob.Generation, err error) {
	var restored, confirmed pgtype.Timestamptz
	err = row.Scan(&g.Number, &restored, &confirmed, &g.ConfirmedBy)
	g.RestoredAt, g.ConfirmedAt = timeOf(restored), timeOf(confirmed)
	return g, err
}

// Generation implements [onejob.RestoreStore].
func (s *Store) Generation(ctx context.Context) (onejob.Generation, error) {
	return s.generation(s.pool.QueryRow(ctx, sqlGeneration))
}

// GenerationAdvance implements [onejob.RestoreStore].
func (s *Store) GenerationAdvance(ctx context.Context) (onejob.Generation, error) {
	return s.generation(s.pool.QueryRow(ctx, sqlGenerationAdvance))
}

// generation reads a number and remembers it as seen.
func (s *Store) generation(row pgx.Row) (onejob.Generation, error) {
	g, err := scanGeneration(row)
	if err != nil {
		return g, onejob.Unavailable(err)
	}
	s.seen.raise(g.Number)
	return g, nil
}

// RestoreDeclare implements [onejob.RestoreStore].
func (s *Store) RestoreDeclare(ctx context.Context, p onejob.RestoreDeclareParams) (onejob.Generation, error) {
	err := s.audited(ctx, func(ctx context.Context, t *txn) (entries []onejob.AuditEntry, err error) {
		b := t.batch()
		b.Queue(sqlRestoreDeclare+` RETURNING `+sqlGenerationColumns, p.Seen, onejob.GenerationBeyond(p.Seen)).Query(func(rows pgx.Rows) error {
			return forEach(rows, func(row pgx.Row) error {
				g, err := scanGeneration(row)
				if entry, byPerson := p.AuditOf(g); byPerson {
					entries = append(entries, entry)
				}
				return err
			})
		})
		return entries, t.send(ctx, b)
	})
	if err != nil {
		return onejob.Generation{}, err
	}
	return s.Generation(ctx)
}

// RestoreConfirm implements [onejob.RestoreStore].
func (s *Store) RestoreConfirm(ctx context.Context, actor string) (onejob.Generation, error) {
	err := s.audited(ctx, func(ctx context.Context, t *txn) ([]onejob.AuditEntry, error) {
		var restored onejob.Generation
		var confirmed int64
		b := t.batch()
		b.Queue(sqlGeneration + ` FOR UPDATE`).QueryRow(func(row pgx.Row) (err error) {
			restored, err = scanGeneration(row)
			return err
		})
		b.Queue(sqlRestoreConfirm, clean(actor)).Exec(affected(&confirmed))
		if err := t.send(ctx, b); err != nil || confirmed == 0 {
			return nil, err
		}
		return []onejob.AuditEntry{restored.AuditOfConfirm(actor)}, nil
	})
	if err != nil {
		return onejob.Generation{}, err
	}
	g, err := s.Generation(ctx)
	if err == nil && g.Unconfirmed() {
		err = onejob.ErrorOfHold()
	}
	return g, err
}

// arrive looks at the database that a new connection leads to: a restored one is
// never met on an old connection. A database without a schema has nothing to lose.
func (s *seen) arrive(ctx context.Context, conn *pgx.Conn) error {
	known := s.number.Load() // before the reading, which of a store that lives on is no less
	g, err := scanGeneration(conn.QueryRow(ctx, sqlGeneration))
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && pg.Code == "42P01":
		return nil // no such table
	case err != nil:
		return err
	case g.Number < known:
		_, err = conn.Exec(ctx, sqlRestoreDeclare, known, onejob.GenerationBeyond(known))
		return err
	}
	s.raise(g.Number)
	return nil
}

// What has still to be held: attempts under way first, which are few.
const (
	sqlAttemptsUnderWay = `
(SELECT part, job_id, id FROM attempts WHERE state IN ('starting', 'running') AND outcome IS DISTINCT FROM 'accepted' LIMIT $1)
UNION ALL
(SELECT part, job_id, id FROM attempts WHERE state = 'running' AND outcome = 'accepted' LIMIT $1)
LIMIT $1`
	sqlJobsToHold = `
(SELECT s.part, s.job_id, '' FROM job_states s WHERE s.waiting = 'queued' AND (s.held_at IS NULL OR s.held_at < $1) LIMIT $2)
UNION ALL
(SELECT s.part, s.job_id, '' FROM job_states s WHERE s.waiting = 'blocked' AND s.held_at IS NULL LIMIT $2)
UNION ALL
(SELECT s.part, s.job_id, '' FROM job_states s WHERE s.waiting = 'blocked' AND s.held_at < $1 LIMIT $2)
LIMIT $2`
)

// RestoreHold implements [onejob.RestoreStore].
func (s *Store) RestoreHold(ctx context.Context, limit int) (held onejob.RestoreHeld, err error) {
	g, err := s.Generation(ctx)
	if err != nil || !g.Unconfirmed() {
		return held, err
	}
	refs, err := s.refs(ctx, sqlAttemptsUnderWay, max(0, limit))
	if err != nil {
		return held, err
	}
	more, err := s.refs(ctx, sqlJobsToHold, stamp(g.RestoredAt), max(0, limit-len(refs)))
	if err != nil {
		return held, err
	}
	jobs := distinct(column(append(refs, more...), jobOf))
	done := make([]onejob.RestoreHeld, len(jobs))
	act := func(ctx context.Context, t *txn, rows []int) error { return holdAll(ctx, t, jobs, rows, done) }
	fail := func(row int, err error) { done[row] = s.holdUnread(ctx, jobs[row], g.RestoredAt, err) }
	if err := s.inWaves(ctx, len(jobs), func(row int) string { return jobs[row].ID }, act, fail); err != nil {
		return held, err
	}
	for _, d := range done {
		held.Attempts, held.Jobs = append(held.Attempts, d.Attempts...), append(held.Jobs, d.Jobs...)
	}
	return held, nil
}

func (s *Store) refs(ctx context.Context, sql string, args ...any) (refs []onejob.AttemptRef, err error) {
	rows, err := s.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, onejob.Unavailable(err)
	}
	err = forEach(rows, func(row pgx.Row) error {
		ref, err := scanRef(row)
		refs = append(refs, ref)
		return err
	})
	return refs, onejob.Unavailable(err)
}

// Whether it is still to be held is asked again under a lock, which a confirmation
// waits for.
const sqlRestoredLock = `SELECT restored_at FROM store_generation WHERE id = 1 FOR SHARE`

// holdAll holds jobs that are open, and makes their attempts under way unknown.
func holdAll(ctx context.Context, t *txn, jobs []onejob.JobRef, rows []int, done []onejob.RestoreHeld) error {
	var restored pgtype.Timestamptz
	b := t.batch()
	b.Queue(sqlRestoredLock).QueryRow(func(row pgx.Row) error { return row.Scan(&restored) })
	l := load(b, column(rows, func(row int) onejob.JobRef { return jobs[row] }), loading{terms: t.terms, lock: true})
	if err := t.send(ctx, b); err != nil {
		return err
	}
	if !restored.Valid {
		return nil // confirmed meanwhile
	}
	moved, err := t.restoreAttempts(ctx, l)
	if err != nil {
		return err
	}
	touched := jobsOf(moved)
	held := map[onejob.JobRef]*onejob.RestoreHeld{}
	for _, row := range rows {
		done[row] = onejob.RestoreHeld{}
		held[jobs[row]] = &done[row]
		if job := l.job(jobs[row]); job != nil && !job.State.Terminal() && job.HeldAt.Before(timeOf(restored)) {
			job.HeldAt = timeOf(restored)
			touched = append(touched, jobs[row])
			done[row].Jobs = []onejob.JobRef{jobs[row]}
		}
	}
	for _, a := range moved {
		d := held[onejob.JobRef{Part: a.Part, ID: a.JobID}]
		d.Attempts = append(d.Attempts, onejob.AttemptRef{Part: a.Part, JobID: a.JobID, ID: a.ID})
	}
	return t.concludeJobs(ctx, t.batch(), l, distinct(touched), nil)
}

const sqlAttemptRestore = `
UPDATE attempts a
   SET state = 'unknown', outcome = 'unknown', error_code = $6, error = $7, evidence = u.evidence,
       probe_at = onejob_now(),
       ask_at = coalesce(a.ask_at, onejob_now() + u.ask_after * interval '1 microsecond')
  FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::bigint[]) AS u (part, job_id, id, evidence, ask_after)
 WHERE a.part = u.part AND a.job_id = u.job_id AND a.id = u.id
   AND a.state IN ('starting', 'running')
RETURNING ` + attemptColumns + withoutResult

// restoreAttempts makes the attempts under way of loaded jobs unknown.
func (t *txn) restoreAttempts(ctx context.Context, l *loaded) (moved []onejob.Attempt, err error) {
	var underWay []onejob.Attempt
	for _, job := range l.jobs {
		for _, a := range job.Attempts {
			if onejob.RestoreAttempt(&a) {
				underWay = append(underWay, a)
			}
		}
	}
	if len(underWay) == 0 {
		return nil, nil
	}
	b := t.batch()
	b.Queue(sqlAttemptRestore,
		column(underWay, func(a onejob.Attempt) int16 { return int16(a.Part) }),
		column(underWay, func(a onejob.Attempt) string { return a.JobID }),
		column(underWay, func(a onejob.Attempt) string { return a.ID }),
		column(underWay, func(a onejob.Attempt) string { return toJSON(a.Evidence) }),
		column(underWay, func(a onejob.Attempt) int64 {
			return l.job(onejob.JobRef{Part: a.Part, ID: a.JobID}).Policy.AskAfter.Microseconds()
		}),
		onejob.FailureRestored, onejob.EvidenceOfRestore,
	).Query(func(rows pgx.Rows) error {
		return forEach(rows, func(row pgx.Row) error {
			a, err := scanAttempt(row)
			moved = append(moved, a)
			return err
		})
	})
	if err := t.send(ctx, b); err != nil {
		return nil, err
	}
	l.merge(moved)
	return moved, nil
}

// A job whose rows cannot be read would keep the restore from being confirmed.
const (
	sqlAttemptRestoreUnread = `
UPDATE attempts SET state = 'unknown', outcome = 'unknown', error_code = $3, error = $4
 WHERE part = $1 AND job_id = $2 AND state IN ('starting', 'running')`
	sqlJobHoldUnread = `
UPDATE job_states SET state = 'blocked', blocked = $4, blocked_reason = $5, held_at = $3, revision = revision + 1
 WHERE part = $1 AND job_id = $2 AND state IN ('queued', 'running', 'blocked')`
)

// holdUnread blocks a job as it lies, because of err. What fails here too is found
// again by the next batch.
func (s *Store) holdUnread(ctx context.Context, ref onejob.JobRef, since time.Time, err error) onejob.RestoreHeld {
	if inTheWay(err) || errors.Is(err, onejob.ErrStoreUnavailable) {
		return onejob.RestoreHeld{Jobs: []onejob.JobRef{ref}} // not yet: somebody holds its row
	}
	s.log.ErrorContext(ctx, "a job of the restored store cannot be read; it is blocked as it is", "job_id", ref.ID, "error", err)
	blocked := onejob.Blocked{Reason: onejob.BlockNeedsOperator, Since: s.clock.about(), Detail: "its rows cannot be read since the store was restored"}
	failed := s.inTx(ctx, sqlBegin, func(t *txn) error {
		b := t.batch()
		b.Queue(sqlAttemptRestoreUnread, int16(ref.Part), ref.ID, onejob.FailureRestored, onejob.EvidenceOfRestore)
		b.Queue(sqlJobHoldUnread, int16(ref.Part), ref.ID, stamp(since), toJSON(blocked), string(blocked.Reason))
		return t.commit(ctx, b)
	})
	if failed != nil {
		s.log.ErrorContext(ctx, "a job of the restored store cannot be held", "job_id", ref.ID, "error", failed)
	}
	return onejob.RestoreHeld{Jobs: []onejob.JobRef{ref}}
}
