package sqlite

import (
	"github.com/onejob-dev/onejob"
)

// changed ends every change of a job's attempts: the job stands where they put
// it, and whoever watches its revision sees that something happened.
func (x *tx) changed(part uint8, jobID string) (*storedJob, error) {
	j, err := x.job(`WHERE j.part = ? AND j.id = ?`, int(part), jobID)
	if err != nil || j == nil {
		return nil, err
	}
	return j, x.stand(&j.Job)
}

// stand writes where an open job stands now, and into j too. A job that has ended
// stays as it is but for its revision.
func (x *tx) stand(j *onejob.Job) error {
	if j.State.Terminal() {
		return x.touch(j)
	}
	verdicts, err := x.verdicts(j, onejob.Ask{})
	if err != nil {
		return err
	}
	next := onejob.StandingOf(j, j.Attempts, verdicts, x.now)
	next.RunAfter = later(next.RunAfter)
	if next.State != onejob.JobQueued {
		next.RunAfter = j.RunAfter
	}
	wasBlocked := j.Blocked
	if err := x.writeStanding(j, next); err != nil {
		return err
	}
	if b := next.Blocked; b != nil && (wasBlocked == nil || wasBlocked.Reason != b.Reason) {
		return x.record(onejob.JobEvent{
			Part: j.Part, JobID: j.ID, AttemptID: b.AttemptID, Kind: onejob.EventBlocked, Detail: string(b.Reason),
		})
	}
	return nil
}

// writeStanding changes nothing about a job that has ended.
func (x *tx) writeStanding(j *onejob.Job, next onejob.Standing) error {
	var blocked, reason any
	if next.Blocked != nil {
		blocked, reason = encode(next.Blocked), string(next.Blocked.Reason)
	}
	code, message := failureColumns(next.Error)
	version, finished := j.Version, j.FinishedAt
	if next.Closes() {
		version, finished = version+1, x.now
	}
	n, err := x.exec(`
		UPDATE job_states SET state = ?, blocked = ?, blocked_reason = ?, run_after = ?, due = ?, next_target = ?,
			error_code = ?, error = ?, version = ?, finished_at = ?, revision = revision + 1
		WHERE seq = `+seqOfJob+` AND version = ? AND `+open,
		string(next.State), blocked, reason, next.RunAfter, !next.RunAfter.After(x.now), next.NextTarget,
		code, message, version, finished,
		int(j.Part), j.ID, j.Version)
	if err != nil || n == 0 {
		return err
	}
	j.State, j.Blocked, j.RunAfter, j.NextTarget, j.Error = next.State, next.Blocked, next.RunAfter, next.NextTarget, next.Error
	j.Version, j.FinishedAt = version, finished
	j.Revision++
	return nil
}

// touch counts a change that leaves the job where it stands.
func (x *tx) touch(j *onejob.Job) error {
	_, err := x.exec(`UPDATE job_states SET revision = revision + 1 WHERE seq = `+seqOfJob, int(j.Part), j.ID)
	j.Revision++
	return err
}
