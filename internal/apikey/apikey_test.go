package apikey_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/apikey"
)

func generate(t *testing.T, owner string) (string, onejob.APIKey) {
	t.Helper()
	printed, stored, err := apikey.Generate(apikey.Params{Owner: owner, Role: onejob.RoleSubmitter, Now: time.Unix(1, 0)})
	if err != nil {
		t.Fatalf("Generate: %v", err)
	}
	return printed, stored
}

func TestAGeneratedKeyIsReadBackAndMatchesOnlyItself(t *testing.T) {
	t.Parallel()
	printed, stored := generate(t, "acme")
	_, other := generate(t, "acme")

	parsed, err := apikey.Parse(printed)
	if err != nil {
		t.Fatalf("Parse(%q): %v", printed, err)
	}
	if parsed.ID != stored.ID || !parsed.Matches(stored) {
		t.Errorf("parsed id %q, matches %v; want %q and a match", parsed.ID, parsed.Matches(stored), stored.ID)
	}
	if parsed.Matches(other) || parsed.Matches(onejob.APIKey{}) {
		t.Error("the key matches another key, or none at all")
	}
}

func TestTheSecretIsNeitherStoredNorPrintedByAccident(t *testing.T) {
	t.Parallel()
	printed, stored := generate(t, "acme")
	secret := printed[strings.LastIndex(printed, "_")+1:]
	parsed, err := apikey.Parse(printed)
	if err != nil {
		t.Fatal(err)
	}
	shown := fmt.Sprintf("%v %+v %#v %s %v %q", parsed, parsed, parsed, parsed, stored, stored.Hash)
	if strings.Contains(shown, secret[:20]) {
		t.Errorf("the secret is in %q", shown)
	}
}

func TestOneWrongCharacterIsFoundWithoutAskingTheStore(t *testing.T) {
	t.Parallel()
	printed, _ := generate(t, "acme")
	const alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
	random := rand.New(rand.NewPCG(1, 2))
	for range 2_000 {
		i := random.IntN(len(printed))
		c := alphabet[random.IntN(len(alphabet))]
		if printed[i] == c {
			continue
		}
		mistyped := printed[:i] + string(c) + printed[i+1:]
		if _, err := apikey.Parse(mistyped); err == nil {
			t.Fatalf("Parse accepted %q, which differs from %q at %d", mistyped, printed, i)
		}
	}
}

func TestWhatIsNoKeyIsRefusedWithoutBeingRepeated(t *testing.T) {
	t.Parallel()
	printed, _ := generate(t, "acme")
	for _, s := range []string{
		"", "oj_", "oj__", "oj_a_b", printed + "0", printed[:len(printed)-1], strings.ToUpper(printed), " " + printed,
		"sk_" + printed[3:], "oj_' OR 1=1 --_x", "oj_" + strings.Repeat("a", 100) + printed[15:], strings.Repeat("x", 1<<16),
	} {
		_, err := apikey.Parse(s)
		if err == nil {
			t.Errorf("Parse(%.40q) was accepted", s)
		} else if s != "" && strings.Contains(err.Error(), s) {
			t.Errorf("Parse(%.40q) repeats what came: %v", s, err)
		}
	}
}

func TestOwnersAndRolesAreChecked(t *testing.T) {
	t.Parallel()
	for _, owner := range []string{"", "a/b", "a b", "a\n", "ü", strings.Repeat("a", 129)} {
		if _, _, err := apikey.Generate(apikey.Params{Owner: owner, Role: onejob.RoleViewer}); onejob.CodeOf(err) != onejob.CodeInvalidArgument {
			t.Errorf("Generate for owner %q: %v; want %s", owner, err, onejob.CodeInvalidArgument)
		}
	}
	if _, _, err := apikey.Generate(apikey.Params{Owner: "a", Role: "root"}); onejob.CodeOf(err) != onejob.CodeInvalidArgument {
		t.Errorf("Generate for role root: %v; want %s", err, onejob.CodeInvalidArgument)
	}
}

// keys is a key store that counts how often it is asked.
type keys struct {
	byID  map[string]onejob.APIKey
	asked int
	err   error
}

func (k *keys) KeyGet(_ context.Context, id string) (onejob.APIKey, error) {
	k.asked++
	if k.err != nil {
		return onejob.APIKey{}, k.err
	}
	key, ok := k.byID[id]
	if !ok {
		return onejob.APIKey{}, onejob.ErrNotFound
	}
	return key, nil
}

func TestAKeyIsRememberedForSecondsOnlySoThatRevokingWorks(t *testing.T) {
	t.Parallel()
	printed, stored := generate(t, "acme")
	store := &keys{byID: map[string]onejob.APIKey{stored.ID: stored}}
	now := time.Unix(1_000, 0)
	auth := apikey.NewAuthenticator(store, apikey.Options{NowFunc: func() time.Time { return now }})

	for range 10 {
		got, err := auth.Authenticate(t.Context(), printed)
		if err != nil {
			t.Fatalf("Authenticate: %v", err)
		}
		if diff := cmp.Diff(stored, got); diff != "" {
			t.Fatalf("key (-want +got):\n%s", diff)
		}
	}
	if store.asked != 1 {
		t.Errorf("the store was asked %d times; want once", store.asked)
	}

	stored.RevokedAt = now
	store.byID[stored.ID] = stored
	now = now.Add(5 * time.Second)
	if _, err := auth.Authenticate(t.Context(), printed); onejob.CodeOf(err) != onejob.CodeUnauthenticated {
		t.Errorf("a revoked key after 5 s: %v; want %s", err, onejob.CodeUnauthenticated)
	}
}

func TestUnknownRevokedAndWrongKeysAreRefusedInTheSameWords(t *testing.T) {
	t.Parallel()
	never, _ := generate(t, "acme")
	revoked, stored := generate(t, "acme")
	stored.RevokedAt = time.Unix(2, 0)
	wrong, swapped := generate(t, "acme")
	_, another := generate(t, "acme")
	swapped.Hash = another.Hash
	auth := apikey.NewAuthenticator(&keys{byID: map[string]onejob.APIKey{stored.ID: stored, swapped.ID: swapped}}, apikey.Options{})

	for name, printed := range map[string]string{"never made": never, "revoked": revoked, "wrong secret": wrong, "mistyped": never + "x"} {
		_, err := auth.Authenticate(t.Context(), printed)
		var e *onejob.Error
		if !errors.As(err, &e) || e.Code != onejob.CodeUnauthenticated || e.Message != "the API key is not valid" {
			t.Errorf("%s: %v; want %s", name, err, onejob.CodeUnauthenticated)
		}
	}
}

func TestAStoreThatIsDownIsNotAWrongKey(t *testing.T) {
	t.Parallel()
	printed, _ := generate(t, "acme")
	auth := apikey.NewAuthenticator(&keys{err: errors.New("connection refused")}, apikey.Options{})
	if _, err := auth.Authenticate(t.Context(), printed); !errors.Is(err, onejob.ErrStoreUnavailable) {
		t.Errorf("Authenticate: %v; want %v", err, onejob.ErrStoreUnavailable)
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	t.Parallel()
	store := &keys{byID: map[string]onejob.APIKey{}}
	auth := apikey.NewAuthenticator(store, apikey.Options{MaxRemembered: 3, TTL: time.Hour})
	var printed []string
	for range 10 {
		p, stored := generate(t, "acme")
		store.byID[stored.ID] = stored
		printed = append(printed, p)
	}
	for range 3 {
		for _, p := range printed {
			if _, err := auth.Authenticate(t.Context(), p); err != nil {
				t.Fatalf("Authenticate: %v", err)
			}
		}
	}
	if store.asked < 2*len(printed) {
		t.Errorf("the store was asked %d times for 30 requests of 10 keys; with room for 3 most must be asked for", store.asked)
	}
}
