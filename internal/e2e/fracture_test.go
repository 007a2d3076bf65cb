package e2e_test

import (
	"bytes"
	"encoding/json"
	"testing"
)

// The fractures are the contract of the API: through HTTP, against the program
// itself, on both stores.
func TestTheFracturesHold(t *testing.T) {
	onEachStore(t, func(t *testing.T, storeURL string) {
		s := &site{t: t, dir: t.TempDir()}
		args := []string{"demo", "all", "-o", "json", "--store", storeURL}
		var stderr bytes.Buffer
		cmd := s.command(args...)
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("the demo ended with %v\n%s", err, stderr.Bytes())
		}
		var acts int
		for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); acts++ {
			var act struct {
				Name    string `json:"name"`
				Passed  bool   `json:"passed"`
				Counted string `json:"counted"`
			}
			if err := dec.Decode(&act); err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: passed %t: %s", act.Name, act.Passed, act.Counted)
			if !act.Passed {
				t.Errorf("%s: %s", act.Name, act.Counted)
			}
		}
		if acts != 12 {
			t.Errorf("%d acts were played; want 12", acts)
		}
	})
}

// What a person reads says it as the counts do.
func TestAnActOfTheDemoSaysThatItPassed(t *testing.T) {
	t.Parallel()
	s := &site{t: t, dir: t.TempDir()}
	out, err := s.command("demo", "double-click").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("PASS double-click: 2 clicks, 1 job, 1 execution")) {
		t.Errorf("the demo ended with %v and said\n%s", err, out)
	}
}
