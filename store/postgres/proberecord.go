package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onejob-dev/onejob"
)

// ProbeRecord implements [onejob.ProbeStore], in three round trips.
func (s *Store) ProbeRecord(ctx context.Context, params []onejob.ProbeRecordParams) ([]onejob.AttemptFinishResult, error) {
	results := make([]onejob.AttemptFinishResult, len(params))
	fail := func(row int, err error) { results[row] = onejob.AttemptFinishResult{Err: err} }
	act := func(ctx context.Context, t *txn, rows []int) error { return recordAll(ctx, t, params, rows, results) }
	err := s.inWaves(ctx, len(params), func(row int) string { return params[row].Ref.ID }, act, fail)
	if err != nil {
		return nil, err
	}
	return results, nil
}

func recordAll(ctx context.Context, t *txn, params []onejob.ProbeRecordParams, rows []int, results []onejob.AttemptFinishResult) error {
	b := t.batch()
	l := load(b, column(rows, func(row int) onejob.JobRef { return jobOf(params[row].Ref) }), loading{terms: t.terms, lock: true})
	if err := t.send(ctx, b); err != nil {
		return err
	}
	var moves []move
	var known []*onejob.ProbeRecordParams
	refused := map[int]error{}
	for _, row := range rows {
		p := &params[row]
		a := l.attempt(p.Ref)
		if a == nil {
			continue
		}
		if p.SendWithin > 0 {
			if err := onejob.CheckSendAgain(l.job(jobOf(p.Ref)), a); err != nil {
				refused[row] = err
				continue
			}
		}
		known = append(known, p)
		if m, ok := moveByProbe(l, p); ok {
			moves = append(moves, m)
		}
	}
	settled, err := t.settle(ctx, l, moves)
	if err != nil {
		return err
	}
	for i := range moves {
		if m := &moves[i]; m.ruling != nil && settled.has(m.ref.ID) {
			settled.events = append(settled.events, onejob.JobEvent{
				Part: m.ref.Part, JobID: m.ref.JobID, AttemptID: m.ref.ID, Kind: onejob.EventRuled,
				Actor: m.ruling.By, Detail: string(m.outcome) + ": " + m.ruling.Evidence,
			})
		}
	}
	keepProbes(settled.batch, known)
	if err := t.conclude(ctx, settled.batch, l, settled.moved, settled.events); err != nil {
		return err
	}
	for _, row := range rows {
		p := &params[row]
		a := l.attempt(p.Ref)
		if a == nil {
			results[row] = onejob.AttemptFinishResult{Err: onejob.ErrorOfNoAttempt(p.Ref.ID)}
			continue
		}
		results[row] = standsAt(l.job(jobOf(p.Ref)), a)
		results[row].Err = refused[row]
	}
	return nil
}

// moveByProbe is what an answer does to an attempt. It reports false for one that
// resolves nothing and teaches nothing. What was seen on the wire stays as it was
// seen: the probe keeps its own evidence.
func moveByProbe(l *loaded, p *onejob.ProbeRecordParams) (move, bool) {
	job, a := l.job(jobOf(p.Ref)), l.attempt(p.Ref)
	m := move{
		ref: p.Ref, probe: true, from: []onejob.AttemptState{onejob.AttemptUnknown},
		outcome: p.Outcome, providerID: p.ProviderID,
	}
	verdict, resolves := onejob.JudgeProbe(a, p, l.now)
	if !resolves {
		return m, p.Outcome == onejob.OutcomeAccepted && p.ProviderID != "" && a.OpenToProbes()
	}
	_, m.fromRuled = onejob.SourcesOf(verdict.Event)
	m.to, _ = onejob.AttemptUnknown.Next(verdict.Event)
	m.absence, m.ruling, m.next = verdict.Ruling != nil, verdict.Ruling, verdict.Next
	m.failure = p.Failure
	m.cost, m.currency, m.usage = p.CostMicros, p.Currency, p.Usage
	if verdict.Event == onejob.EventAnswered && !job.Purged() {
		m.result = p.Result
	}
	return m, true
}

// The attempt counts its questions, under the lock of its job. What is about to be
// sent once more moves send_by, and the quarantine that begins there as far.
const sqlProbeKeep = `
WITH counted AS (
    UPDATE attempts a
       SET probes_made = a.probes_made + 1,
           probe_at = CASE WHEN ` + sqlAsked + ` THEN onejob_now() + u.after * interval '1 microsecond' ELSE a.probe_at END,
           send_by = CASE WHEN a.send_by < onejob_now() + u.send_within * interval '1 microsecond'
                          THEN onejob_now() + u.send_within * interval '1 microsecond' ELSE a.send_by END,
           quarantine_until = a.quarantine_until
               + greatest(interval '0', onejob_now() + u.send_within * interval '1 microsecond' - a.send_by)
      FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bigint[])
           AS u (part, job_id, id, method, outcome, detail, evidence, after, send_within)
     WHERE a.part = u.part AND a.job_id = u.job_id AND a.id = u.id AND (u.send_within IS NULL OR a.state = 'unknown')
    RETURNING a.part, a.job_id, a.number, a.probes_made, u.method, u.outcome, u.detail, u.evidence,
              CASE WHEN ` + sqlAsked + ` THEN a.probe_at END AS next_at
)
INSERT INTO probes (part, job_id, attempt, number, method, at, outcome, detail, evidence, next_at)
SELECT part, job_id, number, probes_made, method, onejob_now(), outcome, detail, evidence, next_at FROM counted`

// keepProbes queues the writing down of questions and answers, at most one of an
// attempt.
func keepProbes(b *pgx.Batch, params []*onejob.ProbeRecordParams) {
	if len(params) == 0 {
		return
	}
	refs := attemptRefs(column(params, func(p *onejob.ProbeRecordParams) onejob.AttemptRef { return p.Ref }))
	b.Queue(sqlProbeKeep, refs.parts, refs.jobs, refs.ids,
		column(params, func(p *onejob.ProbeRecordParams) string { return string(p.Method) }),
		column(params, func(p *onejob.ProbeRecordParams) pgtype.Text { return optional(p.Outcome) }),
		column(params, func(p *onejob.ProbeRecordParams) string { return clean(p.Detail) }),
		column(params, func(p *onejob.ProbeRecordParams) string { return clean(toJSON(p.Evidence)) }),
		column(params, func(p *onejob.ProbeRecordParams) pgtype.Int8 { return span(p.After) }),
		column(params, func(p *onejob.ProbeRecordParams) pgtype.Int8 { return span(p.SendWithin) }))
}
