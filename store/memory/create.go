package memory

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/onejob-dev/onejob"
)

// JobCreate records intents. An existing job answers ahead of every check that
// guards the insert.
func (s *Store) JobCreate(ctx context.Context, params []onejob.JobCreateParams) ([]onejob.JobCreateResult, error) {
	return each(ctx, s, params, s.create)
}

func (s *Store) create(p *onejob.JobCreateParams, now time.Time) onejob.JobCreateResult {
	if r := s.byKey[keyOf{p.Owner, string(p.KeyHash)}]; r != nil {
		return r.answer(p, now)
	}
	if err := s.mayInsert(p); err != nil {
		return onejob.JobCreateResult{Err: err}
	}
	r := s.insert(p, now)
	s.await(r, p.Waiter, now)
	if p.Supersedes != "" {
		old := s.jobs[p.Supersedes]
		old.job.SupersededBy = p.ID
		old.job.Version++
		s.changed(old, now)
	}
	started := s.startFirst(r, p, now)
	return onejob.JobCreateResult{Job: r.copyJob(false), Started: started}
}

// answer is what an existing job says to an intent under its key.
func (r *row) answer(p *onejob.JobCreateParams, now time.Time) onejob.JobCreateResult {
	err := onejob.JudgeRepeat(&r.job, p)
	switch {
	case onejob.CodeOf(err) == onejob.CodeKeyConflict:
		r.recordRepeat(now, onejob.EventConflicted)
		return onejob.JobCreateResult{Existed: true, Err: err}
	case err != nil:
		return onejob.JobCreateResult{Existed: true, Err: err}
	case r.token == p.Token: // our own creation, whose acknowledgement was lost
		return onejob.JobCreateResult{Job: r.copyJob(false)}
	}
	r.recordRepeat(now, onejob.EventReplayed)
	return onejob.JobCreateResult{Job: r.copyJob(false), Existed: true}
}

// mayInsert is all that guards a new row. What it refuses takes no key.
func (s *Store) mayInsert(p *onejob.JobCreateParams) error {
	if p.Refuse != nil {
		return p.Refuse
	}
	if s.generation.Unconfirmed() {
		return onejob.ErrorOfRestore()
	}
	if _, err := p.Policy.WithDefaults(); err != nil { // above all: no racing lane on an effect
		return err
	}
	if p.Supersedes == "" {
		return nil
	}
	old := s.find(p.Supersedes, p.Owner)
	if old == nil {
		return onejob.ErrorOfNoJob(p.Supersedes)
	}
	return onejob.CheckSuperseded(&old.job)
}

func (s *Store) insert(p *onejob.JobCreateParams, now time.Time) *row {
	r := &row{token: p.Token, job: onejob.Job{
		Part: p.Part, ID: p.ID, Owner: p.Owner,
		KeyHash: bytes.Clone(p.KeyHash), KeyPrefix: p.KeyPrefix,
		Fingerprint: bytes.Clone(p.Fingerprint), FingerprintVersion: p.FingerprintVersion,
		Kind: p.Kind, Input: bytes.Clone(p.Input), Target: p.Target, Policy: p.Policy,
		Metadata: bytes.Clone(p.Metadata), Priority: p.Priority, Supersedes: p.Supersedes, Trace: p.Trace, Webhooks: slices.Clone(p.Webhooks),
		CreatedAt: now, Deadline: p.Deadline.UTC(), RunAfter: p.RunAfter.UTC(),
		State: onejob.JobQueued, Version: 1,
	}}
	r.job.Policy.Targets, r.job.Policy.Contract = slices.Clone(p.Policy.Targets), copyOf(p.Policy.Contract)
	if p.RunAfter.IsZero() {
		r.job.RunAfter = now
	}
	if p.Deadline.IsZero() && p.Policy.Deadline > 0 {
		r.job.Deadline = now.Add(p.Policy.Deadline)
	}
	s.jobs[p.ID] = r
	s.byKey[keyOf{p.Owner, string(p.KeyHash)}] = r
	s.changed(r, now)
	return r
}

// startFirst starts and marks the first attempt in the commit that creates the
// job, when the creator is about to send it.
func (s *Store) startFirst(r *row, p *onejob.JobCreateParams, now time.Time) *onejob.Claimed {
	if p.Start == nil {
		return nil
	}
	d := onejob.Decide(&r.job, nil, nil, now, onejob.Ask{})
	pins, known := p.Start.Targets[d.Target]
	if d.Verb != onejob.Start || !known {
		return nil
	}
	a := s.start(r, d, *p.Start, now)
	mark(a, p.Start.Lease, r.job.Policy.SendWithin, pins, now)
	return &onejob.Claimed{Job: r.copyJob(true), Attempt: copyAttempt(a, false)}
}
