package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/onejob-dev/onejob/internal/config"
)

// checkTimeout bounds each thing that doctor looks at.
const checkTimeout = 10 * time.Second

func doctorCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "doctor", Usage: "look for what would go wrong; silent when all is well",
		Description: `It checks the configuration, the store and its schema, the clock, the secret,
whether webhooks go out and whether the targets' names resolve; and of the store
whether indexes are missing, tables and indexes are bloated, vacuum falls behind
or is held up, the log grows and the disk runs full. No provider is called and
nothing is changed. One line a problem on stderr, each with what to do about it,
and exit code 1 if there is any.

  onejob doctor --probe ready    for containers: exit code 0 if the server is ready`,
		Flags: []cli.Flag{
			configFlag(), storeFlag(), serverFlag(),
			&cli.StringFlag{Name: "probe", Usage: "ask the running server only: live or ready"},
		},
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := noArguments(c); err != nil {
				return err
			}
			if c.IsSet("probe") {
				return runProbe(ctx, env, c)
			}
			return runDoctor(ctx, env, c)
		},
	}
}

// runProbe asks a running server how it is.
func runProbe(ctx context.Context, env Env, c *cli.Command) error {
	paths := map[string]string{"live": "/livez", "ready": "/readyz"}
	path, known := paths[c.String("probe")]
	if !known {
		return usage(c, "--probe is live or ready")
	}
	api, err := newAPIClient(env, c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	_, err = api.do(ctx, request{method: "GET", path: path})
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w: no answer in %s", errUnreachable, checkTimeout)
	}
	return err
}

// examination collects what doctor finds.
type examination struct {
	env      Env
	cfg      *config.Config
	store    config.StoreURL
	problems []string
}

func (x *examination) problem(format string, args ...any) {
	x.problems = append(x.problems, fmt.Sprintf(format, args...))
}

func runDoctor(ctx context.Context, env Env, c *cli.Command) error {
	cfg, err := config.Load(loadParams(env, c, "store"))
	if err != nil {
		say(env, "%v", err)
		return &exitError{code: ExitFailed}
	}
	x := &examination{env: env, cfg: cfg}
	if x.store, err = config.ParseStore(cfg.Store.Value.Reveal()); err != nil {
		return err
	}
	if len(cfg.File.Kinds) == 0 {
		x.problem("%s", noKinds(cfg))
	}
	x.problems = append(x.problems, cfg.Warnings...)
	x.checkSecret()
	x.checkGeneration()
	x.checkStore(ctx)
	x.checkListen()
	x.checkTargets(ctx)
	for _, p := range x.problems {
		say(env, "%s", p)
	}
	if len(x.problems) > 0 {
		return &exitError{code: ExitFailed}
	}
	return nil
}

// checkSecret looks for a lost or readable secret. It makes none.
func (x *examination) checkSecret() {
	if x.cfg.File.Secret.Value != "" {
		return
	}
	if x.store.Postgres != "" {
		x.problem("secret: PostgreSQL needs one that is the same on every node; set ONEJOB_SECRET")
		return
	}
	path := config.SecretPath(x.store.SQLite)
	info, err := os.Stat(path)
	_, storeErr := os.Stat(x.store.SQLite)
	switch {
	case err != nil && storeErr == nil:
		x.problem("secret: the store %s exists and its secret %s does not", x.store.SQLite, path)
	case err == nil && info.Mode().Perm()&0o077 != 0:
		x.problem("secret: %s can be read by others: chmod 600 %s", path, shellQuote(path))
	}
}

// checkGeneration looks for what tells that the store was restored.
func (x *examination) checkGeneration() {
	if _, err := markOf(x.cfg); err != nil {
		x.problem("%s", oneLine(err))
	}
	if path, err := x.cfg.GenerationPath(); err == nil && path == "" {
		x.problem("store: %s", noGenerationFile)
	}
}

// checkRestore looks for a restore that waits to be confirmed.
func (x *examination) checkRestore(ctx context.Context, store realStore) {
	g, err := store.Generation(ctx)
	mark, markErr := markOf(x.cfg)
	if err == nil && (g.Unconfirmed() || (markErr == nil && g.Number < mark)) {
		x.problem("store: it was restored from a backup, so nothing is sent and no job is taken; see docs/restore.md, then: onejob restore confirm")
	}
}

// lateWebhook is how long a webhook waits before doctor speaks of it.
const lateWebhook = time.Hour

// checkWebhooks looks for webhooks that nobody is told of.
func (x *examination) checkWebhooks(ctx context.Context, store realStore) {
	disabled, err := store.EndpointDisabled(ctx)
	if err != nil {
		x.problem("webhooks: %s", oneLine(err))
		return
	}
	for _, d := range disabled {
		x.problem("webhooks: endpoint %s is sent nothing since %s (%s); once it takes them again: onejob webhooks enable %s",
			clean(d.ID), when(d.Since), clean(d.Reason), clean(d.ID))
	}
	stats, err := store.Stats(ctx)
	if err == nil && stats.PendingDeliveries > 0 && x.env.NowFunc().Sub(stats.OldestDelivery) > lateWebhook {
		x.problem("webhooks: %d wait to be sent, the oldest since %s; see why: onejob webhooks list --state pending",
			stats.PendingDeliveries, when(stats.OldestDelivery))
	}
}

// checkStore opens an existing store. A SQLite store that does not exist yet is
// no problem, and is not made.
func (x *examination) checkStore(ctx context.Context) {
	if x.store.SQLite != "" {
		if _, err := os.Stat(x.store.SQLite); err != nil {
			return
		}
		if _, err := os.Stat(config.SecretPath(x.store.SQLite)); err != nil && x.cfg.File.Secret.Value == "" {
			return // said already
		}
	}
	opened := x.checkOpen(ctx)
	switch {
	case x.store.Postgres != "":
		x.checkPostgres(ctx, opened)
	case opened:
		x.checkSQLite(ctx)
	}
}

// checkOpen opens the store, and reports whether it could.
func (x *examination) checkOpen(ctx context.Context) (opened bool) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	store, err := openStore(ctx, x.cfg, false, nil)
	if err != nil {
		x.problem("store: %s", oneLine(err))
		return false
	}
	defer func() { _ = store.Close() }()
	if err := store.Check(ctx); err != nil {
		x.problem("store: %s", oneLine(err))
	}
	x.checkRestore(ctx, store)
	x.checkWebhooks(ctx, store)
	keys, err := store.KeyList(ctx)
	if err == nil && len(keys) == 0 {
		x.problem("keys: there is none, so every request is answered 401; make one with: onejob keys create --owner NAME")
	}
	return true
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

func (x *examination) checkListen() {
	host, _, err := net.SplitHostPort(x.cfg.Listen)
	if err != nil || isLoopback(x.cfg.Listen) {
		return
	}
	if host == "" {
		host = "every address"
	}
	for name := range x.cfg.File.Targets {
		t := x.cfg.File.Targets[name]
		if u, err := url.Parse(t.URL()); err == nil && isLoopback(net.JoinHostPort(u.Hostname(), "0")) {
			x.problem("listen: it listens at %s while target %s is a loopback address; is this a development configuration?", host, name)
		}
	}
}

// checkTargets resolves names. It calls nobody.
func (x *examination) checkTargets(ctx context.Context) {
	for name := range x.cfg.File.Targets {
		t := x.cfg.File.Targets[name]
		u, err := url.Parse(t.URL())
		if err != nil || u.Host == "" {
			continue // the configuration has been checked; workers come by themselves
		}
		ctx, cancel := context.WithTimeout(ctx, checkTimeout)
		if _, err := net.DefaultResolver.LookupHost(ctx, u.Hostname()); err != nil {
			x.problem("targets.%s: %s does not resolve", name, u.Hostname())
		}
		cancel()
		if u.Scheme == "http" && !isLoopback(net.JoinHostPort(u.Hostname(), "0")) {
			x.problem("targets.%s: its requests, credentials included, go out unencrypted (http)", name)
		}
	}
}
