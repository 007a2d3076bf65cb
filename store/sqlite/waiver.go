package sqlite

import (
	"context"

	"github.com/onejob-dev/onejob"
)

const waiverColumns = `
	SELECT id, kind, contract_digest, target_digest, target_name, environment, actor, reason, granted_at, expires_at, revoked_at FROM waivers`

func scanWaiver(r *row) onejob.Waiver {
	return onejob.Waiver{
		ID: r.String(), Kind: r.String(), ContractDigest: r.String(), TargetDigest: r.String(), TargetName: r.String(), Environment: r.String(),
		Actor: r.String(), Reason: r.String(), GrantedAt: r.Time(), ExpiresAt: r.Time(), RevokedAt: r.Time(),
	}
}

// WaiverGrant records a waiver.
func (s *Store) WaiverGrant(ctx context.Context, p onejob.Waiver) (w onejob.Waiver, err error) {
	err = s.write(ctx, func(x *tx) error {
		p.ExpiresAt = millis(p.ExpiresAt)
		if w, err = p.Grant(x.now); err != nil {
			return err
		}
		_, err := x.exec(`
			INSERT INTO waivers (id, kind, contract_digest, target_digest, target_name, environment, actor, reason, granted_at, expires_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			w.ID, w.Kind, w.ContractDigest, w.TargetDigest, w.TargetName, w.Environment, w.Actor, w.Reason, w.GrantedAt, w.ExpiresAt)
		if err != nil {
			return err
		}
		return x.audit(w.AuditOf())
	})
	if err != nil {
		return onejob.Waiver{}, err
	}
	return w, nil
}

// WaiverRevoke takes a waiver back. It is safe to repeat: the first time stays.
func (s *Store) WaiverRevoke(ctx context.Context, id, actor string) (w onejob.Waiver, err error) {
	err = s.write(ctx, func(x *tx) error {
		w = onejob.Waiver{}
		err := x.query(waiverColumns+` WHERE id = ?`, func(r *row) error { w = scanWaiver(r); return nil }, id)
		switch {
		case err != nil:
			return err
		case w.ID == "":
			return onejob.ErrorOfNoRecord("waiver", id)
		case !w.RevokedAt.IsZero():
			return nil
		}
		w.RevokedAt = x.now
		if _, err := x.exec(`UPDATE waivers SET revoked_at = ? WHERE id = ?`, x.now, id); err != nil {
			return err
		}
		return x.audit(w.AuditOfRevoke(actor))
	})
	return w, err
}

// WaiverList returns waivers, newest first.
func (s *Store) WaiverList(ctx context.Context, p onejob.CertificateListParams) (found []onejob.Waiver, err error) {
	err = s.read(ctx, func(x *tx) error {
		w := recordFilter(&p)
		if p.Live {
			w.and(`revoked_at IS NULL AND expires_at > ?`, x.now)
		}
		return x.query(waiverColumns+w.sql()+` ORDER BY granted_at DESC, id DESC LIMIT ?`, func(r *row) error {
			found = append(found, scanWaiver(r))
			return nil
		}, append(w.args, onejob.AtMostCertificates(p.Limit))...)
	})
	return found, err
}
