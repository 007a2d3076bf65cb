package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onejob-dev/onejob"
)

// asError is [errors.As] for the errors of this module.
func asError(err error, e **onejob.Error) bool { return errors.As(err, e) }

const sqlContracts = `SELECT digest, kind, body, created_at FROM contract_versions`

func scanVersion(row pgx.Row) (v onejob.ContractVersion, err error) {
	var body string
	err = row.Scan(&v.Digest, &v.Kind, &body, &v.CreatedAt)
	v.Body, v.CreatedAt = []byte(body), v.CreatedAt.UTC()
	return v, err
}

// ContractPut implements [onejob.CertificateStore].
func (s *Store) ContractPut(ctx context.Context, v onejob.ContractVersion) error {
	if err := onejob.CheckVersion(v.Digest, v.Kind, v.Body); err != nil {
		return err
	}
	_, err := s.pool.Exec(ctx, `
INSERT INTO contract_versions (digest, kind, body, created_at) VALUES ($1, $2, $3, onejob_now()) ON CONFLICT (digest) DO NOTHING`,
		clean(v.Digest), clean(v.Kind), clean(string(v.Body)))
	return onejob.Unavailable(err)
}

// TargetPut implements [onejob.CertificateStore].
func (s *Store) TargetPut(ctx context.Context, v onejob.TargetVersion) error {
	if err := onejob.CheckVersion(v.Digest, v.Name, v.Body); err != nil {
		return err
	}
	_, err := s.pool.Exec(ctx, `
INSERT INTO targets (digest, name, body, created_at) VALUES ($1, $2, $3, onejob_now()) ON CONFLICT (digest) DO NOTHING`,
		clean(v.Digest), clean(v.Name), clean(string(v.Body)))
	return onejob.Unavailable(err)
}

// ContractGet implements [onejob.CertificateStore].
func (s *Store) ContractGet(ctx context.Context, p onejob.ContractGetParams) (onejob.ContractVersion, error) {
	column, value := "kind", p.Kind
	if p.Digest != "" {
		column, value = "digest", p.Digest
	}
	v, err := scanVersion(s.pool.QueryRow(ctx, sqlContracts+` WHERE `+column+` = $1 ORDER BY created_at DESC, seq DESC LIMIT 1`, clean(value)))
	if errors.Is(err, pgx.ErrNoRows) {
		return onejob.ContractVersion{}, onejob.ErrorOfNoRecord("contract of this "+column, value)
	}
	return v, onejob.Unavailable(err)
}

// ContractList implements [onejob.CertificateStore].
func (s *Store) ContractList(ctx context.Context, kind string, limit int) (found []onejob.ContractVersion, err error) {
	f := &filter{}
	if kind != "" {
		f.where("kind = $%d", clean(kind))
	}
	rows, err := s.pool.Query(ctx, fmt.Sprintf("%s%s ORDER BY created_at DESC, seq DESC LIMIT %d", sqlContracts, f.sql(), onejob.AtMostCertificates(limit)), f.args...)
	if err != nil {
		return nil, onejob.Unavailable(err)
	}
	err = forEach(rows, func(row pgx.Row) error {
		v, err := scanVersion(row)
		found = append(found, v)
		return err
	})
	return found, onejob.Unavailable(err)
}

// TargetGet implements [onejob.CertificateStore].
func (s *Store) TargetGet(ctx context.Context, digest string) (v onejob.TargetVersion, err error) {
	var body string
	err = s.pool.QueryRow(ctx, `SELECT digest, name, body, created_at FROM targets WHERE digest = $1`, clean(digest)).
		Scan(&v.Digest, &v.Name, &body, &v.CreatedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return v, onejob.ErrorOfNoRecord("target version", digest)
	}
	v.Body, v.CreatedAt = []byte(body), v.CreatedAt.UTC()
	return v, onejob.Unavailable(err)
}

const sqlRuns = `
SELECT id, contract_digest, target_digest, target_name, kind, environment, asked_by, tool, started_at, finished_at, state, calls, spend_micros, `

func scanRun(row pgx.Row) (r onejob.VerificationRun, err error) {
	var finished pgtype.Timestamptz
	var report pgtype.Text
	err = row.Scan(&r.ID, &r.ContractDigest, &r.TargetDigest, &r.TargetName, &r.Kind, &r.Environment, &r.Trigger, &r.Tool,
		&r.StartedAt, &finished, &r.State, &r.Calls, &r.SpendMicros, &report)
	r.StartedAt, r.FinishedAt, r.Report = r.StartedAt.UTC(), timeOf(finished), rawOf(report)
	return r, err
}

func runFilter(id, contract, target, environment string) *filter {
	f := &filter{}
	for _, by := range []struct{ column, value string }{
		{"c.id", id},
		{"c.contract_digest", contract},
		{"c.target_digest", target},
		{"c.environment", environment},
	} {
		if by.value != "" {
			f.where(by.column+" = $%d", clean(by.value))
		}
	}
	return f
}

// RunList implements [onejob.CertificateStore].
func (s *Store) RunList(ctx context.Context, p onejob.RunListParams) (found []onejob.VerificationRun, err error) {
	f, report := runFilter(p.ID, p.ContractDigest, p.TargetDigest, p.Environment), "NULL::text"
	if p.ID != "" {
		report = "report"
	}
	rows, err := s.pool.Query(ctx, fmt.Sprintf("%s%s FROM contract_runs c%s ORDER BY started_at DESC, id DESC LIMIT %d",
		sqlRuns, report, f.sql(), onejob.AtMostCertificates(p.Limit)), f.args...)
	if err != nil {
		return nil, onejob.Unavailable(err)
	}
	err = forEach(rows, func(row pgx.Row) error {
		r, err := scanRun(row)
		found = append(found, r)
		return err
	})
	return found, onejob.Unavailable(err)
}

// SampleList implements [onejob.CertificateStore].
func (s *Store) SampleList(ctx context.Context, p onejob.SampleListParams) (found []onejob.VerificationSample, err error) {
	f, output := runFilter(p.RunID, p.ContractDigest, p.TargetDigest, p.Environment), "NULL::bytea"
	if p.WithOutput {
		output = "s.output"
	}
	rows, err := s.pool.Query(ctx, `
SELECT s.run_id, s.case_id, s.repeat_no, s.stage, s.outcome, s.fault_class, s.detail, s.latency_ms, s.tokens_in, s.tokens_out,
       s.cost_micros, coalesce(s.response_id, ''), s.observed, `+output+`, s.at
  FROM contract_samples s JOIN contract_runs c ON c.id = s.run_id`+f.sql()+` ORDER BY s.seq`, f.args...)
	if err != nil {
		return nil, onejob.Unavailable(err)
	}
	err = forEach(rows, func(row pgx.Row) error {
		var v onejob.VerificationSample
		var observed pgtype.Text
		err := row.Scan(&v.RunID, &v.CaseID, &v.Repeat, &v.Stage, &v.Outcome, &v.FaultClass, &v.Detail, &v.LatencyMS, &v.TokensIn, &v.TokensOut,
			&v.CostMicros, &v.ResponseID, &observed, &v.Output, &v.At)
		v.Observed, v.At = rawOf(observed), v.At.UTC()
		found = append(found, v)
		return err
	})
	return found, onejob.Unavailable(err)
}
