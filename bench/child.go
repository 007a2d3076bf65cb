package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
)

// Roles of this program as a child of itself, so that what each costs is counted
// apart.
const (
	roleEcho = "child-echo" // a server that decodes and answers
	roleLoad = "child-load" // a generator of load
)

// roleOf is what the program does as a child; nil when it is not one.
func roleOf(argument string) func(context.Context, []string) error {
	switch argument {
	case roleEcho:
		return runEcho
	case roleLoad:
		return runLoad
	}
	return nil
}

// child is this program once more.
func child(ctx context.Context, role string, args ...string) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, append([]string{role}, args...)...)
	cmd.Stderr = os.Stderr
	return cmd, nil
}

// apart generates load in a process of its own.
func (l load) apart(ctx context.Context) (loaded, error) {
	settings, err := json.Marshal(l)
	if err != nil {
		return loaded{}, err
	}
	cmd, err := child(ctx, roleLoad)
	if err != nil {
		return loaded{}, err
	}
	cmd.Stdin = bytes.NewReader(settings)
	out, err := cmd.Output()
	if err != nil {
		return loaded{}, fmt.Errorf("generate load: %w", err)
	}
	var done loaded
	return done, json.Unmarshal(out, &done)
}

func runLoad(ctx context.Context, _ []string) error {
	var l load
	if err := json.NewDecoder(os.Stdin).Decode(&l); err != nil {
		return err
	}
	done, err := l.run(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(done)
}
