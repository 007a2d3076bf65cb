package postgres

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onejob-dev/onejob"
)

// AttemptFinish implements [onejob.Store]. A plain success costs one round trip.
// Everything else costs three: lock and read, swap the attempts and the slot, write
// what follows and commit.
func (s *Store) AttemptFinish(ctx context.Context, params []onejob.AttemptFinishParams) ([]onejob.AttemptFinishResult, error) {
	results := make([]onejob.AttemptFinishResult, len(params))
	fail := func(row int, err error) { results[row] = onejob.AttemptFinishResult{Err: err} }
	act := func(ctx context.Context, t *txn, rows []int) error { return finishAll(ctx, t, params, rows, results) }
	left, err := s.succeed(ctx, params, results)
	if err != nil {
		return nil, err
	}
	for _, wave := range waves(len(left), func(i int) string { return params[left[i]].Ref.ID }) {
		if err := s.each(ctx, column(wave, func(i int) int { return left[i] }), act, fail); err != nil {
			return nil, err
		}
	}
	return results, nil
}

func finishAll(ctx context.Context, t *txn, params []onejob.AttemptFinishParams, rows []int, results []onejob.AttemptFinishResult) error {
	b := t.batch()
	l := load(b, column(rows, func(row int) onejob.JobRef { return jobOf(params[row].Ref) }), loading{terms: t.terms, lock: true})
	if err := t.send(ctx, b); err != nil {
		return err
	}
	var moves []move
	for _, row := range rows {
		if m, ok := moveOf(&params[row], l); ok {
			moves = append(moves, m)
		}
	}
	settled, err := t.settle(ctx, l, moves)
	if err != nil {
		return err
	}
	if err := t.conclude(ctx, settled.batch, l, settled.moved, settled.events); err != nil {
		return err
	}
	for _, row := range rows {
		results[row] = finished(l, &params[row], settled)
	}
	return nil
}

func jobOf(ref onejob.AttemptRef) onejob.JobRef { return onejob.JobRef{Part: ref.Part, ID: ref.JobID} }

// move is one attempt's way from where it may be to where it is going. The
// statement finds out whether it is there.
type move struct {
	ref   onejob.AttemptRef
	token string
	ruled bool // a ruling, which holds no token and swaps on the state alone

	from, fromRuled []onejob.AttemptState // the latter of one that was ruled
	to              onejob.AttemptState   // empty: where it is

	probe    bool          // an answer to a question: it holds no token, and moves what is accepted too
	absence  bool          // a ruling that rests on it, which quarantine must let count
	opens    bool          // to questions, which are then due at once
	askAfter time.Duration // with opens: how long until a person is asked

	outcome  onejob.Outcome
	phase    onejob.Phase // empty: as it was
	next     onejob.Next
	ownFault bool
	evidence pgtype.Text // JSON; NULL: as it was
	failure  *onejob.Failure
	retryAt  time.Time
	ruling   *onejob.Ruling
	result   *onejob.Result

	providerID string // empty: as it was
	cost       int64
	currency   string // empty: the cost is as it was
	usage      []byte // nil: as it was
}

// moveOf is what an outcome does to an attempt. It reports false for what says
// nothing: no outcome.
func moveOf(p *onejob.AttemptFinishParams, l *loaded) (move, bool) {
	m := move{
		ref: p.Ref, token: p.ClaimToken, outcome: p.Outcome, phase: p.Phase, next: p.Next, ownFault: p.OwnFault,
		evidence: present(toJSON(p.Evidence), true), failure: p.Failure,
		providerID: p.ProviderID, cost: p.CostMicros, currency: p.Currency, usage: p.Usage,
	}
	job := l.job(jobOf(p.Ref))
	if job != nil {
		m.askAfter = job.Policy.AskAfter
	}
	if !mayHold(p.Owner, job) {
		return m, false
	}
	if p.RetryAfter > 0 {
		m.retryAt = l.now.Add(p.RetryAfter)
	}
	if !slices.Contains(onejob.Outcomes(), p.Outcome) && p.Outcome != "" {
		m.outcome = onejob.OutcomeUnknown // doubt is the default branch
	}
	event, moves := p.Outcome.Event()
	if !moves { // accepted: the doubt stays what it is, and the provider's id is kept
		m.from, m.opens = []onejob.AttemptState{onejob.AttemptRunning, onejob.AttemptUnknown}, true
		return m, p.Outcome == onejob.OutcomeAccepted
	}
	m.from, m.fromRuled = onejob.SourcesOf(event)
	m.to, _ = m.from[0].Next(event)
	if m.to == onejob.AttemptUnknown { // more silence: still in doubt, with more to go by
		m.from, m.opens = append(m.from, onejob.AttemptUnknown), true
	}
	if event == onejob.EventAnswered && (job == nil || !job.Purged()) {
		m.result = p.Result
	}
	return m, true
}

// mayHold reports whether who may speak of an attempt of the job. An empty who may
// of every job's.
func mayHold(who string, job *onejob.Job) bool { return who == "" || (job != nil && job.Owner == who) }

// Without a target_state the attempt stays where it is. One that stays keeps what
// a failure said, and one that stays unknown its outcome too: there is only more
// to go by. A missing row: the attempt is not held under this token, or is in no
// state that this may move it from.
const sqlAttemptMove = `
UPDATE attempts a
   SET state            = coalesce(u.target_state, a.state),
       outcome          = CASE WHEN a.state = 'unknown' AND coalesce(u.target_state, a.state) = a.state THEN a.outcome ELSE u.outcome END,
       finished_at      = CASE WHEN coalesce(u.target_state, a.state) IN ('running', 'unknown') THEN NULL ELSE onejob_now() END,
       phase            = coalesce(u.phase, a.phase),
       evidence         = coalesce(u.evidence, a.evidence),
       next             = CASE WHEN coalesce(u.target_state, a.state) = a.state THEN a.next ELSE u.next END,
       own_fault        = CASE WHEN coalesce(u.target_state, a.state) = a.state THEN a.own_fault ELSE u.own_fault END,
       error_code       = CASE WHEN coalesce(u.target_state, a.state) = a.state THEN a.error_code ELSE u.error_code END,
       error            = CASE WHEN coalesce(u.target_state, a.state) = a.state THEN a.error ELSE u.error END,
       retry_at         = CASE WHEN coalesce(u.target_state, a.state) = a.state THEN a.retry_at ELSE coalesce(u.retry_at, a.retry_at) END,
       ruling           = coalesce(u.ruling, a.ruling),
       result           = u.result,
       result_type      = u.result_type,
       result_lost      = u.result_lost,
       provider_id      = coalesce(u.provider_id, a.provider_id),
       cost_micros      = CASE WHEN u.currency IS NULL THEN a.cost_micros ELSE u.cost_micros END,
       currency         = coalesce(u.currency, a.currency),
       usage            = coalesce(u.usage, a.usage),
       probe_at         = CASE WHEN u.opens AND (u.target_state IS NULL OR a.state <> u.target_state) THEN onejob_now() ELSE a.probe_at END,
       ask_at           = CASE WHEN u.opens THEN coalesce(a.ask_at, onejob_now() + u.ask_after * interval '1 microsecond') ELSE a.ask_at END,
       accepted_at      = CASE WHEN u.outcome = 'accepted' THEN coalesce(a.accepted_at, onejob_now()) ELSE a.accepted_at END,
       lease_over_at    = CASE WHEN u.by_ruling OR u.by_probe THEN a.lease_over_at END -- else its worker spoke after all
  FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
              $10::text[], $11::boolean[], $12::text[], $13::text[], $14::text[], $15::timestamptz[], $16::text[],
              $17::bytea[], $18::text[], $19::boolean[], $20::text[], $21::bigint[], $22::text[], $23::text[], $24::boolean[],
              $25::boolean[], $26::boolean[], $27::boolean[], $28::bigint[])
       AS u (part, job_id, id, claim_token, sources, ruled_sources, target_state, outcome, phase,
             next, own_fault, error_code, error, evidence, retry_at, ruling,
             result, result_type, result_lost, provider_id, cost_micros, currency, usage, by_ruling,
             by_probe, absence, opens, ask_after)
 WHERE a.part = u.part AND a.job_id = u.job_id AND a.id = u.id
   AND (u.by_ruling OR u.by_probe OR a.claim_token = u.claim_token)
   AND (a.state = ANY (u.sources::text[]) OR (a.ruling IS NOT NULL AND a.state = ANY (u.ruled_sources::text[]))
        OR (u.by_probe AND a.state = 'running' AND a.outcome = 'accepted'))
   AND (NOT u.absence OR a.quarantine_until <= onejob_now())
RETURNING ` + attemptColumns + withoutResult

func queueMoves(b *pgx.Batch, moves []move, moved *[]onejob.Attempt) {
	text := func(field func(m move) pgtype.Text) []pgtype.Text { return column(moves, field) }
	b.Queue(sqlAttemptMove,
		column(moves, func(m move) int16 { return int16(m.ref.Part) }),
		column(moves, func(m move) string { return m.ref.JobID }),
		column(moves, func(m move) string { return m.ref.ID }),
		column(moves, func(m move) string { return clean(m.token) }),
		column(moves, func(m move) string { return arrayOf(m.from) }),
		column(moves, func(m move) string { return arrayOf(m.fromRuled) }),
		text(func(m move) pgtype.Text { return optional(m.to) }),
		text(func(m move) pgtype.Text { return optional(m.outcome) }),
		text(func(m move) pgtype.Text { return optional(m.phase) }),
		text(func(m move) pgtype.Text { return optional(m.next) }),
		column(moves, func(m move) bool { return m.ownFault }),
		text(func(m move) pgtype.Text { code, _ := failureColumns(m.failure); return code }),
		text(func(m move) pgtype.Text { _, message := failureColumns(m.failure); return message }),
		text(func(m move) pgtype.Text { return m.evidence }),
		column(moves, func(m move) pgtype.Timestamptz { return stamp(m.retryAt) }),
		text(func(m move) pgtype.Text { return jsonColumn(m.ruling) }),
		column(moves, func(m move) []byte { return bodyOf(m.result) }),
		text(func(m move) pgtype.Text { return typeOf(m.result) }),
		column(moves, func(m move) bool { return m.result != nil && m.result.Lost }),
		text(func(m move) pgtype.Text { return optional(m.providerID) }),
		column(moves, func(m move) int64 { return m.cost }),
		text(func(m move) pgtype.Text { return optional(m.currency) }),
		text(func(m move) pgtype.Text { return present(string(m.usage), m.usage != nil) }),
		column(moves, func(m move) bool { return m.ruled }),
		column(moves, func(m move) bool { return m.probe }),
		column(moves, func(m move) bool { return m.absence }),
		column(moves, func(m move) bool { return m.opens }),
		column(moves, func(m move) int64 { return m.askAfter.Microseconds() }),
	).Query(func(rows pgx.Rows) error {
		return forEach(rows, func(row pgx.Row) error {
			a, err := scanAttempt(row)
			*moved = append(*moved, a)
			return err
		})
	})
}

// arrayOf writes states as PostgreSQL writes an array of them.
func arrayOf(states []onejob.AttemptState) string {
	return "{" + strings.Join(texts(states), ",") + "}"
}

func bodyOf(r *onejob.Result) []byte {
	if r == nil {
		return nil
	}
	return r.Body
}

func typeOf(r *onejob.Result) pgtype.Text {
	if r == nil {
		return pgtype.Text{}
	}
	return present(r.ContentType, true)
}

func jsonColumn[T any](value *T) pgtype.Text {
	if value == nil {
		return pgtype.Text{}
	}
	return present(toJSON(value), true)
}

// finished answers a finish, from what its transaction left behind.
func finished(l *loaded, p *onejob.AttemptFinishParams, settled *settled) onejob.AttemptFinishResult {
	var r onejob.AttemptFinishResult
	a, job := l.attempt(p.Ref), l.job(jobOf(p.Ref))
	switch {
	case !mayHold(p.Owner, job) || (a == nil && p.Owner != ""):
		r.Err = onejob.ErrorOfNoAttempt(p.Ref.ID)
		return r
	case a == nil:
		r.Err = claimLost(p.Ref)
		return r
	}
	r.State, r.JobState = a.State, job.State
	switch {
	case p.Outcome == "":
		r.Err = &onejob.Error{Code: onejob.CodeInvalidArgument, JobID: job.ID, AttemptID: a.ID, Message: "finishing needs an outcome"}
		return r
	case !settled.has(a.ID) && (a.ClaimToken != p.ClaimToken || a.Outcome != p.Outcome || !a.State.Terminal()):
		r.Err = claimLost(p.Ref)
		return r
	}
	return standsAt(job, a) // what moved, or a repeat, which answers as the first did
}

// standsAt is where an attempt and its job stand now.
func standsAt(job *onejob.Job, a *onejob.Attempt) onejob.AttemptFinishResult {
	r := onejob.AttemptFinishResult{State: a.State, JobState: job.State, Discarded: a.Discarded}
	if a.State == onejob.AttemptDiscarded {
		r.Incident = incidentOf(job, a)
	}
	if job.State == onejob.JobQueued {
		r.Due = job.RunAfter
	}
	return r
}
