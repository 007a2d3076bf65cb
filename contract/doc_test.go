package contract_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob/contract"
)

func TestTheDocumentationNamesEveryClassAndEveryRule(t *testing.T) {
	t.Parallel()

	text, err := os.ReadFile("../docs/contracts.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, class := range contract.Classes() {
		if !strings.Contains(string(text), "`"+string(class)+"`") {
			t.Errorf("docs/contracts.md does not name the class %s", class)
		}
	}
	rules := rulesOf(t)
	if len(rules) < 30 {
		t.Fatalf("only %d rules were found; the test looks in the wrong place", len(rules))
	}
	for _, rule := range rules {
		if !strings.Contains(string(text), "`"+rule+"`") {
			t.Errorf("docs/contracts.md does not name the rule %s", rule)
		}
	}
}

// rulesOf lists the rules that the linter's source speaks of.
func rulesOf(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("lint*.go")
	if err != nil {
		t.Fatal(err)
	}
	call := regexp.MustCompile(`l\.(?:error|warning|note|caseError)\("([a-z-]+)"`)
	seen, rules := map[string]bool{}, []string{}
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range call.FindAllStringSubmatch(string(source), -1) {
			if !seen[m[1]] && !strings.HasSuffix(path, "_test.go") {
				seen[m[1]], rules = true, append(rules, m[1])
			}
		}
	}
	return rules
}
