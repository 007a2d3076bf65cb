package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// site is a store that `onejob serve` can be started on, any number of times.
type site struct {
	program string
	dir     string // holds the configuration
	store   string // its URL
	key     string // a credential
}

// newSite makes an empty store on a ground. The configuration names kinds and
// targets.
func (s *services) newSite(ctx context.Context, g ground, config string) (*site, error) {
	program, err := s.build(ctx, "onejob", "./cmd/onejob")
	if err != nil {
		return nil, err
	}
	at := &site{program: program}
	if at.dir, err = os.MkdirTemp(s.dir, "site-"); err != nil {
		return nil, err
	}
	config += "secret: a-secret-for-this-benchmark-only\n"
	if err := os.WriteFile(at.config(), []byte(config), 0o600); err != nil {
		return nil, err
	}
	at.store = "sqlite:" + filepath.Join(at.dir, "onejob.db")
	if g == onPostgres {
		if at.store, err = s.newDatabase(ctx); err != nil {
			return nil, err
		}
		if _, err := at.command(ctx, "migrate", "up", "--store", at.store); err != nil {
			return nil, err
		}
	}
	at.key, err = at.command(ctx, "keys", "create", "--owner", "bench", "--store", at.store)
	return at, err
}

func (at *site) config() string { return filepath.Join(at.dir, "onejob.yaml") }

// command runs the program to its end and returns what it printed.
func (at *site) command(ctx context.Context, args ...string) (string, error) {
	var complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, at.program, args...)
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("onejob %s: %w\n%s", args[0], err, complaint.Bytes())
	}
	return strings.TrimSpace(string(out)), err
}

// node is one process of `onejob serve`.
type node struct {
	url string
	cmd *exec.Cmd
}

// serve starts a node and returns once it is ready.
func (at *site) serve(ctx context.Context) (*node, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		return nil, err
	}
	n := &node{url: "http://" + address}
	n.cmd = exec.CommandContext(ctx, at.program, "serve", "--config", at.config(), "--store", at.store, "--listen", address, "--log-level", "error")
	n.cmd.Dir, n.cmd.Stderr = at.dir, os.Stderr
	if err := n.cmd.Start(); err != nil {
		return nil, err
	}
	if err := untilReady(ctx, n.url+"/readyz"); err != nil {
		stop(n.cmd)
		return nil, err
	}
	return n, nil
}

// untilReady waits until a server answers 200.
func untilReady(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready after 20 s", url)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (n *node) close() { stop(n.cmd) }

// memory is the node's resident memory in MiB.
func (n *node) memory() (float64, error) { return residentOf(n.cmd.Process.Pid) }

// residentOf is the resident memory of a process in MiB.
func residentOf(pid int) (float64, error) {
	path := fmt.Sprintf("/proc/%d/status", pid)
	status, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(status) {
		if kb, ok := bytes.CutPrefix(line, []byte("VmRSS:")); ok {
			v, err := strconv.ParseFloat(strings.Fields(string(kb))[0], 64)
			return v / 1024, err
		}
	}
	return 0, fmt.Errorf("%s does not tell VmRSS", path)
}

// stop asks a child to end and waits for it.
func stop(cmd *exec.Cmd) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	killed := time.AfterFunc(90*time.Second, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait() // it was told to end
	killed.Stop()
}
