package postgres

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onejob-dev/onejob"
)

// AttemptStart implements [onejob.Store].
func (s *Store) AttemptStart(ctx context.Context, params []onejob.AttemptStartParams) ([]onejob.AttemptStartResult, error) {
	results := make([]onejob.AttemptStartResult, len(params))
	fail := func(row int, err error) { results[row] = onejob.AttemptStartResult{Err: err} }
	act := func(ctx context.Context, t *txn, rows []int) error { return askAll(ctx, t, params, rows, results) }
	err := s.inWaves(ctx, len(params), func(row int) string { return params[row].JobID }, act, fail)
	if err != nil {
		return nil, err
	}
	return results, nil
}

func askAll(ctx context.Context, t *txn, params []onejob.AttemptStartParams, rows []int, results []onejob.AttemptStartResult) error {
	b := t.batch()
	l := load(b, refsOf(column(rows, func(row int) string { return params[row].JobID })), loading{terms: t.terms, lock: true, input: true})
	if err := t.send(ctx, b); err != nil {
		return err
	}
	var starts []onejob.Attempt
	var started []int
	var events []onejob.JobEvent
	for _, row := range rows {
		answer, start, event := ask(l, &params[row])
		results[row] = answer
		if event != nil {
			events = append(events, *event)
		}
		if start != nil {
			starts, started = append(starts, *start), append(started, row)
		}
	}
	if err := t.start(ctx, l, starts); err != nil {
		return err
	}
	if err := t.audit(ctx, pressed(l, params, starts, started)); err != nil {
		return err
	}
	repeats := map[onejob.JobRef]int{}
	for i := range events {
		repeats[onejob.JobRef{Part: events[i].Part, ID: events[i].JobID}]++
	}
	b = t.batch()
	queueReplays(b, repeats, false)
	writeEvents(b, events)
	if err := t.commit(ctx, b); err != nil {
		return err
	}
	for i, row := range started {
		a := starts[i]
		results[row].Claimed = &onejob.Claimed{Job: l.job(onejob.JobRef{Part: a.Part, ID: a.JobID}), Attempt: a}
	}
	return nil
}

// pressed is what the audit is told of the attempts that rows of params started.
func pressed(l *loaded, params []onejob.AttemptStartParams, starts []onejob.Attempt, rows []int) (entries []onejob.AuditEntry) {
	for i := range starts {
		a := &starts[i]
		if entry, told := params[rows[i]].AuditOf(l.job(onejob.JobRef{Part: a.Part, ID: a.JobID}).Owner, a); told {
			entries = append(entries, entry)
		}
	}
	return entries
}

// ask decides about one request: it is a repeat, or refused, or the attempt to
// start is returned.
func ask(l *loaded, p *onejob.AttemptStartParams) (r onejob.AttemptStartResult, start *onejob.Attempt, event *onejob.JobEvent) {
	job, err := l.visible(p.JobID, p.Owner)
	if err != nil {
		r.Err = err
		return r, nil, nil
	}
	if before := requested(job, p.RequestKeyHash); before != nil {
		r, event = repeatRequest(job, before, p)
		return r, nil, event
	}
	if r.Err = onejob.CheckRevision(job, p.IfRevision); r.Err != nil {
		return r, nil, nil
	}
	asked := onejob.Ask{Now: true, Target: p.Target, Lane: p.Lane}
	d := onejob.Decide(job, job.Attempts, l.verdicts(job, asked), l.now, asked)
	if r.Err = onejob.CheckAsked(job, d); r.Err != nil {
		return r, nil, nil
	}
	if _, served := p.Targets[d.Target]; !served && len(p.Targets) > 0 {
		r.Err = &onejob.Error{Code: onejob.CodeInvalidJob, JobID: job.ID, Message: fmt.Sprintf("this node cannot call target %q", d.Target)}
		return r, nil, nil
	}
	a := newAttempt(job, d, p.StartParams, l.now)
	a.RequestKeyHash, a.RequestFingerprint = p.RequestKeyHash, p.RequestFingerprint
	return r, &a, nil
}

// requested returns the attempt that a request's key has taken, or nil.
func requested(job *onejob.Job, keyHash []byte) *onejob.Attempt {
	if len(keyHash) == 0 {
		return nil
	}
	i := slices.IndexFunc(job.Attempts, func(a onejob.Attempt) bool { return bytes.Equal(a.RequestKeyHash, keyHash) })
	if i < 0 {
		return nil
	}
	return &job.Attempts[i]
}

func repeatRequest(job *onejob.Job, a *onejob.Attempt, p *onejob.AttemptStartParams) (onejob.AttemptStartResult, *onejob.JobEvent) {
	event := &onejob.JobEvent{Part: job.Part, JobID: job.ID, AttemptID: a.ID, Kind: onejob.EventReplayed, Actor: p.Actor}
	if bytes.Equal(a.RequestFingerprint, p.RequestFingerprint) {
		return onejob.AttemptStartResult{Claimed: &onejob.Claimed{Job: job, Attempt: *a}, Existed: true}, event
	}
	event.Kind = onejob.EventConflicted
	return onejob.AttemptStartResult{Existed: true, Err: &onejob.Error{
		Code: onejob.CodeKeyConflict, JobID: job.ID, AttemptID: a.ID,
		Message: "this idempotency key was used for another attempt of the job; use a new key for a new request",
	}}, event
}

// newAttempt is [onejob.NewAttempt] with times that the database can keep.
func newAttempt(job *onejob.Job, d onejob.Decision, p onejob.StartParams, now time.Time) onejob.Attempt {
	a := onejob.NewAttempt(job, job.Attempts, d, p, now)
	a.LeaseExpiresAt = micros(a.LeaseExpiresAt)
	return a
}

// markAtOnce marks an attempt for a worker out of our sight, who may begin for as
// long as it holds the lease.
func markAtOnce(a *onejob.Attempt, pins onejob.TargetPins, now time.Time) {
	a.State, a.MarkedAt, a.SendBy = onejob.AttemptRunning, now, a.LeaseExpiresAt
	a.QuarantineUntil = micros(onejob.QuarantineEnd(a.SendBy, 0, pins.MaxExecution))
}

// Zero rows: the job is not as Decide saw it, ended, or is to be cancelled.
const sqlJobStart = `
UPDATE job_states s
   SET attempts_made = s.attempts_made + 1, state = 'running', revision = s.revision + 1,
       next_target = u.target, blocked = NULL, blocked_reason = NULL
  FROM unnest($1::smallint[], $2::text[], $3::integer[], $4::text[]) AS u (part, job_id, number, target)
 WHERE s.part = u.part AND s.job_id = u.job_id
   AND s.attempts_made = u.number - 1
   AND s.state IN ('queued', 'running', 'blocked')
   AND s.cancel_requested_at IS NULL`

// Zero rows: another attempt of this job is in doubt in this lane, or what lets it
// start does not stand any more.
var sqlAttemptStart = `
INSERT INTO attempts (part, job_id, number, id, lane, lanes, target, target_digest, state, claim_token, worker,
                      lease_expires_at, job_version, provider_key, request_key_hash, request_fingerprint,
                      certificate_id, waiver_id, phase, started_at, marked_at, send_by, quarantine_until)
SELECT u.part, u.job_id, u.number, u.id, u.lane, u.lanes, u.target, u.target_digest, u.state, u.claim_token, u.worker,
       u.lease_expires_at, u.job_version, u.provider_key, u.request_key_hash, u.request_fingerprint,
       u.certificate_id, u.waiver_id, 'not_sent', u.started_at, u.marked_at, u.send_by, u.quarantine_until
  FROM unnest($1::smallint[], $2::text[], $3::integer[], $4::text[], $5::smallint[], $6::smallint[], $7::text[], $8::text[],
              $9::text[], $10::text[], $11::timestamptz[], $12::bigint[], $13::text[], $14::bytea[], $15::bytea[],
              $16::text[], $17::text[], $18::timestamptz[], $19::text[], $20::timestamptz[], $21::timestamptz[], $22::timestamptz[])
       AS u (part, job_id, number, id, lane, lanes, target, target_digest, claim_token, worker,
             lease_expires_at, job_version, provider_key, request_key_hash, request_fingerprint,
             certificate_id, waiver_id, started_at, state, marked_at, send_by, quarantine_until)
 WHERE ` + sqlPermitted + `
ON CONFLICT (part, job_id, lane) WHERE state IN ('starting', 'running', 'unknown') DO NOTHING`

// start writes attempts and counts them on their jobs, at most one of a job. If
// any of it meets zero rows nothing is to happen: the transaction is rolled back
// and its rows done one by one, and the one that is at fault answers so.
func (t *txn) start(ctx context.Context, l *loaded, starts []onejob.Attempt) error {
	if len(starts) == 0 {
		return nil
	}
	b := t.batch()
	var counted, inserted int64
	b.Queue(sqlJobStart,
		column(starts, func(a onejob.Attempt) int16 { return int16(a.Part) }),
		column(starts, func(a onejob.Attempt) string { return a.JobID }),
		column(starts, func(a onejob.Attempt) int32 { return int32(a.Number) }),
		column(starts, func(a onejob.Attempt) string { return a.Target }),
	).Exec(affected(&counted))
	b.Queue(sqlAttemptStart, startColumns(l, starts)...).Exec(affected(&inserted))
	if err := t.send(ctx, b); err != nil {
		return err
	}
	if counted != int64(len(starts)) || inserted != int64(len(starts)) {
		return spoiled{&onejob.Error{
			Code: onejob.CodeAttemptUnresolved, JobID: starts[0].JobID,
			Message: "the job changed, or another attempt of it is in doubt; nothing was started",
		}}
	}
	for _, a := range starts {
		job := l.job(onejob.JobRef{Part: a.Part, ID: a.JobID})
		job.State, job.Blocked, job.NextTarget = onejob.JobRunning, nil, a.Target
		job.AttemptsMade++
		job.Revision++
		job.Attempts = append(job.Attempts, a)
	}
	return nil
}

func startColumns(l *loaded, starts []onejob.Attempt) []any {
	text := func(field func(a onejob.Attempt) string) []string { return column(starts, field) }
	return []any{
		column(starts, func(a onejob.Attempt) int16 { return int16(a.Part) }),
		text(func(a onejob.Attempt) string { return a.JobID }),
		column(starts, func(a onejob.Attempt) int32 { return int32(a.Number) }),
		text(func(a onejob.Attempt) string { return a.ID }),
		column(starts, func(a onejob.Attempt) int16 { return int16(a.Lane) }),
		column(starts, func(a onejob.Attempt) pgtype.Int2 {
			return pgtype.Int2{Int16: int16(l.job(onejob.JobRef{Part: a.Part, ID: a.JobID}).Policy.Lanes), Valid: a.Lane > 0}
		}),
		text(func(a onejob.Attempt) string { return a.Target }),
		text(func(a onejob.Attempt) string { return a.TargetDigest }),
		text(func(a onejob.Attempt) string { return a.ClaimToken }),
		text(func(a onejob.Attempt) string { return a.Worker }),
		column(starts, func(a onejob.Attempt) pgtype.Timestamptz { return stamp(a.LeaseExpiresAt) }),
		column(starts, func(a onejob.Attempt) int64 { return a.JobVersion }),
		text(func(a onejob.Attempt) string { return a.ProviderKey }),
		column(starts, func(a onejob.Attempt) []byte { return a.RequestKeyHash }),
		column(starts, func(a onejob.Attempt) []byte { return a.RequestFingerprint }),
		column(starts, func(a onejob.Attempt) pgtype.Text { return optional(a.CertificateID) }),
		column(starts, func(a onejob.Attempt) pgtype.Text { return optional(a.WaiverID) }),
		column(starts, func(a onejob.Attempt) pgtype.Timestamptz { return stamp(a.StartedAt) }),
		text(func(a onejob.Attempt) string { return string(a.State) }),
		column(starts, func(a onejob.Attempt) pgtype.Timestamptz { return stamp(a.MarkedAt) }),
		column(starts, func(a onejob.Attempt) pgtype.Timestamptz { return stamp(a.SendBy) }),
		column(starts, func(a onejob.Attempt) pgtype.Timestamptz { return stamp(a.QuarantineUntil) }),
	}
}

// refsOf returns the refs of ids that are job ids at all.
func refsOf(ids []string) []onejob.JobRef {
	var refs []onejob.JobRef
	for _, id := range ids {
		if ref, ok := refOf(id); ok {
			refs = append(refs, ref)
		}
	}
	return refs
}
