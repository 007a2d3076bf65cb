package sqlite

import (
	"context"
	"slices"

	"github.com/onejob-dev/onejob"
)

const runColumns = `
	SELECT id, contract_digest, target_digest, target_name, kind, environment, asked_by, tool, started_at, finished_at, state, calls, spend_micros`

func scanRun(r *row) onejob.VerificationRun {
	return onejob.VerificationRun{
		ID: r.String(), ContractDigest: r.String(), TargetDigest: r.String(), TargetName: r.String(), Kind: r.String(), Environment: r.String(),
		Trigger: r.String(), Tool: r.String(), StartedAt: r.Time(), FinishedAt: r.Time(), State: onejob.RunState(r.String()),
		Calls: r.Int(), SpendMicros: r.Int64(),
	}
}

// RunStart records that a verification begins.
func (s *Store) RunStart(ctx context.Context, p onejob.VerificationRun) (run onejob.VerificationRun, err error) {
	err = s.write(ctx, func(x *tx) error {
		if run, err = p.Begin(x.now); err != nil {
			return err
		}
		_, err := x.exec(`
			INSERT INTO contract_runs (id, contract_digest, target_digest, target_name, kind, environment, asked_by, tool, started_at, state, calls, spend_micros)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			run.ID, run.ContractDigest, run.TargetDigest, run.TargetName, run.Kind, run.Environment, run.Trigger, run.Tool, run.StartedAt,
			string(run.State), run.Calls, run.SpendMicros)
		return err
	})
	return run, err
}

// run reads a verification. Its zero value: there is none.
func (x *tx) run(id string) (run onejob.VerificationRun, err error) {
	err = x.query(runColumns+` FROM contract_runs WHERE id = ?`, func(r *row) error { run = scanRun(r); return nil }, id)
	return run, err
}

// RunList returns verifications, newest first.
func (s *Store) RunList(ctx context.Context, p onejob.RunListParams) (found []onejob.VerificationRun, err error) {
	w, report := runFilter(p.ID, p.ContractDigest, p.TargetDigest, p.Environment), `, NULL`
	if p.ID != "" {
		report = `, report`
	}
	err = s.read(ctx, func(x *tx) error {
		return x.query(runColumns+report+` FROM contract_runs c`+w.sql()+` ORDER BY started_at DESC, id DESC LIMIT ?`, func(r *row) error {
			run := scanRun(r)
			run.Report = rawOf(r)
			found = append(found, run)
			return nil
		}, append(w.args, onejob.AtMostCertificates(p.Limit))...)
	})
	return found, err
}

func runFilter(id, contract, target, environment string) *where {
	w := &where{}
	for _, f := range []struct{ column, value string }{
		{"c.id", id},
		{"c.contract_digest", contract},
		{"c.target_digest", target},
		{"c.environment", environment},
	} {
		if f.value != "" {
			w.and(f.column+` = ?`, f.value)
		}
	}
	return w
}

// RunFinish ends a run and issues its certificate.
func (s *Store) RunFinish(ctx context.Context, p onejob.RunFinishParams) (c onejob.Certificate, err error) {
	err = s.write(ctx, func(x *tx) error {
		c, err = x.finishRun(&p)
		return err
	})
	if err != nil {
		return onejob.Certificate{}, err
	}
	return c, nil
}

func (x *tx) finishRun(p *onejob.RunFinishParams) (onejob.Certificate, error) {
	none := onejob.Certificate{}
	run, err := x.run(p.Run.ID)
	if err != nil {
		return none, err
	}
	w := &where{}
	w.and(`contract_digest = ? AND target_digest = ? AND environment = ? AND status IN ('active', 'suspended')`, run.ContractDigest, run.TargetDigest, run.Environment)
	old, err := x.certificates(w, onejob.MostCertificates)
	if err != nil {
		return none, err
	}
	run, c, pair, err := p.Issue(run, slices.ContainsFunc(old, func(c onejob.Certificate) bool { return c.Stands() }), x.now)
	if err != nil {
		return none, err
	}
	c.ExpiresAt, c.RenewAt = millisOrZero(c.ExpiresAt), millisOrZero(c.RenewAt)
	if _, err := x.exec(`UPDATE contract_runs SET state = ?, finished_at = ?, calls = ?, spend_micros = ?, report = ? WHERE id = ?`,
		string(run.State), run.FinishedAt, run.Calls, run.SpendMicros, rawOrNull(run.Report), run.ID); err != nil {
		return none, err
	}
	if c.Status == onejob.CertificateActive {
		_, err := x.exec(`UPDATE certificates SET status = 'superseded'`+w.sql(), w.args...)
		if err != nil {
			return none, err
		}
	}
	if err := x.insertCertificate(&c); err != nil || pair == nil {
		return c, err
	}
	return c, x.putPair(pair)
}

// SampleAdd records calls of a run.
func (s *Store) SampleAdd(ctx context.Context, samples []onejob.VerificationSample) ([]error, error) {
	return batch(ctx, s, samples, (*tx).addSample, func(err error) error { return err })
}

// addSample refuses by its answer, so that the samples beside it stay.
func (x *tx) addSample(v *onejob.VerificationSample) (refused, err error) {
	run, err := x.run(v.RunID)
	if err != nil {
		return nil, err
	}
	if refused := onejob.CheckSample(&run, v); refused != nil {
		return refused, nil
	}
	err = x.query(`
		SELECT coalesce(response_id = ?, 0) FROM contract_samples
		WHERE response_id = ? OR run_id = ? AND stage = ? AND case_id = ? AND repeat_no = ? ORDER BY 1 LIMIT 1`, func(r *row) error {
		if refused = onejob.ErrorOfSampleTwice(v); r.Bool() {
			refused = onejob.ErrSampleSeen
		}
		return nil
	}, v.ResponseID, orNull(v.ResponseID), v.RunID, v.Stage, v.CaseID, v.Repeat)
	if err != nil || refused != nil {
		return refused, err
	}
	_, err = x.exec(`
		INSERT INTO contract_samples (run_id, stage, case_id, repeat_no, outcome, fault_class, detail, latency_ms, tokens_in, tokens_out,
			cost_micros, response_id, observed, output, at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		v.RunID, v.Stage, v.CaseID, v.Repeat, string(v.Outcome), v.FaultClass, v.Detail, v.LatencyMS, v.TokensIn, v.TokensOut,
		v.CostMicros, orNull(v.ResponseID), rawOrNull(v.Observed), blobOrNull(v.Output), x.now)
	return nil, err
}

// SampleList returns samples, oldest first.
func (s *Store) SampleList(ctx context.Context, p onejob.SampleListParams) (found []onejob.VerificationSample, err error) {
	w, output := runFilter(p.RunID, p.ContractDigest, p.TargetDigest, p.Environment), `NULL`
	if p.WithOutput {
		output = `s.output`
	}
	err = s.read(ctx, func(x *tx) error {
		return x.query(`
			SELECT s.run_id, s.case_id, s.repeat_no, s.stage, s.outcome, s.fault_class, s.detail, s.latency_ms, s.tokens_in, s.tokens_out,
				s.cost_micros, s.response_id, s.observed, `+output+`, s.at
			FROM contract_samples s JOIN contract_runs c ON c.id = s.run_id`+w.sql()+` ORDER BY s.rowid`, func(r *row) error {
			found = append(found, onejob.VerificationSample{
				RunID: r.String(), CaseID: r.String(), Repeat: r.Int(), Stage: r.String(), Outcome: onejob.SampleOutcome(r.String()),
				FaultClass: r.String(), Detail: r.String(), LatencyMS: r.Int64(), TokensIn: r.Int(), TokensOut: r.Int(),
				CostMicros: r.Int64(), ResponseID: r.String(), Observed: rawOf(r), Output: r.Bytes(), At: r.Time(),
			})
			return nil
		}, w.args...)
	})
	return found, err
}
