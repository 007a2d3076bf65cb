package engine

import (
	"context"
	"errors"

	"github.com/onejob-dev/onejob"
)

// noteGate tells the observer of an attempt that the gate let through.
func (e *Engine) noteGate(t *trial) {
	switch a := &t.Attempt; {
	case a.WaiverID != "":
		e.opts.Observer.GateDecided(t.Job.Kind, a.Target, true, "waiver")
	case a.CertificateID != "":
		e.opts.Observer.GateDecided(t.Job.Kind, a.Target, true, "")
	}
}

// noteForbidden tells the observer of an attempt that the gate no longer let through
// when it was to be marked. Other errors of a mark are none of the gate's.
func (e *Engine) noteForbidden(t *trial, err error) {
	var refused *onejob.Error
	if errors.As(err, &refused) && refused.Code == onejob.CodeFailoverNotCertified {
		e.opts.Observer.GateDecided(t.Job.Kind, t.Attempt.Target, false, refused.Reason)
	}
}

// noteNoRace tells the observer of the targets that the gate kept from a racing lane.
func (e *Engine) noteNoRace(t *trial, err error) {
	var refused *onejob.Error
	if !errors.As(err, &refused) {
		return
	}
	for _, c := range refused.Candidates {
		e.opts.Observer.GateDecided(t.Job.Kind, c.Target, false, c.Reason)
	}
}

// noteRefusal tells the observer and the log of a job whose next targets the gate did
// not let through.
func (e *Engine) noteRefusal(jobID string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.hard), settleTime)
	defer cancel()
	results, err := e.store.JobGet(ctx, []onejob.JobGetParams{{ID: jobID}})
	if err != nil || results[0].Err != nil {
		return // it is counted nowhere else, and nothing rests on it
	}
	job := results[0].Job
	if job.Blocked == nil || job.Blocked.Reason != onejob.BlockFailoverNotCertified {
		return
	}
	for _, c := range job.Blocked.Candidates {
		e.opts.Observer.GateDecided(job.Kind, c.Target, false, c.Reason)
		e.opts.Logger.Warn("a target may not take over", "job_id", job.ID, "kind", job.Kind, "target", c.Target, "reason", c.Reason)
	}
}
