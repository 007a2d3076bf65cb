package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/onejob-dev/onejob"
)

// KeyCreate keeps a new API key. An id that exists is [onejob.CodeInvalidArgument].
func (s *Store) KeyCreate(ctx context.Context, p onejob.KeyCreateParams) error {
	key := p.Key
	now, end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if _, exists := s.keys[key.ID]; exists {
		return &onejob.Error{Code: onejob.CodeInvalidArgument, Message: fmt.Sprintf("there is already an API key %q", key.ID)}
	}
	s.keys[key.ID] = copyKey(key)
	s.audit(p.AuditOf(), now)
	return nil
}

// KeyGet reads an API key, revoked or not.
func (s *Store) KeyGet(ctx context.Context, id string) (onejob.APIKey, error) {
	_, end, err := s.begin(ctx)
	if err != nil {
		return onejob.APIKey{}, err
	}
	defer end()
	key, exists := s.keys[id]
	if !exists {
		return onejob.APIKey{}, errorOfNoKey(id)
	}
	return copyKey(key), nil
}

// KeyList reads every API key, oldest first.
func (s *Store) KeyList(ctx context.Context) ([]onejob.APIKey, error) {
	_, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	var keys []onejob.APIKey
	for _, key := range s.keys {
		keys = append(keys, copyKey(key))
	}
	slices.SortFunc(keys, func(a, b onejob.APIKey) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return keys, nil
}

// KeyRevoke ends an API key. A repeat keeps the time of the first.
func (s *Store) KeyRevoke(ctx context.Context, p onejob.KeyRevokeParams) error {
	now, end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	key, exists := s.keys[p.ID]
	if !exists {
		return errorOfNoKey(p.ID)
	}
	if key.RevokedAt.IsZero() {
		key.RevokedAt = now
		s.keys[p.ID] = key
		s.audit(p.AuditOf(key.Owner), now)
	}
	return nil
}

func errorOfNoKey(id string) error {
	return &onejob.Error{Code: onejob.CodeNotFound, Message: fmt.Sprintf("there is no API key %q", id)}
}

func copyKey(key onejob.APIKey) onejob.APIKey {
	key.Hash = bytes.Clone(key.Hash)
	return key
}
