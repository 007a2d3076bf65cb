// Command mutate takes the guards away one by one, in a copy of the tree, and
// expects a named test to notice each. A guard whose loss nobody notices is either
// not needed or not tested.
//
//	go run ./internal/mutate            # all
//	go run ./internal/mutate slot       # those whose name contains "slot"
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, only []string) int {
	dir, err := os.MkdirTemp("", "onejob-mutate-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		err = copyTree(ctx, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	missed := 0
	for _, m := range mutations {
		if len(only) > 0 && !strings.Contains(m.name, only[0]) {
			continue
		}
		noticed, err := m.try(ctx, dir)
		switch {
		case ctx.Err() != nil:
			return 130
		case err != nil:
			missed++
			fmt.Printf("BROKEN  %-28s %v\n", m.name, err)
		case noticed == "":
			missed++
			fmt.Printf("MISSED  %-28s no test failed\n", m.name)
		default:
			fmt.Printf("noticed %-28s %s\n", m.name, noticed)
		}
	}
	if missed > 0 {
		return 1
	}
	return 0
}

// copyTree copies what git tracks.
func copyTree(ctx context.Context, dir string) error {
	archive := exec.CommandContext(ctx, "sh", "-c", `git ls-files -z | tar --null -T - -cf - | tar -xf - -C "$0"`, dir)
	archive.Stderr = os.Stderr
	return archive.Run()
}

// mutation is one guard taken away.
type mutation struct {
	name  string
	edits []edit
	// tests are arguments of "go test" that must fail now.
	tests []string
}

// edit replaces text that stands exactly once in a file.
type edit struct{ file, old, new string }

var failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// try returns the test that noticed, deepest first.
func (m mutation) try(ctx context.Context, dir string) (noticed string, err error) {
	for _, e := range m.edits {
		restore, err := e.apply(dir)
		if err != nil {
			return "", err
		}
		defer func() { _ = restore() }()
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-short", "-count=1"}, m.tests...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err == nil {
		return "", nil
	}
	failed := failedTest.FindAllStringSubmatch(string(out), -1)
	if len(failed) == 0 {
		return "", fmt.Errorf("the tests failed without a named test: %w\n%s", err, out)
	}
	for _, f := range failed {
		if len(f[1]) > len(noticed) {
			noticed = f[1]
		}
	}
	return fmt.Sprintf("%s (%d tests failed)", noticed, len(failed)), nil
}

func (e edit) apply(dir string) (restore func() error, err error) {
	path := filepath.Join(dir, e.file)
	before, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if n := strings.Count(string(before), e.old); n != 1 {
		return nil, errors.New(e.file + ": " + fmt.Sprintf("%q stands there %d times, not once", e.old, n))
	}
	after := strings.Replace(string(before), e.old, e.new, 1)
	return func() error { return os.WriteFile(path, before, 0o600) }, os.WriteFile(path, []byte(after), 0o600)
}
