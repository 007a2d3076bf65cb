package cli_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/cli"
	"github.com/onejob-dev/onejob/store/sqlite"
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

// refunds is a target that refunds, and a count of what it was asked.
func refunds(t *testing.T) (url string, calls *atomic.Int64) {
	t.Helper()
	calls = &atomic.Int64{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"state":"done"}`))
	}))
	t.Cleanup(srv.Close)
	return srv.URL, calls
}

// refundFolder writes a contract that is verified in a sandbox, and a configuration
// whose target says so, or something else. It returns the paths of the configuration
// and of a store that is not there yet.
func refundFolder(t *testing.T, url, says string) (config, store string) {
	t.Helper()
	dir := t.TempDir()
	var cases strings.Builder
	for i := range 10 {
		fmt.Fprintf(&cases, `{"id":"c%d","input":{"order":"o-%d"},"tags":["hostile"]}`+"\n", i, i)
	}
	text := "targets:\n  psp: {provider: http, request: {url: \"" + url + "\"}" + says + "}\n" +
		"kinds:\n  refund: {effect: external, targets: [psp], contract: refund.yaml}\nworkers: {drain: 1s}\n"
	for name, text := range map[string]string{"refund.yaml": refunding, "cases.jsonl": cases.String(), "onejob.yaml": text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "onejob.yaml"), filepath.Join(dir, "onejob.db")
}

func TestAContractWithAnEffectIsVerifiedWhereTheConfigurationSaysSandbox(t *testing.T) {
	t.Parallel()

	url, calls := refunds(t)
	for _, tt := range []struct {
		says  string
		code  int
		calls int64
		want  string
	}{
		{"", cli.ExitUsage, 0, "the contract is verified in a sandbox only, and the target is none"},
		{", sandbox: true", cli.ExitOK, 10, "in a sandbox only"},
	} {
		path, store := refundFolder(t, url, tt.says)
		calls.Store(0)
		got := run(t.Context(), nil, "", "contract", "verify", "refund", "--target", "psp",
			"--config", path, "--store", "sqlite:"+store)
		if got.code != tt.code || calls.Load() != tt.calls || !strings.Contains(got.stdout+got.stderr, tt.want) {
			t.Errorf("with %q it exits %d after %d calls: %s%s; want %d, %d and %q", tt.says, got.code, calls.Load(), got.stdout, got.stderr, tt.code, tt.calls, tt.want)
		}
	}
}

// By the server's clock the certificate is due, by the store's it is not: the renewal
// begins, and is withdrawn before anybody is called.
func TestAServerLooksForCertificatesToRenew(t *testing.T) {
	t.Parallel()

	url, calls := refunds(t)
	config, path := refundFolder(t, url, ", sandbox: true")
	env := map[string]string{"ONEJOB_LISTEN": freePort(t), "ONEJOB_SECRET": "0123456789abcdef0123456789abcdef"}
	got := run(t.Context(), env, "", "contract", "verify", "refund", "--target", "psp", "--config", config, "--store", "sqlite:"+path)
	if got.code != cli.ExitOK {
		t.Fatalf("verified: %+v", got)
	}
	calls.Store(0)
	serving, stop := context.WithCancel(t.Context())
	defer stop()
	served := make(chan outcome, 1)
	go func() {
		var stdout, stderr lockedBuffer
		code := cli.Main(serving, cli.Env{
			Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Getenv: func(name string) string { return env[name] },
			NowFunc: func() time.Time { return time.Now().Add(48 * time.Hour) }, RenewEvery: 20 * time.Millisecond,
		}, []string{"onejob", "serve", "--config", config, "--store", "sqlite:" + path})
		served <- outcome{code, stdout.String(), stderr.String()}
	}()
	waitUntilReady(t, "http://"+env["ONEJOB_LISTEN"], served)
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	renewed := func() bool {
		runs, err := store.RunList(t.Context(), onejob.RunListParams{})
		return err == nil && slices.ContainsFunc(runs, func(r onejob.VerificationRun) bool {
			return r.Trigger == "renewal" && r.State == onejob.RunInconclusive
		})
	}
	for deadline := time.Now().Add(30 * time.Second); !renewed(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no renewal began")
		}
	}
	stop()
	if end := <-served; end.code != cli.ExitOK || calls.Load() != 0 {
		t.Errorf("the server ended with %+v after %d calls; want 0, and no call", end, calls.Load())
	}
}
