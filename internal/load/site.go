package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

// site is a provider and a server before it.
type site struct {
	url      string
	key      string
	provider *sim.Server
	server   *exec.Cmd
	client   *http.Client
}

func startSite(ctx context.Context, dir string, p plan) (_ *site, err error) {
	s := &site{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 512, MaxConnsPerHost: 2048}}}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	s.provider, err = sim.Start("", sim.Options{Latency: p.latency, IntentFunc: sim.IntentMember("order"), MaxEntries: 1, MaxIntents: 10_000_000})
	if err != nil {
		return nil, err
	}
	config := fmt.Sprintf(`
targets: {acme: {provider: http, request: {url: "%s/v1/charges"}, idempotency_header: Idempotency-Key}}
kinds: {charge: {effect: external, targets: [acme], timeout: 30s}}
workers: {slots: %d}
limits: {max_queued: %d, max_requests: 256}
secret: a-secret-for-this-load-only
`, s.provider.URL(), p.slots, p.queued)
	if err := os.WriteFile(filepath.Join(dir, "onejob.yaml"), []byte(config), 0o600); err != nil {
		return nil, err
	}
	if strings.HasPrefix(p.store, "postgres") {
		if out, err := exec.CommandContext(ctx, p.program, "migrate", "up", "--store", p.store).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("migrate: %w\n%s", err, out)
		}
	}
	key, err := exec.CommandContext(ctx, p.program, "keys", "create", "--owner", "load", "--store", p.store).Output()
	if err != nil {
		return nil, fmt.Errorf("make a credential: %w", err)
	}
	s.key = strings.TrimSpace(string(key))
	return s, s.serve(ctx, dir, p)
}

func (s *site) serve(ctx context.Context, dir string, p plan) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	addr := l.Addr().String()
	_ = l.Close()
	s.url = "http://" + addr
	s.server = exec.Command(p.program, "serve", "--config", filepath.Join(dir, "onejob.yaml"), "--store", p.store, "--listen", addr)
	s.server.Dir, s.server.Stderr = dir, io.Discard
	if err := s.server.Start(); err != nil {
		return err
	}
	for range 200 {
		resp, err := s.client.Get(s.url + "/readyz")
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errors.New("the server is not ready after 10 s")
}

func (s *site) close() {
	if s.server != nil && s.server.Process != nil {
		_ = s.server.Process.Signal(syscall.SIGTERM)
		_ = s.server.Wait()
	}
	if s.provider != nil {
		_ = s.provider.Close()
	}
}

// answer is what a submission was answered with.
type answer struct {
	status int
	id     string // of the job, once accepted
	advice string // Retry-After
}

// send submits one order.
func (s *site) send(ctx context.Context, order string, pad string) (answer, error) {
	body := fmt.Sprintf(`{"kind":"charge","input":{"order":%q,"pad":%q}}`, order, pad)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/jobs", strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.GetBody = nil
	req.Header.Set("Authorization", "Bearer "+s.key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", order)
	return s.do(req)
}

func (s *site) do(req *http.Request) (answer, error) {
	resp, err := s.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	var job struct {
		ID    string `json:"id"`
		State string `json:"state"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&job); err != nil {
		return answer{}, err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	return answer{resp.StatusCode, job.ID, resp.Header.Get("Retry-After")}, nil
}

// memory is the server's resident memory in MiB; zero where it cannot be read.
func (s *site) memory() float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.server.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(status) {
		if kb, ok := bytes.CutPrefix(line, []byte("VmRSS:")); ok {
			n, _ := strconv.ParseFloat(strings.Fields(string(kb))[0], 64)
			return n / 1024
		}
	}
	return 0
}

// audit sends every accepted order again, sixteen at a time, and counts those that
// are gone.
func (s *site) audit(ctx context.Context, o *offered) (lost int64, err error) {
	orders := make(chan string)
	var gone atomic.Int64
	var failed atomic.Pointer[error]
	var askers sync.WaitGroup
	for range 16 {
		askers.Go(func() {
			for order := range orders {
				again, err := s.again(ctx, order, o.pad)
				switch {
				case err != nil:
					failed.Store(&err)
				case again != o.accepted[order]:
					gone.Add(1)
				}
			}
		})
	}
	for order := range o.accepted {
		orders <- order
	}
	close(orders)
	askers.Wait()
	if e := failed.Load(); e != nil {
		err = *e
	}
	return gone.Load(), err
}

// again sends an order until it is answered with a job.
func (s *site) again(ctx context.Context, order, pad string) (id string, err error) {
	for ctx.Err() == nil {
		got, err := s.send(ctx, order, pad)
		if err != nil || got.status != http.StatusTooManyRequests {
			return got.id, err
		}
	}
	return "", ctx.Err()
}
