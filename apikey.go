package onejob

import (
	"context"
	"time"
)

// APIKey is a credential of an owner. Only a hash of its secret is stored.
type APIKey struct {
	ID        string
	Owner     string
	Role      Role
	ActAs     bool // may name a sub-owner
	Hash      []byte
	CreatedAt time.Time
	RevokedAt time.Time // zero: live
}

// Role is what a credential may do. Each includes what the ones before it may.
type Role string

// The roles, from least to most.
const (
	RoleViewer    Role = "viewer"
	RoleSubmitter Role = "submitter"
	RoleOperator  Role = "operator"
	RoleAdmin     Role = "admin"
)

// Roles lists the roles from least to most.
func Roles() []Role { return []Role{RoleViewer, RoleSubmitter, RoleOperator, RoleAdmin} }

// KeyStore keeps API keys. Both real stores implement it. What is done to a key is
// written to its owner's audit.
type KeyStore interface {
	KeyCreate(ctx context.Context, params KeyCreateParams) error
	// KeyGet returns [ErrNotFound] for an id that was never created; a revoked
	// key is returned as such.
	KeyGet(ctx context.Context, id string) (APIKey, error)
	KeyList(ctx context.Context) ([]APIKey, error)
	// KeyRevoke is safe to repeat.
	KeyRevoke(ctx context.Context, params KeyRevokeParams) error
}

// KeyCreateParams is a new key, and who made it.
type KeyCreateParams struct {
	Key   APIKey
	Actor string
}

// KeyRevokeParams names a key, and who revokes it.
type KeyRevokeParams struct {
	ID    string
	Actor string
}
