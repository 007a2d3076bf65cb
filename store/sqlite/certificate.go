package sqlite

import (
	"context"
	"encoding/json"
	"time"

	"github.com/onejob-dev/onejob"
)

const certificateColumns = `
	SELECT id, kind, contract_digest, target_digest, target_name, environment, verdict, status, sandbox, reason, detail,
		counts, bounds, observed, dropped, run_id, issued_at, expires_at, renew_at, watch FROM certificates`

func scanCertificate(r *row) (onejob.Certificate, error) {
	c, _, err := scanWatched(r)
	return c, err
}

// scanWatched also reads what production showed under a certificate.
func scanWatched(r *row) (c onejob.Certificate, watch onejob.CertificateWatch, err error) {
	c = onejob.Certificate{
		ID: r.String(), Kind: r.String(), ContractDigest: r.String(), TargetDigest: r.String(), TargetName: r.String(), Environment: r.String(),
		Verdict: onejob.RunState(r.String()), Status: onejob.CertificateStatus(r.String()), Sandbox: r.Bool(), Reason: r.String(), Detail: r.String(),
		Counts: rawOf(r), Bounds: rawOf(r),
	}
	observed, dropped := r.String(), r.String()
	c.RunID, c.IssuedAt, c.ExpiresAt, c.RenewAt = r.String(), r.Time(), r.Time(), r.Time()
	for _, part := range []struct {
		text string
		into any
	}{{observed, &c.Observed}, {dropped, &c.Dropped}, {r.String(), &watch}} {
		if err := json.Unmarshal([]byte(part.text), part.into); err != nil {
			return c, watch, &onejob.Error{Code: onejob.CodeInternal, Message: "the stored certificate cannot be read", Err: err}
		}
	}
	return c, watch, nil
}

// rawOf is JSON byte for byte, and nil for NULL.
func rawOf(r *row) json.RawMessage {
	if text, ok := r.Text(); ok {
		return json.RawMessage(text)
	}
	return nil
}

func rawOrNull(b json.RawMessage) any {
	if b == nil {
		return nil
	}
	return string(b)
}

func (x *tx) insertCertificate(c *onejob.Certificate) error {
	_, err := x.exec(`
		INSERT INTO certificates (id, kind, contract_digest, target_digest, target_name, environment, verdict, status, sandbox, reason, detail,
			counts, bounds, observed, dropped, run_id, issued_at, expires_at, renew_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		c.ID, c.Kind, c.ContractDigest, c.TargetDigest, c.TargetName, c.Environment, string(c.Verdict), string(c.Status), c.Sandbox, c.Reason, c.Detail,
		rawOrNull(c.Counts), rawOrNull(c.Bounds), encode(c.Observed), encode(c.Dropped), c.RunID, c.IssuedAt, c.ExpiresAt, c.RenewAt)
	return err
}

// certificates reads those that w keeps, newest first.
func (x *tx) certificates(w *where, limit int) (found []onejob.Certificate, err error) {
	err = x.query(certificateColumns+w.sql()+` ORDER BY issued_at DESC, id DESC LIMIT ?`, func(r *row) error {
		c, err := scanCertificate(r)
		found = append(found, c)
		return err
	}, append(w.args, limit)...)
	return found, err
}

// recordFilter is what certificates and waivers are listed by.
func recordFilter(p *onejob.CertificateListParams) *where {
	w := &where{}
	for _, f := range []struct{ column, value string }{
		{"id", p.ID},
		{"kind", p.Kind},
		{"contract_digest", p.ContractDigest},
		{"target_digest", p.TargetDigest},
		{"target_name", p.TargetName},
		{"environment", p.Environment},
	} {
		if f.value != "" {
			w.and(f.column+` = ?`, f.value)
		}
	}
	return w
}

// CertificateList returns certificates, newest first.
func (s *Store) CertificateList(ctx context.Context, p onejob.CertificateListParams) (found []onejob.Certificate, err error) {
	err = s.read(ctx, func(x *tx) error {
		w := recordFilter(&p)
		if p.Live {
			w.and(`status = 'active' AND verdict = 'certified' AND expires_at > ?`, x.now)
		}
		found, err = x.certificates(w, onejob.AtMostCertificates(p.Limit))
		return err
	})
	return found, err
}

// CertificateEnd suspends or revokes certificates.
func (s *Store) CertificateEnd(ctx context.Context, p onejob.CertificateEndParams) (ended []onejob.Certificate, err error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	err = s.write(ctx, func(x *tx) error {
		ended, err = x.endCertificates(&p)
		return err
	})
	if err != nil {
		return nil, err
	}
	return ended, nil
}

func (x *tx) endCertificates(p *onejob.CertificateEndParams) ([]onejob.Certificate, error) {
	w := &where{}
	if p.ID != "" {
		w.and(`id = ?`, p.ID)
	} else {
		w.and(`contract_digest = ? AND target_digest = ? AND environment = ?`, p.ContractDigest, p.TargetDigest, onejob.EnvironmentOr(p.Environment))
	}
	named, err := x.certificates(w, onejob.MostCertificates)
	if err != nil {
		return nil, err
	}
	if p.ID != "" && len(named) == 0 {
		return nil, onejob.ErrorOfNoRecord("certificate", p.ID)
	}
	var ended []onejob.Certificate
	for i := range named {
		if c := &named[i]; p.Ends(c) {
			c.Status, c.Reason, c.Detail = p.Status, p.Reason, p.Detail
			if err := x.endCertificate(c); err != nil {
				return nil, err
			}
			if entry, told := p.AuditOf(c); told {
				if err := x.audit(entry); err != nil {
					return nil, err
				}
			}
			ended = append(ended, *c)
		}
	}
	return ended, nil
}

func (x *tx) endCertificate(c *onejob.Certificate) error {
	_, err := x.exec(`UPDATE certificates SET status = ?, reason = ?, detail = ? WHERE id = ?`, string(c.Status), c.Reason, c.Detail, c.ID)
	return err
}

// CertificateObserve counts outputs of production.
func (s *Store) CertificateObserve(ctx context.Context, params []onejob.CertificateObserveParams) (suspended []onejob.Certificate, err error) {
	err = s.write(ctx, func(x *tx) error {
		suspended = nil
		for i := range params {
			c, err := x.observe(&params[i])
			if err != nil {
				return err
			}
			if c != nil {
				suspended = append(suspended, *c)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return suspended, nil
}

// observe returns the certificate that it suspended, or nil.
func (x *tx) observe(p *onejob.CertificateObserveParams) (suspended *onejob.Certificate, err error) {
	var c onejob.Certificate
	var watch onejob.CertificateWatch
	err = x.query(certificateColumns+` WHERE contract_digest = ? AND target_digest = ? AND environment = ? AND status = 'active' AND verdict = 'certified'`,
		func(r *row) (err error) { c, watch, err = scanWatched(r); return err },
		p.ContractDigest, p.TargetDigest, onejob.EnvironmentOr(p.Environment))
	if err != nil || c.ID == "" {
		return nil, err
	}
	watch, over := watch.Observe(p)
	if _, err := x.exec(`UPDATE certificates SET watch = ? WHERE id = ?`, encode(watch), c.ID); err != nil || !over {
		return nil, err
	}
	c.Status, c.Reason, c.Detail = onejob.CertificateSuspended, onejob.GateSuspendedViolations, p.Detail
	return &c, x.endCertificate(&c)
}

// CertificateExtend moves the end of a certificate that opens something.
func (s *Store) CertificateExtend(ctx context.Context, id string, until time.Time) (c onejob.Certificate, err error) {
	err = s.write(ctx, func(x *tx) error {
		w := &where{}
		w.and(`id = ?`, id)
		found, err := x.certificates(w, 1)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return onejob.ErrorOfNoRecord("certificate", id)
		}
		if c = found[0]; !c.Extend(millis(until), x.now) {
			return nil
		}
		c.RenewAt = millis(c.RenewAt)
		_, err = x.exec(`UPDATE certificates SET expires_at = ?, renew_at = ? WHERE id = ?`, c.ExpiresAt, c.RenewAt, id)
		return err
	})
	return c, err
}

// PairList returns the pairs of a contract and environment.
func (s *Store) PairList(ctx context.Context, contract, environment string) (pairs []onejob.PairResult, err error) {
	err = s.read(ctx, func(x *tx) error {
		pairs, err = x.pairs(contract, onejob.EnvironmentOr(environment))
		return err
	})
	return pairs, err
}

func (x *tx) pairs(contract, environment string) (pairs []onejob.PairResult, err error) {
	err = x.query(`
		SELECT contract_digest, primary_digest, fallback_digest, environment, agreed, cases, self_agreed, equivalent, run_id, issued_at, expires_at
		FROM pair_results WHERE contract_digest = ? AND environment = ? ORDER BY primary_digest, fallback_digest`, func(r *row) error {
		pairs = append(pairs, onejob.PairResult{
			ContractDigest: r.String(), PrimaryDigest: r.String(), FallbackDigest: r.String(), Environment: r.String(),
			Agreed: r.Int(), Cases: r.Int(), SelfAgreed: r.Int(), Equivalent: r.Bool(), RunID: r.String(), IssuedAt: r.Time(), ExpiresAt: r.Time(),
		})
		return nil
	}, contract, environment)
	return pairs, err
}

func (x *tx) putPair(p *onejob.PairResult) error {
	_, err := x.exec(`
		INSERT OR REPLACE INTO pair_results (contract_digest, primary_digest, fallback_digest, environment,
			agreed, cases, self_agreed, equivalent, run_id, issued_at, expires_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		p.ContractDigest, p.PrimaryDigest, p.FallbackDigest, p.Environment,
		p.Agreed, p.Cases, p.SelfAgreed, p.Equivalent, p.RunID, p.IssuedAt, p.ExpiresAt)
	return err
}
