package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os/exec"
)

// runEcho serves the least that POST /v1/jobs could be: it decodes the envelope,
// answers 202, and keeps nothing. It prints its address.
func runEcho(ctx context.Context, _ []string) error { return announce(ctx, http.HandlerFunc(echo)) }

func echo(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Kind  string          `json:"kind"`
		Input json.RawMessage `json:"input"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_ = json.NewEncoder(w).Encode(map[string]any{"id": r.Header.Get("Idempotency-Key"), "kind": body.Kind, "state": "queued"})
}

// startEcho starts the echo server in a process of its own.
func startEcho(ctx context.Context) (*exec.Cmd, string, error) {
	cmd, err := child(ctx, roleEcho)
	if err != nil {
		return nil, "", err
	}
	url, err := announced(cmd)
	return cmd, url, err
}
