package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// build compiles a program of onejob's once a run, and returns where it is.
func (s *services) build(ctx context.Context, name, pkg string) (string, error) {
	return s.buildIn(ctx, ".", name, pkg)
}

// buildIn is build for a module in a folder of onejob's.
func (s *services) buildIn(ctx context.Context, folder, name, pkg string) (string, error) {
	program := filepath.Join(s.dir, name)
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if lacking := s.lacking[program]; lacking != nil {
		return "", lacking
	}
	root, err := moduleDir(ctx, "github.com/onejob-dev/onejob")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, pkg)
	cmd.Dir, cmd.Env = filepath.Join(root, folder), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", s.lacks(program, &unobtainable{what: name + " does not build", out: string(out), err: err})
	}
	return program, nil
}

// lacks notes that something cannot be had.
func (s *services) lacks(path string, u *unobtainable) error {
	if s.lacking == nil {
		s.lacking = map[string]*unobtainable{}
	}
	s.lacking[path] = u
	return u
}

// unobtainable says that the parts of something cannot be had here: they are not
// fetched, or do not compile.
type unobtainable struct {
	what string // a clause
	out  string // of the command that was to get them
	err  error
}

func (u *unobtainable) Error() string { return fmt.Sprintf("%s: %v\n%s", u.what, u.err, u.out) }

func (u *unobtainable) Unwrap() error { return u.err }

// why is a line of it.
func (u *unobtainable) why() string {
	for line := range strings.Lines(u.out) {
		line = strings.TrimSpace(line)
		if line != "" && !slices.ContainsFunc(smallTalk, func(start string) bool { return strings.HasPrefix(line, start) }) {
			return u.what + ": " + line
		}
	}
	return fmt.Sprintf("%s: %v", u.what, u.err)
}

// smallTalk begins lines of go's and npm's that tell no reason.
var smallTalk = []string{"#", "go: downloading ", "npm warn ", "npm notice "}

// moduleDir is where the source of a module lies. The benchmark runs from source.
func moduleDir(ctx context.Context, module string) (string, error) {
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("find module %s, from the folder of the benchmark: %w", module, err)
	}
	return strings.TrimSpace(string(dir)), nil
}

// moduleFile reads a file that a module expects its users to bring.
func moduleFile(ctx context.Context, module, name string) (string, error) {
	dir, err := moduleDir(ctx, module)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(dir, name))
	return string(text), err
}
