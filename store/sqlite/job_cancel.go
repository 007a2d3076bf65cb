package sqlite

import (
	"context"

	"github.com/onejob-dev/onejob"
)

// JobCancel asks jobs to be given up. What has been sent may still happen, and
// wins if it does.
func (s *Store) JobCancel(ctx context.Context, params []onejob.JobCancelParams) ([]onejob.JobResult, error) {
	return batch(ctx, s, params, (*tx).cancel, refuseJob)
}

func refuseJob(err error) onejob.JobResult { return onejob.JobResult{Err: err} }

func (x *tx) cancel(p *onejob.JobCancelParams) (onejob.JobResult, error) {
	j, err := x.jobToChange(p.ID, p.Owner, p.IfRevision)
	switch {
	case err != nil:
		return onejob.JobResult{}, err
	case j.State == onejob.JobCancelled || !j.State.Terminal() && !j.CancelRequestedAt.IsZero():
		return onejob.JobResult{Job: &j.Job}, nil // asked before
	case j.State.Terminal():
		return onejob.JobResult{}, onejob.CheckAsked(&j.Job, onejob.Decision{Verb: onejob.Rest})
	}
	_, err = x.exec(`
		UPDATE job_states SET cancel_requested_at = ?
		WHERE seq = `+seqOfJob+` AND cancel_requested_at IS NULL AND `+open, x.now, int(j.Part), j.ID)
	if err != nil {
		return onejob.JobResult{}, err
	}
	// Nothing of these has left; their marks now fail.
	_, err = x.exec(`
		UPDATE attempts SET state = 'cancelled', outcome = 'cancelled', finished_at = ?
		WHERE seq = `+seqOfJob+` AND state = 'starting' AND `+unrestored, x.now, int(j.Part), j.ID)
	if err != nil {
		return onejob.JobResult{}, err
	}
	err = x.record(onejob.JobEvent{Part: j.Part, JobID: j.ID, Kind: onejob.EventCancelAsked, Actor: p.Actor})
	if err != nil {
		return onejob.JobResult{}, err
	}
	if entry, told := p.AuditOf(j.Owner); told {
		if err := x.audit(entry); err != nil {
			return onejob.JobResult{}, err
		}
	}
	j, err = x.changed(j.Part, j.ID)
	if err != nil {
		return onejob.JobResult{}, err
	}
	return onejob.JobResult{Job: &j.Job}, nil
}

// jobToChange reads a job that who may change, at the revision they saw.
func (x *tx) jobToChange(id, who string, ifRevision *int64) (*storedJob, error) {
	j, err := x.jobByID(id, who)
	if err != nil {
		return nil, err
	}
	return j, onejob.CheckRevision(&j.Job, ifRevision)
}

// JobUnblock lets jobs that need an operator go on. It changes nothing about a
// job that does not need one, so that it can be repeated.
func (s *Store) JobUnblock(ctx context.Context, params []onejob.JobUnblockParams) ([]onejob.JobResult, error) {
	return batch(ctx, s, params, (*tx).unblock, refuseJob)
}

func (x *tx) unblock(p *onejob.JobUnblockParams) (onejob.JobResult, error) {
	j, err := x.jobToChange(p.ID, p.Owner, p.IfRevision)
	if err != nil {
		return onejob.JobResult{}, err
	}
	needed, err := onejob.CheckUnblock(&j.Job)
	if err != nil || !needed {
		return onejob.JobResult{Job: &j.Job}, err
	}
	n, err := x.exec(`
		UPDATE job_states SET state = 'queued', blocked = NULL, blocked_reason = NULL, unblocked_at = ?
		WHERE seq = `+seqOfJob+` AND state = 'blocked' AND blocked_reason IN ('parked', 'needs_operator')
			AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.seq = job_states.seq
				AND a.state IN ('starting', 'running', 'unknown'))`, x.now, int(j.Part), j.ID)
	if err != nil {
		return onejob.JobResult{}, err
	}
	if n == 1 {
		err = x.record(onejob.JobEvent{Part: j.Part, JobID: j.ID, Kind: onejob.EventUnblocked, Actor: p.Actor, Detail: p.Reason})
		if err == nil {
			err = x.audit(p.AuditOf(j.Owner))
		}
		if err != nil {
			return onejob.JobResult{}, err
		}
	}
	j, err = x.changed(j.Part, j.ID)
	if err != nil {
		return onejob.JobResult{}, err
	}
	return onejob.JobResult{Job: &j.Job}, nil
}
