package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/config"
)

// smallContract is one for kind summarise; %s marks are filled in by tests.
const smallContract = `apiVersion: onejob/contract.v1
kind: summarise
input_schema: {type: object, additionalProperties: false, required: [text], properties: {text: {type: string, maxLength: 100}}}
output:
  media: json
  schema: {type: object, additionalProperties: false, required: [n], properties: {n: {type: integer, minimum: 0, maximum: 10}}}
cases: {files: [cases.jsonl], min_distinct: 30}
sampling: {repeats: 1}
gates: {structure: {min_rate: 0.90, max_failures: 0}}
side_effects: none
failover: {automatic: true}
verify: {max_calls: 100}
`

// contractFolder writes a contract with its cases, and a configuration whose kind is
// the text given. It returns the configuration's path.
func contractFolder(t *testing.T, contract, kind string) string {
	t.Helper()
	dir := t.TempDir()
	var cases strings.Builder
	for i := range 30 {
		tags := ""
		if i == 0 {
			tags = `,"tags":["hostile"]`
		}
		cases.WriteString(`{"id":"c` + string(rune('a'+i%26)) + string(rune('a'+i/26)) + `","input":{"text":"` + strings.Repeat("x", i+1) + `"}` + tags + "}\n")
	}
	text := "targets:\n  acme: {provider: http, request: {url: \"http://127.0.0.1:1/x\"}}\n  gpt: {provider: openai, base_url: \"http://127.0.0.1:1\", model: gpt-2026, pinned: true}\n" +
		"  claude: {provider: anthropic, base_url: \"http://127.0.0.1:1\", model: claude-2026, api_key: k, pinned: true}\nkinds:\n  summarise: " + kind + "\n"
	for name, content := range map[string]string{"summarise.yaml": contract, "cases.jsonl": cases.String(), "onejob.yaml": text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "onejob.yaml")
}

func TestAKindsContractIsReadAndPinned(t *testing.T) {
	t.Parallel()

	path := contractFolder(t, smallContract, "{effect: none, targets: [acme, gpt], contract: summarise.yaml}")
	c, err := config.Load(config.LoadParams{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	kind := c.Kinds()["summarise"]
	terms := kind.Policy.Contract
	if terms == nil || terms.Digest != c.Contracts["summarise"].Checker.Digest() || terms.Manual || terms.Pair || terms.OnUncertified != "" {
		t.Errorf("the policy pins %+v", terms)
	}
	if err := kind.CheckFunc([]byte(`{"text":"hello"}`)); err != nil {
		t.Errorf("an input that the contract takes is refused: %v", err)
	}
	if err := kind.CheckFunc([]byte(`{"txt":"hello"}`)); err == nil {
		t.Error("an input that the contract does not take is taken")
	}
	if c.Environment != onejob.DefaultEnvironment {
		t.Errorf("the environment is %q", c.Environment)
	}
}

func TestAContractThatCannotBeUsedRefusesTheConfiguration(t *testing.T) {
	t.Parallel()

	const kind = "{effect: none, targets: [acme], contract: summarise.yaml}"
	tests := []struct{ name, contract, kind, want string }{
		{"NotThere", smallContract, "{effect: none, targets: [acme], contract: nowhere.yaml}", "onejob.yaml:6:"},
		{"ItsOwnFault", strings.Replace(smallContract, "min_rate: 0.90", "min_rate: 0.99", 1), kind, "summarise.yaml:9:"},
		{"UnknownKey", smallContract + "sampling2: 1\n", kind, "summarise.yaml:13:1"},
		{"AnotherKind", strings.Replace(smallContract, "kind: summarise", "kind: triage", 1), kind, `it is the contract of kind "triage"`},
		{"AnotherEffect", smallContract, "{effect: external, targets: [acme], contract: summarise.yaml}", "side_effects: none"},
		{"Never", smallContract, "{effect: none, targets: [acme], failover: never, contract: summarise.yaml}", "failover.automatic: true"},
		{
			"Declared", strings.Replace(smallContract, "automatic: true", "automatic: false", 1),
			"{effect: none, targets: [acme, gpt], failover: {declared: equal}, contract: summarise.yaml}", "failover.automatic: false",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			_, err := config.Load(config.LoadParams{Path: contractFolder(t, tt.contract, tt.kind)})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v; want it to say %q", err, tt.want)
			}
		})
	}
}

func TestACommandOfTheStoreNeedsNoContract(t *testing.T) {
	t.Parallel()

	path := contractFolder(t, "kind: [", "{effect: none, targets: [acme], contract: summarise.yaml}")
	if _, err := config.Load(config.LoadParams{Path: path, StoreOnly: true}); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestATargetMayBeASandbox(t *testing.T) {
	t.Parallel()

	for _, provider := range []string{
		"provider: openai, base_url: \"http://127.0.0.1:1\", model: m", "provider: anthropic, base_url: \"http://127.0.0.1:1\", model: m, api_key: k",
		"provider: http, request: {url: \"http://127.0.0.1:1\"}",
	} {
		for says, want := range map[string]bool{"": false, ", sandbox: true": true, ", sandbox: false": false} {
			c, err := load("targets:\n  t: {"+provider+says+"}\n", nil)
			if err != nil {
				t.Fatal(err)
			}
			if target := c.File.Targets["t"]; target.Sandbox() != want {
				t.Errorf("{%s%s} is a sandbox: %t; want %t", provider, says, target.Sandbox(), want)
			}
		}
	}
	if _, err := load("targets:\n  t: {provider: worker, sandbox: true}\n", nil); err == nil {
		t.Error("workers, which are not called, are a sandbox")
	}
}

func TestARetirementIsWarnedOf(t *testing.T) {
	t.Parallel()

	const file = "targets:\n  gpt: {provider: openai, base_url: \"http://127.0.0.1:1\", model: gpt-2026, retires_at: 2027-03-31}\n"
	c, err := load(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	for day, want := range map[string]string{"2027-01-01": "", "2027-03-15": "retires gpt-2026 on 2027-03-31", "2027-04-01": "retired gpt-2026"} {
		now, _ := time.Parse(time.DateOnly, day)
		if got := strings.Join(c.WarningsAt(now), "\n"); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("on %s it says %q; want %q", day, got, want)
		}
	}
	if _, err := load(strings.Replace(file, "2027-03-31", "2027-31-03", 1), nil); err == nil {
		t.Error("a day that is none is taken")
	}
}
