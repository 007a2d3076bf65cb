package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onejob-dev/onejob"
)

// settled is what came of moves: the attempts that moved, what is to be told of
// it, and a batch with what is still to be written.
type settled struct {
	moved  []onejob.Attempt
	events []onejob.JobEvent
	batch  *pgx.Batch
}

func (s *settled) has(attemptID string) bool {
	for i := range s.moved {
		if s.moved[i].ID == attemptID {
			return true
		}
	}
	return false
}

// The result slot is filled once. Of several successes of one job in a batch the
// first that moved is tried. A missing row: the slot is taken, or the job closed.
const sqlJobComplete = `
WITH first AS MATERIALIZED (
    SELECT DISTINCT ON (a.part, a.job_id) a.part, a.job_id, a.id, u.version
      FROM unnest($1::smallint[], $2::text[], $3::text[], $4::bigint[]) WITH ORDINALITY AS u (part, job_id, id, version, ord)
      JOIN attempts a ON a.part = u.part AND a.job_id = u.job_id AND a.id = u.id AND a.state = 'succeeded'
     ORDER BY a.part, a.job_id, u.ord
)
UPDATE job_states s
   SET completed_by = f.id, state = 'succeeded', version = s.version + 1, revision = s.revision + 1,
       finished_at = onejob_now(),
       blocked = NULL, blocked_reason = NULL, error_code = NULL, error = NULL
  FROM first f
 WHERE s.part = f.part AND s.job_id = f.job_id
   AND s.version = f.version
   AND s.completed_by IS NULL AND s.state NOT IN ('failed', 'cancelled')
RETURNING s.part, s.job_id, s.completed_by`

// settle moves attempts, each if it is still where it may be moved from, and
// gives the slots of their jobs to the successes among them, each if nobody has
// it. A success that does not get it is discarded; its answer and cost are kept.
// The attempts are merged into l. What is left to write is in the batch returned.
func (t *txn) settle(ctx context.Context, l *loaded, moves []move) (*settled, error) {
	s := &settled{batch: t.batch()}
	if len(moves) == 0 {
		return s, nil
	}
	b := t.batch()
	queueMoves(b, moves, &s.moved)
	winners := map[onejob.JobRef]string{}
	queueCompletions(b, l, moves, winners)
	if err := t.send(ctx, b); err != nil {
		return nil, err
	}
	s.batch = t.batch()
	l.merge(s.moved)
	for ref, winner := range winners {
		l.complete(ref, winner, moves)
	}
	s.discardLosers(l)
	return s, nil
}

func queueCompletions(b *pgx.Batch, l *loaded, moves []move, winners map[onejob.JobRef]string) {
	var successes []move
	for _, m := range moves {
		if m.to == onejob.AttemptSucceeded && l.job(jobOf(m.ref)) != nil {
			successes = append(successes, m)
		}
	}
	if len(successes) == 0 {
		return
	}
	b.Queue(sqlJobComplete,
		column(successes, func(m move) int16 { return int16(m.ref.Part) }),
		column(successes, func(m move) string { return m.ref.JobID }),
		column(successes, func(m move) string { return m.ref.ID }),
		column(successes, func(m move) int64 { return l.job(jobOf(m.ref)).Version }),
	).Query(func(rows pgx.Rows) error {
		return forEach(rows, func(row pgx.Row) error {
			var part int16
			var ref onejob.JobRef
			var winner string
			err := row.Scan(&part, &ref.ID, &winner)
			ref.Part = uint8(part)
			winners[ref] = winner
			return err
		})
	})
}

// complete brings a job to what winning its slot has written.
func (l *loaded) complete(ref onejob.JobRef, winner string, moves []move) {
	job := l.job(ref)
	l.won[ref] = true
	job.State, job.CompletedBy, job.FinishedAt = onejob.JobSucceeded, winner, l.now
	job.Blocked, job.Error, job.NextTarget = nil, nil, ""
	job.Version++
	job.Revision++
	job.Result = &onejob.Result{}
	for _, m := range moves {
		if m.ref.ID == winner && m.result != nil {
			job.Result = m.result
		}
	}
}

const sqlAttemptDiscard = `
UPDATE attempts a SET state = 'discarded', discarded = u.discarded
  FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[]) AS u (part, job_id, id, discarded)
 WHERE a.part = u.part AND a.job_id = u.job_id AND a.id = u.id AND a.state = 'succeeded'`

func (s *settled) discardLosers(l *loaded) {
	var losers []onejob.Attempt
	for i := range s.moved {
		a := &s.moved[i]
		job := l.job(onejob.JobRef{Part: a.Part, ID: a.JobID})
		if a.State != onejob.AttemptSucceeded || job.CompletedBy == a.ID {
			continue
		}
		a.State = onejob.AttemptDiscarded
		a.Discarded = &onejob.Discarded{Winner: job.CompletedBy, After: l.now.Sub(job.FinishedAt)}
		losers = append(losers, *a)
		s.events = append(s.events, lossOf(job, a)...)
	}
	if len(losers) == 0 {
		return
	}
	l.merge(losers)
	s.batch.Queue(sqlAttemptDiscard,
		column(losers, func(a onejob.Attempt) int16 { return int16(a.Part) }),
		column(losers, func(a onejob.Attempt) string { return a.JobID }),
		column(losers, func(a onejob.Attempt) string { return a.ID }),
		column(losers, func(a onejob.Attempt) pgtype.Text { return jsonColumn(a.Discarded) }))
}

func lossOf(job *onejob.Job, a *onejob.Attempt) []onejob.JobEvent {
	lost := onejob.JobEvent{Part: job.Part, JobID: job.ID, AttemptID: a.ID, Kind: onejob.EventRaceLost, Detail: job.CompletedBy}
	incident := lost
	if incident.Kind = incidentOf(job, a); incident.Kind == "" {
		return []onejob.JobEvent{lost}
	}
	return []onejob.JobEvent{lost, incident}
}

// incidentOf says whether a discarded success may mean money spent twice. It does
// when a ruling let a second attempt start and was wrong, whichever came first.
func incidentOf(job *onejob.Job, a *onejob.Attempt) onejob.EventKind {
	wrong := overruled(a)
	for i := range job.Attempts {
		if job.Attempts[i].ID == job.CompletedBy {
			wrong = wrong || overruled(&job.Attempts[i])
		}
	}
	return onejob.IncidentOf(wrong, job.CompletedBy)
}

// overruled reports whether a success came of an attempt that a ruling had
// declared failed or cancelled.
func overruled(a *onejob.Attempt) bool {
	return a.Ruling != nil && onejob.EventOfRuling(a.Ruling.Outcome) != onejob.EventAnswered
}
