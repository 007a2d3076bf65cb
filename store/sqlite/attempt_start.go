package sqlite

import (
	"context"

	"github.com/onejob-dev/onejob"
)

// AttemptStart starts one more attempt of a job because somebody asked.
func (s *Store) AttemptStart(ctx context.Context, params []onejob.AttemptStartParams) ([]onejob.AttemptStartResult, error) {
	return batch(ctx, s, params, (*tx).startAsked, func(err error) onejob.AttemptStartResult {
		return onejob.AttemptStartResult{Err: err}
	})
}

func (x *tx) startAsked(p *onejob.AttemptStartParams) (onejob.AttemptStartResult, error) {
	j, err := x.jobByID(p.JobID, p.Owner)
	if err != nil {
		return onejob.AttemptStartResult{}, err
	}
	if a := onejob.AskedWith(&j.Job, p.RequestKeyHash); a != nil {
		return x.repeatAsked(&j.Job, a, p)
	}
	if err := onejob.CheckRevision(&j.Job, p.IfRevision); err != nil {
		return onejob.AttemptStartResult{}, err
	}
	asked := onejob.Ask{Now: true, Target: p.Target, Lane: p.Lane}
	verdicts, err := x.verdicts(&j.Job, asked)
	if err != nil {
		return onejob.AttemptStartResult{}, err
	}
	d := onejob.Decide(&j.Job, j.Attempts, verdicts, x.now, asked)
	if err := onejob.CheckAsked(&j.Job, d); err != nil {
		return onejob.AttemptStartResult{}, err // a refused request takes no key
	}
	if err := onejob.CheckServed(&j.Job, d, &p.StartParams); err != nil {
		return onejob.AttemptStartResult{}, err
	}
	a := onejob.NewAttempt(&j.Job, j.Attempts, d, p.StartParams, x.now)
	a.RequestKeyHash, a.RequestFingerprint = p.RequestKeyHash, p.RequestFingerprint
	claimed, err := x.start(&j.Job, a)
	if entry, told := p.AuditOf(j.Owner, &a); told && err == nil {
		err = x.audit(entry)
	}
	return onejob.AttemptStartResult{Claimed: claimed}, err
}

func (x *tx) repeatAsked(j *onejob.Job, a *onejob.Attempt, p *onejob.AttemptStartParams) (onejob.AttemptStartResult, error) {
	if err := onejob.JudgeAsked(a, p); err != nil {
		return onejob.AttemptStartResult{Existed: true, Err: err}, nil
	}
	return onejob.AttemptStartResult{Existed: true, Claimed: &onejob.Claimed{Job: j, Attempt: *a}}, x.withInput(j)
}

// start writes the attempt that a decision asked for, and the job that now runs.
// Zero rows anywhere: the job is no longer what the decision saw, and the whole
// row is undone.
func (x *tx) start(j *onejob.Job, a onejob.Attempt) (*onejob.Claimed, error) {
	a.LeaseExpiresAt = millis(a.LeaseExpiresAt)
	seq, err := x.seqOf(j)
	if err != nil {
		return nil, err
	}
	n, err := x.exec(`
		UPDATE job_states SET attempts_made = attempts_made + 1, state = 'running', blocked = NULL, blocked_reason = NULL,
			next_target = ?, revision = revision + 1
		WHERE seq = ? AND attempts_made = ? AND cancel_requested_at IS NULL AND `+open,
		a.Target, seq, j.AttemptsMade)
	if err != nil {
		return nil, err
	}
	inserted := false
	if n == 1 {
		if inserted, err = x.insertAttempt(seq, j, &a); err != nil {
			return nil, err
		}
	}
	if !inserted {
		return nil, &onejob.Error{
			Code: onejob.CodeAttemptUnresolved, JobID: j.ID,
			Message: "the job changed, or another attempt is in doubt",
		}
	}
	j.AttemptsMade++
	j.Revision++
	j.State, j.Blocked, j.NextTarget = onejob.JobRunning, nil, a.Target
	j.Attempts = append(j.Attempts, a)
	return &onejob.Claimed{Job: j, Attempt: a}, x.withInput(j)
}
