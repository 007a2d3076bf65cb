package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob"
)

const sqlAttemptExpired = `
SELECT part, job_id, id FROM attempts
 WHERE state IN ('starting', 'running') AND lease_expires_at <= onejob_now()
   AND outcome IS DISTINCT FROM 'accepted' AND ` + sqlUnrestored + `
 ORDER BY lease_expires_at, id LIMIT $1`

// AttemptExpired implements [onejob.Store].
func (s *Store) AttemptExpired(ctx context.Context, limit int) ([]onejob.AttemptRef, error) {
	rows, err := s.pool.Query(ctx, sqlAttemptExpired, max(limit, 0))
	if err != nil {
		return nil, onejob.Unavailable(err)
	}
	var refs []onejob.AttemptRef
	err = forEach(rows, func(row pgx.Row) error {
		ref, err := scanRef(row)
		refs = append(refs, ref)
		return err
	})
	return refs, onejob.Unavailable(err)
}

// An attempt that its provider has accepted needs no worker: the end of its lease
// ends nothing. Nor does any in a restored copy, where a lease says nothing.
//
// The mark is committed before the wire, so what is found in starting was never
// sent, and what was marked is in doubt. A missing row: the attempt was renewed,
// finished or ended by another sweep since it was listed.
const sqlAttemptExpire = `
UPDATE attempts a
   SET state       = CASE a.state WHEN 'starting' THEN 'failed' ELSE 'unknown' END,
       outcome     = CASE a.state WHEN 'starting' THEN 'not_executed' ELSE 'unknown' END,
       next        = CASE a.state WHEN 'starting' THEN 'again' END,
       own_fault   = a.state = 'starting',
       finished_at = CASE a.state WHEN 'starting' THEN onejob_now() END,
       evidence    = CASE a.state WHEN 'starting' THEN u.not_sent ELSE u.in_doubt END,
       lease_over_at = onejob_now(), error_code = $7,
       error       = 'the lease of worker ' || a.worker || CASE a.state WHEN 'starting' THEN ' ended before anything was sent' ELSE ' ended without word' END,
       probe_at    = CASE a.state WHEN 'running' THEN onejob_now() END,
       ask_at      = CASE a.state WHEN 'running' THEN coalesce(a.ask_at, onejob_now() + u.ask_after * interval '1 microsecond') END
  FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[])
       AS u (part, job_id, id, not_sent, in_doubt, ask_after)
 WHERE a.part = u.part AND a.job_id = u.job_id AND a.id = u.id
   AND a.state IN ('starting', 'running') AND a.lease_expires_at <= onejob_now()
   AND a.outcome IS DISTINCT FROM 'accepted' AND ` + sqlUnrestored + `
RETURNING ` + attemptColumns + withoutResult

// AttemptExpire implements [onejob.Store].
func (s *Store) AttemptExpire(ctx context.Context, refs []onejob.AttemptRef) ([]onejob.AttemptRef, error) {
	expired := make([]bool, len(refs))
	act := func(ctx context.Context, t *txn, rows []int) error { return expireAll(ctx, t, refs, rows, expired) }
	fail := func(int, error) {} // the next sweep finds it again
	err := s.hastily().inWaves(ctx, len(refs), func(row int) string { return refs[row].ID }, act, fail)
	if err != nil {
		return nil, err
	}
	var changed []onejob.AttemptRef
	for i, ref := range refs {
		if expired[i] {
			changed = append(changed, ref)
		}
	}
	return changed, nil
}

func expireAll(ctx context.Context, t *txn, refs []onejob.AttemptRef, rows []int, expired []bool) error {
	b := t.batch()
	l := load(b, column(rows, func(row int) onejob.JobRef { return jobOf(refs[row]) }), loading{terms: t.terms, lock: true})
	if err := t.send(ctx, b); err != nil {
		return err
	}
	var attempts []onejob.Attempt
	for _, row := range rows {
		if a := l.attempt(refs[row]); a != nil {
			attempts = append(attempts, *a)
		}
	}
	var moved []onejob.Attempt
	b = t.batch()
	queueExpiry(b, l, attempts, &moved)
	if err := t.send(ctx, b); err != nil {
		return err
	}
	l.merge(moved)
	if err := t.conclude(ctx, t.batch(), l, moved, nil); err != nil {
		return err
	}
	ended := settled{moved: moved}
	for _, row := range rows {
		expired[row] = ended.has(refs[row].ID)
	}
	return nil
}

func queueExpiry(b *pgx.Batch, l *loaded, attempts []onejob.Attempt, moved *[]onejob.Attempt) {
	evidence := func(a onejob.Attempt, format string) string {
		a.Evidence.Error = fmt.Sprintf(format, a.Worker) // the rest of what was seen is kept
		return toJSON(a.Evidence)
	}
	b.Queue(sqlAttemptExpire,
		column(attempts, func(a onejob.Attempt) int16 { return int16(a.Part) }),
		column(attempts, func(a onejob.Attempt) string { return a.JobID }),
		column(attempts, func(a onejob.Attempt) string { return a.ID }),
		column(attempts, func(a onejob.Attempt) string {
			return evidence(a, "the lease of worker %s ended before anything was sent")
		}),
		column(attempts, func(a onejob.Attempt) string { return evidence(a, "the lease of worker %s ended without word") }),
		column(attempts, func(a onejob.Attempt) int64 {
			return l.job(onejob.JobRef{Part: a.Part, ID: a.JobID}).Policy.AskAfter.Microseconds()
		}),
		onejob.FailureLeaseOver,
	).Query(func(rows pgx.Rows) error {
		return forEach(rows, func(row pgx.Row) error {
			a, err := scanAttempt(row)
			*moved = append(*moved, a)
			return err
		})
	})
}
