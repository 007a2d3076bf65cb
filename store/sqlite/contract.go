package sqlite

import (
	"context"
	"encoding/json"

	"github.com/onejob-dev/onejob"
)

const versionColumns = `SELECT digest, kind, body, created_at FROM contract_versions`

func scanVersion(r *row) onejob.ContractVersion {
	return onejob.ContractVersion{Digest: r.String(), Kind: r.String(), Body: json.RawMessage(r.String()), CreatedAt: r.Time()}
}

// ContractPut keeps a version of a contract.
func (s *Store) ContractPut(ctx context.Context, v onejob.ContractVersion) error {
	if err := onejob.CheckVersion(v.Digest, v.Kind, v.Body); err != nil {
		return err
	}
	return s.write(ctx, func(x *tx) error {
		_, err := x.exec(`INSERT INTO contract_versions (digest, kind, body, created_at) VALUES (?, ?, ?, ?) ON CONFLICT (digest) DO NOTHING`,
			v.Digest, v.Kind, string(v.Body), x.now)
		return err
	})
}

// TargetPut keeps a version of a target.
func (s *Store) TargetPut(ctx context.Context, v onejob.TargetVersion) error {
	if err := onejob.CheckVersion(v.Digest, v.Name, v.Body); err != nil {
		return err
	}
	return s.write(ctx, func(x *tx) error {
		_, err := x.exec(`INSERT INTO targets (digest, name, body, created_at) VALUES (?, ?, ?, ?) ON CONFLICT (digest) DO NOTHING`,
			v.Digest, v.Name, string(v.Body), x.now)
		return err
	})
}

// ContractGet returns one version.
func (s *Store) ContractGet(ctx context.Context, p onejob.ContractGetParams) (v onejob.ContractVersion, err error) {
	column, value := "kind", p.Kind
	if p.Digest != "" {
		column, value = "digest", p.Digest
	}
	err = s.read(ctx, func(x *tx) error {
		return x.query(versionColumns+` WHERE `+column+` = ? ORDER BY created_at DESC, rowid DESC LIMIT 1`, func(r *row) error {
			v = scanVersion(r)
			return nil
		}, value)
	})
	if err == nil && v.Digest == "" {
		err = onejob.ErrorOfNoRecord("contract of this "+column, value)
	}
	return v, err
}

// ContractList returns versions, newest first.
func (s *Store) ContractList(ctx context.Context, kind string, limit int) (found []onejob.ContractVersion, err error) {
	var w where
	if kind != "" {
		w.and(`kind = ?`, kind)
	}
	err = s.read(ctx, func(x *tx) error {
		return x.query(versionColumns+w.sql()+` ORDER BY created_at DESC, rowid DESC LIMIT ?`, func(r *row) error {
			found = append(found, scanVersion(r))
			return nil
		}, append(w.args, onejob.AtMostCertificates(limit))...)
	})
	return found, err
}

// TargetGet returns one version.
func (s *Store) TargetGet(ctx context.Context, digest string) (v onejob.TargetVersion, err error) {
	err = s.read(ctx, func(x *tx) error {
		return x.query(`SELECT digest, name, body, created_at FROM targets WHERE digest = ?`, func(r *row) error {
			v = onejob.TargetVersion{Digest: r.String(), Name: r.String(), Body: json.RawMessage(r.String()), CreatedAt: r.Time()}
			return nil
		}, digest)
	})
	if err == nil && v.Digest == "" {
		err = onejob.ErrorOfNoRecord("target version", digest)
	}
	return v, err
}
