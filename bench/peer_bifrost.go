package main

import (
	"context"
	"os"
	"os/exec"
)

// bifrost is the core of the gateway of that name in bench/bifrost, which is compiled
// once a run: a minute or two where it is for the first time.
func bifrost(c contestant) contestant {
	c.prepare = func(ctx context.Context, s *services) error {
		_, err := s.buildBifrost(ctx)
		return err
	}
	return c
}

func (s *services) buildBifrost(ctx context.Context) (string, error) {
	return s.buildIn(ctx, "bench/bifrost", "bifrost", ".")
}

func startBifrost(ctx context.Context, s *services, provider string) (*door, error) {
	return s.startBifrost(ctx, "-provider", provider)
}

func (s *services) startBifrost(ctx context.Context, args ...string) (*door, error) {
	program, err := s.buildBifrost(ctx)
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
