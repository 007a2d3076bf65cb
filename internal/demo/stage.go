package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

// stage is where an act is played: a folder, two fake providers and a server.
type stage struct {
	*tale
	opts     Options
	dir      string
	primary  *sim.Server // target acme
	fallback *sim.Server // target backup
	key      string
	told     string // the job's state that was last told
	webhooks string // the YAML of webhooks, if an act has some

	listen string
	server *exec.Cmd
}

// patience bounds whatever an act waits for.
const patience = 20 * time.Second

func newStage(t *tale, opts Options) (_ *stage, err error) {
	s := &stage{tale: t, opts: opts}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.dir, err = os.MkdirTemp("", "onejob-demo-"); err != nil {
		return nil, err
	}
	if s.primary, err = startProvider(); err != nil {
		return nil, err
	}
	if s.fallback, err = startProvider(); err != nil {
		return nil, err
	}
	if s.opts.Store == "" {
		s.opts.Store = "sqlite:" + filepath.Join(s.dir, "onejob.db")
	}
	s.listen, err = freePort()
	return s, err
}

// costMicros is what a fake provider says that one execution cost.
const costMicros = 1500

// startProvider starts a fake provider that counts executions by the order that
// a request is about.
func startProvider() (*sim.Server, error) {
	return sim.Start("127.0.0.1:0", sim.Options{IntentFunc: sim.IntentMember("order"), CostMicros: costMicros})
}

func (s *stage) close() {
	if s.server != nil {
		_ = s.server.Process.Kill()
		_ = s.server.Wait()
	}
	for _, p := range []*sim.Server{s.primary, s.fallback} {
		if p != nil {
			_ = p.Close()
		}
	}
	_ = os.RemoveAll(s.dir)
}

// freePort returns a loopback address that nobody listens on.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}

// open writes the configuration, makes a credential and starts the server. kind
// is the YAML of the kind charge, target the further YAML of the target acme.
func (s *stage) open(ctx context.Context, kind, target string) error {
	config := fmt.Sprintf(`
targets:
  acme:
    provider: http
    request: {url: "%s/v1/charges"}
    idempotency_header: Idempotency-Key
%s
  backup:
    provider: http
    request: {url: "%s/v1/charges"}
    idempotency_header: Idempotency-Key
  pool: {provider: worker, max_execution: 200ms}
kinds:
  charge: %s
workers: {slots: 4, lease: 1s, drain: 5s}
secret: a-secret-for-this-demo-only
%s
`, s.primary.URL(), target, s.fallback.URL(), kind, s.webhooks)
	return s.openWith(ctx, config)
}

// openWith is open with a configuration of the act's own.
func (s *stage) openWith(ctx context.Context, config string) error {
	if err := os.WriteFile(s.path("onejob.yaml"), []byte(config), 0o600); err != nil {
		return err
	}
	if _, err := s.command(ctx, "migrate", "up", "--store", s.opts.Store).Output(); err != nil {
		return fmt.Errorf("could not migrate the store: %w", explain(err))
	}
	key, err := s.command(ctx, "keys", "create", "--owner", "demo", "--role", "operator", "--store", s.opts.Store).Output()
	if err != nil {
		return fmt.Errorf("could not make a credential: %w", explain(err))
	}
	s.key = strings.TrimSpace(string(key))
	return s.serve(ctx)
}

func (s *stage) path(name string) string { return filepath.Join(s.dir, name) }

func (s *stage) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.opts.Program, args...)
	cmd.Dir = s.dir
	return cmd
}

// explain adds what a program said on its standard error.
func explain(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}

// serve starts the server and waits until it is ready.
func (s *stage) serve(ctx context.Context) error {
	s.server = s.command(ctx, "serve", "--config", "onejob.yaml", "--store", s.opts.Store, "--listen", s.listen, "--migrate")
	stderr, err := s.server.StderrPipe()
	if err != nil {
		return err
	}
	if err := s.server.Start(); err != nil {
		return err
	}
	log := &tail{}
	go log.follow(stderr)
	err = s.until(ctx, "the server is ready", func() (bool, error) {
		resp, err := http.Get("http://" + s.listen + "/readyz")
		if err != nil {
			return false, nil
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK, nil
	})
	if err != nil {
		return fmt.Errorf("%w; it said: %s", err, log)
	}
	return nil
}

// kill ends the server as kill -9 does: it cannot say goodbye.
func (s *stage) kill() error {
	if err := s.server.Process.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	_ = s.server.Wait() // it reports the signal
	s.server = nil
	return nil
}

// until polls until done says so, or patience ends.
func (s *stage) until(ctx context.Context, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waited %s in vain until %s", patience, what)
		}
	}
}

// tail keeps the last lines of a log.
type tail struct{ lines []string }

func (t *tail) follow(r io.Reader) {
	const most = 5
	for lines := bufio.NewScanner(r); lines.Scan(); {
		t.lines = append(t.lines, lines.Text())
		t.lines = t.lines[max(0, len(t.lines)-most):]
	}
}

func (t *tail) String() string { return strings.Join(t.lines, " | ") }

func splitWords(s string) []string { return strings.Fields(s) }
