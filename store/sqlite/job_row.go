package sqlite

import (
	"encoding/json"
	"fmt"

	"github.com/onejob-dev/onejob"
)

// open is the SQL of a job that has not ended.
const open = `state IN ('queued', 'running', 'blocked')`

// jobColumns are all of a job but its input, in the order that scanJob reads.
// job_states is joined from the left: a shrunk tombstone has none.
const jobColumns = `
	j.part, j.id, j.owner, j.key_hash, j.key_prefix, j.fingerprint, j.fingerprint_version, j.create_token,
	j.kind, j.target, j.policy, j.metadata, j.priority, j.supersedes, j.trace, j.webhooks, j.created_at, j.deadline, j.purged_at,
	s.state, s.version, s.revision, s.attempts_made, s.run_after, s.next_target, s.completed_by,
	s.blocked, s.error_code, s.error, s.cancel_requested_at, s.superseded_by, s.finished_at, s.unblocked_at, s.held_at`

const jobTables = `
	FROM jobs j LEFT JOIN job_states s ON s.seq = j.seq`

// seqOfJob is what a job's state and attempts are kept under, by its part and id.
const seqOfJob = `(SELECT seq FROM jobs WHERE part = ? AND id = ?)`

// seqOf returns a job's number, and zero for one that does not exist.
func (x *tx) seqOf(j *onejob.Job) (seq int64, err error) {
	err = x.query(`SELECT seq FROM jobs WHERE part = ? AND id = ?`, func(r *row) error {
		seq = r.Int64()
		return nil
	}, int(j.Part), j.ID)
	return seq, err
}

// storedJob is a job and what only the store needs of it.
type storedJob struct {
	onejob.Job
	token string // of the transaction that created it
}

// shrunk reports whether only owner, key and fingerprint are left.
func (j *storedJob) shrunk() bool { return j.State == "" }

func scanJob(r *row, j *storedJob) error {
	j.Part, j.ID, j.Owner = uint8(r.Int64()), r.String(), r.String()
	j.KeyHash, j.KeyPrefix = r.Bytes(), r.String()
	j.Fingerprint, j.FingerprintVersion, j.token = r.Bytes(), r.Int(), r.String()
	j.Kind, j.Target = r.String(), r.String()
	policy := r.String()
	j.Metadata, j.Priority, j.Supersedes, j.Trace = r.Bytes(), r.Int(), r.String(), r.String()
	webhooks := r.String()
	j.CreatedAt, j.Deadline, j.PurgedAt = r.Time(), r.Time(), r.Time()

	j.State, j.Version, j.Revision = onejob.JobState(r.String()), r.Int64(), r.Int64()
	j.AttemptsMade, j.RunAfter, j.NextTarget, j.CompletedBy = r.Int(), r.Time(), r.String(), r.String()
	blocked, isBlocked := r.Text()
	j.Error = scanFailure(r)
	j.CancelRequestedAt, j.SupersededBy, j.FinishedAt, j.UnblockedAt, j.HeldAt = r.Time(), r.String(), r.Time(), r.Time(), r.Time()

	if policy != "" {
		if err := decode(policy, &j.Policy); err != nil {
			return err
		}
	}
	if webhooks != "" {
		if err := decode(webhooks, &j.Webhooks); err != nil {
			return err
		}
	}
	if isBlocked {
		j.Blocked = new(onejob.Blocked)
		return decode(blocked, j.Blocked)
	}
	return nil
}

// scanFailure reads a code and a message; NULL is no failure.
func scanFailure(r *row) *onejob.Failure {
	code, failed := r.Text()
	message := r.String()
	if !failed {
		return nil
	}
	return &onejob.Failure{Code: code, Message: message}
}

// failureColumns are the two columns of a failure.
func failureColumns(f *onejob.Failure) (code, message any) {
	if f == nil {
		return nil, nil
	}
	return f.Code, f.Message
}

// decode fails for a row that something else than this program wrote: that row's
// own error, which stops no other.
func decode(text string, into any) error {
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return &onejob.Error{Code: onejob.CodeInternal, Message: "a stored record cannot be read", Err: fmt.Errorf("decode %T: %w", into, err)}
	}
	return nil
}

// encode is JSON of the module's own records, which cannot fail.
func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return string(b)
}

// jobByID reads a job with its attempts. It returns [onejob.ErrNotFound] for one
// that does not exist, is shrunk, or is not who's. An empty who may see every job.
func (x *tx) jobByID(id, who string) (*storedJob, error) {
	part, ok := onejob.PartOfID(id)
	if !ok {
		return nil, onejob.ErrorOfNoJob(id)
	}
	j, err := x.job(`WHERE j.part = ? AND j.id = ?`, int(part), id)
	if err != nil {
		return nil, err
	}
	if j == nil || j.shrunk() || (who != "" && who != j.Owner) {
		return nil, onejob.ErrorOfNoJob(id)
	}
	return j, nil
}

// job reads one job with its attempts, or nil.
func (x *tx) job(where string, args ...any) (*storedJob, error) {
	var j *storedJob
	err := x.query(`SELECT`+jobColumns+jobTables+` `+where, func(r *row) error {
		j = new(storedJob)
		return scanJob(r, j)
	}, args...)
	if err != nil || j == nil {
		return nil, err
	}
	j.Attempts, err = x.attemptsOf(&j.Job)
	return j, err
}

// withInput adds the input to a job.
func (x *tx) withInput(j *onejob.Job) error {
	return x.query(`SELECT input FROM jobs WHERE part = ? AND id = ?`, func(r *row) error {
		j.Input = r.Bytes()
		return nil
	}, int(j.Part), j.ID)
}

// withResult adds the winner's answer to a job.
func (x *tx) withResult(j *onejob.Job) error {
	if j.CompletedBy == "" || j.Purged() {
		return nil
	}
	winner := onejob.AttemptOf(j, j.CompletedBy)
	if winner == nil {
		return nil
	}
	return x.query(`SELECT `+resultColumns+` FROM attempts a WHERE a.seq = `+seqOfJob+` AND a.number = ?`, func(r *row) error {
		j.Result = scanResult(r)
		return nil
	}, int(j.Part), j.ID, winner.Number)
}

// answer is a job as a caller gets it.
func (x *tx) answer(id string) (*onejob.Job, error) {
	j, err := x.jobByID(id, "")
	if err != nil {
		return nil, err
	}
	return &j.Job, x.withResult(&j.Job)
}
