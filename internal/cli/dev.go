package cli

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/apikey"
	"github.com/onejob-dev/onejob/internal/config"
	"github.com/onejob-dev/onejob/sim"
)

// devConfig is the built-in configuration, with {{primary}}, {{backup}} and {{model}}
// where the addresses of the fake providers go.
//
//go:embed dev.yaml
var devConfig string

func devCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "dev", Usage: "a throw-away server with fake providers, one key and commands to paste",
		Description: "Nothing is kept, unless --store names a store. It listens on loopback only. With\n--config it serves your own kinds and targets, still with a key and a throw-away\nstore.",
		Flags:       serveFlags(),
		Action:      func(ctx context.Context, c *cli.Command) error { return runDev(ctx, env, c) },
	}
}

func runDev(ctx context.Context, env Env, c *cli.Command) (err error) {
	if err := noArguments(c); err != nil {
		return err
	}
	log, err := newLogger(env, c)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "onejob-dev-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	fakes, err := startFakes()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fakes.close()) }()
	cfg, err := loadDev(env, c, dir, fakes)
	if err != nil {
		return err
	}
	s, err := newServer(ctx, env, cfg, true, log)
	if err != nil {
		return err
	}
	printed, err := s.devKey(ctx, env)
	if err != nil {
		return errors.Join(err, s.close())
	}
	s.banner(env, printed, fakes, c.String("store") != "")
	return s.serve(ctx)
}

// fakes are the fake providers of a development server.
type fakes struct{ primary, backup, model *sim.Server }

func startFakes() (*fakes, error) {
	var f fakes
	for _, start := range []struct {
		fake **sim.Server
		opts sim.Options
	}{
		{&f.primary, sim.Options{CostMicros: 1500}},
		{&f.backup, sim.Options{CostMicros: 2500}},
		{&f.model, sim.Options{Models: map[string]sim.Mind{"large": {}}, Default: sim.MustParse("trickle=80ms")[0]}}, // as fast as a model speaks
	} {
		var err error
		if *start.fake, err = sim.Start("127.0.0.1:0", start.opts); err != nil {
			return nil, errors.Join(err, f.close())
		}
	}
	return &f, nil
}

func (f *fakes) close() error {
	var errs []error
	for _, fake := range []*sim.Server{f.primary, f.backup, f.model} {
		if fake != nil {
			errs = append(errs, fake.Close())
		}
	}
	return errors.Join(errs...)
}

// loadDev reads the built-in configuration, or the one that --config names. The
// store is thrown away unless --store names one: a store that only the file or
// the environment names may be a real one.
func loadDev(env Env, c *cli.Command, dir string, f *fakes) (*config.Config, error) {
	p := loadParams(env, c, "store", "listen")
	p.Allow = []string{"127.0.0.0/8", "::1/128"} // for receivers that are being written
	if c.String("config") == "" {
		p.Path = "built-in"
		p.Text = []byte(strings.NewReplacer("{{primary}}", f.primary.URL(), "{{backup}}", f.backup.URL(), "{{model}}", f.model.URL()).Replace(devConfig))
	}
	if c.String("store") == "" {
		p.Flags["store"] = "sqlite:" + filepath.Join(dir, "onejob.db")
	}
	if p.Flags["listen"] == "" {
		p.Flags["listen"] = env.Getenv("ONEJOB_LISTEN")
	}
	if p.Flags["listen"] == "" {
		p.Flags["listen"] = "127.0.0.1:4545"
	}
	cfg, err := config.Load(p)
	if err != nil {
		return nil, err
	}
	if !isLoopback(cfg.Listen) {
		return nil, usage(c, "a development server listens on loopback only, not at %s", cfg.Listen)
	}
	return cfg, nil
}

func isLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// devKey makes the one key that the banner shows.
func (s *server) devKey(ctx context.Context, env Env) (string, error) {
	printed, key, err := apikey.Generate(apikey.Params{Owner: "dev", Role: onejob.RoleOperator, Now: env.NowFunc()})
	if err != nil {
		return "", err
	}
	return printed, s.keys.KeyCreate(ctx, onejob.KeyCreateParams{Key: key, Actor: "onejob dev"})
}

const devBanner = `
  onejob dev: development only, %[1]s

  server     %[2]s
  key        %[3]s
  providers  %[4]s
             %[5]s
             %[6]s   (executions counted at /sim/ledger)
  kinds      %[7]s

  Paste these two first:

  export ONEJOB_SERVER=%[2]s
  export ONEJOB_API_KEY=%[3]s

  1. submit
  curl -sSi $ONEJOB_SERVER/v1/jobs -H "Authorization: Bearer $ONEJOB_API_KEY" \
    -H 'Content-Type: application/json' -H 'Idempotency-Key: order-1042' \
    -d '{"kind":"charge_card","input":{"order":"1042","amount":4200}}'

  2. the same again: the same job, "Idempotent-Replayed: true", nothing charged
  curl -sSi $ONEJOB_SERVER/v1/jobs -H "Authorization: Bearer $ONEJOB_API_KEY" \
    -H 'Content-Type: application/json' -H 'Idempotency-Key: order-1042' \
    -d '{"kind":"charge_card","input":{"amount":4200,"order":"1042"}}'

  3. another amount under the same key: 409
  curl -sSi $ONEJOB_SERVER/v1/jobs -H "Authorization: Bearer $ONEJOB_API_KEY" \
    -H 'Content-Type: application/json' -H 'Idempotency-Key: order-1042' \
    -d '{"kind":"charge_card","input":{"order":"1042","amount":9900}}'

  4. a slow one, followed until it ends: running, then succeeded
  JOB=$(curl -sS $ONEJOB_SERVER/v1/jobs -H 'Idempotency-Key: slow-1' \
    -H "Authorization: Bearer $ONEJOB_API_KEY" \
    -H 'Content-Type: application/json' \
    -d '{"kind":"slow","input":{"order":"7"}}' \
    | sed 's/.*"id":"\(job_[^"]*\)".*/\1/')
  curl -sSN $ONEJOB_SERVER/v1/jobs/$JOB/events \
    -H "Authorization: Bearer $ONEJOB_API_KEY"

  5. one that stalls: unknown after 2 s, not failed; the late answer settles it
  JOB=$(curl -sS $ONEJOB_SERVER/v1/jobs -H 'Idempotency-Key: stalled-1' \
    -H "Authorization: Bearer $ONEJOB_API_KEY" \
    -H 'Content-Type: application/json' \
    -d '{"kind":"stalled","input":{"order":"8"}}' \
    | sed 's/.*"id":"\(job_[^"]*\)".*/\1/')
  curl -sSN $ONEJOB_SERVER/v1/jobs/$JOB/events \
    -H "Authorization: Bearer $ONEJOB_API_KEY"

  6. as an OpenAI client would: a stream, kept as it comes. Again, or after
     Ctrl-C in the middle: the same answer from its first byte
  curl -sSN $ONEJOB_SERVER/openai/v1/chat/completions \
    -H "Authorization: Bearer $ONEJOB_API_KEY" \
    -H 'Content-Type: application/json' -H 'Idempotency-Key: story-1' \
    -d '{"model":"chat","stream":true,"messages":[{"role":"user",
         "content":"Story: once upon a time there was a click, and it was one job"}]}'

`

func (s *server) banner(env Env, key string, f *fakes, kept bool) {
	what := "nothing is kept"
	if kept {
		store, err := config.ParseStore(s.cfg.Store.Value.Reveal())
		if err == nil {
			what = "jobs are kept in " + store.String()
		}
	}
	_, _ = fmt.Fprintf(env.Stderr, devBanner, what, s.url(), key, f.primary.URL(), f.backup.URL(), f.model.URL(), strings.Join(namesOf(s.cfg.Kinds()), ", "))
}
