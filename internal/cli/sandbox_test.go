package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/onejob-dev/onejob/internal/cli"
)

const refunding = `apiVersion: onejob/contract.v1
kind: refund
input_schema: {type: object, additionalProperties: false, required: [order], properties: {order: {type: string, maxLength: 100}}}
output:
  media: json
  schema: {type: object, additionalProperties: false, required: [state], properties: {state: {enum: [done, refused]}}}
cases: {files: [cases.jsonl], min_distinct: 10}
sampling: {repeats: 1}
gates: {structure: {min_rate: 0.70, max_failures: 0}}
side_effects: external
verify: {mode: sandbox, max_calls: 20}
`

func TestAContractWithAnEffectIsVerifiedWhereTheConfigurationSaysSandbox(t *testing.T) {
	t.Parallel()

	var calls atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"state":"done"}`))
	}))
	defer srv.Close()
	for _, tt := range []struct {
		says  string
		code  int
		calls int64
		want  string
	}{
		{"", cli.ExitUsage, 0, "the contract is verified in a sandbox only, and the target is none"},
		{", sandbox: true", cli.ExitOK, 10, "in a sandbox only"},
	} {
		dir := t.TempDir()
		var cases strings.Builder
		for i := range 10 {
			fmt.Fprintf(&cases, `{"id":"c%d","input":{"order":"o-%d"},"tags":["hostile"]}`+"\n", i, i)
		}
		config := "targets:\n  psp: {provider: http, request: {url: \"" + srv.URL + "\"}" + tt.says + "}\n" +
			"kinds:\n  refund: {effect: external, targets: [psp], contract: refund.yaml}\n"
		for name, text := range map[string]string{"refund.yaml": refunding, "cases.jsonl": cases.String(), "onejob.yaml": config} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		calls.Store(0)
		got := run(t.Context(), nil, "", "contract", "verify", "refund", "--target", "psp",
			"--config", filepath.Join(dir, "onejob.yaml"), "--store", "sqlite:"+filepath.Join(dir, "onejob.db"))
		if got.code != tt.code || calls.Load() != tt.calls || !strings.Contains(got.stdout+got.stderr, tt.want) {
			t.Errorf("with %q it exits %d after %d calls: %s%s; want %d, %d and %q", tt.says, got.code, calls.Load(), got.stdout, got.stderr, tt.code, tt.calls, tt.want)
		}
	}
}
