package cli_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/internal/cli"
	"github.com/onejob-dev/onejob/internal/pgtest"
	"github.com/onejob-dev/onejob/sim"
)

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// writeConfig writes a configuration that needs no provider.
func writeConfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "onejob.yaml")
	text := "targets: {acme: {provider: http, request: {url: 'http://127.0.0.1:9/'}}}\n" +
		"kinds: {k: {effect: none, targets: [acme]}}\nworkers: {drain: 1s}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestServeOnPostgreSQL(t *testing.T) {
	t.Parallel()

	url, listen := pgtest.URL(t), freePort(t)
	env := map[string]string{"DATABASE_URL": url, "ONEJOB_LISTEN": listen, "ONEJOB_SECRET": "0123456789abcdef0123456789abcdef"}
	path := writeConfig(t)

	got := run(t.Context(), env, "", "serve", "--config", path)
	if got.code != cli.ExitFailed || !strings.Contains(got.stderr, "onejob migrate up") {
		t.Fatalf("on an empty schema: %+v; want a refusal that names the command", got)
	}
	if got = run(t.Context(), env, "", "migrate", "status"); got.code != cli.ExitFailed || !strings.Contains(got.stdout, "missing") {
		t.Errorf("status of an empty schema: %+v", got)
	}
	serving, stop := context.WithCancel(t.Context())
	defer stop()
	served := make(chan outcome, 1)
	go func() { served <- run(serving, env, "", "serve", "--config", path, "--migrate") }()
	waitUntilReady(t, "http://"+listen, served)

	if got = run(t.Context(), env, "", "migrate", "status"); got.code != cli.ExitOK {
		t.Errorf("status of a migrated schema: %+v", got)
	}
	key := run(t.Context(), env, "", "keys", "create", "--owner", "shop")
	if key.code != cli.ExitOK || !strings.HasPrefix(key.stdout, "oj_") {
		t.Fatalf("keys create: %+v", key)
	}
	env["ONEJOB_API_KEY"] = strings.TrimSpace(key.stdout)
	for _, want := range []string{"created", "replayed"} {
		got = run(t.Context(), env, "{}", "submit", "k", "--key", "1", "--input", "-", "--server", listen)
		if got.code != cli.ExitOK || !strings.Contains(got.stdout, want) {
			t.Errorf("submit: %+v; want it %s", got, want)
		}
	}
	got = run(t.Context(), env, "", "doctor", "--config", path)
	if got.code != cli.ExitFailed || !strings.Contains(got.stderr, "generation_file is not set") || strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("doctor: %+v; want that nothing outside tells of a restore, and nothing else", got)
	}
	env["ONEJOB_GENERATION_FILE"] = filepath.Join(t.TempDir(), "generation")
	got = run(t.Context(), env, "", "doctor", "--config", path)
	if got.code != cli.ExitOK || got.stderr != "" {
		t.Errorf("doctor: %+v; want silence", got)
	}
	stop()
	if got = <-served; got.code != cli.ExitOK {
		t.Errorf("serve: %+v; want exit code 0 after a signal", got)
	}
}

func waitUntilReady(t *testing.T, server string, ended <-chan outcome) {
	t.Helper()
	for start := time.Now(); time.Since(start) < 30*time.Second; {
		select {
		case got := <-ended:
			t.Fatalf("the server ended: %+v", got)
		case <-time.After(20 * time.Millisecond):
		}
		if run(t.Context(), nil, "", "doctor", "--probe", "ready", "--server", server).code == cli.ExitOK {
			return
		}
	}
	t.Fatal("the server is not ready")
}

func TestAServerThatStopsAnswersUntilItsAttemptsHaveEnded(t *testing.T) {
	t.Parallel()

	provider := sim.ForTest(t, sim.Options{Default: sim.MustParse("hold")[0]})
	listen, dir := freePort(t), t.TempDir()
	path := filepath.Join(dir, "onejob.yaml")
	text := "targets: {acme: {provider: http, request: {url: '" + provider.URL() + "/'}}}\n" +
		"kinds: {k: {effect: none, targets: [acme]}}\nworkers: {drain: 30s}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	store := "sqlite:" + filepath.Join(dir, "x.db")
	key := strings.TrimSpace(run(t.Context(), nil, "", "keys", "create", "--owner", "o", "--store", store).stdout)
	client := map[string]string{"ONEJOB_API_KEY": key, "ONEJOB_SERVER": listen}
	serving, stop := context.WithCancel(t.Context())
	defer stop()
	served := make(chan outcome, 1)
	go func() {
		served <- run(serving, nil, "", "serve", "--config", path, "--store", store, "--listen", listen)
	}()
	waitUntilReady(t, listen, served)
	job, _, _ := strings.Cut(run(t.Context(), client, "{}", "submit", "k", "--key", "1", "--input", "-").stdout, " ")
	if err := provider.Wait(t.Context(), func() bool { return provider.Requests() == 1 }); err != nil {
		t.Fatal(err)
	}

	stop()
	for deadline := time.Now().Add(20 * time.Second); run(t.Context(), client, "", "doctor", "--probe", "ready").code == cli.ExitOK; {
		if time.Now().After(deadline) {
			t.Fatal("it is still ready")
		}
	}
	if got := run(t.Context(), client, "", "jobs", "get", job); !strings.Contains(got.stdout, "running") {
		t.Errorf("the job, while draining: %+v", got)
	}
	refused := request(t, listen, key, "2")
	repeated := request(t, listen, key, "1")
	if refused != http.StatusServiceUnavailable || repeated != http.StatusAccepted {
		t.Errorf("a new job is answered %d, a repeat %d; want 503 and 202", refused, repeated)
	}
	provider.Release()
	if got := <-served; got.code != cli.ExitOK {
		t.Errorf("serve: %+v", got)
	}
	again, stopAgain := context.WithCancel(t.Context())
	defer stopAgain()
	go func() { served <- run(again, nil, "", "serve", "--config", path, "--store", store, "--listen", listen) }()
	waitUntilReady(t, listen, served)
	if got := run(t.Context(), client, "", "jobs", "get", job); !strings.Contains(got.stdout, "succeeded") {
		t.Errorf("the job, after a restart: %+v", got)
	}
	stopAgain()
	<-served
}

// request submits once, without repeating, and returns the status.
func request(t *testing.T, listen, key, idempotencyKey string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+listen+"/v1/jobs", strings.NewReader(`{"kind":"k","input":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Idempotency-Key", idempotencyKey)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

func TestServeTellsTheServiceManagerWhenItIsReady(t *testing.T) {
	t.Parallel()

	socket := filepath.Join(t.TempDir(), "n")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	serving, stop := context.WithCancel(t.Context())
	defer stop()
	env := map[string]string{"NOTIFY_SOCKET": socket, "ONEJOB_LISTEN": "127.0.0.1:0", "ONEJOB_STORE": "sqlite:" + filepath.Join(t.TempDir(), "x.db")}
	path := writeConfig(t)
	served := make(chan outcome, 1)
	go func() { served <- run(serving, env, "", "serve", "--config", path) }()
	buf := make([]byte, 100)
	if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(buf); err != nil || string(buf[:n]) != "READY=1" {
		t.Errorf("told %q, %v", buf[:n], err)
	}
	stop()
	if got := <-served; got.code != cli.ExitOK {
		t.Errorf("serve: %+v", got)
	}
}
