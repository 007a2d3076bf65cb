package cli

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/config"
	"github.com/onejob-dev/onejob/internal/telemetry"
	"github.com/onejob-dev/onejob/sim"
)

// benchKind is the kind of the throw-away server.
const benchKind = "bench"

const (
	defaultBenchSlots  = 256
	defaultBenchQueued = 100_000
	maxBenchIntents    = 10_000_000
)

func benchDevFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "dev", Usage: "start a throw-away server with a fake provider for it"},
		&cli.DurationFlag{Name: "provider-latency", Value: 5 * time.Millisecond, Usage: "with --dev: how long the fake provider takes"},
		&cli.IntFlag{Name: "slots", Value: defaultBenchSlots, Usage: "with --dev: attempts at once"},
		&cli.IntFlag{Name: "max-queued", Value: defaultBenchQueued, Usage: "with --dev: jobs that may wait; 0: any number"},
		&cli.StringFlag{Name: "store", Usage: "with --dev: `URL` of a store without data in it, instead of a throw-away SQLite file"},
	}
}

// benchDev is a throw-away server and the provider behind it.
type benchDev struct {
	provider *sim.Server
	memory   *memoryWatch
	api      *apiClient
	stop     func() error
}

func runBenchDev(ctx context.Context, env Env, c *cli.Command) (err error) {
	for _, flag := range []string{"kind", "server"} {
		if c.IsSet(flag) {
			return usage(c, "--%s and --dev exclude each other: the throw-away server has the kind %q", flag, benchKind)
		}
	}
	if c.Int("slots") < 1 || c.Int("max-queued") < 0 || c.Duration("provider-latency") < 0 {
		return usage(c, "--slots must be above zero, and --max-queued and --provider-latency may not be negative")
	}
	dir, err := os.MkdirTemp("", "onejob-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	dev, err := startBenchDev(ctx, env, c, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.stop()) }()
	plan, err := planOf(env, c, dev.api, benchKind)
	if err != nil {
		return err
	}
	return bench{env: env, c: c, plan: plan, dev: dev}.run(ctx)
}

// startBenchDev starts a provider, and a server in this process before it.
func startBenchDev(ctx context.Context, env Env, c *cli.Command, dir string) (_ *benchDev, err error) {
	d := &benchDev{}
	d.provider, err = sim.Start("127.0.0.1:0", sim.Options{
		Latency: c.Duration("provider-latency"), IntentFunc: sim.IntentMember("key"), MaxEntries: 1, MaxIntents: maxBenchIntents,
	})
	if err != nil {
		return nil, err
	}
	cfg, err := loadBenchDev(env, c, dir, d.provider.URL())
	if err != nil {
		return nil, errors.Join(err, d.provider.Close())
	}
	log, err := telemetry.NewLogger(env.Stderr, telemetry.LogOptions{Level: slog.LevelError})
	if err != nil {
		return nil, errors.Join(err, d.provider.Close())
	}
	s, err := newServer(ctx, env, cfg, true, log)
	if err != nil {
		return nil, errors.Join(err, d.provider.Close())
	}
	key, err := s.devKey(ctx, env)
	if err != nil {
		return nil, errors.Join(err, s.close(), d.provider.Close())
	}
	server, err := url.Parse(s.url())
	if err != nil {
		return nil, errors.Join(err, s.close(), d.provider.Close())
	}
	d.api = &apiClient{env: env, server: server, key: onejob.Secret(key)}
	// It outlives an interrupt, which ends the load and not what answers it.
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() { served <- s.serve(serving) }()
	d.memory = watchMemory(serving)
	d.stop = func() error {
		stopServing()
		return errors.Join(<-served, d.provider.Close())
	}
	return d, nil
}

//go:embed bench.yaml
var benchConfig string

func loadBenchDev(env Env, c *cli.Command, dir, provider string) (*config.Config, error) {
	text := strings.NewReplacer("{{provider}}", provider, "{{slots}}", strconv.Itoa(c.Int("slots")),
		"{{max_queued}}", strconv.Itoa(c.Int("max-queued"))).Replace(benchConfig)
	p := config.LoadParams{Path: "built-in", Text: []byte(text), Getenv: func(string) string { return "" }, Flags: map[string]string{
		"listen": "127.0.0.1:0", "store": c.String("store"),
	}}
	if p.Flags["store"] == "" {
		p.Flags["store"] = "sqlite:" + filepath.Join(dir, "onejob.db")
	}
	return config.Load(p)
}

// memoryWatch looks at the memory of this process once a second.
type memoryWatch struct {
	mu  sync.Mutex
	mib []float64
}

func watchMemory(ctx context.Context) *memoryWatch {
	w := &memoryWatch{}
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if m, ok := residentMiB(); ok {
				w.mu.Lock()
				w.mib = append(w.mib, m)
				w.mu.Unlock()
			}
		}
	}()
	return w
}

// figures are the medians of each third of the time: what grows shows in them, and
// a garbage collector's ups and downs do not. Without figures there are none.
func (w *memoryWatch) figures() (thirds []float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range 3 {
		third := slices.Sorted(slices.Values(w.mib[i*len(w.mib)/3 : (i+1)*len(w.mib)/3]))
		if len(third) == 0 {
			return nil
		}
		thirds = append(thirds, third[len(third)/2])
	}
	return thirds
}

// residentMiB is the memory of this process, where the system tells.
func residentMiB() (float64, bool) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(status)) {
		var kib float64
		if _, err := fmt.Sscanf(line, "VmRSS: %g kB", &kib); err == nil {
			return kib / 1024, true
		}
	}
	return 0, false
}
