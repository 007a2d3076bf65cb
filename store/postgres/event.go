package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob"
)

const sqlEventWrite = `
INSERT INTO events (part, job_id, attempt_id, kind, at, actor, detail)
SELECT u.part, u.job_id, u.attempt_id, u.kind, onejob_now(), u.actor, u.detail
  FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
       WITH ORDINALITY AS u (part, job_id, attempt_id, kind, actor, detail, ord)
 WHERE u.kind NOT IN ('replayed', 'conflicted')
    OR NOT EXISTS (SELECT FROM events e WHERE e.part = u.part AND e.job_id = u.job_id AND e.kind = u.kind
                      AND e.at > onejob_now() - interval '1 hour')
 ORDER BY u.ord`

// writeEvents queues what rows cannot tell. The time is the transaction's. Of
// replays and conflicts, which cost the caller nothing, at most one an hour and
// job is written: job_states.replays counts them all.
func writeEvents(b *pgx.Batch, events []onejob.JobEvent) {
	events = withoutMore(events)
	if len(events) == 0 {
		return
	}
	text := func(field func(e onejob.JobEvent) string) []string {
		return column(events, func(e onejob.JobEvent) string { return clean(field(e)) })
	}
	b.Queue(sqlEventWrite,
		column(events, func(e onejob.JobEvent) int16 { return int16(e.Part) }),
		text(func(e onejob.JobEvent) string { return e.JobID }),
		text(func(e onejob.JobEvent) string { return e.AttemptID }),
		text(func(e onejob.JobEvent) string { return string(e.Kind) }),
		text(func(e onejob.JobEvent) string { return e.Actor }),
		text(func(e onejob.JobEvent) string { return e.Detail }),
	)
}

// withoutMore leaves out all but the first replay and conflict of each job.
func withoutMore(events []onejob.JobEvent) []onejob.JobEvent {
	type repeated struct {
		job  onejob.JobRef
		kind onejob.EventKind
	}
	seen := map[repeated]bool{}
	return slices.DeleteFunc(events, func(e onejob.JobEvent) bool {
		if e.Kind != onejob.EventReplayed && e.Kind != onejob.EventConflicted {
			return false
		}
		r := repeated{job: onejob.JobRef{Part: e.Part, ID: e.JobID}, kind: e.Kind}
		more := seen[r]
		seen[r] = true
		return more
	})
}

const sqlEvents = `
SELECT part, job_id, attempt_id, kind, at, actor, detail
  FROM events WHERE part = $1 AND job_id = $2 ORDER BY id`

// JobEvents returns what was written down about a job, oldest first.
func (s *Store) JobEvents(ctx context.Context, ref onejob.JobRef) ([]onejob.JobEvent, error) {
	rows, err := s.pool.Query(ctx, sqlEvents, int16(ref.Part), ref.ID)
	if err != nil {
		return nil, onejob.Unavailable(err)
	}
	events := []onejob.JobEvent{}
	err = forEach(rows, func(row pgx.Row) error {
		var e onejob.JobEvent
		var part int16
		err := row.Scan(&part, &e.JobID, &e.AttemptID, &e.Kind, &e.At, &e.Actor, &e.Detail)
		e.Part, e.At = uint8(part), e.At.UTC()
		events = append(events, e)
		return err
	})
	return events, onejob.Unavailable(err)
}
