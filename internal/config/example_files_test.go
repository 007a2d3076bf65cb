package config_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob/internal/config"
)

var update = flag.Bool("update", false, "rewrite what is printed from code")

func TestTheCommittedSchemaIsTheOneOfTheDecoder(t *testing.T) {
	t.Parallel()

	const path = "../../api/onejob.schema.json"
	if *update {
		if err := os.WriteFile(path, config.Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(path)
	if err != nil || string(committed) != string(config.Schema()) {
		t.Errorf("%s is out of date (%v): go test ./internal/config -update", path, err)
	}
}

func TestEveryExampleIsValid(t *testing.T) {
	t.Parallel()

	paths, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	paths = append(paths, "../../examples/triage/onejob.yaml")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("0123456789abcdef0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()

			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			resolvable := strings.NewReplacer("/run/secrets/postgres", secret, "/run/secrets/onejob", secret).Replace(string(text))
			c, err := config.Load(config.LoadParams{
				Path: path, Text: []byte(resolvable),
				Getenv: func(name string) string {
					if strings.HasSuffix(name, "_KEY") {
						return "whsec_YS1jcmVkZW50aWFs" // what some sign with is base64
					}
					return ""
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(c.Warnings) > 0 {
				t.Errorf("warnings: %v", c.Warnings)
			}
		})
	}
}
