package main

import (
	"context"
	"os"
	"os/exec"
)

// startBifrost starts bench/bifrost, which is compiled once a run: a minute or two
// where it is for the first time.
func startBifrost(ctx context.Context, s *services, provider string) (*door, error) {
	return s.startBifrost(ctx, "-provider", provider)
}

func (s *services) startBifrost(ctx context.Context, args ...string) (*door, error) {
	program, err := s.buildIn(ctx, "bench/bifrost", "bifrost", ".")
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = os.Stderr
	at, err := announced(cmd)
	return &door{cmd: cmd, calls: calls{URL: at + "/v1/chat/completions", Model: model}}, err
}

func bifrostWith(args ...string) startPair {
	return func(ctx context.Context, s *services, primary, backup string) (*door, error) {
		return s.startBifrost(ctx, append(args, "-provider", primary, "-fallback", backup)...)
	}
}
