package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob"
)

// RunStart implements [onejob.CertificateStore].
func (s *Store) RunStart(ctx context.Context, p onejob.VerificationRun) (run onejob.VerificationRun, err error) {
	err = s.audited(ctx, func(ctx context.Context, t *txn) ([]onejob.AuditEntry, error) {
		now, err := t.now(ctx)
		if err != nil {
			return nil, err
		}
		if run, err = p.Begin(now); err != nil {
			return nil, refusal(err)
		}
		b := t.batch()
		b.Queue(`
INSERT INTO contract_runs (id, contract_digest, target_digest, target_name, kind, environment, asked_by, tool, started_at, state, calls, spend_micros)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
			run.ID, run.ContractDigest, run.TargetDigest, run.TargetName, run.Kind, run.Environment, run.Trigger, run.Tool, stamp(run.StartedAt),
			string(run.State), run.Calls, run.SpendMicros)
		return nil, t.send(ctx, b)
	})
	return run, err
}

const (
	sqlRunLock = sqlRuns + `NULL::text FROM contract_runs WHERE id = $1 FOR NO KEY UPDATE`

	// Verdicts on the same contract and target take turns: without one that stands
	// there is no row to wait for.
	sqlVerdictLock = `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`
	sqlVerdictsOld = ` WHERE contract_digest = $1 AND target_digest = $2 AND environment = $3 AND status IN ('active', 'suspended') ORDER BY id FOR NO KEY UPDATE`

	sqlRunEnd = `
UPDATE contract_runs SET state = $2, finished_at = $3, calls = $4, spend_micros = $5, report = $6 WHERE id = $1`
	sqlVerdictsEnd = `
UPDATE certificates SET status = 'superseded'
 WHERE contract_digest = $1 AND target_digest = $2 AND environment = $3 AND status IN ('active', 'suspended')`
	sqlCertificateIssue = `
INSERT INTO certificates (id, kind, contract_digest, target_digest, target_name, environment, verdict, status, sandbox, reason, detail,
                          counts, bounds, observed, dropped, run_id, issued_at, expires_at, renew_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`
	sqlPairPut = `
INSERT INTO pair_results (contract_digest, primary_digest, fallback_digest, environment,
                          agreed, cases, self_agreed, equivalent, run_id, issued_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (contract_digest, environment, primary_digest, fallback_digest) DO UPDATE
   SET agreed = excluded.agreed, cases = excluded.cases, self_agreed = excluded.self_agreed, equivalent = excluded.equivalent,
       run_id = excluded.run_id, issued_at = excluded.issued_at, expires_at = excluded.expires_at`
)

// RunFinish implements [onejob.CertificateStore].
func (s *Store) RunFinish(ctx context.Context, p onejob.RunFinishParams) (c onejob.Certificate, err error) {
	err = s.audited(ctx, func(ctx context.Context, t *txn) (_ []onejob.AuditEntry, err error) {
		c, err = finishRun(ctx, t, &p)
		return nil, err
	})
	if err != nil {
		return onejob.Certificate{}, err
	}
	return c, nil
}

func finishRun(ctx context.Context, t *txn, p *onejob.RunFinishParams) (onejob.Certificate, error) {
	none := onejob.Certificate{}
	run, now, err := lockRun(ctx, t, p.Run.ID)
	if err != nil {
		return none, err
	}
	triple := []any{run.ContractDigest, run.TargetDigest, run.Environment}
	var old []watched
	b := t.batch()
	b.Queue(sqlVerdictLock, run.ContractDigest+"\x01"+run.TargetDigest+"\x01"+run.Environment)
	queueCertificates(b, &old, sqlVerdictsOld, triple...)
	if err := t.send(ctx, b); err != nil {
		return none, err
	}
	run, c, pair, err := p.Issue(run, stands(old), now)
	if err != nil {
		return none, refusal(err)
	}
	c.ExpiresAt, c.RenewAt, c.Reason, c.Detail = micros(c.ExpiresAt), micros(c.RenewAt), clean(c.Reason), clean(c.Detail)
	b = t.batch()
	b.Queue(sqlRunEnd, run.ID, string(run.State), stamp(run.FinishedAt), run.Calls, run.SpendMicros, rawColumn(run.Report))
	if c.Status == onejob.CertificateActive {
		b.Queue(sqlVerdictsEnd, triple...)
	}
	b.Queue(sqlCertificateIssue, c.ID, c.Kind, c.ContractDigest, c.TargetDigest, c.TargetName, c.Environment, string(c.Verdict), string(c.Status),
		c.Sandbox, c.Reason, c.Detail, rawColumn(c.Counts), rawColumn(c.Bounds), toJSON(c.Observed), toJSON(c.Dropped), c.RunID,
		stamp(c.IssuedAt), stamp(c.ExpiresAt), stamp(c.RenewAt))
	if pair != nil {
		b.Queue(sqlPairPut, pair.ContractDigest, clean(pair.PrimaryDigest), pair.FallbackDigest, pair.Environment, pair.Agreed, pair.Cases,
			pair.SelfAgreed, pair.Equivalent, pair.RunID, stamp(pair.IssuedAt), stamp(micros(pair.ExpiresAt)))
	}
	return c, t.send(ctx, b)
}

// lockRun reads a verification that nobody else ends meanwhile. Its zero value: there
// is none.
func lockRun(ctx context.Context, t *txn, id string) (run onejob.VerificationRun, now time.Time, err error) {
	b := t.batch()
	b.Queue(sqlRunLock, clean(id)).Query(func(rows pgx.Rows) error {
		return forEach(rows, func(row pgx.Row) (err error) {
			run, err = scanRun(row)
			return err
		})
	})
	b.Queue(sqlNow).QueryRow(func(row pgx.Row) error { return row.Scan(&now) })
	err = t.send(ctx, b)
	return run, now.UTC(), err
}

// Zero rows: the run's call was recorded before, or its answer was seen.
const (
	sqlSampleAdd = `
INSERT INTO contract_samples (run_id, stage, case_id, repeat_no, outcome, fault_class, detail, latency_ms, tokens_in, tokens_out,
                              cost_micros, response_id, observed, output, at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, onejob_now()) ON CONFLICT DO NOTHING`
	sqlSampleSeen = `SELECT EXISTS (SELECT FROM contract_samples WHERE response_id = $1)`
	sqlRunShare   = sqlRuns + `NULL::text FROM contract_runs WHERE id = ANY($1::text[]) ORDER BY id FOR SHARE`
)

// SampleAdd implements [onejob.CertificateStore].
func (s *Store) SampleAdd(ctx context.Context, samples []onejob.VerificationSample) (refused []error, err error) {
	err = s.audited(ctx, func(ctx context.Context, t *txn) (_ []onejob.AuditEntry, err error) {
		refused, err = addSamples(ctx, t, samples)
		return nil, err
	})
	if err != nil {
		return nil, err
	}
	return refused, nil
}

func addSamples(ctx context.Context, t *txn, samples []onejob.VerificationSample) ([]error, error) {
	runs := map[string]onejob.VerificationRun{}
	b := t.batch()
	b.Queue(sqlRunShare, column(samples, func(v onejob.VerificationSample) string { return clean(v.RunID) })).Query(func(rows pgx.Rows) error {
		return forEach(rows, func(row pgx.Row) error {
			run, err := scanRun(row)
			runs[run.ID] = run
			return err
		})
	})
	if err := t.send(ctx, b); err != nil {
		return nil, err
	}
	refused, seen, added := make([]error, len(samples)), make([]bool, len(samples)), make([]int64, len(samples))
	b = t.batch()
	for i := range samples {
		v := &samples[i]
		run := runs[v.RunID]
		if refused[i] = onejob.CheckSample(&run, v); refused[i] != nil {
			continue
		}
		response := clean(v.ResponseID)
		b.Queue(sqlSampleSeen, response).QueryRow(func(row pgx.Row) error { return row.Scan(&seen[i]) })
		b.Queue(sqlSampleAdd, v.RunID, clean(v.Stage), clean(v.CaseID), v.Repeat, string(v.Outcome), clean(v.FaultClass), clean(v.Detail), v.LatencyMS,
			v.TokensIn, v.TokensOut, v.CostMicros, present(response, response != ""), rawColumn(v.Observed), v.Output).Exec(affected(&added[i]))
	}
	if err := t.send(ctx, b); err != nil {
		return nil, err
	}
	for i := range samples {
		switch {
		case refused[i] != nil || added[i] == 1:
		case seen[i]:
			refused[i] = onejob.ErrSampleSeen
		default:
			refused[i] = onejob.ErrorOfSampleTwice(&samples[i])
		}
	}
	return refused, nil
}
