package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/onejob-dev/onejob/internal/pgtest"
)

// services are the servers that the contestants share: throw-away ones, with the
// same durability for all, fsync included.
type services struct {
	dir      string
	cluster  *pgtest.Cluster // nil where PostgreSQL is not installed
	admin    *pgx.Conn
	postgres int       // the process of its postmaster
	redis    *exec.Cmd // nil where Redis is not installed
	redisAt  string
	database int // of those made
	// lacking are parts that could not be had, by where they would lie. They are not
	// tried for again.
	lacking map[string]*unobtainable
}

// clusterSettings are the same for every contestant.
func clusterSettings() []string {
	return []string{"shared_buffers=512MB", "max_wal_size=8GB", "checkpoint_timeout=1h", "max_connections=400"}
}

func startServices(ctx context.Context) (_ *services, err error) {
	s := &services{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	if s.dir, err = os.MkdirTemp("", "onejob-bench-"); err != nil {
		return nil, err
	}
	if err = s.startPostgres(ctx); err != nil {
		return nil, err
	}
	return s, s.startRedis(ctx)
}

func (s *services) startPostgres(ctx context.Context) (err error) {
	s.cluster, err = pgtest.New(ctx)
	if errors.Is(err, pgtest.ErrNoPrograms) {
		return nil // its contestants are left out, and the table says so
	}
	if err != nil {
		return err
	}
	return s.runPostgres(ctx)
}

func (s *services) runPostgres(ctx context.Context, settings ...string) (err error) {
	if err := s.cluster.Start(ctx, append(clusterSettings(), settings...)...); err != nil {
		return err
	}
	if s.admin, err = pgx.Connect(ctx, s.cluster.URL()); err != nil {
		return err
	}
	s.postgres = parentOf(int(s.admin.PgConn().PID()))
	return nil
}

// restartPostgres stops it, and starts it with settings beside those of everybody.
// Whoever is connected loses his connection.
func (s *services) restartPostgres(ctx context.Context, settings ...string) error {
	if err := errors.Join(s.admin.Close(ctx), s.cluster.Stop()); err != nil {
		return err
	}
	return s.runPostgres(ctx, settings...)
}

// set changes settings of the running PostgreSQL, name = value, in place of those
// that were set before.
func (s *services) set(ctx context.Context, settings ...string) error {
	statements := []string{"ALTER SYSTEM RESET ALL"}
	for _, one := range settings {
		statements = append(statements, "ALTER SYSTEM SET "+one)
	}
	for _, sql := range append(statements, "SELECT pg_reload_conf()") {
		if _, err := s.admin.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	time.Sleep(200 * time.Millisecond) // until its processes have read them
	return nil
}

// startRedis starts Redis with an append-only file that is synchronised before
// every answer, if it is installed.
func (s *services) startRedis(ctx context.Context) error {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil // its contestants are left out, and the table says so
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.redisAt = l.Addr().String()
	if err := l.Close(); err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(s.redisAt)
	s.redis = exec.CommandContext(ctx, program, "--port", port, "--bind", "127.0.0.1", "--dir", s.dir,
		"--appendonly", "yes", "--appendfsync", "always", "--save", "")
	if err := s.redis.Start(); err != nil {
		return err
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.redisAt)
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("redis does not answer: %w", err)
		}
	}
}

// missing says what a contestant cannot do without here; empty for nothing.
func (s *services) missing(ctx context.Context, c contestant) (string, error) {
	switch {
	case c.on == onPostgres && s.cluster == nil:
		return "PostgreSQL is not installed", nil
	case c.on == onRedis && s.redis == nil:
		return "redis-server is not installed", nil
	}
	for _, program := range c.needs {
		if _, err := exec.LookPath(program); err != nil {
			return program + " is not installed", nil
		}
	}
	if c.alone {
		if why := cannotBeAlone(); why != "" {
			return why, nil
		}
	}
	if c.prepare == nil {
		return "", nil
	}
	err := c.prepare(ctx, s)
	var lacking *unobtainable
	if ctx.Err() == nil && errors.As(err, &lacking) {
		return lacking.why(), nil
	}
	return "", err
}

// newDatabase makes an empty database and returns its URL.
func (s *services) newDatabase(ctx context.Context) (string, error) {
	s.database++
	name := fmt.Sprintf("bench_%d", s.database)
	if _, err := s.admin.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		return "", err
	}
	return strings.Replace(s.cluster.URL(), "/postgres?", "/"+name+"?", 1), nil
}

// newPool makes an empty database and opens it.
func (s *services) newPool(ctx context.Context, conns int) (*pgxpool.Pool, error) {
	url, err := s.newDatabase(ctx)
	if err != nil {
		return nil, err
	}
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = int32(conns)
	return pgxpool.NewWithConfig(ctx, cfg)
}

// newFile returns a path for a database file of its own.
func (s *services) newFile() (string, error) {
	dir, err := os.MkdirTemp(s.dir, "sqlite-")
	return filepath.Join(dir, "bench.db"), err
}

func (s *services) stop() error {
	var errs []error
	if s.admin != nil {
		errs = append(errs, s.admin.Close(context.Background()))
	}
	if s.redis != nil && s.redis.Process != nil {
		errs = append(errs, s.redis.Process.Signal(syscall.SIGTERM))
		_ = s.redis.Wait() // it was told to end
	}
	if s.cluster != nil {
		errs = append(errs, s.cluster.Remove())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}
