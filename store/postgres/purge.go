package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob"
)

// JobPurge implements [onejob.Store]. Payloads are emptied first, and what is left
// of limit goes to tombstones, then to waiters. What another transaction holds is left
// for the next time.
func (s *Store) JobPurge(ctx context.Context, p onejob.JobPurgeParams) (purged int, err error) {
	for _, step := range []struct {
		age time.Duration
		do  func(context.Context, onejob.JobPurgeParams) (int, error)
	}{{p.PayloadAge, s.emptyPayloads}, {p.KeyAge, s.shrinkTombstones}, {p.WaiterAge, s.forgetWaiters}} {
		if step.age <= 0 || p.Limit <= 0 {
			continue
		}
		n, err := step.do(ctx, p)
		if err != nil {
			return 0, onejob.Unavailable(err)
		}
		p.Limit -= n
		purged += n
	}
	return purged, nil
}

const (
	sqlJobsOld = `
SELECT s.part, s.job_id FROM job_states s
 WHERE s.waiting IS NULL AND NOT s.purged
   AND s.created_at <= onejob_now() - $1::bigint * interval '1 microsecond'
   AND s.finished_at <= onejob_now() - $1::bigint * interval '1 microsecond'
   AND NOT ` + sqlHeld + `
 ORDER BY s.created_at LIMIT $2
   FOR NO KEY UPDATE SKIP LOCKED`

	// Somebody may still need the payload: an attempt is in doubt, an endpoint is yet
	// to be told, or an incident is open.
	sqlHeld = `(
       EXISTS (SELECT FROM attempts a WHERE a.part = s.part AND a.job_id = s.job_id AND a.state IN ('starting', 'running', 'unknown'))
    OR EXISTS (SELECT FROM deliveries d WHERE d.part = s.part AND d.job_id = s.job_id AND d.state = 'pending')
    OR EXISTS (SELECT FROM events e WHERE e.part = s.part AND e.job_id = s.job_id
                  AND e.kind IN ('duplicate_effect', 'effect_after_close') AND e.closed_at IS NULL))`

	// Asked again once the rows are locked: what was committed while the first
	// statement waited is not in its snapshot.
	sqlJobsStillOld = `
SELECT s.part, s.job_id FROM unnest($1::smallint[], $2::text[]) AS u (part, job_id)
  JOIN job_states s ON s.part = u.part AND s.job_id = u.job_id
 WHERE s.finished_at IS NOT NULL AND NOT s.purged AND NOT ` + sqlHeld
)

const (
	sqlJobsEmpty = `
UPDATE jobs j SET input = NULL, metadata = NULL, purged_at = onejob_now()
  FROM unnest($1::smallint[], $2::text[]) AS u (part, id)
 WHERE j.part = u.part AND j.id = u.id AND j.purged_at IS NULL`

	sqlJobsPurged = `
UPDATE job_states s SET purged = true, revision = s.revision + 1
  FROM unnest($1::smallint[], $2::text[]) AS u (part, job_id)
 WHERE s.part = u.part AND s.job_id = u.job_id AND NOT s.purged`

	sqlDeliveriesEmpty = `
UPDATE deliveries d SET body = NULL
  FROM unnest($1::smallint[], $2::text[]) AS u (part, job_id)
 WHERE d.part = u.part AND d.job_id = u.job_id`

	sqlAttemptsEmpty = `
UPDATE attempts a SET result = NULL, result_type = NULL, usage = NULL, evidence = u.evidence
  FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[]) AS u (part, job_id, id, evidence)
 WHERE a.part = u.part AND a.job_id = u.job_id AND a.id = u.id`
)

func (s *Store) emptyPayloads(ctx context.Context, p onejob.JobPurgeParams) (purged int, err error) {
	err = s.inTx(ctx, sqlBegin, func(t *txn) error {
		old, err := t.jobRefs(ctx, sqlJobsOld, p.PayloadAge.Microseconds(), p.Limit)
		if err != nil || len(old) == 0 {
			return err
		}
		parts, ids := refColumns(old)
		if old, err = t.jobRefs(ctx, sqlJobsStillOld, parts, ids); err != nil {
			return err
		}
		kept, err := t.keptEvidence(ctx, old)
		if err != nil {
			return err
		}
		purged = len(old)
		b := t.batch()
		queueEmptying(b, old, kept)
		return t.commit(ctx, b)
	})
	return purged, err
}

func (t *txn) jobRefs(ctx context.Context, sql string, args ...any) (refs []onejob.JobRef, err error) {
	b := t.batch()
	b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		return forEach(rows, func(row pgx.Row) error {
			var part int16
			var ref onejob.JobRef
			err := row.Scan(&part, &ref.ID)
			ref.Part = uint8(part)
			refs = append(refs, ref)
			return err
		})
	})
	return refs, t.send(ctx, b)
}

// A probe of a purged job says what was asked and when, and no longer what was seen.
const sqlProbesEmpty = `
UPDATE probes p SET evidence = '{}'
  FROM unnest($1::smallint[], $2::text[]) AS u (part, job_id)
 WHERE p.part = u.part AND p.job_id = u.job_id`

// keptEvidence is what stays of attempts' evidence: its figures.
type keptEvidence struct {
	refs []onejob.AttemptRef
	json []string
}

const sqlEvidenceOfJobs = `
SELECT a.part, a.job_id, a.id, a.evidence FROM unnest($1::smallint[], $2::text[]) AS u (part, job_id)
  JOIN attempts a ON a.part = u.part AND a.job_id = u.job_id`

// keptEvidence reads nothing else of the jobs: one that cannot be read is emptied
// as well as any.
func (t *txn) keptEvidence(ctx context.Context, refs []onejob.JobRef) (kept keptEvidence, err error) {
	parts, ids := refColumns(refs)
	b := t.batch()
	b.Queue(sqlEvidenceOfJobs, parts, ids).Query(func(rows pgx.Rows) error {
		return forEach(rows, func(row pgx.Row) error {
			var part int16
			var ref onejob.AttemptRef
			var text string
			err := row.Scan(&part, &ref.JobID, &ref.ID, &text)
			ref.Part = uint8(part)
			kept.refs, kept.json = append(kept.refs, ref), append(kept.json, figuresOf(text))
			return err
		})
	})
	return kept, t.send(ctx, b)
}

func figuresOf(text string) string {
	var e onejob.Evidence
	if json.Unmarshal([]byte(text), &e) != nil {
		return "{}"
	}
	e.Error, e.Excerpt = "", ""
	return toJSON(e)
}

func queueEmptying(b *pgx.Batch, refs []onejob.JobRef, kept keptEvidence) {
	if len(refs) == 0 {
		return
	}
	parts, ids := refColumns(refs)
	b.Queue(sqlJobsEmpty, parts, ids)
	b.Queue(sqlJobsPurged, parts, ids)
	b.Queue(sqlProbesEmpty, parts, ids)
	b.Queue(sqlDeliveriesEmpty, parts, ids)
	b.Queue(sqlChunksDelete, parts, ids)
	attempts := attemptRefs(kept.refs)
	b.Queue(sqlAttemptsEmpty, attempts.parts, attempts.jobs, attempts.ids, kept.json)
	writeEvents(b, column(refs, func(r onejob.JobRef) onejob.JobEvent {
		return onejob.JobEvent{Part: r.Part, JobID: r.ID, Kind: onejob.EventPurged}
	}))
}

const sqlChunksDelete = `DELETE FROM chunks c USING unnest($1::smallint[], $2::text[]) AS u (part, job_id) WHERE c.part = u.part AND c.job_id = u.job_id`

// A tombstone past the life of keys keeps what it takes to refuse its key.
const (
	sqlTombstonesOld = `
SELECT s.part, s.job_id FROM jobs j JOIN job_states s ON s.part = j.part AND s.job_id = j.id
 WHERE j.purged_at IS NOT NULL AND j.policy <> ''
   AND j.created_at <= onejob_now() - $1::bigint * interval '1 microsecond'
   AND NOT ` + sqlHeld + `
 ORDER BY j.created_at LIMIT $2
   FOR UPDATE OF s SKIP LOCKED`

	// As sqlJobsStillOld.
	sqlTombstonesStillOld = `
SELECT s.part, s.job_id FROM unnest($1::smallint[], $2::text[]) AS u (part, job_id)
  JOIN job_states s ON s.part = u.part AND s.job_id = u.job_id
 WHERE NOT ` + sqlHeld

	sqlEventsDelete     = `DELETE FROM events e USING unnest($1::smallint[], $2::text[]) AS u (part, job_id) WHERE e.part = u.part AND e.job_id = u.job_id`
	sqlProbesDelete     = `DELETE FROM probes p USING unnest($1::smallint[], $2::text[]) AS u (part, job_id) WHERE p.part = u.part AND p.job_id = u.job_id`
	sqlDeliveriesDelete = `DELETE FROM deliveries d USING unnest($1::smallint[], $2::text[]) AS u (part, job_id) WHERE d.part = u.part AND d.job_id = u.job_id`
	sqlAttemptsDelete   = `DELETE FROM attempts a USING unnest($1::smallint[], $2::text[]) AS u (part, job_id) WHERE a.part = u.part AND a.job_id = u.job_id`
	sqlJobStatesDelete  = `DELETE FROM job_states s USING unnest($1::smallint[], $2::text[]) AS u (part, job_id) WHERE s.part = u.part AND s.job_id = u.job_id`

	sqlJobsShrink = `
UPDATE jobs j
   SET key_prefix = '', create_token = '', kind = '', target = '', policy = '', supersedes = '', trace = '', webhooks = '', deadline = NULL
  FROM unnest($1::smallint[], $2::text[]) AS u (part, id)
 WHERE j.part = u.part AND j.id = u.id AND j.purged_at IS NOT NULL`
)

func (s *Store) shrinkTombstones(ctx context.Context, p onejob.JobPurgeParams) (shrunk int, err error) {
	err = s.inTx(ctx, sqlBegin, func(t *txn) error {
		old, err := t.jobRefs(ctx, sqlTombstonesOld, p.KeyAge.Microseconds(), p.Limit)
		if err != nil || len(old) == 0 {
			return err
		}
		parts, ids := refColumns(old)
		if old, err = t.jobRefs(ctx, sqlTombstonesStillOld, parts, ids); err != nil {
			return err
		}
		shrunk = len(old)
		parts, ids = refColumns(old)
		b := t.batch()
		for _, sql := range []string{sqlEventsDelete, sqlProbesDelete, sqlDeliveriesDelete, sqlAttemptsDelete, sqlJobStatesDelete, sqlJobsShrink} {
			b.Queue(sql, parts, ids)
		}
		return t.commit(ctx, b)
	})
	return shrunk, err
}
