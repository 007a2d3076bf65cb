package cli_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/onejob-dev/onejob/internal/cli"
	"github.com/onejob-dev/onejob/internal/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// outcome is what a command left behind.
type outcome struct {
	code           int
	stdout, stderr string
}

func run(ctx context.Context, env map[string]string, stdin string, args ...string) outcome {
	var stdout, stderr lockedBuffer
	code := cli.Main(ctx, cli.Env{
		Stdin: strings.NewReader(stdin), Stdout: &stdout, Stderr: &stderr,
		Getenv: func(name string) string { return env[name] },
	}, append([]string{"onejob"}, args...))
	return outcome{code, stdout.String(), stderr.String()}
}

// lockedBuffer may be written to by a server's goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// says answers with a problem document.
func says(w http.ResponseWriter, status int, code string, retry bool) {
	w.Header().Set("Content-Type", "application/problem+json")
	if retry {
		w.Header().Set("X-Should-Retry", "true")
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte(`{"code":"` + code + `","detail":"because","job_id":"job_1"}`))
}

const jobJSON = `{"id":"job_1","kind":"k","owner":"o","state":"queued","revision":1,"attempts":[],"cost":[]}`

// aliyun/terraform-provider-alicloud#10305: a token made inside the loop that
// retries made four gateways of one.
func TestSubmitRepeatsWithTheSameKeyAndOnlyWhereThatIsOfUse(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name     string
		serve    func(n int, w http.ResponseWriter)
		code     int
		requests int
	}{
		{"ToldToRetry", func(n int, w http.ResponseWriter) {
			if n < 3 {
				says(w, 503, "store-unavailable", true)
				return
			}
			w.WriteHeader(http.StatusAccepted)
			_, _ = w.Write([]byte(jobJSON))
		}, cli.ExitOK, 3},
		{"Conflict", func(_ int, w http.ResponseWriter) { says(w, 409, "idempotency-key-conflict", false) }, cli.ExitConflict, 1},
		{"ServerErrorWithoutAdvice", func(_ int, w http.ResponseWriter) { says(w, 500, "internal", false) }, cli.ExitFailed, 1},
		{"ConnectionCut", func(n int, w http.ResponseWriter) {
			if n < 2 {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(http.StatusOK)
			_, _ = w.Write([]byte(jobJSON))
		}, cli.ExitOK, 2},
		{"ConnectionCutThrice", func(n int, w http.ResponseWriter) {
			if n < 4 {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(http.StatusOK)
			_, _ = w.Write([]byte(jobJSON))
		}, cli.ExitOK, 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var mu sync.Mutex
			var keys, bodies []string
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var body bytes.Buffer
				_, _ = body.ReadFrom(r.Body)
				mu.Lock()
				keys, bodies = append(keys, r.Header.Get("Idempotency-Key")), append(bodies, body.String())
				n := len(keys)
				mu.Unlock()
				tt.serve(n, w)
			}))
			defer srv.Close()
			got := run(t.Context(), nil, "{\"a\": 1.0}\n", "submit", "k", "--key", "key-1", "--input", "-", "--server", srv.URL)
			if got.code != tt.code || len(keys) != tt.requests {
				t.Fatalf("exit code %d after %d requests; want %d after %d\n%s", got.code, len(keys), tt.code, tt.requests, got.stderr)
			}
			for i := range keys {
				if keys[i] != "key-1" || bodies[i] != `{"kind":"k","input":{"a": 1.0}}` {
					t.Errorf("request %d has key %q and body %s", i+1, keys[i], bodies[i])
				}
			}
		})
	}
}

// comfy-python-sdk#96: after an error the key was gone, so that the next
// try by hand had a fresh one and generated again. stripe/ai#402: an agent that was
// told of a timeout planned anew, with a new key, and charged twice.
func TestAnErrorThatLeavesDoubtNamesTheKeyToAskWithAgain(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		serve func(w http.ResponseWriter)
		named bool
	}{
		"NoAnswer":     {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, true},
		"Unavailable":  {func(w http.ResponseWriter) { advises(w, 503, "store-unavailable", "retry_same_key") }, true},
		"Conflict":     {func(w http.ResponseWriter) { advises(w, 409, "idempotency-key-conflict", "fix_request") }, false},
		"NotForUs":     {func(w http.ResponseWriter) { advises(w, 403, "forbidden", "fix_request") }, false},
		"BrokenAnswer": {func(w http.ResponseWriter) { w.Header().Set("Content-Length", "100"); _, _ = w.Write([]byte("{")) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { tt.serve(w) }))
			defer srv.Close()
			got := run(t.Context(), nil, "{}", "submit", "k", "--key", "made-on-the-spot", "--input", "-", "--server", srv.URL)
			if got.code == cli.ExitOK || strings.Contains(got.stderr, "The key was: made-on-the-spot") != tt.named {
				t.Errorf("got %+v; want the key named %t", got, tt.named)
			}
		})
	}
}

func TestSubmitAsksForAKeyAndMakesNone(t *testing.T) {
	t.Parallel()

	got := run(t.Context(), nil, "{}", "submit", "k", "--input", "-", "--server", "127.0.0.1:1")
	if got.code != cli.ExitUsage || !strings.Contains(got.stderr, "Make one key per intent, outside the loop that retries") {
		t.Errorf("got %+v; want a refusal that says how to make a key", got)
	}
}

// advises answers with a problem and its advice, and does not ask to be asked again.
func advises(w http.ResponseWriter, status int, code, advice string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(`{"code":"` + code + `","detail":"because","advice":"` + advice + `"}`))
}

func TestExitCodesFollowTheProblem(t *testing.T) {
	t.Parallel()

	for code, want := range map[string]int{
		"not-found": cli.ExitNotFound, "result-expired": cli.ExitNotFound,
		"idempotency-key-conflict": cli.ExitConflict, "idempotency-key-expired": cli.ExitConflict, "job-terminal": cli.ExitConflict,
		"attempt-unresolved": cli.ExitBlocked, "outcome-unknown": cli.ExitBlocked, "quarantined": cli.ExitBlocked,
		"failover-not-certified": cli.ExitNotCertified,
		"store-unavailable":      cli.ExitUnreachable, "draining": cli.ExitUnreachable,
		"invalid-job": cli.ExitUsage, "payload-not-canonical": cli.ExitUsage, "invalid-resolution": cli.ExitUsage,
		"unauthenticated": cli.ExitFailed, "forbidden": cli.ExitFailed, "quota-exceeded": cli.ExitFailed,
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()

			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { says(w, 409, code, false) }))
			defer srv.Close()
			got := run(t.Context(), nil, "", "jobs", "cancel", "job_1", "--server", srv.URL)
			if got.code != want || got.stdout != "" || !strings.Contains(got.stderr, code+": because") {
				t.Errorf("got %+v; want exit code %d", got, want)
			}
		})
	}
}

func TestAChangeIsNotRepeatedWithoutAKey(t *testing.T) {
	t.Parallel()

	for name, answer := range map[string]func(w http.ResponseWriter){
		"ToldToRetry":   func(w http.ResponseWriter) { says(w, 503, "store-unavailable", true) },
		"ConnectionCut": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var requests atomic.Int32
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				requests.Add(1)
				answer(w)
			}))
			defer srv.Close()
			got := run(t.Context(), nil, "", "jobs", "cancel", "job_1", "--server", srv.URL)
			if got.code != cli.ExitUnreachable || requests.Load() != 1 {
				t.Errorf("exit code %d after %d requests; want %d after 1", got.code, requests.Load(), cli.ExitUnreachable)
			}
		})
	}
}

func TestWatchGoesOnWhereItsConnectionBroke(t *testing.T) {
	t.Parallel()

	var seen []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Last-Event-ID"))
		event := func(revision, state string) string {
			return "event: job\nid: " + revision + "\ndata: " + strings.NewReplacer(`"revision":1`, `"revision":`+revision, "queued", state).Replace(jobJSON) + "\n\n"
		}
		if len(seen) == 1 {
			_, _ = w.Write([]byte(event("1", "queued") + ": alive\n\n" + event("2", "running")))
			return
		}
		_, _ = w.Write([]byte(event("2", "running") + event("3", "succeeded")))
	}))
	defer srv.Close()
	got := run(t.Context(), nil, "", "jobs", "watch", "job_1", "-o", "jsonl", "--server", srv.URL)
	if got.code != cli.ExitOK || strings.Count(got.stdout, "\n") != 3 {
		t.Errorf("got %+v; want three lines", got)
	}
	if diff := cmp.Diff([]string{"", "2"}, seen); diff != "" {
		t.Errorf("Last-Event-ID (-want +got):\n%s", diff)
	}
}

func TestWhatAServerSaysCannotMoveTheCursor(t *testing.T) {
	t.Parallel()

	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"items":[{"id":"job_\u001b[2J","kind":"a\nb","state":"queued"}]}`))
	}))
	defer srv.Close()
	got := run(t.Context(), nil, "", "jobs", "list", "--server", srv.URL)
	if got.code != cli.ExitOK || strings.ContainsRune(got.stdout, 0x1b) || strings.Count(got.stdout, "\n") != 2 {
		t.Errorf("got %+v, stdout %+q", got, got.stdout)
	}
}

func TestWhatIsNoServerIsUnreachable(t *testing.T) {
	t.Parallel()

	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	got := run(t.Context(), nil, "", "jobs", "get", "x", "--server", srv.URL)
	if got.code != cli.ExitUnreachable || !strings.Contains(got.stderr, "is no onejob server") {
		t.Errorf("got %+v", got)
	}
}

func TestAnInterruptedCommandExitsWith130(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithCancel(t.Context())
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}))
	defer srv.Close()
	if got := run(ctx, nil, "", "jobs", "get", "x", "--server", srv.URL); got.code != cli.ExitInterrupted || got.stderr != "onejob: interrupted\n" {
		t.Errorf("got %+v; want exit code %d, and that it was interrupted", got, cli.ExitInterrupted)
	}
}

func TestAnAddressThatIsTakenIsToldWithWhatHelps(t *testing.T) {
	t.Parallel()

	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	for _, command := range [][]string{{"dev"}, {"sim"}, {"webhooks", "listen"}} {
		got := run(t.Context(), nil, "", append(command, "--listen", address)...)
		if want := "onejob: cannot listen at " + address + ": another program listens there; end it, or choose another address with --listen\n"; got.code != cli.ExitFailed || got.stderr != want {
			t.Errorf("%v: got %+v; want %s", command, got, want)
		}
	}
}

func TestWhoMayNotIsToldToMakeAKeyWithARole(t *testing.T) {
	t.Parallel()

	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { says(w, 403, "forbidden", false) }))
	defer srv.Close()
	if got := run(t.Context(), nil, "", "webhooks", "endpoints", "--server", srv.URL); !strings.Contains(got.stderr, "keys create --owner NAME --role ROLE") {
		t.Errorf("got %+v", got)
	}
}

func TestAProblemNamesJobAndAttemptInThatOrder(t *testing.T) {
	t.Parallel()

	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"code":"attempt-unresolved","detail":"in doubt","job_id":"job_1","attempt_id":"att_1"}`)
	}))
	defer srv.Close()
	for range 20 {
		got := run(t.Context(), nil, "", "attempts", "start", "job_1", "--key", "k", "--server", srv.URL)
		if want := "onejob: attempt-unresolved: in doubt (job_1, att_1)\n"; got.code != cli.ExitBlocked || got.stderr != want {
			t.Fatalf("got %+v; want %s", got, want)
		}
	}
}

func TestTheDocumentThatIsPrintedIsTheCommitted(t *testing.T) {
	t.Parallel()

	committed, err := os.ReadFile("../../api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if got := run(t.Context(), nil, "", "openapi"); got.stdout != string(committed) {
		t.Error("onejob openapi prints another document than api/openapi.json")
	}
}

// terminal keeps what is written to one.
type terminal struct {
	lockedBuffer
	fd uintptr
}

func (w *terminal) Fd() uintptr { return w.fd }

func TestATableFitsItsLinesAtATerminalToo(t *testing.T) {
	t.Parallel()

	pty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("there is no terminal to be had: ", err)
	}
	defer pty.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"items":[{"id":"job_1","kind":"charge_card","state":"running","attempts":[],"created_at":"2026-03-01T00:00:00Z"}]}`)
	}))
	defer srv.Close()
	for setting, want := range map[string]string{
		"":  "\x1b[1mID     KIND         STATE    ATTEMPTS  CREATED\x1b[0m\njob_1  charge_card  running  0         2026-03-01T00:00:00Z\n",
		"1": "ID     KIND         STATE    ATTEMPTS  CREATED\njob_1  charge_card  running  0         2026-03-01T00:00:00Z\n",
	} {
		screen := &terminal{fd: pty.Fd()}
		code := cli.Main(t.Context(), cli.Env{
			Stdout: screen, Stderr: io.Discard, Getenv: func(name string) string { return map[string]string{"NO_COLOR": setting}[name] },
		}, []string{"onejob", "jobs", "list", "--server", srv.URL})
		if got := screen.String(); code != cli.ExitOK || got != want {
			t.Errorf("NO_COLOR=%s: %d\n got %q\nwant %q", setting, code, got, want)
		}
	}
}
