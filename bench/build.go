package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	root, err := moduleDir(ctx, "github.com/onejob-dev/onejob")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, pkg)
	cmd.Dir, cmd.Env = filepath.Join(root, folder), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return program, nil
}

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
