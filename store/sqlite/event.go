package sqlite

import (
	"context"
	"time"

	"github.com/onejob-dev/onejob"
)

// record writes down what the rows cannot tell.
func (x *tx) record(e onejob.JobEvent) error {
	_, err := x.exec(`INSERT INTO events (part, job_id, attempt_id, kind, at, actor, detail) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		int(e.Part), e.JobID, e.AttemptID, string(e.Kind), x.now, e.Actor, e.Detail)
	return err
}

// lastOf is when something last happened to a job that was written down. Zero: it
// never was.
func (x *tx) lastOf(j *onejob.Job, kind onejob.EventKind) (last time.Time, err error) {
	err = x.query(`SELECT at FROM events WHERE part = ? AND job_id = ? AND kind = ? ORDER BY id DESC LIMIT 1`, func(r *row) error {
		last = r.Time()
		return nil
	}, int(j.Part), j.ID, string(kind))
	return last, err
}

// JobEvents returns what was written down about a job, oldest first. A job
// without events, or that does not exist, has none.
func (s *Store) JobEvents(ctx context.Context, ref onejob.JobRef) (events []onejob.JobEvent, err error) {
	err = s.read(ctx, func(x *tx) error {
		return x.query(`
			SELECT part, job_id, attempt_id, kind, at, actor, detail FROM events
			WHERE part = ? AND job_id = ? ORDER BY id`, func(r *row) error {
			events = append(events, onejob.JobEvent{
				Part: uint8(r.Int64()), JobID: r.String(), AttemptID: r.String(),
				Kind: onejob.EventKind(r.String()), At: r.Time(), Actor: r.String(), Detail: r.String(),
			})
			return nil
		}, int(ref.Part), ref.ID)
	})
	return events, err
}
