package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onejob-dev/onejob"
)

// Open to questions. The indexes over what is due are partial by the same words.
const sqlAsked = `(a.state = 'unknown' OR (a.state = 'running' AND a.outcome = 'accepted'))`

// Rows that another asker, or a finish, holds are passed over.
const sqlProbeClaim = `
WITH c AS MATERIALIZED (
    SELECT a.part, a.job_id, a.id, a.probe_at FROM attempts a
     WHERE ` + sqlAsked + ` AND a.probe_at <= onejob_now() AND a.target = ANY ($1::text[])
     ORDER BY a.probe_at LIMIT $2
       FOR UPDATE SKIP LOCKED
)
UPDATE attempts a SET probe_at = onejob_now() + $3::bigint * interval '1 microsecond'
  FROM c WHERE a.part = c.part AND a.job_id = c.job_id AND a.id = c.id
RETURNING a.part, a.job_id, a.id, c.probe_at`

// ProbeClaim implements [onejob.ProbeStore]. An attempt whose job cannot be read is
// left for the time of a lease, and told of in the log.
func (s *Store) ProbeClaim(ctx context.Context, p onejob.ProbeClaimParams) ([]onejob.Claimed, error) {
	if p.Max <= 0 || len(p.Targets) == 0 {
		return nil, nil
	}
	var claimed []onejob.Claimed
	err := s.inTx(ctx, sqlBegin, func(t *txn) error {
		due, err := t.dueForProbes(ctx, p)
		if err != nil {
			return err
		}
		b := t.batch()
		l := load(b, column(due, jobOf), loading{input: true, tolerant: true})
		if err := t.commit(ctx, b); err != nil {
			return err
		}
		claimed = nil
		for _, ref := range due {
			if err := l.broken[jobOf(ref)]; err != nil {
				s.log.ErrorContext(ctx, "an attempt cannot be asked about; it is left for a while", "attempt_id", ref.ID, "error", err)
			}
			if a := l.attempt(ref); a != nil {
				claimed = append(claimed, onejob.Claimed{Job: l.job(jobOf(ref)), Attempt: *a})
			}
		}
		return nil
	})
	if err != nil {
		return nil, onejob.Unavailable(err)
	}
	return claimed, nil
}

// dueForProbes takes what is due, longest first.
func (t *txn) dueForProbes(ctx context.Context, p onejob.ProbeClaimParams) ([]onejob.AttemptRef, error) {
	type question struct {
		ref onejob.AttemptRef
		at  time.Time
	}
	var due []question
	b := t.batch()
	b.Queue(sqlProbeClaim, texts(p.Targets), p.Max, p.Lease.Microseconds()).Query(func(rows pgx.Rows) error {
		return forEach(rows, func(row pgx.Row) error {
			var part int16
			var q question
			err := row.Scan(&part, &q.ref.JobID, &q.ref.ID, &q.at)
			q.ref.Part = uint8(part)
			due = append(due, q)
			return err
		})
	})
	err := t.send(ctx, b)
	slices.SortFunc(due, func(a, b question) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.ref.ID, b.ref.ID)) })
	return column(due, func(q question) onejob.AttemptRef { return q.ref }), err
}

// attemptRef finds the job of an attempt.
func (s *Store) attemptRef(ctx context.Context, id string) (onejob.AttemptRef, error) {
	refs, err := s.attemptRefs(ctx, []string{id})
	if err != nil {
		return onejob.AttemptRef{}, onejob.Unavailable(err)
	}
	ref, ok := refs[id]
	if !ok {
		return ref, onejob.ErrorOfNoAttempt(id)
	}
	return ref, nil
}

const sqlProbes = `
SELECT p.part, p.job_id, a.id, p.number, p.method, p.at, p.outcome, p.evidence, p.detail, p.next_at
  FROM attempts a JOIN probes p ON p.part = a.part AND p.job_id = a.job_id AND p.attempt = a.number
 WHERE a.part = $1 AND a.job_id = $2 AND a.id = $3 ORDER BY p.number DESC LIMIT $4`

// ProbeList implements [onejob.ProbeStore].
func (s *Store) ProbeList(ctx context.Context, p onejob.ProbeListParams) ([]onejob.Probe, error) {
	ref, err := s.attemptRef(ctx, p.AttemptID)
	if err != nil {
		return nil, err
	}
	var l *loaded
	var probes []onejob.Probe
	err = s.read(ctx, func(t *txn) error {
		b := t.batch()
		l = load(b, []onejob.JobRef{jobOf(ref)}, loading{})
		b.Queue(sqlProbes, int16(ref.Part), ref.JobID, ref.ID, pageOf(p.Limit)).Query(func(rows pgx.Rows) error {
			return forEach(rows, func(row pgx.Row) error {
				probe, err := scanProbe(row)
				probes = append(probes, probe)
				return err
			})
		})
		return t.commit(ctx, b)
	})
	switch {
	case err != nil && ofRow(err):
		return nil, rowError(err)
	case err != nil:
		return nil, onejob.Unavailable(err)
	case l.attempt(ref) == nil || !mayHold(p.Owner, l.job(jobOf(ref))):
		return nil, onejob.ErrorOfNoAttempt(p.AttemptID)
	}
	slices.Reverse(probes)
	return probes, nil
}

func scanProbe(row pgx.Row) (p onejob.Probe, err error) {
	var part int16
	var outcome pgtype.Text
	var evidence string
	var next pgtype.Timestamptz
	err = row.Scan(&part, &p.JobID, &p.AttemptID, &p.Number, &p.Method, &p.At, &outcome, &evidence, &p.Detail, &next)
	p.Part, p.At, p.Outcome, p.NextAt = uint8(part), p.At.UTC(), onejob.Outcome(outcome.String), timeOf(next)
	if json.Unmarshal([]byte(evidence), &p.Evidence) != nil {
		p.Evidence = onejob.Evidence{Error: "the stored evidence cannot be read"} // nothing depends on it
	}
	return p, err
}

const sqlProbeNow = `UPDATE attempts a SET probe_at = onejob_now() WHERE a.part = $1 AND a.job_id = $2 AND a.id = $3 AND ` + sqlAsked

// ProbeNow implements [onejob.ProbeStore].
func (s *Store) ProbeNow(ctx context.Context, p onejob.ProbeNowParams) error {
	ref, err := s.attemptRef(ctx, p.AttemptID)
	if err != nil {
		return err
	}
	var answer error
	act := func(ctx context.Context, t *txn, _ []int) error {
		b := t.batch()
		l := load(b, []onejob.JobRef{jobOf(ref)}, loading{terms: t.terms, lock: true})
		if err := t.send(ctx, b); err != nil {
			return err
		}
		a := l.attempt(ref)
		if a == nil || !mayHold(p.Owner, l.job(jobOf(ref))) {
			answer = onejob.ErrorOfNoAttempt(p.AttemptID)
			return nil
		}
		if answer = onejob.CheckProbeNow(a); answer != nil {
			return nil
		}
		b = t.batch()
		b.Queue(sqlProbeNow, int16(ref.Part), ref.JobID, ref.ID)
		return t.commit(ctx, b)
	}
	return cmp.Or(s.each(ctx, []int{0}, act, func(_ int, err error) { answer = err }), answer)
}

const sqlAttemptsToAsk = `
SELECT a.part, a.job_id, a.id FROM attempts a
 WHERE ` + sqlAsked + ` AND a.asked_at IS NULL AND a.ask_at <= onejob_now()
 ORDER BY a.ask_at LIMIT $1`

// What the provider accepted and has not told of since is in doubt from now on. A
// missing row: somebody else asked, or the attempt ended.
const sqlAttemptAsk = `
UPDATE attempts a
   SET asked_at = onejob_now(), state = 'unknown', outcome = CASE a.state WHEN 'running' THEN 'unknown' ELSE a.outcome END
  FROM unnest($1::smallint[], $2::text[], $3::text[]) AS u (part, job_id, id)
 WHERE a.part = u.part AND a.job_id = u.job_id AND a.id = u.id
   AND a.asked_at IS NULL AND a.ask_at <= onejob_now() AND ` + sqlAsked + `
RETURNING ` + attemptColumns + withoutResult

// At the head of the list what cannot be asked about would keep others from their turn.
const sqlAskLater = `
UPDATE attempts a SET ask_at = onejob_now() + interval '1 minute'
  FROM unnest($1::smallint[], $2::text[], $3::text[]) AS u (part, job_id, id)
 WHERE a.part = u.part AND a.job_id = u.job_id AND a.id = u.id AND a.asked_at IS NULL`

// AttemptAsk implements [onejob.ProbeStore].
func (s *Store) AttemptAsk(ctx context.Context, limit int) ([]onejob.AttemptRef, error) {
	rows, err := s.pool.Query(ctx, sqlAttemptsToAsk, max(limit, 0))
	if err != nil {
		return nil, onejob.Unavailable(err)
	}
	var refs, failed []onejob.AttemptRef
	err = forEach(rows, func(row pgx.Row) error {
		ref, err := scanRef(row)
		refs = append(refs, ref)
		return err
	})
	if err != nil {
		return nil, onejob.Unavailable(err)
	}
	changed := make([]bool, len(refs))
	broken := make([]error, len(refs)) // pieces of a batch are done at once
	act := func(ctx context.Context, t *txn, rows []int) error { return askPersonAll(ctx, t, refs, rows, changed) }
	all := column(refs, func(onejob.AttemptRef) int { return 0 })
	for i := range all {
		all[i] = i
	}
	if err := s.hastily().each(ctx, all, act, func(row int, err error) { broken[row] = err }); err != nil {
		return nil, err
	}
	var asked []onejob.AttemptRef
	for i, ref := range refs {
		switch {
		case broken[i] != nil:
			s.log.ErrorContext(ctx, "a person cannot be asked about an attempt; it is put off for a while", "attempt_id", ref.ID, "error", broken[i])
			failed = append(failed, ref)
		case changed[i]:
			asked = append(asked, ref)
		}
	}
	return asked, s.askLater(ctx, failed)
}

func (s *Store) askLater(ctx context.Context, all []onejob.AttemptRef) error {
	if len(all) == 0 {
		return nil
	}
	refs := attemptRefs(all)
	_, err := s.pool.Exec(ctx, sqlAskLater, refs.parts, refs.jobs, refs.ids)
	if err != nil && errors.Is(rowError(err), onejob.ErrStoreUnavailable) {
		return nil // somebody holds one of them: it stays due
	}
	return onejob.Unavailable(err)
}

func askPersonAll(ctx context.Context, t *txn, refs []onejob.AttemptRef, rows []int, changed []bool) error {
	due := column(rows, func(row int) onejob.AttemptRef { return refs[row] })
	b := t.batch()
	l := load(b, column(due, jobOf), loading{terms: t.terms, lock: true})
	if err := t.send(ctx, b); err != nil {
		return err
	}
	moved := settled{}
	columns := attemptRefs(due)
	b = t.batch()
	b.Queue(sqlAttemptAsk, columns.parts, columns.jobs, columns.ids).Query(func(rows pgx.Rows) error {
		return forEach(rows, func(row pgx.Row) error {
			a, err := scanAttempt(row)
			moved.moved = append(moved.moved, a)
			return err
		})
	})
	if err := t.send(ctx, b); err != nil {
		return err
	}
	l.merge(moved.moved)
	for _, a := range moved.moved {
		moved.events = append(moved.events, onejob.JobEvent{Part: a.Part, JobID: a.JobID, AttemptID: a.ID, Kind: onejob.EventAsked})
	}
	if err := t.conclude(ctx, t.batch(), l, moved.moved, moved.events); err != nil {
		return err
	}
	for _, row := range rows {
		changed[row] = moved.has(refs[row].ID)
	}
	return nil
}
