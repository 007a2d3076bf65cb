package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/onejob-dev/onejob/internal/loadgen"
)

// Defaults of the callers: in an open loop they are a bound.
const (
	closedCallers = 64
	openCallers   = 512
)

func benchCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "bench", Usage: "put a load on a server and say how long it took and whether anything was lost",
		Description: `It submits jobs: on the server of --server, where they are real and whatever the
kind's target does is done so many times, or with --dev on a throw-away server
with a fake provider.

  onejob bench --dev --for 10s --wait 30s
  onejob bench --dev --mode open --rate 500 --repeat-fraction 0.2
  onejob bench --kind echo --input prompt.json --callers 16 --for 1m

A closed loop (the default) has --callers who each wait for one answer before they
ask again. An open loop asks --rate times a second whatever the server does, and
counts latency from the moment at which each request was to be sent.

Each submission has a key of its own, under --key-prefix; {{key}} in the input is
replaced by it. With --repeat-fraction some repeat an earlier key with the same
input, and must be answered with the same job.

At the end every acknowledged job is asked for, and with --dev the fake provider's
ledger says how often each intent was executed. Ctrl-C ends the load early and
still reports. Exit codes: 0; 7 a job was lost, a repeat got another job, or an
intent was executed twice; 1 nothing was accepted; 8 the server is unreachable;
130 interrupted.`,
		Flags: append(benchFlags(), benchDevFlags()...),
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := noArguments(c); err != nil {
				return err
			}
			if c.Bool("dev") {
				return runBenchDev(ctx, env, c)
			}
			for _, flag := range []string{"provider-latency", "slots", "max-queued", "store"} {
				if c.IsSet(flag) {
					return usage(c, "--%s goes with --dev", flag)
				}
			}
			if c.String("kind") == "" {
				return usage(c, "--kind is required, or --dev for a throw-away server")
			}
			api, err := newAPIClient(env, c)
			if err != nil {
				return err
			}
			plan, err := planOf(env, c, api, c.String("kind"))
			if err != nil {
				return err
			}
			return bench{env: env, c: c, plan: plan}.run(ctx)
		},
	}
}

func benchFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "kind", Usage: "`KIND` of the jobs"},
		&cli.StringFlag{Name: "input", Aliases: []string{"i"}, Usage: "`FILE` with the input of each, one JSON value; - is stdin"},
		&cli.StringFlag{Name: "payload", Value: "1KiB", Usage: "`SIZE` of an input that is made up, as in 500, 2KiB or 1MB"},
		&cli.StringFlag{Name: "mode", Value: string(loadgen.Closed), Usage: "closed or open"},
		&cli.IntFlag{Name: "callers", Usage: "`N` at once (closed: 64; open: 512, at most)"},
		&cli.FloatFlag{Name: "rate", Usage: "submissions a second, in an open loop"},
		&cli.DurationFlag{Name: "for", Value: 10 * time.Second, Usage: "how long"},
		&cli.DurationFlag{Name: "wait", Usage: "wait so long for each result, and measure it"},
		&cli.StringFlag{Name: "key-prefix", Usage: "`PREFIX` of the idempotency keys (default: a new one each time)"},
		&cli.FloatFlag{Name: "repeat-fraction", Usage: "share of submissions that repeat an earlier key, 0 to 1"},
		serverFlag(), outputFlag(),
	}
}

// planOf reads the flags. What is wrong with them is one error of usage.
func planOf(env Env, c *cli.Command, api *apiClient, kind string) (loadgen.Plan, error) {
	p := loadgen.Plan{
		Server: api.server, Key: api.key, Kind: kind,
		Mode: loadgen.Mode(c.String("mode")), Callers: c.Int("callers"), Rate: c.Float("rate"),
		For: c.Duration("for"), Wait: c.Duration("wait"),
		KeyPrefix: c.String("key-prefix"), RepeatFraction: c.Float("repeat-fraction"),
	}
	if !c.IsSet("callers") {
		p.Callers = closedCallers
		if p.Mode == loadgen.Open {
			p.Callers = openCallers
		}
	}
	if p.KeyPrefix == "" {
		p.KeyPrefix = "bench-" + strings.ToLower(rand.Text()[:10]) + "-"
	}
	var err error
	if p.Input, err = benchInput(env, c); err != nil {
		return p, err
	}
	if err := p.Check(); err != nil {
		return p, usage(c, "%w", err)
	}
	p.Client = &http.Client{
		Transport: &http.Transport{
			Proxy:           http.ProxyFromEnvironment,
			DialContext:     (&net.Dialer{Timeout: dialTimeout}).DialContext,
			MaxConnsPerHost: p.Callers, MaxIdleConnsPerHost: p.Callers, IdleConnTimeout: time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return p, nil
}

func benchInput(env Env, c *cli.Command) (string, error) {
	if c.IsSet("input") {
		if c.IsSet("payload") {
			return "", usage(c, "--input and --payload exclude each other")
		}
		input, err := readInput(env, c.String("input"))
		return string(input), err
	}
	size, err := parseSize(c.String("payload"))
	if err != nil {
		return "", usage(c, "--payload: %w", err)
	}
	return loadgen.Payload(size), nil
}

// bench is one load that is put on a server and told about.
type bench struct {
	env  Env
	c    *cli.Command
	plan loadgen.Plan
	dev  *benchDev // nil: the server is not ours
}

// run puts the load on, checks what came of it, and reports, though it may have
// been interrupted.
func (b bench) run(ctx context.Context) error {
	load := loadgen.New(b.plan)
	bars := newBars(b.env)
	stop := bars.load(load, b.plan.For)
	err := load.Run(ctx)
	stop()
	var refusal *loadgen.Refusal
	if errors.As(err, &refusal) {
		bars.close()
		return problemOf(refusal.Status, refusal.Body)
	}
	r := reportOf(&b.plan, load)
	if ctx.Err() == nil {
		looked, stopLooking := bars.looking(load.Remembered())
		r.addSearch(load.Look(ctx, looked))
		stopLooking()
	}
	bars.close()
	if b.dev != nil {
		r.addLedger(b.dev.provider)
		r.MemoryMiB = b.dev.memory.figures()
	}
	if err := r.print(b.env, b.c); err != nil {
		return err
	}
	return r.exit(ctx)
}
