package sqlite

import (
	"context"
	"time"

	"github.com/onejob-dev/onejob"
)

// ProbeRecord writes questions and answers down and settles attempts by them.
// While the clock is in doubt an absence settles nothing.
func (s *Store) ProbeRecord(ctx context.Context, params []onejob.ProbeRecordParams) ([]onejob.AttemptFinishResult, error) {
	return batch(ctx, s, params, (*tx).recordProbe, func(err error) onejob.AttemptFinishResult {
		return onejob.AttemptFinishResult{Err: err}
	})
}

func (x *tx) recordProbe(p *onejob.ProbeRecordParams) (result onejob.AttemptFinishResult, err error) {
	j, a, err := x.attemptIn(p.Ref)
	if err != nil {
		return result, err
	}
	result = standsAt(&j.Job, a)
	if p.SendWithin > 0 {
		if err := x.sendAgain(&j.Job, a, p); err != nil {
			return result, err
		}
	}
	verdict, resolves := onejob.JudgeProbe(a, p, x.now)
	if wait, _ := x.clock.doubtful(); wait > 0 && p.RestsOnAbsence() {
		resolves = false
	}
	switch {
	case resolves:
		if result, err = x.settleByProbe(p, verdict, result); err != nil {
			return result, err
		}
	case p.Outcome == onejob.OutcomeAccepted && p.ProviderID != "":
		if err := x.learnProviderID(p); err != nil {
			return result, err
		}
	}
	return result, x.keepProbe(p)
}

// sendAgain moves the time by which bytes of the attempt are out, and with it its
// quarantine. Zero rows: it is no longer unknown, or its job is to end.
func (x *tx) sendAgain(j *onejob.Job, a *onejob.Attempt, p *onejob.ProbeRecordParams) error {
	if err := onejob.CheckSendAgain(j, a); err != nil {
		return err
	}
	sendBy, quarantineUntil := a.SentAgain(x.now, p.SendWithin)
	n, err := x.exec(`
		UPDATE attempts SET send_by = ?, quarantine_until = ?
		WHERE `+thisAttempt+` AND state = 'unknown'
			AND EXISTS (SELECT 1 FROM job_states s
				WHERE s.seq = attempts.seq AND s.cancel_requested_at IS NULL AND s.`+open+`)`,
		later(sendBy), later(quarantineUntil), int(p.Ref.Part), p.Ref.JobID, p.Ref.ID)
	if err == nil && n == 0 {
		return onejob.ErrorOfLostClaim(p.Ref)
	}
	return err
}

// settleByProbe is a finish without a claim token. What was seen on the wire stays
// as it was seen: the probe keeps its own evidence. Zero rows: the attempt is not
// where the answer can find it, and result stays as it was.
func (x *tx) settleByProbe(p *onejob.ProbeRecordParams, v onejob.ProbeVerdict, result onejob.AttemptFinishResult) (onejob.AttemptFinishResult, error) {
	state, err := onejob.AttemptUnknown.Next(v.Event)
	if err != nil {
		return result, err
	}
	var ruling any
	body, contentType, lost := resultOf(p.Result, state)
	if v.Ruling != nil {
		ruling = encode(v.Ruling)
	}
	code, message := failureColumns(p.Failure)
	n, err := x.exec(`
		UPDATE attempts SET state = ?, outcome = ?, next = ?, own_fault = 0, error_code = ?, error = ?, ruling = coalesce(?, ruling),
			result = ?, result_type = ?, result_lost = ?, provider_id = coalesce(?, provider_id),
			cost_micros = CASE ? WHEN '' THEN cost_micros ELSE ? END, currency = CASE ? WHEN '' THEN currency ELSE ? END,
			usage = coalesce(?, usage), finished_at = ?
		WHERE `+thisAttempt+` AND `+probeSources(v.Event)+` AND (? OR quarantine_until <= ?)`,
		string(state), string(p.Outcome), orNull(v.Next), code, message, ruling,
		body, contentType, lost, orNull(p.ProviderID),
		p.Currency, p.CostMicros, p.Currency, p.Currency,
		orNull(string(p.Usage)), x.now,
		int(p.Ref.Part), p.Ref.JobID, p.Ref.ID, v.Ruling == nil, x.now)
	if err != nil || n == 0 {
		return result, err
	}
	if v.Ruling != nil {
		err := x.record(onejob.JobEvent{
			Part: p.Ref.Part, JobID: p.Ref.JobID, AttemptID: p.Ref.ID, Kind: onejob.EventRuled,
			Actor: v.Ruling.By, Detail: string(p.Outcome) + ": " + p.Detail,
		})
		if err != nil {
			return result, err
		}
	}
	return x.land(p.Ref, state)
}

// probeSources is the condition that the answer to a question may move an attempt:
// open to them, or ruled and found to have succeeded after all.
func probeSources(e onejob.Event) string {
	_, ruled := onejob.SourcesOf(e)
	if len(ruled) == 0 {
		return asked
	}
	return `(` + asked + ` OR (ruling IS NOT NULL AND state ` + in(ruled) + `))`
}

// learnProviderID keeps the provider's own id for work that goes on there.
func (x *tx) learnProviderID(p *onejob.ProbeRecordParams) error {
	n, err := x.exec(`UPDATE attempts SET provider_id = ?, accepted_at = coalesce(accepted_at, ?) WHERE `+thisAttempt+` AND `+asked,
		p.ProviderID, x.now, int(p.Ref.Part), p.Ref.JobID, p.Ref.ID)
	if err != nil || n == 0 {
		return err
	}
	_, err = x.changed(p.Ref.Part, p.Ref.JobID)
	return err
}

// keepProbe counts a question on its attempt and writes it down.
func (x *tx) keepProbe(p *onejob.ProbeRecordParams) error {
	var next time.Time
	if p.After > 0 {
		next = later(x.now.Add(p.After))
	}
	number, open := 0, false
	err := x.query(`
		UPDATE attempts SET probes_made = probes_made + 1, probe_at = CASE WHEN `+asked+` THEN ? ELSE probe_at END
		WHERE `+thisAttempt+` RETURNING probes_made, `+asked, func(r *row) error {
		number, open = r.Int(), r.Bool()
		return nil
	}, next, int(p.Ref.Part), p.Ref.JobID, p.Ref.ID)
	if err != nil {
		return err
	}
	if !open {
		next = time.Time{}
	}
	probe := onejob.ProbeOf(p, number, x.now, next)
	_, err = x.exec(`
		INSERT INTO probes (part, job_id, attempt_id, number, method, at, outcome, evidence, detail, next_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		int(probe.Part), probe.JobID, probe.AttemptID, probe.Number, string(probe.Method), probe.At,
		orNull(probe.Outcome), encode(probe.Evidence), probe.Detail, probe.NextAt)
	return err
}
