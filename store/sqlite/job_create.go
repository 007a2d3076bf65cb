package sqlite

import (
	"context"
	"time"

	"github.com/onejob-dev/onejob"
)

// JobCreate records intents. The unique constraint decides what is new: an
// existing job answers ahead of every check that guards the insert.
func (s *Store) JobCreate(ctx context.Context, params []onejob.JobCreateParams) ([]onejob.JobCreateResult, error) {
	return batch(ctx, s, params, (*tx).create, refuseCreate)
}

func refuseCreate(err error) onejob.JobCreateResult { return onejob.JobCreateResult{Err: err} }

func (x *tx) create(p *onejob.JobCreateParams) (onejob.JobCreateResult, error) {
	job := newJob(p, x.now)
	seq, inserted := int64(0), false
	if p.Refuse == nil {
		var err error
		seq, inserted, err = x.insertJob(job, p.Token)
		if refusedByRestore(err) { // ahead of the key: one that is taken still answers
			refused := *p
			refused.Refuse = onejob.ErrorOfRestore()
			return x.repeat(&refused)
		}
		if err != nil {
			return onejob.JobCreateResult{}, err
		}
	}
	if !inserted {
		return x.repeat(p)
	}
	if p.Supersedes != "" {
		if err := x.supersede(job); err != nil {
			return onejob.JobCreateResult{}, err
		}
	}
	if p.Waiter != nil {
		if err := x.await(job, p.Waiter); err != nil {
			return onejob.JobCreateResult{}, err
		}
	}
	return x.firstState(seq, job, p.Start)
}

// newJob is the job that an intent asks for, in the milliseconds that rows keep.
func newJob(p *onejob.JobCreateParams, now time.Time) *onejob.Job {
	job := &onejob.Job{
		Part: p.Part, ID: p.ID, Owner: p.Owner,
		KeyHash: p.KeyHash, KeyPrefix: p.KeyPrefix,
		Fingerprint: p.Fingerprint, FingerprintVersion: p.FingerprintVersion,
		Kind: p.Kind, Input: p.Input, Target: p.Target, Policy: p.Policy,
		Metadata: p.Metadata, Priority: p.Priority, Supersedes: p.Supersedes, Trace: p.Trace, Webhooks: p.Webhooks,
		CreatedAt: now, Deadline: later(p.Deadline), RunAfter: later(p.RunAfter),
		State: onejob.JobQueued, Version: 1, Revision: 1,
	}
	if job.Input == nil {
		job.Input = []byte{} // nil is what a purge leaves
	}
	if p.RunAfter.IsZero() {
		job.RunAfter = now
	}
	if p.Deadline.IsZero() && p.Policy.Deadline > 0 {
		job.Deadline = later(now.Add(p.Policy.Deadline))
	}
	return job
}

// insertJob inserts what never changes, and returns the job's number. Zero rows: the
// owner has used this key before.
func (x *tx) insertJob(j *onejob.Job, token string) (seq int64, inserted bool, err error) {
	return x.insert(`
		INSERT OR FAIL INTO jobs (
			part, id, owner, key_hash, key_prefix, fingerprint, fingerprint_version, create_token,
			kind, target, effect, lanes, policy, metadata, priority, supersedes, trace, webhooks, created_at, deadline, input)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (part, owner, key_hash) DO NOTHING`,
		int(j.Part), j.ID, j.Owner, j.KeyHash, j.KeyPrefix, j.Fingerprint, j.FingerprintVersion, token,
		j.Kind, j.Target, string(j.Policy.Effect), j.Policy.Lanes, encode(j.Policy), blobOrNull(j.Metadata),
		j.Priority, j.Supersedes, j.Trace, onejob.EncodeSubscriptions(j.Webhooks), j.CreatedAt, j.Deadline, j.Input)
}

// repeat is what an existing job says to an intent under its key. A replay and a
// conflict are written down before they are answered.
func (x *tx) repeat(p *onejob.JobCreateParams) (onejob.JobCreateResult, error) {
	j, err := x.job(`WHERE j.part = ? AND j.owner = ? AND j.key_hash = ?`, int(p.Part), p.Owner, p.KeyHash)
	if err != nil {
		return onejob.JobCreateResult{}, err
	}
	if j == nil {
		return onejob.JobCreateResult{Err: p.Refuse}, nil // the key stays free
	}
	judged := onejob.JudgeRepeat(&j.Job, p)
	ours := judged == nil && p.Token != "" && j.token == p.Token // our own creation, whose acknowledgement was lost
	if !ours {
		if err := x.recordRepeat(&j.Job, judged); err != nil {
			return onejob.JobCreateResult{}, err
		}
	}
	if judged != nil {
		return onejob.JobCreateResult{Existed: true, Err: judged}, nil
	}
	return onejob.JobCreateResult{Job: &j.Job, Existed: !ours}, x.withResult(&j.Job)
}

// recordRepeat leaves a job whose payload is gone alone: the purge itself says
// all that its key still answers.
func (x *tx) recordRepeat(j *onejob.Job, judged error) error {
	kind := onejob.EventReplayed
	switch {
	case j.Purged():
		return nil
	case onejob.CodeOf(judged) == onejob.CodeKeyConflict:
		kind = onejob.EventConflicted
	case judged != nil:
		return nil
	}
	last, err := x.lastOf(j, kind)
	if err != nil {
		return err
	}
	if onejob.RecordsRepeat(last, x.now) {
		if err := x.record(onejob.JobEvent{Part: j.Part, JobID: j.ID, Kind: kind}); err != nil {
			return err
		}
	}
	_, err = x.exec(`UPDATE job_states SET replays = replays + 1 WHERE seq = `+seqOfJob, int(j.Part), j.ID)
	return err
}

// supersede takes the one place there is after the old job.
func (x *tx) supersede(job *onejob.Job) error {
	old, err := x.jobByID(job.Supersedes, job.Owner)
	if err != nil {
		return err
	}
	if err := onejob.CheckSuperseded(&old.Job); err != nil {
		return err
	}
	n, err := x.exec(`
		UPDATE job_states SET superseded_by = ?, version = version + 1, revision = revision + 1
		WHERE seq = `+seqOfJob+` AND superseded_by IS NULL AND state IN ('succeeded', 'failed', 'cancelled')`,
		job.ID, int(old.Part), old.ID)
	if err != nil {
		return err
	}
	if n == 0 {
		return &onejob.Error{Code: onejob.CodeInvalidJob, JobID: old.ID, Message: "the job cannot be superseded now"}
	}
	return nil
}

// firstState inserts what becomes of a new job: where it stands, and the first
// attempt when the creator is about to send it.
func (x *tx) firstState(seq int64, j *onejob.Job, start *onejob.StartParams) (onejob.JobCreateResult, error) {
	a := x.firstAttempt(j, start)
	if a != nil {
		j.Attempts, j.AttemptsMade = []onejob.Attempt{*a}, 1
	}
	standing := onejob.StandingOf(j, j.Attempts, nil, x.now)
	j.State, j.NextTarget, j.Error = standing.State, standing.NextTarget, standing.Error
	if standing.State == onejob.JobQueued {
		j.RunAfter = later(standing.RunAfter)
	}
	if standing.Closes() {
		j.Version, j.FinishedAt = j.Version+1, x.now
	}
	if err := x.insertState(seq, j); err != nil {
		return onejob.JobCreateResult{}, err
	}
	if a == nil {
		return onejob.JobCreateResult{Job: withoutInput(j)}, nil
	}
	if _, err := x.insertAttempt(seq, j, a); err != nil {
		return onejob.JobCreateResult{}, err
	}
	return onejob.JobCreateResult{Job: withoutInput(j), Started: &onejob.Claimed{Job: j, Attempt: *a}}, nil
}

func withoutInput(j *onejob.Job) *onejob.Job {
	answer := *j
	answer.Input = nil
	return &answer
}

// firstAttempt is marked already: its mark is the commit that creates the job.
func (x *tx) firstAttempt(j *onejob.Job, start *onejob.StartParams) *onejob.Attempt {
	if start == nil {
		return nil
	}
	d := onejob.Decide(j, nil, nil, x.now, onejob.Ask{})
	pins, known := start.Targets[d.Target]
	if d.Verb != onejob.Start || !known {
		return nil
	}
	a := onejob.NewAttempt(j, nil, d, *start, x.now)
	mark(&a, start.Lease, j.Policy.SendWithin, pins, x.now)
	return &a
}

func (x *tx) insertState(seq int64, j *onejob.Job) error {
	code, message := failureColumns(j.Error)
	_, err := x.exec(`
		INSERT OR FAIL INTO job_states (
			seq, part, job_id, owner, state, version, revision, attempts_made, priority, run_after, due, next_target, deadline,
			error_code, error, finished_at, hooked)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		seq, int(j.Part), j.ID, j.Owner, string(j.State), j.Version, j.Revision, j.AttemptsMade, j.Priority,
		j.RunAfter, !j.RunAfter.After(x.now), j.NextTarget, j.Deadline,
		code, message, j.FinishedAt, len(j.Webhooks) > 0)
	return err
}
