package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"time"
)

// runEcho serves the least that POST /v1/jobs could be: it decodes the envelope,
// answers 202, and keeps nothing. It prints its address.
func runEcho(ctx context.Context, _ []string) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + l.Addr().String())
	server := &http.Server{Handler: http.HandlerFunc(echo), ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}

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
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop(cmd)
		return nil, "", fmt.Errorf("the echo server does not say where it is: %w", err)
	}
	return cmd, strings.TrimSpace(url), nil
}
