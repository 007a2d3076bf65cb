package postgres

import (
	"context"
	"reflect"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onejob-dev/onejob"
)

// A job that is not returned was not inserted: its key is taken. What it then is
// is asked in a statement of its own, whose snapshot is newer.
//
// first_id is the attempt that starts with the job, NULL for none; it does if the
// job is due. It is marked in this commit: what is not acknowledged is not sent.
const (
	sqlJobCreate    = sqlJobCreateHead + sqlJobCreateRows + sqlJobCreateTail
	sqlJobCreateOne = sqlJobCreateHead + sqlJobCreateRow + sqlJobCreateTail

	sqlJobCreateHead = `
WITH wanted AS MATERIALIZED (
    SELECT *, coalesce(w.deadline, onejob_now() + w.deadline_after * interval '1 microsecond') AS ends
      FROM `
	sqlJobCreateRows = `unnest($1::smallint[], $2::text[], $3::text[], $4::bytea[], $5::text[], $6::bytea[], $7::smallint[], $8::text[],
                  $9::text[], $10::bytea[], $11::text[], $12::text[], $13::smallint[], $14::text[], $15::bytea[], $16::smallint[],
                  $17::text[], $18::text[], $19::timestamptz[], $20::bigint[], $21::timestamptz[], $22::text[],
                  $23::text[], $24::text[], $25::text[], $26::text[], $27::text[], $28::bigint[], $29::bigint[], $30::bigint[], $31::text[])
           WITH ORDINALITY`
	// A row that comes alone is told without arrays, each of which would be taken apart.
	sqlJobCreateRow = `(VALUES ($1::smallint, $2::text, $3::text, $4::bytea, $5::text, $6::bytea, $7::smallint, $8::text,
                  $9::text, $10::bytea, $11::text, $12::text, $13::smallint, $14::text, $15::bytea, $16::smallint,
                  $17::text, $18::text, $19::timestamptz, $20::bigint, $21::timestamptz, $22::text,
                  $23::text, $24::text, $25::text, $26::text, $27::text, $28::bigint, $29::bigint, $30::bigint, $31::text, 1::bigint))`
	sqlJobCreateTail = `
           AS w (part, id, owner, key_hash, key_prefix, fingerprint, fingerprint_version, create_token,
                 kind, input, target, effect, lanes, policy, metadata, priority,
                 supersedes, trace, deadline, deadline_after, run_after, first_target,
                 first_id, first_token, first_worker, first_digest, first_provider_key, lease, send_within, quarantine, webhooks, ord)
), created AS (
    INSERT INTO jobs (part, id, owner, key_hash, key_prefix, fingerprint, fingerprint_version, create_token,
                      kind, input, target, effect, lanes, policy, metadata, priority, supersedes, trace, webhooks, created_at, deadline)
    SELECT part, id, owner, key_hash, key_prefix, fingerprint, fingerprint_version, create_token,
           kind, input, target, effect, lanes, policy, metadata, priority, supersedes, trace, webhooks, onejob_now(), ends
      FROM wanted ORDER BY ord
    ON CONFLICT (part, owner, key_hash) DO NOTHING
    RETURNING id
), due AS MATERIALIZED (
    SELECT w.ord, w.part, w.id, w.owner, w.priority, w.run_after, w.ends, w.webhooks <> '' AS hooked,
           w.first_target, w.first_id, w.first_token, w.first_worker, w.first_digest, w.first_provider_key,
           w.lease, w.send_within, w.quarantine,
           w.first_id IS NOT NULL
           AND coalesce(w.run_after <= onejob_now(), true)
           AND coalesce(w.ends > onejob_now(), true) AS starts
      FROM wanted w
     WHERE (w.id IN (SELECT id FROM created)) IS TRUE -- looked up in a hash, and never a join of all with all
), standing AS (
    INSERT INTO job_states (part, job_id, owner, state, attempts_made, priority, run_after, due, deadline, next_target, created_at, hooked)
    SELECT part, id, owner, CASE WHEN starts THEN 'running' ELSE 'queued' END, starts::integer, priority,
           least(coalesce(run_after, onejob_now()), ends), least(coalesce(run_after, onejob_now()), ends) <= onejob_now(), ends, first_target, onejob_now(), hooked
      FROM due
), started AS (
    INSERT INTO attempts (part, job_id, number, id, lane, lanes, target, target_digest, state, claim_token, worker,
                          lease_expires_at, send_by, quarantine_until, job_version, provider_key, phase, started_at, marked_at)
    SELECT part, id, 1, first_id, 0, NULL, first_target, first_digest, 'running', first_token, first_worker,
           onejob_now() + lease * interval '1 microsecond',
           onejob_now() + send_within * interval '1 microsecond',
           onejob_now() + quarantine * interval '1 microsecond',
           1, first_provider_key, 'not_sent', onejob_now(), onejob_now()
      FROM due WHERE starts
)
SELECT ord, starts, onejob_now(), ends, least(coalesce(run_after, onejob_now()), ends) FROM due`
)

// inserted is one row that sqlJobCreate made.
type inserted struct {
	row      int
	starts   bool
	now      time.Time
	deadline pgtype.Timestamptz
	runAfter time.Time
}

// insert makes jobs of the intents whose keys are free. The others stay pending.
func (c *creating) insert(ctx context.Context, t *txn, rows []int) error {
	if len(rows) == 0 {
		return nil
	}
	b := t.batch()
	answers := c.queueInsert(b, rows)
	c.queueWaiters(b, rows)
	if err := t.commit(ctx, b); err != nil {
		return c.refuseByRestore(t, rows, err)
	}
	c.settleInserted(*answers)
	return nil
}

// refuseByRestore leaves intents pending that a restored store did not take: a job
// that exists under their key still answers. A caller's own transaction is over.
func (c *creating) refuseByRestore(t *txn, rows []int, err error) error {
	if t.joined() || !refusedByRestore(err) {
		return err
	}
	for _, row := range rows {
		c.intents[row].refuse = onejob.ErrorOfRestore()
	}
	return nil
}

func (c *creating) queueInsert(b *pgx.Batch, rows []int) *[]inserted {
	answers := new([]inserted)
	sql, columns := sqlJobCreate, c.insertColumns(rows)
	if len(rows) == 1 {
		sql = sqlJobCreateOne
		for i := range columns {
			columns[i] = reflect.ValueOf(columns[i]).Index(0).Interface()
		}
	}
	b.Queue(sql, columns...).Query(func(r pgx.Rows) error {
		return forEach(r, func(row pgx.Row) error {
			var a inserted
			var ord int64
			if err := row.Scan(&ord, &a.starts, &a.now, &a.deadline, &a.runAfter); err != nil {
				return err
			}
			a.row = rows[ord-1]
			*answers = append(*answers, a)
			return nil
		})
	})
	return answers
}

func (c *creating) insertColumns(rows []int) []any {
	ins := column(rows, func(row int) *intent { return &c.intents[row] })
	text := func(field func(in *intent) string) []string { return column(ins, field) }
	first := func(field func(a *onejob.Attempt) string) []pgtype.Text {
		return column(ins, func(in *intent) pgtype.Text {
			if in.first == nil {
				return pgtype.Text{}
			}
			return present(field(&in.first.Attempt), true)
		})
	}
	return []any{
		column(ins, func(in *intent) int16 { return int16(in.Part) }),
		text(func(in *intent) string { return in.ID }),
		text(func(in *intent) string { return in.Owner }),
		column(ins, func(in *intent) []byte { return in.KeyHash }),
		text(func(in *intent) string { return in.KeyPrefix }),
		column(ins, func(in *intent) []byte { return in.Fingerprint }),
		column(ins, func(in *intent) int16 { return int16(in.FingerprintVersion) }),
		text(func(in *intent) string { return in.Token }),
		text(func(in *intent) string { return in.Kind }),
		column(ins, func(in *intent) []byte { return notNil(in.Input) }),
		text(func(in *intent) string { return in.Target }),
		text(func(in *intent) string { return string(in.Policy.Effect) }),
		column(ins, func(in *intent) int16 { return int16(max(in.Policy.Lanes, 1)) }),
		text(func(in *intent) string { return in.pinned.text }),
		column(ins, func(in *intent) []byte { return in.Metadata }),
		column(ins, func(in *intent) int16 { return int16(in.Priority) }),
		text(func(in *intent) string { return in.Supersedes }),
		text(func(in *intent) string { return in.Trace }),
		column(ins, func(in *intent) pgtype.Timestamptz { return stamp(in.Deadline) }),
		column(ins, func(in *intent) pgtype.Int8 { return span(in.Policy.Deadline) }),
		column(ins, func(in *intent) pgtype.Timestamptz { return stamp(in.RunAfter) }),
		text(func(in *intent) string { return in.target }),
		first(func(a *onejob.Attempt) string { return a.ID }),
		first(func(a *onejob.Attempt) string { return a.ClaimToken }),
		first(func(a *onejob.Attempt) string { return a.Worker }),
		first(func(a *onejob.Attempt) string { return a.TargetDigest }),
		first(func(a *onejob.Attempt) string { return a.ProviderKey }),
		column(ins, func(in *intent) int64 { return in.spans().lease.Microseconds() }),
		column(ins, func(in *intent) int64 { return in.spans().sendWithin.Microseconds() }),
		column(ins, func(in *intent) pgtype.Int8 { return span(in.spans().quarantine) }),
		text(func(in *intent) string { return onejob.EncodeSubscriptions(in.Webhooks) }),
	}
}

// spans are the lengths of a mark, all of them counted from its commit.
type spans struct {
	lease, sendWithin time.Duration
	quarantine        time.Duration // zero: it has no known end
}

func spansOf(lease, sendWithin, maxExecution time.Duration) spans {
	s := spans{lease: lease, sendWithin: sendWithin}
	marked := time.Unix(0, 0)
	if end := onejob.QuarantineEnd(marked.Add(sendWithin), sendWithin, maxExecution); !end.IsZero() {
		s.quarantine = end.Sub(marked)
	}
	return s
}

func (in *intent) spans() spans {
	if in.Start == nil {
		return spans{}
	}
	return spansOf(in.Start.Lease, in.Policy.SendWithin, in.Start.Targets[in.target].MaxExecution)
}

func (c *creating) settleInserted(answers []inserted) {
	for _, a := range answers {
		in := &c.intents[a.row]
		job := in.job()
		job.CreatedAt, job.Deadline, job.RunAfter = a.now.UTC(), timeOf(a.deadline), a.runAfter.UTC()
		job.NextTarget = in.target
		r := onejob.JobCreateResult{Job: &job}
		if a.starts {
			job.State, job.AttemptsMade = onejob.JobRunning, 1
			r.Started = in.started(job, a.now.UTC())
			job.Attempts = r.Started.Job.Attempts
		}
		c.settle(a.row, r)
	}
}

// started is the first attempt as it was written, marked, with a job of its own
// that carries the input.
func (in *intent) started(job onejob.Job, now time.Time) *onejob.Claimed {
	a, s := in.first.Attempt, in.spans()
	a.State, a.StartedAt, a.MarkedAt = onejob.AttemptRunning, now, now
	a.LeaseExpiresAt, a.SendBy = now.Add(s.lease.Truncate(time.Microsecond)), now.Add(s.sendWithin.Truncate(time.Microsecond))
	if s.quarantine > 0 {
		a.QuarantineUntil = now.Add(s.quarantine.Truncate(time.Microsecond))
	}
	job.Attempts = []onejob.Attempt{a}
	job.Input = in.Input
	return &onejob.Claimed{Job: &job, Attempt: a}
}

// span is a length in microseconds, NULL for none.
func span(d time.Duration) pgtype.Int8 {
	return pgtype.Int8{Int64: d.Microseconds(), Valid: d > 0}
}

func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func affected(n *int64) func(tag pgconn.CommandTag) error {
	return func(tag pgconn.CommandTag) error {
		*n = tag.RowsAffected()
		return nil
	}
}
