package sqlite

import (
	"time"

	"github.com/onejob-dev/onejob"
)

// takeSlot fills the result slot of an open job, once. Zero rows: it is taken, or
// the job has closed. Nobody else can have written since this transaction began,
// so the version that it compares with is the row's own.
func (x *tx) takeSlot(ref onejob.AttemptRef) (*onejob.Won, error) {
	won, seq := &onejob.Won{At: x.now}, int64(0)
	err := x.query(`SELECT seq, revision + 1 FROM job_states WHERE seq = `+seqOfJob, func(r *row) error {
		seq, won.Revision = r.Int64(), r.Int64()
		return nil
	}, int(ref.Part), ref.JobID)
	if err != nil {
		return nil, err
	}
	n, err := x.exec(`
		UPDATE OR FAIL job_states SET state = 'succeeded', completed_by = ?, finished_at = ?, version = version + 1, revision = revision + 1,
			blocked = NULL, blocked_reason = NULL, next_target = ''
		WHERE seq = ? AND completed_by IS NULL AND state NOT IN ('failed', 'cancelled')`,
		ref.ID, x.now, seq)
	if err != nil || n == 0 {
		return nil, err
	}
	return won, nil
}

// discard keeps a success that lost as evidence on its own row, but for the answer to a
// job whose payload has been removed.
func (x *tx) discard(ref onejob.AttemptRef) (onejob.AttemptFinishResult, error) {
	j, err := x.job(`WHERE j.part = ? AND j.id = ?`, int(ref.Part), ref.JobID)
	if err != nil {
		return onejob.AttemptFinishResult{}, err
	}
	discarded := &onejob.Discarded{Winner: j.CompletedBy, After: since(j.FinishedAt, x.now)}
	_, err = x.exec(`
		UPDATE attempts SET state = 'discarded', discarded = ?,
			result = CASE WHEN ? THEN NULL ELSE result END, result_type = CASE WHEN ? THEN NULL ELSE result_type END
		WHERE `+thisAttempt+` AND state = 'succeeded'`,
		encode(discarded), j.Purged(), j.Purged(), int(ref.Part), ref.JobID, ref.ID)
	if err != nil {
		return onejob.AttemptFinishResult{}, err
	}
	a := onejob.AttemptOf(&j.Job, ref.ID)
	a.State, a.Discarded = onejob.AttemptDiscarded, discarded
	for _, kind := range []onejob.EventKind{onejob.EventRaceLost, onejob.IncidentBy(&j.Job, a)} {
		if kind == "" {
			continue
		}
		err := x.record(onejob.JobEvent{Part: ref.Part, JobID: ref.JobID, AttemptID: ref.ID, Kind: kind, Detail: j.CompletedBy})
		if err != nil {
			return onejob.AttemptFinishResult{}, err
		}
	}
	return standsAt(&j.Job, a), x.touch(&j.Job)
}

func since(t, now time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return now.Sub(t)
}
