package sqlite

import (
	"context"
	"fmt"

	"github.com/onejob-dev/onejob"
)

const keyColumns = `SELECT id, owner, role, act_as, hash, created_at, revoked_at FROM api_keys`

// KeyCreate records a credential. An id that exists is refused.
func (s *Store) KeyCreate(ctx context.Context, p onejob.KeyCreateParams) error {
	key := p.Key
	return s.write(ctx, func(x *tx) error {
		created := key.CreatedAt
		if created.IsZero() {
			created = x.now
		}
		refused, err := x.row(func() error {
			_, err := x.exec(`INSERT INTO api_keys (id, owner, role, act_as, hash, created_at, revoked_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
				key.ID, key.Owner, string(key.Role), key.ActAs, key.Hash, created, key.RevokedAt)
			if err != nil {
				return err
			}
			return x.audit(p.AuditOf())
		})
		if err != nil {
			return err
		}
		return refused
	})
}

// KeyGet returns a credential, revoked or not.
func (s *Store) KeyGet(ctx context.Context, id string) (key onejob.APIKey, err error) {
	err = s.read(ctx, func(x *tx) error {
		return x.query(keyColumns+` WHERE id = ?`, func(r *row) error { key = scanKey(r); return nil }, id)
	})
	if err == nil && key.ID == "" {
		err = errorOfNoKey(id)
	}
	return key, err
}

// KeyList returns every credential, oldest first.
func (s *Store) KeyList(ctx context.Context) (keys []onejob.APIKey, err error) {
	err = s.read(ctx, func(x *tx) error {
		return x.query(keyColumns+` ORDER BY created_at, id`, func(r *row) error {
			keys = append(keys, scanKey(r))
			return nil
		})
	})
	return keys, err
}

// KeyRevoke ends a credential. It is safe to repeat: the first time stays.
func (s *Store) KeyRevoke(ctx context.Context, p onejob.KeyRevokeParams) error {
	return s.write(ctx, func(x *tx) error {
		owner := ""
		err := x.query(`SELECT owner FROM api_keys WHERE id = ?`, func(r *row) error { owner = r.String(); return nil }, p.ID)
		switch {
		case err != nil:
			return err
		case owner == "":
			return errorOfNoKey(p.ID)
		}
		n, err := x.exec(`UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL`, x.now, p.ID)
		if err != nil || n == 0 {
			return err
		}
		return x.audit(p.AuditOf(owner))
	})
}

func scanKey(r *row) onejob.APIKey {
	return onejob.APIKey{
		ID: r.String(), Owner: r.String(), Role: onejob.Role(r.String()), ActAs: r.Bool(), Hash: r.Bytes(),
		CreatedAt: r.Time(), RevokedAt: r.Time(),
	}
}

func errorOfNoKey(id string) error {
	return &onejob.Error{Code: onejob.CodeNotFound, Message: fmt.Sprintf("there is no API key %q", id)}
}
