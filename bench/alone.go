package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// A contestant that listens on every address of the machine gets a machine of its own:
// its whole turn, load and provider included, is done by a child in a network namespace
// that has nothing but a loopback. So it is reached by nobody, and measured as the others.

// alone is what such a child is told.
type alone struct {
	Contest, Contestant string
	Dir                 string // of the services
	For                 time.Duration
}

// unshared is a command in a new network namespace. Whoever is not root becomes it there.
func unshared(ctx context.Context, program string, args ...string) *exec.Cmd {
	options := []string{"--net"}
	if os.Geteuid() != 0 {
		options = append(options, "--map-root-user")
	}
	return exec.CommandContext(ctx, "unshare", slices.Concat(options, []string{"--", program}, args)...)
}

// cannotBeAlone says why there can be no namespace here; empty: there can.
func cannotBeAlone() string {
	for _, program := range []string{"unshare", "ip"} {
		if _, err := exec.LookPath(program); err != nil {
			return program + " is not installed"
		}
	}
	if unshared(context.Background(), "ip", "link", "set", "lo", "up").Run() != nil {
		return "no network namespace can be made here"
	}
	return ""
}

// turnAlone does a contestant's turn in a namespace of its own.
func (s *services) turnAlone(ctx context.Context, contest string, c contestant, d time.Duration) (f sample, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := unshared(ctx, program, roleAlone)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it has children of its own
	cmd.WaitDelay = 10 * time.Second
	return f, answer(cmd, alone{contest, c.name, s.dir, d}, &f)
}

// run is the child's side.
func (a alone) run(ctx context.Context) (sample, error) {
	if out, err := exec.CommandContext(ctx, "ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	for _, contest := range allContests() {
		for _, c := range contest.entries(settings{}) {
			if contest.name == a.Contest && c.name == a.Contestant {
				return c.turn(ctx, &services{dir: a.Dir}, a.For)
			}
		}
	}
	return nil, errors.New("no contestant " + strconv.Quote(a.Contestant))
}
