package sqlite

import (
	"context"
	"slices"

	"github.com/onejob-dev/onejob"
)

// asked is the condition that questions about an attempt are asked. The indexes
// over due ones are partial by the same words.
const asked = `(state = 'unknown' OR (state = 'running' AND outcome = 'accepted'))`

// ask makes an attempt that has just become open to questions due for them. A
// person is asked once the doubt has lasted long enough, counted from its beginning. A
// policy that cannot be read says nothing of it, and must not be the end of a batch.
func (x *tx) ask(ref onejob.AttemptRef) error {
	_, err := x.exec(`
		UPDATE attempts SET probe_at = ?, ask_at = coalesce(ask_at, ? + (
			SELECT coalesce(json_extract(CASE WHEN json_valid(j.policy) THEN j.policy ELSE '{}' END, '$.ask_after'), 0) / 1000000 FROM jobs j
			WHERE j.seq = attempts.seq))
		WHERE `+thisAttempt+` AND `+asked,
		x.now, x.now, int(ref.Part), ref.JobID, ref.ID)
	return err
}

// ProbeClaim takes attempts that are due to be asked about, longest due first. One
// whose job cannot be read is left for the time of a lease, and told of in the log.
func (s *Store) ProbeClaim(ctx context.Context, p onejob.ProbeClaimParams) (claimed []onejob.Claimed, err error) {
	err = s.write(ctx, func(x *tx) error {
		claimed = nil
		due, err := x.attemptRefs(`
			SELECT part, job_id, id FROM attempts
			WHERE `+asked+` AND probe_at <= ? AND target IN (SELECT value FROM json_each(?))
			ORDER BY probe_at LIMIT ?`, x.now, encode(slices.Concat([]string{}, p.Targets)), max(0, p.Max))
		if err != nil {
			return err
		}
		for _, ref := range due {
			_, err := x.exec(`UPDATE attempts SET probe_at = ? WHERE `+thisAttempt+` AND `+asked,
				later(x.now.Add(p.Lease)), int(ref.Part), ref.JobID, ref.ID)
			if err != nil {
				return err
			}
			refused, err := x.row(func() error { return x.claimForProbe(ref, &claimed) })
			if err != nil {
				return err
			}
			if refused != nil {
				s.log.Error("ask about an attempt; it is left for a while", "attempt_id", ref.ID, "error", refused)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

func (x *tx) claimForProbe(ref onejob.AttemptRef, claimed *[]onejob.Claimed) error {
	j, a, err := x.attemptIn(ref)
	if err != nil {
		return err
	}
	if err := x.withInput(&j.Job); err != nil {
		return err
	}
	*claimed = append(*claimed, onejob.Claimed{Job: &j.Job, Attempt: *a})
	return nil
}

func (x *tx) attemptRefs(list string, args ...any) (refs []onejob.AttemptRef, err error) {
	err = x.query(list, func(r *row) error {
		refs = append(refs, onejob.AttemptRef{Part: uint8(r.Int64()), JobID: r.String(), ID: r.String()})
		return nil
	}, args...)
	return refs, err
}

// attemptIn reads an attempt in the job that it is said to be of.
func (x *tx) attemptIn(ref onejob.AttemptRef) (*storedJob, *onejob.Attempt, error) {
	j, err := x.job(`WHERE j.part = ? AND j.id = ?`, int(ref.Part), ref.JobID)
	if err != nil {
		return nil, nil, err
	}
	if j == nil {
		return nil, nil, onejob.ErrorOfNoAttempt(ref.ID)
	}
	a := onejob.AttemptOf(&j.Job, ref.ID)
	if a == nil {
		return nil, nil, onejob.ErrorOfNoAttempt(ref.ID)
	}
	return j, a, nil
}

// ProbeList reads the newest probes of one attempt, oldest of them first.
func (s *Store) ProbeList(ctx context.Context, p onejob.ProbeListParams) (probes []onejob.Probe, err error) {
	err = s.read(ctx, func(x *tx) error {
		_, a, err := x.attemptToRule(p.AttemptID, p.Owner)
		if err != nil {
			return err
		}
		return x.query(`
			SELECT part, job_id, attempt_id, number, method, at, outcome, evidence, detail, next_at FROM probes
			WHERE part = ? AND attempt_id = ? ORDER BY number DESC LIMIT ?`, func(r *row) error {
			probe := onejob.Probe{
				Part: uint8(r.Int64()), JobID: r.String(), AttemptID: r.String(), Number: r.Int(),
				Method: onejob.ProbeMethod(r.String()), At: r.Time(), Outcome: onejob.Outcome(r.String()),
			}
			if decode(r.String(), &probe.Evidence) != nil {
				probe.Evidence = onejob.Evidence{Error: "the stored evidence cannot be read"} // nothing depends on it
			}
			probe.Detail, probe.NextAt = r.String(), r.Time()
			probes = append(probes, probe)
			return nil
		}, int(a.Part), a.ID, pageOf(p.Limit))
	})
	slices.Reverse(probes)
	return probes, err
}

// ProbeNow makes an attempt due at once.
func (s *Store) ProbeNow(ctx context.Context, p onejob.ProbeNowParams) error {
	return s.write(ctx, func(x *tx) error {
		_, a, err := x.attemptToRule(p.AttemptID, p.Owner)
		if err != nil {
			return err
		}
		if err := onejob.CheckProbeNow(a); err != nil {
			return err
		}
		_, err = x.exec(`UPDATE attempts SET probe_at = ? WHERE `+thisAttempt+` AND `+asked, x.now, int(a.Part), a.JobID, a.ID)
		return err
	})
}

// AttemptAsk finds attempts that a person is to be asked about now. While the clock
// is in doubt there are none.
func (s *Store) AttemptAsk(ctx context.Context, limit int) (changed []onejob.AttemptRef, err error) {
	err = s.write(ctx, func(x *tx) error {
		changed = nil
		if wait, _ := s.clock.doubtful(); wait > 0 {
			return nil
		}
		due, err := x.attemptRefs(`
			SELECT part, job_id, id FROM attempts
			WHERE `+asked+` AND asked_at IS NULL AND ask_at <= ?
			ORDER BY ask_at LIMIT ?`, x.now, max(0, limit))
		if err != nil {
			return err
		}
		for _, ref := range due {
			refused, err := x.row(func() error { return x.askPerson(ref) })
			if err == nil && refused != nil { // at the head of the list it would keep others from their turn
				s.log.Error("ask a person about an attempt; it is put off for a while", "attempt_id", ref.ID, "error", refused)
				_, err = x.exec(`UPDATE attempts SET ask_at = ? WHERE `+thisAttempt, x.now.Add(asideFor), int(ref.Part), ref.JobID, ref.ID)
			}
			if err != nil {
				return err
			}
			if refused == nil {
				changed = append(changed, ref)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return changed, nil
}

// askPerson writes down that a person is asked. What the provider accepted and has
// not told of since is in doubt from now on.
func (x *tx) askPerson(ref onejob.AttemptRef) error {
	n, err := x.exec(`
		UPDATE attempts SET asked_at = ?, unknown_at = coalesce(unknown_at, ?),
			state = 'unknown', outcome = CASE state WHEN 'running' THEN 'unknown' ELSE outcome END
		WHERE `+thisAttempt+` AND asked_at IS NULL AND ask_at <= ? AND `+asked,
		x.now, x.now, int(ref.Part), ref.JobID, ref.ID, x.now)
	if err != nil || n == 0 {
		return err
	}
	err = x.record(onejob.JobEvent{Part: ref.Part, JobID: ref.JobID, AttemptID: ref.ID, Kind: onejob.EventAsked})
	if err != nil {
		return err
	}
	_, err = x.changed(ref.Part, ref.JobID)
	return err
}
