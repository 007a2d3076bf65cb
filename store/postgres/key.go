package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/onejob-dev/onejob"
)

const sqlKeyCreate = `
INSERT INTO api_keys (id, owner, role, act_as, hash, created_at)
VALUES ($1, $2, $3, $4, $5, coalesce($6::timestamptz, onejob_now()))`

// KeyCreate implements [onejob.KeyStore]. The time of creation is the database's
// unless the key has one.
func (s *Store) KeyCreate(ctx context.Context, p onejob.KeyCreateParams) error {
	key := p.Key
	return s.audited(ctx, func(ctx context.Context, t *txn) ([]onejob.AuditEntry, error) {
		b := t.batch()
		b.Queue(sqlKeyCreate, key.ID, key.Owner, string(key.Role), key.ActAs, notNil(key.Hash), stamp(key.CreatedAt))
		return []onejob.AuditEntry{p.AuditOf()}, t.send(ctx, b)
	})
}

const (
	sqlKeys   = `SELECT id, owner, role, act_as, hash, created_at, revoked_at FROM api_keys`
	sqlKeyGet = sqlKeys + ` WHERE id = $1`
	sqlKeyAll = sqlKeys + ` ORDER BY created_at, id`
)

// KeyGet implements [onejob.KeyStore].
func (s *Store) KeyGet(ctx context.Context, id string) (onejob.APIKey, error) {
	key, err := scanKey(s.pool.QueryRow(ctx, sqlKeyGet, clean(id)))
	if errors.Is(err, pgx.ErrNoRows) {
		return key, &onejob.Error{Code: onejob.CodeNotFound, Message: "there is no such API key"}
	}
	return key, onejob.Unavailable(err)
}

// KeyList implements [onejob.KeyStore]: oldest first, the revoked included.
func (s *Store) KeyList(ctx context.Context) ([]onejob.APIKey, error) {
	rows, err := s.pool.Query(ctx, sqlKeyAll)
	if err != nil {
		return nil, onejob.Unavailable(err)
	}
	keys := []onejob.APIKey{}
	err = forEach(rows, func(row pgx.Row) error {
		key, err := scanKey(row)
		keys = append(keys, key)
		return err
	})
	return keys, onejob.Unavailable(err)
}

func scanKey(row pgx.Row) (key onejob.APIKey, err error) {
	var revoked pgtype.Timestamptz
	err = row.Scan(&key.ID, &key.Owner, &key.Role, &key.ActAs, &key.Hash, &key.CreatedAt, &revoked)
	key.CreatedAt, key.RevokedAt = key.CreatedAt.UTC(), timeOf(revoked)
	return key, err
}

// Zero rows: it was never created, or revoked before, and then keeps its time.
const sqlKeyRevoke = `UPDATE api_keys SET revoked_at = onejob_now() WHERE id = $1 AND revoked_at IS NULL RETURNING owner`

// KeyRevoke implements [onejob.KeyStore].
func (s *Store) KeyRevoke(ctx context.Context, p onejob.KeyRevokeParams) error {
	if _, err := s.KeyGet(ctx, p.ID); err != nil {
		return err
	}
	return s.audited(ctx, func(ctx context.Context, t *txn) (entries []onejob.AuditEntry, err error) {
		b := t.batch()
		b.Queue(sqlKeyRevoke, clean(p.ID)).Query(func(rows pgx.Rows) error {
			return forEach(rows, func(row pgx.Row) error {
				var owner string
				err := row.Scan(&owner)
				entries = append(entries, p.AuditOf(owner))
				return err
			})
		})
		return entries, t.send(ctx, b)
	})
}
