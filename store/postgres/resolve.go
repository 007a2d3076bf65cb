package postgres

import (
	"context"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob"
)

// AttemptResolve implements [onejob.Store].
func (s *Store) AttemptResolve(ctx context.Context, params []onejob.AttemptResolveParams) ([]onejob.AttemptResolveResult, error) {
	results := make([]onejob.AttemptResolveResult, len(params))
	refs, err := s.attemptRefs(ctx, column(params, func(p onejob.AttemptResolveParams) string { return p.ID }))
	if err != nil {
		return nil, onejob.Unavailable(err)
	}
	fail := func(row int, err error) { results[row] = onejob.AttemptResolveResult{Err: err} }
	act := func(ctx context.Context, t *txn, rows []int) error {
		return resolveAll(ctx, t, params, refs, rows, results)
	}
	err = s.inWaves(ctx, len(params), func(row int) string { return params[row].ID }, act, fail)
	if err != nil {
		return nil, err
	}
	return results, nil
}

const sqlAttemptRefs = `
SELECT a.part, a.job_id, a.id FROM unnest($1::smallint[], $2::text[], $3::integer[], $4::text[]) AS u (part, job_id, number, id)
  JOIN attempts a ON a.part = u.part AND a.job_id = u.job_id AND a.number = u.number AND a.id = u.id`

// attemptRefs finds those of ids that are attempts, with their jobs.
func (s *Store) attemptRefs(ctx context.Context, ids []string) (map[string]onejob.AttemptRef, error) {
	found := map[string]onejob.AttemptRef{}
	if len(ids) == 0 {
		return found, nil
	}
	var named []namedAttempt
	for _, id := range ids {
		if n, ok := attemptOf(id); ok {
			named = append(named, n)
		}
	}
	rows, err := s.pool.Query(ctx, sqlAttemptRefs,
		column(named, func(n namedAttempt) int16 { return int16(n.Part) }),
		column(named, func(n namedAttempt) string { return n.JobID }),
		column(named, func(n namedAttempt) int32 { return n.number }),
		column(named, func(n namedAttempt) string { return n.ID }))
	if err != nil {
		return nil, err
	}
	return found, forEach(rows, func(row pgx.Row) error {
		ref, err := scanRef(row)
		found[ref.ID] = ref
		return err
	})
}

// namedAttempt is an attempt by what its id carries: there may be none.
type namedAttempt struct {
	onejob.AttemptRef
	number int32
}

// attemptOf reports false for what is no attempt's id.
func attemptOf(id string) (n namedAttempt, ok bool) {
	jobID, number, ok := onejob.JobOfAttemptID(id)
	if !ok || number > math.MaxInt32 {
		return n, false
	}
	part, _ := onejob.PartOfID(id)
	return namedAttempt{onejob.AttemptRef{Part: part, JobID: jobID, ID: id}, int32(number)}, true
}

// numberOf is the number that an attempt's id carries; zero, which none has, if it
// carries none.
func numberOf(id string) int32 {
	n, _ := attemptOf(id)
	return n.number
}

func scanRef(row pgx.Row) (ref onejob.AttemptRef, err error) {
	var part int16
	err = row.Scan(&part, &ref.JobID, &ref.ID)
	ref.Part = uint8(part)
	return ref, err
}

func resolveAll(ctx context.Context, t *txn, params []onejob.AttemptResolveParams, refs map[string]onejob.AttemptRef, rows []int, results []onejob.AttemptResolveResult) error {
	b := t.batch()
	l := load(b, column(rows, func(row int) onejob.JobRef { return jobOf(refs[params[row].ID]) }), loading{terms: t.terms, lock: true, results: true})
	if err := t.send(ctx, b); err != nil {
		return err
	}
	var moves []move
	for _, row := range rows {
		p := &params[row]
		job, a, err := l.toRule(refs[p.ID], p)
		results[row] = onejob.AttemptResolveResult{Err: err}
		if err == nil {
			moves = append(moves, moveByRuling(job, a, p, l))
		}
	}
	settled, err := t.settle(ctx, l, moves)
	if err != nil {
		return err
	}
	var entries []onejob.AuditEntry
	for _, row := range rows {
		if p := &params[row]; settled.has(p.ID) {
			ref := refs[p.ID]
			entries = append(entries, p.AuditOf(l.job(jobOf(ref)).Owner))
			settled.events = append(settled.events, onejob.JobEvent{
				Part: ref.Part, JobID: ref.JobID, AttemptID: ref.ID,
				Kind: onejob.EventRuled, Actor: p.Actor, Detail: string(p.Outcome) + ": " + p.Evidence,
			})
		}
	}
	if err := t.audit(ctx, entries); err != nil {
		return err
	}
	if err := t.conclude(ctx, settled.batch, l, settled.moved, settled.events); err != nil {
		return err
	}
	for _, row := range rows {
		if p := &params[row]; results[row].Err == nil {
			results[row] = l.ruled(refs[p.ID], p, settled)
		}
	}
	return nil
}

// toRule returns the attempt that a ruling is about and its job, or why it may
// not be ruled.
func (l *loaded) toRule(ref onejob.AttemptRef, p *onejob.AttemptResolveParams) (*onejob.Job, *onejob.Attempt, error) {
	job, a := l.job(jobOf(ref)), l.attempt(ref)
	if a == nil || (p.Owner != "" && job.Owner != p.Owner) {
		return nil, nil, onejob.ErrorOfNoAttempt(p.ID)
	}
	if err := onejob.CheckRevision(job, p.IfRevision); err != nil {
		return nil, nil, err
	}
	return job, a, onejob.CheckResolve(job, a, p, l.now)
}

// moveByRuling swaps on the attempt still being unknown, and on nothing else.
func moveByRuling(job *onejob.Job, a *onejob.Attempt, p *onejob.AttemptResolveParams, l *loaded) move {
	event := onejob.EventOfRuling(p.Outcome)
	to, _ := onejob.AttemptUnknown.Next(event) // CheckResolve let only such outcomes through
	success := event == onejob.EventAnswered
	m := move{
		ref: onejob.AttemptRef{Part: a.Part, JobID: a.JobID, ID: a.ID}, ruled: true,
		from: []onejob.AttemptState{onejob.AttemptUnknown}, to: to,
		outcome: p.Outcome, next: onejob.NextOfRuling(p.Outcome), failure: a.Error,
		ruling: &onejob.Ruling{
			By: p.Actor, Outcome: p.Outcome, Evidence: p.Evidence, At: l.now,
			RiskAcknowledged: p.AcknowledgeRisk && !success && a.QuarantineUntil.IsZero(),
		},
	}
	switch {
	case p.Outcome == onejob.OutcomeResultLost:
		m.result = &onejob.Result{Lost: true}
	case success && !job.Purged():
		m.result = p.Result
	}
	return m
}

// ruled answers a ruling, from what its transaction left behind.
func (l *loaded) ruled(ref onejob.AttemptRef, p *onejob.AttemptResolveParams, settled *settled) onejob.AttemptResolveResult {
	job, a := l.job(jobOf(ref)), *l.attempt(ref)
	if !settled.has(a.ID) { // it was unknown when read, under the lock, and is not: no statement here does that
		return onejob.AttemptResolveResult{Err: &onejob.Error{
			Code: onejob.CodeAttemptTerminal, JobID: job.ID, AttemptID: a.ID, Message: "the attempt is already settled",
		}}
	}
	switch {
	case p.Outcome == onejob.OutcomeResultLost:
		a.Result = &onejob.Result{Lost: true}
	case onejob.EventOfRuling(p.Outcome) == onejob.EventAnswered:
		a.Result = p.Result
	}
	return onejob.AttemptResolveResult{Attempt: &a, Job: job}
}
