package postgres

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onejob-dev/onejob"
)

// stored is the part of a job that never changes, under a key that is taken. It
// outlives all else of the job.
type stored struct {
	job   onejob.Job // its key, fingerprint and, once emptied, PurgedAt
	token string
}

// A missing row: the key is free, whatever the insert before saw; its other
// creator rolled back.
const sqlJobsByKey = `
SELECT j.part, j.id, j.owner, j.key_hash, j.fingerprint, j.fingerprint_version, j.create_token, j.created_at, j.purged_at
  FROM unnest($1::smallint[], $2::text[], $3::bytea[]) AS u (part, owner, key_hash)
  JOIN jobs j ON j.part = u.part AND j.owner = u.owner AND j.key_hash = u.key_hash`

// find looks the keys of all pending intents up, and returns those that exist.
// The rest is refused, or tried again as the next round's first of its key.
func (c *creating) find(ctx context.Context, db querier) (found []int, err error) {
	rows, byKey := c.pending(), map[string]*stored{}
	ins := column(rows, func(row int) *intent { return &c.intents[row] })
	answer, err := db.Query(ctx, sqlJobsByKey,
		column(ins, func(in *intent) int16 { return int16(in.Part) }),
		column(ins, func(in *intent) string { return in.Owner }),
		column(ins, func(in *intent) []byte { return in.KeyHash }))
	if err != nil {
		return nil, err
	}
	if err := forEach(answer, func(row pgx.Row) error { return addStored(byKey, row) }); err != nil {
		return nil, err
	}
	for _, row := range rows {
		in := &c.intents[row]
		if in.stored = byKey[keyOf(in.Part, in.Owner, in.KeyHash)]; in.stored != nil {
			in.rememberFingerprint()
			found = append(found, row)
			continue
		}
		c.settleFree(row)
	}
	return found, nil
}

func addStored(byKey map[string]*stored, row pgx.Row) error {
	var (
		s         stored
		part      int16
		createdAt time.Time
		purged    pgtype.Timestamptz
	)
	err := row.Scan(&part, &s.job.ID, &s.job.Owner, &s.job.KeyHash, &s.job.Fingerprint, &s.job.FingerprintVersion, &s.token, &createdAt, &purged)
	s.job.Part, s.job.CreatedAt, s.job.PurgedAt = uint8(part), createdAt.UTC(), timeOf(purged)
	byKey[keyOf(s.job.Part, s.job.Owner, s.job.KeyHash)] = &s
	return err
}

// rememberFingerprint computes the fingerprint under the row's version now, while
// no connection is held for it.
func (in *intent) rememberFingerprint() {
	version := in.stored.job.FingerprintVersion
	if in.FingerprintFunc == nil || version == in.FingerprintVersion {
		return
	}
	fingerprint, err := in.FingerprintFunc(version)
	in.FingerprintFunc = func(int) ([]byte, error) { return fingerprint, err }
}

// settleFree deals with an intent whose key is not taken.
func (c *creating) settleFree(row int) {
	in := &c.intents[row]
	switch {
	case in.led && in.refuse != nil:
		c.fail(row, in.refuse)
	case in.led:
		if in.tries++; in.tries == createTries {
			c.fail(row, &onejob.Error{
				Code: onejob.CodeStoreUnavailable, RetryAfter: time.Second,
				Message: "the key was taken and freed again and again; repeat with the same idempotency key",
			})
		}
	}
}

// A repeat, a conflict too, is acknowledged as durably as the first: this write and
// its commit come before the answer. Zero repeats, for a creation that did not hear
// its own acknowledgement, are written all the same.
const sqlJobReplay = `
UPDATE job_states s SET replays = s.replays + u.repeats
  FROM unnest($1::smallint[], $2::text[], $3::integer[]) AS u (part, job_id, repeats)
 WHERE s.part = u.part AND s.job_id = u.job_id`

// A repeat inside a caller's own transaction must not hold the job's state until
// that ends: the job could not finish. This lock is in nobody's way, and makes the
// commit as durable as a write does.
const sqlJobHold = `
SELECT FROM unnest($1::smallint[], $2::text[]) AS u (part, id)
  JOIN jobs j ON j.part = u.part AND j.id = u.id
 ORDER BY j.part, j.id
   FOR KEY SHARE OF j`

// repeat answers intents whose keys exist with their jobs as they are now.
func (c *creating) repeat(ctx context.Context, t *txn, rows []int) error {
	if len(rows) == 0 {
		return nil
	}
	b := t.batch()
	l := load(b, column(rows, func(row int) onejob.JobRef { return c.intents[row].stored.ref() }), loading{lock: !t.joined(), results: true})
	if err := t.send(ctx, b); err != nil {
		return err
	}
	b = t.batch()
	answers := make([]onejob.JobCreateResult, len(rows))
	var events []onejob.JobEvent
	repeats := map[onejob.JobRef]int{}
	for i, row := range rows {
		in := &c.intents[row]
		answer, event := in.judge(l.job(in.stored.ref()))
		answers[i] = answer
		if event != nil {
			events = append(events, *event)
		}
		if l.job(in.stored.ref()) != nil {
			repeats[in.stored.ref()] += repeatsOf(event)
		}
		in.resume(b, &answers[i])
	}
	queueReplays(b, repeats, t.joined())
	writeEvents(b, events)
	if err := t.commit(ctx, b); err != nil {
		return err
	}
	for i, row := range rows {
		c.settle(row, answers[i])
	}
	return nil
}

func (s *stored) ref() onejob.JobRef { return onejob.JobRef{Part: s.job.Part, ID: s.job.ID} }

// judge answers an intent from the job under its key, which is nil once it is a
// tombstone shrunk to that key and can be no more than a refusal.
func (in *intent) judge(job *onejob.Job) (onejob.JobCreateResult, *onejob.JobEvent) {
	judged := &in.stored.job
	if job != nil {
		judged = job
	}
	err := onejob.JudgeRepeat(judged, in.JobCreateParams)
	switch own := *judged; {
	case err == nil && in.Token != "" && in.Token == in.stored.token: // the creation itself
		return onejob.JobCreateResult{Job: &own}, nil
	case err == nil:
		return onejob.JobCreateResult{Job: &own, Existed: true}, eventOf(judged, onejob.EventReplayed)
	case job != nil && onejob.CodeOf(err) == onejob.CodeKeyConflict:
		return onejob.JobCreateResult{Existed: true, Err: err}, eventOf(judged, onejob.EventConflicted)
	}
	return onejob.JobCreateResult{Existed: true, Err: err}, nil
}

func eventOf(job *onejob.Job, kind onejob.EventKind) *onejob.JobEvent {
	return &onejob.JobEvent{Part: job.Part, JobID: job.ID, Kind: kind}
}

func repeatsOf(event *onejob.JobEvent) int {
	if event == nil {
		return 0
	}
	return 1
}

// queueReplays queues the counting of repeats, which one inside a caller's own
// transaction leaves at holding the job.
func queueReplays(b *pgx.Batch, repeats map[onejob.JobRef]int, joined bool) {
	if len(repeats) == 0 {
		return
	}
	refs := make([]onejob.JobRef, 0, len(repeats))
	for ref := range repeats {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, compareRefs)
	parts, ids := refColumns(refs)
	if joined {
		b.Queue(sqlJobHold, parts, ids)
		return
	}
	b.Queue(sqlJobReplay, parts, ids, column(refs, func(r onejob.JobRef) int32 { return int32(repeats[r]) }))
}

// A creation that started its first attempt and did not hear of it marks that
// attempt anew, from now: its sender has sent nothing and starts its clock again.
// Zero rows: the attempt is no longer there to be sent.
const sqlAttemptResume = `
UPDATE attempts a
   SET lease_expires_at = onejob_now() + $4::bigint * interval '1 microsecond',
       send_by = onejob_now() + $5::bigint * interval '1 microsecond',
       quarantine_until = onejob_now() + $6::bigint * interval '1 microsecond',
       marked_at = onejob_now()
 WHERE a.part = $1 AND a.job_id = $2 AND a.number = 1 AND a.worker = $3
   AND a.state = 'running' AND a.outcome IS NULL AND a.lease_expires_at > onejob_now()
RETURNING ` + attemptColumns + withoutResult

// resume queues the taking up of an intent's own first attempt.
func (in *intent) resume(b *pgx.Batch, answer *onejob.JobCreateResult) {
	if in.Start == nil || answer.Err != nil || answer.Existed {
		return
	}
	s := in.spans()
	b.Queue(sqlAttemptResume, int16(in.stored.job.Part), in.stored.job.ID, in.Start.Worker,
		s.lease.Microseconds(), s.sendWithin.Microseconds(), span(s.quarantine),
	).Query(func(rows pgx.Rows) error {
		return forEach(rows, func(row pgx.Row) error {
			a, err := scanAttempt(row)
			if errors.As(err, new(spoiled)) {
				return nil // committed with the rest, but not to be sent by who cannot read it
			}
			if err != nil {
				return err
			}
			answer.Job.Attempts = []onejob.Attempt{a}
			claimed := *answer.Job
			claimed.Input = in.Input
			answer.Started = &onejob.Claimed{Job: &claimed, Attempt: a}
			return nil
		})
	})
}

func keyOf(part uint8, owner string, keyHash []byte) string {
	return string(append(append([]byte{part}, owner+"\x00"...), keyHash...))
}
