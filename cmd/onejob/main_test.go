package main

import (
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"onejob": main})
}

// TestScripts acts out testdata/*.txtar, each in a folder of its own with three
// free ports: ONEJOB_SERVER is where a server would be, SIM a fake provider, RECEIVER a
// receiver of webhooks.
func TestScripts(t *testing.T) {
	t.Parallel()

	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			listen, provider, receiver := freePort(t), freePort(t), freePort(t)
			env.Setenv("ONEJOB_LISTEN", listen)
			env.Setenv("ONEJOB_SERVER", "http://"+listen)
			env.Setenv("SIM", provider)
			env.Setenv("RECEIVER", receiver)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits, "fill": fill, "keep": keep, "ready": ready, "awaits": awaits,
		},
	})
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// exits CODE PROGRAM ARG… runs a program that must end with the code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		got = ended.ExitCode()
	default:
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%s exits with %d; want %d", strings.Join(args[1:], " "), got, want)
	}
}

// fill FILE puts the addresses of the fake provider and of the receiver where the
// file says SIM and RECEIVER.
func fill(ts *testscript.TestScript, _ bool, args []string) {
	text := strings.NewReplacer("SIM", ts.Getenv("SIM"), "RECEIVER", ts.Getenv("RECEIVER")).Replace(ts.ReadFile(args[0]))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

// keep NAME sets a variable to the first word of the last standard output.
func keep(ts *testscript.TestScript, _ bool, args []string) {
	words := strings.Fields(ts.ReadFile("stdout"))
	if len(words) == 0 {
		ts.Fatalf("nothing was printed")
	}
	ts.Setenv(args[0], words[0])
}

// awaits PATTERN PROGRAM ARG… runs a program until what it prints matches.
func awaits(ts *testscript.TestScript, _ bool, args []string) {
	const patience = 20 * time.Second
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for start := time.Now(); time.Since(start) < patience; time.Sleep(20 * time.Millisecond) {
		if ts.Exec(args[1], args[2:]...) == nil && pattern.MatchString(ts.ReadFile("stdout")) {
			return
		}
	}
	ts.Fatalf("%s never prints %q", strings.Join(args[1:], " "), args[0])
}

// ready URL waits until something answers there with 200.
func ready(ts *testscript.TestScript, _ bool, args []string) {
	const patience = 20 * time.Second
	for start := time.Now(); time.Since(start) < patience; time.Sleep(10 * time.Millisecond) {
		res, err := http.Get(args[0])
		if err != nil {
			continue
		}
		_ = res.Body.Close()
		if res.StatusCode == http.StatusOK {
			return
		}
	}
	ts.Fatalf("%s is not ready", args[0])
}
