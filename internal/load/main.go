// Command load offers a server several times what its provider can do, open loop,
// and says what became of it: how much was accepted and refused, how long the
// accepted waited for their acknowledgement, how the server's memory moved, and
// whether anything was lost or done twice.
//
//	go run ./internal/load -for 10m -times 3 [-store postgres://…]
//
// It starts the server and the provider itself, on loopback.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// plan is what is offered to what.
type plan struct {
	store   string
	program string // onejob; empty: built from here
	length  time.Duration
	times   float64 // of the capacity
	slots   int
	latency time.Duration // of the provider
	queued  int           // limits.max_queued
	bytes   int           // of each input, about
	json    bool          // for programs, instead of text
}

// capacity is how many jobs a second the slots can do.
func (p plan) capacity() float64 { return float64(p.slots) / p.latency.Seconds() }

func run(ctx context.Context, args []string) error {
	var p plan
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	flags.StringVar(&p.store, "store", "", "an empty store; empty: a throw-away SQLite file")
	flags.StringVar(&p.program, "program", "", "a onejob that is built already; empty: build it")
	flags.DurationVar(&p.length, "for", time.Minute, "how long")
	flags.Float64Var(&p.times, "times", 3, "of the provider's capacity")
	flags.IntVar(&p.slots, "slots", 16, "attempts at once")
	flags.DurationVar(&p.latency, "latency", 50*time.Millisecond, "of the provider")
	flags.IntVar(&p.queued, "queued", 2000, "jobs that may wait")
	flags.IntVar(&p.bytes, "bytes", 1024, "of each input, about")
	flags.BoolVar(&p.json, "json", false, "say it in JSON")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "onejob-load-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if p.store == "" {
		p.store = "sqlite:" + filepath.Join(dir, "onejob.db")
	}
	if p.program == "" {
		if p.program, err = build(ctx, dir); err != nil {
			return err
		}
	}
	s, err := startSite(ctx, dir, p)
	if err != nil {
		return err
	}
	defer s.close()
	o := offer(ctx, s, p)
	lost, err := s.audit(ctx, o)
	r := o.result(s, p, lost)
	if p.json {
		err = errors.Join(err, r.encode(os.Stdout))
	} else {
		r.print(os.Stdout, p)
	}
	if r.Lost > 0 || r.Twice > 0 {
		err = errors.Join(err, errors.New("something was lost or done twice"))
	}
	return err
}

func build(ctx context.Context, dir string) (program string, err error) {
	program = filepath.Join(dir, "onejob")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/onejob").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return program, nil
}
