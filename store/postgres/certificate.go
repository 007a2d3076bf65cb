package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onejob-dev/onejob"
)

const sqlCertificates = `
SELECT id, kind, contract_digest, target_digest, target_name, environment, verdict, status, sandbox, reason, detail,
       counts, bounds, observed, dropped, run_id, issued_at, expires_at, renew_at, watch FROM certificates`

// watched is a certificate with what production showed under it.
type watched struct {
	onejob.Certificate
	watch onejob.CertificateWatch
}

func scanCertificate(row pgx.Row) (w watched, err error) {
	var counts, bounds pgtype.Text
	var observed, dropped, watch string
	var issued, expires, renew pgtype.Timestamptz
	c := &w.Certificate
	err = row.Scan(&c.ID, &c.Kind, &c.ContractDigest, &c.TargetDigest, &c.TargetName, &c.Environment, &c.Verdict, &c.Status, &c.Sandbox,
		&c.Reason, &c.Detail, &counts, &bounds, &observed, &dropped, &c.RunID, &issued, &expires, &renew, &watch)
	if err != nil {
		return w, err
	}
	c.Counts, c.Bounds = rawOf(counts), rawOf(bounds)
	c.IssuedAt, c.ExpiresAt, c.RenewAt = timeOf(issued), timeOf(expires), timeOf(renew)
	for _, part := range []struct {
		text string
		into any
	}{{observed, &c.Observed}, {dropped, &c.Dropped}, {watch, &w.watch}} {
		if err := json.Unmarshal([]byte(part.text), part.into); err != nil {
			return w, unreadable("", "", fmt.Errorf("certificate %s: %w", c.ID, err))
		}
	}
	return w, nil
}

// rawOf is JSON byte for byte, and nil for NULL.
func rawOf(t pgtype.Text) json.RawMessage {
	if !t.Valid {
		return nil
	}
	return json.RawMessage(t.String)
}

func rawColumn(b json.RawMessage) pgtype.Text { return present(string(b), b != nil) }

// queueCertificates reads certificates when b is sent.
func queueCertificates(b *pgx.Batch, found *[]watched, sql string, args ...any) {
	b.Queue(sqlCertificates+sql, args...).Query(func(rows pgx.Rows) error {
		return forEach(rows, func(row pgx.Row) error {
			w, err := scanCertificate(row)
			*found = append(*found, w)
			return err
		})
	})
}

// recordFilter is what certificates and waivers are listed by.
func recordFilter(p *onejob.CertificateListParams) *filter {
	f := &filter{}
	for _, by := range []struct{ column, value string }{
		{"id", p.ID},
		{"kind", p.Kind},
		{"contract_digest", p.ContractDigest},
		{"target_digest", p.TargetDigest},
		{"target_name", p.TargetName},
		{"environment", p.Environment},
	} {
		if by.value != "" {
			f.where(by.column+" = $%d", clean(by.value))
		}
	}
	return f
}

// CertificateList implements [onejob.CertificateStore].
func (s *Store) CertificateList(ctx context.Context, p onejob.CertificateListParams) (found []onejob.Certificate, err error) {
	f := recordFilter(&p)
	if p.Live {
		f.where("status = 'active' AND verdict = 'certified' AND expires_at > onejob_now()")
	}
	rows, err := s.pool.Query(ctx, fmt.Sprintf("%s%s ORDER BY issued_at DESC, id DESC LIMIT %d", sqlCertificates, f.sql(), onejob.AtMostCertificates(p.Limit)), f.args...)
	if err != nil {
		return nil, onejob.Unavailable(err)
	}
	err = forEach(rows, func(row pgx.Row) error {
		w, err := scanCertificate(row)
		found = append(found, w.Certificate)
		return err
	})
	return found, onejob.Unavailable(err)
}

const (
	// In the order of their ids, so that no two who lock several wait for each other.
	sqlCertificateByID = ` WHERE id = $1 FOR NO KEY UPDATE`
	sqlCertificatesOf  = ` WHERE contract_digest = $1 AND target_digest = $2 AND environment = $3 ORDER BY id FOR NO KEY UPDATE`

	sqlCertificateStatus = `UPDATE certificates SET status = $2, reason = $3, detail = $4 WHERE id = $1`
)

// CertificateEnd implements [onejob.CertificateStore]. It waits for whoever starts an
// attempt by one at this moment.
func (s *Store) CertificateEnd(ctx context.Context, p onejob.CertificateEndParams) (ended []onejob.Certificate, err error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	err = s.audited(ctx, func(ctx context.Context, t *txn) (entries []onejob.AuditEntry, err error) {
		ended, entries, err = endCertificates(ctx, t, &p)
		return entries, err
	})
	if err != nil {
		return nil, err
	}
	return ended, nil
}

func endCertificates(ctx context.Context, t *txn, p *onejob.CertificateEndParams) (ended []onejob.Certificate, entries []onejob.AuditEntry, err error) {
	var named []watched
	b := t.batch()
	if p.ID != "" {
		queueCertificates(b, &named, sqlCertificateByID, clean(p.ID))
	} else {
		queueCertificates(b, &named, sqlCertificatesOf, clean(p.ContractDigest), clean(p.TargetDigest), clean(onejob.EnvironmentOr(p.Environment)))
	}
	if err := t.send(ctx, b); err != nil {
		return nil, nil, err
	}
	if p.ID != "" && len(named) == 0 {
		return nil, nil, refusal(onejob.ErrorOfNoRecord("certificate", p.ID))
	}
	b = t.batch()
	for i := range named {
		c := &named[i].Certificate
		if !p.Ends(c) {
			continue
		}
		c.Status, c.Reason, c.Detail = p.Status, clean(p.Reason), clean(p.Detail)
		b.Queue(sqlCertificateStatus, c.ID, string(c.Status), c.Reason, c.Detail)
		ended = append(ended, *c)
		if entry, told := p.AuditOf(c); told {
			entries = append(entries, entry)
		}
	}
	return ended, entries, t.send(ctx, b)
}

// refusal is what a row is answered, and rolls back nothing but its own transaction.
func refusal(err error) error {
	var e *onejob.Error
	if !asError(err, &e) {
		return err
	}
	return spoiled{e}
}

const (
	sqlCertificateStanding = ` WHERE contract_digest = $1 AND target_digest = $2 AND environment = $3
   AND status = 'active' AND verdict = 'certified' FOR NO KEY UPDATE`
	sqlCertificateWatch = `UPDATE certificates SET watch = $2 WHERE id = $1`
)

// CertificateObserve implements [onejob.CertificateStore]: each params in a
// transaction of its own, so that nobody holds two certificates.
func (s *Store) CertificateObserve(ctx context.Context, params []onejob.CertificateObserveParams) (suspended []onejob.Certificate, err error) {
	for i := range params {
		var over *onejob.Certificate
		err := s.audited(ctx, func(ctx context.Context, t *txn) (_ []onejob.AuditEntry, err error) {
			over, err = observe(ctx, t, &params[i])
			return nil, err
		})
		if err != nil {
			return suspended, err
		}
		if over != nil {
			suspended = append(suspended, *over)
		}
	}
	return suspended, nil
}

// observe returns the certificate that it suspended, or nil.
func observe(ctx context.Context, t *txn, p *onejob.CertificateObserveParams) (*onejob.Certificate, error) {
	var standing []watched
	b := t.batch()
	queueCertificates(b, &standing, sqlCertificateStanding, clean(p.ContractDigest), clean(p.TargetDigest), clean(onejob.EnvironmentOr(p.Environment)))
	if err := t.send(ctx, b); err != nil || len(standing) == 0 {
		return nil, err
	}
	c := &standing[0].Certificate
	watch, over := standing[0].watch.Observe(p)
	b = t.batch()
	b.Queue(sqlCertificateWatch, c.ID, toJSON(watch))
	if !over {
		return nil, t.send(ctx, b)
	}
	c.Status, c.Reason, c.Detail = onejob.CertificateSuspended, onejob.GateSuspendedViolations, clean(p.Detail)
	b.Queue(sqlCertificateStatus, c.ID, string(c.Status), c.Reason, c.Detail)
	return c, t.send(ctx, b)
}

// CertificateExtend implements [onejob.CertificateStore].
func (s *Store) CertificateExtend(ctx context.Context, id string, until time.Time) (c onejob.Certificate, err error) {
	err = s.audited(ctx, func(ctx context.Context, t *txn) ([]onejob.AuditEntry, error) {
		var found []watched
		var now time.Time
		b := t.batch()
		queueCertificates(b, &found, sqlCertificateByID, clean(id))
		b.Queue(sqlNow).QueryRow(func(row pgx.Row) error { return row.Scan(&now) })
		if err := t.send(ctx, b); err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, refusal(onejob.ErrorOfNoRecord("certificate", id))
		}
		if c = found[0].Certificate; !c.Extend(micros(until), now) {
			return nil, nil
		}
		c.RenewAt = micros(c.RenewAt).UTC()
		b = t.batch()
		b.Queue(`UPDATE certificates SET expires_at = $2, renew_at = $3 WHERE id = $1`, c.ID, stamp(c.ExpiresAt), stamp(c.RenewAt))
		return nil, t.send(ctx, b)
	})
	return c, err
}

// PairList implements [onejob.CertificateStore].
func (s *Store) PairList(ctx context.Context, contract, environment string) (pairs []onejob.PairResult, err error) {
	rows, err := s.pool.Query(ctx, `
SELECT contract_digest, primary_digest, fallback_digest, environment, agreed, cases, self_agreed, equivalent, run_id, issued_at, expires_at
  FROM pair_results WHERE contract_digest = $1 AND environment = $2 ORDER BY primary_digest, fallback_digest`,
		clean(contract), clean(onejob.EnvironmentOr(environment)))
	if err != nil {
		return nil, onejob.Unavailable(err)
	}
	err = forEach(rows, func(row pgx.Row) error {
		var p onejob.PairResult
		err := row.Scan(&p.ContractDigest, &p.PrimaryDigest, &p.FallbackDigest, &p.Environment, &p.Agreed, &p.Cases, &p.SelfAgreed,
			&p.Equivalent, &p.RunID, &p.IssuedAt, &p.ExpiresAt)
		p.IssuedAt, p.ExpiresAt = p.IssuedAt.UTC(), p.ExpiresAt.UTC()
		pairs = append(pairs, p)
		return err
	})
	return pairs, onejob.Unavailable(err)
}

const sqlWaivers = `
SELECT id, kind, contract_digest, target_digest, target_name, environment, actor, reason, granted_at, expires_at, revoked_at FROM waivers`

func scanWaiver(row pgx.Row) (w onejob.Waiver, err error) {
	var revoked pgtype.Timestamptz
	err = row.Scan(&w.ID, &w.Kind, &w.ContractDigest, &w.TargetDigest, &w.TargetName, &w.Environment, &w.Actor, &w.Reason,
		&w.GrantedAt, &w.ExpiresAt, &revoked)
	w.GrantedAt, w.ExpiresAt, w.RevokedAt = w.GrantedAt.UTC(), w.ExpiresAt.UTC(), timeOf(revoked)
	return w, err
}

// WaiverGrant implements [onejob.CertificateStore].
func (s *Store) WaiverGrant(ctx context.Context, p onejob.Waiver) (w onejob.Waiver, err error) {
	err = s.audited(ctx, func(ctx context.Context, t *txn) ([]onejob.AuditEntry, error) {
		now, err := t.now(ctx)
		if err != nil {
			return nil, err
		}
		p.ExpiresAt = micros(p.ExpiresAt).UTC()
		if w, err = p.Grant(now); err != nil {
			return nil, refusal(err)
		}
		w.Reason = clean(w.Reason)
		b := t.batch()
		b.Queue(`
INSERT INTO waivers (id, kind, contract_digest, target_digest, target_name, environment, actor, reason, granted_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
			w.ID, w.Kind, w.ContractDigest, w.TargetDigest, w.TargetName, w.Environment, w.Actor, w.Reason, stamp(w.GrantedAt), stamp(w.ExpiresAt))
		return []onejob.AuditEntry{w.AuditOf()}, t.send(ctx, b)
	})
	if err != nil {
		return onejob.Waiver{}, err
	}
	return w, nil
}

// now is the transaction's time.
func (t *txn) now(ctx context.Context) (now time.Time, err error) {
	b := t.batch()
	b.Queue(sqlNow).QueryRow(func(row pgx.Row) error { return row.Scan(&now) })
	err = t.send(ctx, b)
	return now.UTC(), err
}

// WaiverRevoke implements [onejob.CertificateStore]. It waits for whoever starts an
// attempt by the waiver at this moment.
func (s *Store) WaiverRevoke(ctx context.Context, id, actor string) (w onejob.Waiver, err error) {
	err = s.audited(ctx, func(ctx context.Context, t *txn) (entries []onejob.AuditEntry, err error) {
		var found []onejob.Waiver
		b := t.batch()
		b.Queue(sqlWaivers+` WHERE id = $1 FOR NO KEY UPDATE`, clean(id)).Query(func(rows pgx.Rows) error {
			return forEach(rows, func(row pgx.Row) error {
				w, err := scanWaiver(row)
				found = append(found, w)
				return err
			})
		})
		if err := t.send(ctx, b); err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, refusal(onejob.ErrorOfNoRecord("waiver", id))
		}
		if w = found[0]; !w.RevokedAt.IsZero() {
			return nil, nil
		}
		b = t.batch()
		b.Queue(`UPDATE waivers SET revoked_at = onejob_now() WHERE id = $1 RETURNING revoked_at`, w.ID).QueryRow(func(row pgx.Row) error {
			err := row.Scan(&w.RevokedAt)
			w.RevokedAt = w.RevokedAt.UTC()
			return err
		})
		return []onejob.AuditEntry{w.AuditOfRevoke(actor)}, t.send(ctx, b)
	})
	return w, err
}

// WaiverList implements [onejob.CertificateStore].
func (s *Store) WaiverList(ctx context.Context, p onejob.CertificateListParams) (found []onejob.Waiver, err error) {
	f := recordFilter(&p)
	if p.Live {
		f.where("revoked_at IS NULL AND expires_at > onejob_now()")
	}
	rows, err := s.pool.Query(ctx, fmt.Sprintf("%s%s ORDER BY granted_at DESC, id DESC LIMIT %d", sqlWaivers, f.sql(), onejob.AtMostCertificates(p.Limit)), f.args...)
	if err != nil {
		return nil, onejob.Unavailable(err)
	}
	err = forEach(rows, func(row pgx.Row) error {
		w, err := scanWaiver(row)
		found = append(found, w)
		return err
	})
	return found, onejob.Unavailable(err)
}

// stands reports whether there is a verdict that an inconclusive run leaves.
func stands(old []watched) bool {
	return slices.ContainsFunc(old, func(w watched) bool { return w.Stands() })
}
