package storetest

import (
	"bytes"
	"time"

	"github.com/onejob-dev/onejob"
)

func keeping() []promise {
	return []promise{
		{name: "KeyStore/KeepsAKey", test: testKeyKept},
		{name: "KeyStore/AnUnknownIDIsNotFound", test: testKeyMissing},
		{name: "KeyStore/ARevokedKeyIsAnsweredAsSuch", test: testKeyRevoked},
		{name: "KeyStore/AnIDIsUsedOnce", test: testKeyOnce},
		{name: "KeyStore/ListsAllOldestFirst", test: testKeyList},
	}
}

func (f *fixture) keyStore() onejob.KeyStore {
	f.Helper()
	keys, ok := f.s.(onejob.KeyStore)
	if !ok {
		f.Skip("the store keeps no API keys")
	}
	return keys
}

func apiKey(id string, createdAt time.Time) onejob.APIKey {
	return onejob.APIKey{
		ID: id, Owner: owner, Role: onejob.RoleOperator, ActAs: true,
		Hash: bytes.Repeat([]byte{0, 0xff}, 16), CreatedAt: createdAt.UTC(),
	}
}

func made(key onejob.APIKey) onejob.KeyCreateParams {
	return onejob.KeyCreateParams{Key: key, Actor: "olga"}
}

func revoked(id string) onejob.KeyRevokeParams {
	return onejob.KeyRevokeParams{ID: id, Actor: "otto"}
}

func sameKey(a, b onejob.APIKey) bool {
	return a.ID == b.ID && a.Owner == b.Owner && a.Role == b.Role && a.ActAs == b.ActAs &&
		bytes.Equal(a.Hash, b.Hash) && a.CreatedAt.Equal(b.CreatedAt) && a.RevokedAt.IsZero() == b.RevokedAt.IsZero()
}

func testKeyKept(f *fixture) {
	keys, want := f.keyStore(), apiKey("key1", time.UnixMilli(1_700_000_000_123))
	f.noError(keys.KeyCreate(f.Context(), made(want)))
	got, err := keys.KeyGet(f.Context(), "key1")
	f.noError(err)
	if !sameKey(got, want) {
		f.Errorf("the key reads back as %+v; want %+v", got, want)
	}
}

func testKeyMissing(f *fixture) {
	keys := f.keyStore()
	_, err := keys.KeyGet(f.Context(), "key1")
	f.wantCode(err, onejob.CodeNotFound)
	_, err = keys.KeyGet(f.Context(), "' OR 1 = 1 --")
	f.wantCode(err, onejob.CodeNotFound)
}

func testKeyRevoked(f *fixture) {
	keys := f.keyStore()
	f.noError(keys.KeyCreate(f.Context(), made(apiKey("key1", time.UnixMilli(1)))))
	f.noError(keys.KeyCreate(f.Context(), made(apiKey("key2", time.UnixMilli(2)))))
	f.noError(keys.KeyRevoke(f.Context(), revoked("key1")))
	first, err := keys.KeyGet(f.Context(), "key1")
	f.noError(err)
	f.noError(keys.KeyRevoke(f.Context(), revoked("key1")))
	again, err := keys.KeyGet(f.Context(), "key1")
	f.noError(err)
	if first.RevokedAt.IsZero() || !again.RevokedAt.Equal(first.RevokedAt) {
		f.Errorf("the key was revoked at %s and then at %s; want the first time kept", first.RevokedAt, again.RevokedAt)
	}
	if other, err := keys.KeyGet(f.Context(), "key2"); err != nil || !other.RevokedAt.IsZero() {
		f.Errorf("the other key is %+v, %v; want it live", other, err)
	}
}

func testKeyOnce(f *fixture) {
	keys := f.keyStore()
	f.noError(keys.KeyCreate(f.Context(), made(apiKey("key1", time.UnixMilli(1)))))
	other := apiKey("key1", time.UnixMilli(2))
	other.Owner = "mallory"
	if err := keys.KeyCreate(f.Context(), made(other)); err == nil {
		f.Error("an id that exists was created again")
	}
	if got, err := keys.KeyGet(f.Context(), "key1"); err != nil || got.Owner != owner {
		f.Errorf("the key is now %s's, %v; want %s's", got.Owner, err, owner)
	}
}

func testKeyList(f *fixture) {
	keys := f.keyStore()
	for i, id := range []string{"key3", "key1", "key2"} {
		f.noError(keys.KeyCreate(f.Context(), made(apiKey(id, time.UnixMilli(int64(i))))))
	}
	f.noError(keys.KeyRevoke(f.Context(), revoked("key1")))
	all, err := keys.KeyList(f.Context())
	f.noError(err)
	if len(all) != 3 || all[0].ID != "key3" || all[1].ID != "key1" || all[2].ID != "key2" || all[1].RevokedAt.IsZero() {
		f.Errorf("the list holds %+v; want all three, oldest first, the revoked one too", all)
	}
}
