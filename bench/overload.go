package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"time"
)

// overloaded has internal/load offer a server three times what its provider can do.
func overloaded(g ground, length time.Duration) func(context.Context, *services, time.Duration) (sample, error) {
	return func(ctx context.Context, s *services, _ time.Duration) (sample, error) {
		generator, err := s.build(ctx, "load", "./internal/load")
		if err != nil {
			return nil, err
		}
		program, err := s.build(ctx, "onejob", "./cmd/onejob")
		if err != nil {
			return nil, err
		}
		store := "" // a throw-away file
		if g == onPostgres {
			if store, err = s.newDatabase(ctx); err != nil {
				return nil, err
			}
		}
		var complaint bytes.Buffer
		cmd := exec.CommandContext(ctx, generator, "-json", "-program", program, "-times", "3", "-for", length.String(), "-store", store)
		cmd.Stderr = &complaint
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("overload: %w\n%s%s", err, out, complaint.Bytes())
		}
		var told struct {
			Accepted float64   `json:"accepted_per_s"`
			P99      float64   `json:"accepted_p99_ms"`
			Unwise   int       `json:"refused_without_retry_after"`
			Memory   []float64 `json:"memory_mib_thirds"`
			Lost     int       `json:"lost"`
			Twice    int       `json:"twice"`
		}
		if err := json.Unmarshal(out, &told); err != nil {
			return nil, fmt.Errorf("overload: %w\n%s", err, out)
		}
		if len(told.Memory) != 3 {
			return nil, fmt.Errorf("overload: %s is too short to see whether memory grows", length)
		}
		return sample{
			residentEarly: told.Memory[0], resident: told.Memory[2],
			acceptedRate: told.Accepted, p99: told.P99, unadvised: float64(told.Unwise), lostOrTwice: float64(told.Lost + told.Twice),
		}, nil
	}
}
