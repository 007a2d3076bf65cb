package config_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/onejob-dev/onejob/internal/config"
)

func digestOf(t *testing.T, target string, env map[string]string) string {
	t.Helper()
	target += "\n"
	c := mustLoad(t, "targets:\n  a: "+target, env)
	targets, err := c.Targets("a secret of sixteen")
	if err != nil {
		t.Fatal(err)
	}
	return targets[0].Digest
}

func TestADigestTellsTargetsApartButNotTheirSecrets(t *testing.T) {
	t.Parallel()

	const target = `{provider: http, request: {url: "https://a.example", headers: {Authorization: "Bearer ${env:KEY}", Accept-Language: en}}}`
	digest := digestOf(t, target, map[string]string{"KEY": "one"})
	if got := digestOf(t, target, map[string]string{"KEY": "two"}); got != digest {
		t.Error("another credential made another target")
	}
	for _, other := range []string{
		`{provider: http, request: {url: "https://b.example", headers: {Authorization: "Bearer ${env:KEY}", Accept-Language: en}}}`,
		`{provider: http, request: {url: "https://a.example", headers: {Authorization: "Bearer ${env:KEY}", Accept-Language: de}}}`,
		`{provider: http, request: {url: "https://a.example", headers: {Authorization: "Bearer ${env:KEY}", Accept-Language: en}, body: "{{ input }}"}}`,
	} {
		if got := digestOf(t, other, map[string]string{"KEY": "one"}); got == digest {
			t.Errorf("%s has the digest of another target", other)
		}
	}
}

func TestAnSQLiteStoreGetsASecretOfItsOwnOnce(t *testing.T) {
	t.Parallel()

	store := filepath.Join(t.TempDir(), "onejob.db")
	c := mustLoad(t, "store: sqlite:"+store+"\n", nil)
	const callers = 8
	secrets := make([]string, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			secret, err := c.InstanceSecret()
			if err != nil {
				t.Error(err)
			}
			secrets[i] = secret.Reveal()
		})
	}
	all.Wait()
	for _, s := range secrets {
		if s != secrets[0] || len(s) != 64 {
			t.Errorf("secrets of %d and %d characters differ, or are not 64 long", len(secrets[0]), len(s))
		}
	}
	info, err := os.Stat(config.SecretPath(store))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the secret's file: %v, %v; want mode 0600", info, err)
	}
	entries, err := os.ReadDir(filepath.Dir(store))
	if err != nil || len(entries) != 1 {
		t.Errorf("%v are left over, %v", entries, err)
	}
}

func TestAStoreWhoseSecretIsLostIsNotGivenAnother(t *testing.T) {
	t.Parallel()

	store := filepath.Join(t.TempDir(), "onejob.db")
	if err := os.WriteFile(store, []byte("rows"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := mustLoad(t, "store: sqlite:"+store+"\n", nil).InstanceSecret(); err == nil {
		t.Error("a new secret was made for an old store")
	}
}

func TestPostgreSQLNeedsAConfiguredSecret(t *testing.T) {
	t.Parallel()

	text := "store: postgres://u:p@db/x\n"
	if _, err := mustLoad(t, text, nil).InstanceSecret(); err == nil {
		t.Error("a node made a secret of its own")
	}
	got, err := mustLoad(t, text, map[string]string{"ONEJOB_SECRET": "0123456789abcdef"}).InstanceSecret()
	if err != nil || got.Reveal() != "0123456789abcdef" {
		t.Errorf("got %q, %v", got.Reveal(), err)
	}
}
