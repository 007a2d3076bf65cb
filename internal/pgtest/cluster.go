package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrNoPrograms says that initdb and postgres are not installed.
var ErrNoPrograms = errors.New("initdb and postgres are not installed")

const (
	clusterUser  = "onejob"
	startTimeout = time.Minute
	stopTimeout  = 30 * time.Second
)

// Cluster is a PostgreSQL server with a directory of its own. A stopped or
// killed one can be started again and has the same URL.
type Cluster struct {
	bin    string // the folder of its programs
	dir    string
	port   int
	owner  *owner // who it runs as; nil: whoever runs the test
	server *exec.Cmd
	exited chan struct{} // closed once server has ended
}

// New makes a cluster and does not start it. It returns [ErrNoPrograms] when
// there is nothing to make one with.
func New(ctx context.Context) (*Cluster, error) {
	bin, err := findPrograms()
	if err != nil {
		return nil, err
	}
	c := &Cluster{bin: bin}
	if c.owner, err = findOwner(); err != nil {
		return nil, err
	}
	if c.dir, err = os.MkdirTemp("", "onejob-pgtest-"); err != nil {
		return nil, err
	}
	if err := c.initialise(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(c.dir))
	}
	return c, nil
}

// findPrograms returns the folder of initdb and postgres: that on PATH, or the
// newest of the distribution's.
func findPrograms() (string, error) {
	if initdb, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(initdb), nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", ErrNoPrograms
	}
	newest := slices.MaxFunc(found, func(a, b string) int { return versionOf(a) - versionOf(b) })
	return filepath.Dir(newest), nil
}

func versionOf(initdb string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(initdb)))) // 0 sorts first
	return n
}

func (c *Cluster) initialise(ctx context.Context) error {
	if c.owner != nil {
		if err := os.Chown(c.dir, c.owner.uid, c.owner.gid); err != nil {
			return err
		}
	}
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	c.port = port
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "initdb"), "-D", c.data(), "-U", clusterUser,
		"--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
	cmd.Dir = c.dir
	cmd.SysProcAttr = c.owner.attributes()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return nil
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

func freePort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// URL returns the URL of the cluster's database, whether or not it runs.
func (c *Cluster) URL() string {
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/postgres?sslmode=disable", clusterUser, c.port)
}

// Start starts the server and returns once it answers. Settings are name=value
// and win over the cluster's own.
func (c *Cluster) Start(ctx context.Context, settings ...string) error {
	args := []string{"-D", c.data(), "-p", strconv.Itoa(c.port)}
	for _, s := range append([]string{
		"listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=on",
		"shared_buffers=64MB", "max_connections=300", "logging_collector=off",
	}, settings...) {
		args = append(args, "-c", s)
	}
	var log bytes.Buffer
	cmd := exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(c.bin, "postgres"), args...)
	cmd.Dir = c.dir
	cmd.SysProcAttr = c.owner.attributes()
	cmd.Stderr = &log
	started, exited := make(chan error, 1), make(chan struct{})
	go supervise(cmd, started, exited)
	if err := <-started; err != nil {
		return err
	}
	c.server, c.exited = cmd, exited
	if err := c.waitReady(ctx); err != nil {
		c.Kill()
		return fmt.Errorf("%w\n%s", err, log.Bytes())
	}
	return nil
}

func (c *Cluster) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, c.URL())
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-c.exited:
			return errors.New("postgres ended")
		case <-ctx.Done():
			return fmt.Errorf("postgres does not answer: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Stop ends the server in good order, its connections with it.
func (c *Cluster) Stop() error {
	if c.server == nil {
		return nil
	}
	_ = c.server.Process.Signal(syscall.SIGINT) // the fast shutdown
	select {
	case <-c.exited:
		c.server = nil
		return nil
	case <-time.After(stopTimeout):
		c.Kill()
		return errors.New("postgres did not stop and was killed")
	}
}

// Kill ends the server and all its processes at once, as a crash of it would.
func (c *Cluster) Kill() {
	if c.server == nil {
		return
	}
	killGroup(c.server)
	<-c.exited
	c.server = nil
}

// Remove stops the server and removes its directory.
func (c *Cluster) Remove() error {
	return errors.Join(c.Stop(), os.RemoveAll(c.dir))
}
