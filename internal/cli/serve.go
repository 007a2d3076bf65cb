package cli

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"

	"github.com/urfave/cli/v3"

	"github.com/onejob-dev/onejob/internal/config"
	"github.com/onejob-dev/onejob/internal/telemetry"
)

func serveCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "serve", Usage: "serve the API and work on jobs",
		Description: `Any number of equal servers may share one PostgreSQL. A SQLite store migrates
itself; an outdated PostgreSQL schema is refused unless --migrate is given.

SIGTERM and SIGINT stop it: it is no longer ready, takes no new job, and answers
on while it waits up to workers.drain for attempts under way. A second signal
ends it at once; attempts that were cut off are unknown, never run again by
themselves.`,
		Flags: append(serveFlags(),
			&cli.BoolFlag{Name: "migrate", Usage: "bring a PostgreSQL schema up to date first"},
			&cli.BoolFlag{Name: "dev", Usage: "the same as onejob dev"},
		),
		Action: func(ctx context.Context, c *cli.Command) error {
			if c.Bool("dev") {
				return runDev(ctx, env, c)
			}
			return runServe(ctx, env, c)
		},
	}
}

func serveFlags() []cli.Flag {
	return []cli.Flag{
		configFlag(), storeFlag(),
		&cli.StringFlag{Name: "listen", Usage: "`ADDRESS` to listen at, host:port (ONEJOB_LISTEN, PORT)"},
		&cli.StringFlag{Name: "log-format", Usage: "auto, json or text (ONEJOB_LOG_FORMAT)"},
		&cli.StringFlag{Name: "log-level", Usage: "debug, info, warn or error (ONEJOB_LOG_LEVEL)"},
	}
}

func runServe(ctx context.Context, env Env, c *cli.Command) error {
	if err := noArguments(c); err != nil {
		return err
	}
	defer keepHeadroom(env)()
	log, err := newLogger(env, c)
	if err != nil {
		return err
	}
	cfg, err := config.Load(loadParams(env, c, "store", "listen"))
	if err != nil {
		return err
	}
	if len(cfg.File.Kinds) == 0 {
		return &exitError{code: ExitUsage, message: noKinds(cfg)}
	}
	for _, warning := range append(cfg.Warnings, cfg.WarningsAt(env.NowFunc())...) {
		log.Warn("configuration: " + warning)
	}
	if path, err := cfg.GenerationPath(); err == nil && path == "" {
		log.Warn(noGenerationFile)
	}
	s, err := newServer(ctx, env, cfg, c.Bool("migrate"), log)
	if err != nil {
		return err
	}
	s.warnUnlessKeyed(ctx)
	s.warnOfDisabledEndpoints(ctx)
	debug.FreeOSMemory() // of what starting took
	s.announce(env)
	return s.serve(ctx)
}

// noGenerationFile is what a PostgreSQL without one cannot tell.
const noGenerationFile = "generation_file is not set: when every server is stopped, a database restored from a backup is not told from one in use, and jobs may run twice"

// newLogger makes the log as flags, or else the environment, ask for it.
func newLogger(env Env, c *cli.Command) (*slog.Logger, error) {
	said := func(flag, variable string) string {
		if value := c.String(flag); value != "" {
			return value
		}
		return env.Getenv(variable)
	}
	opts := telemetry.LogOptions{
		Format: telemetry.LogFormat(said("log-format", "ONEJOB_LOG_FORMAT")), Plain: env.Getenv("NO_COLOR") != "",
	}
	if level := said("log-level", "ONEJOB_LOG_LEVEL"); level != "" {
		if err := opts.Level.UnmarshalText([]byte(level)); err != nil {
			return nil, usage(c, "there is no log level %q; there are debug, info, warn and error", level)
		}
	}
	log, err := telemetry.NewLogger(env.Stderr, opts)
	if err != nil {
		return nil, usage(c, "%s", messageOf(err))
	}
	return log, nil
}

// warnUnlessKeyed says that nobody can get in. The API fails closed, so this is
// no danger, only a surprise.
func (s *server) warnUnlessKeyed(ctx context.Context) {
	keys, err := s.keys.KeyList(ctx)
	if err == nil && len(keys) == 0 {
		s.log.Warn("there is no API key yet, so every request is answered 401; make one with: onejob keys create --owner NAME")
	}
}

// announce tells people, programs and the service manager where it listens.
func (s *server) announce(env Env) {
	store, err := config.ParseStore(s.cfg.Store.Value.Reveal())
	if err != nil {
		return
	}
	s.log.Info("listening", "url", s.url(), "store", store.String(), "kinds", len(s.cfg.File.Kinds), "targets", len(s.cfg.File.Targets))
	if err := notify(env, "READY=1"); err != nil {
		s.log.Warn("the service manager was not told", "error", err)
	}
}

// notify tells a service manager, if there is one, as sd_notify does.
func notify(env Env, state string) error {
	address := env.Getenv("NOTIFY_SOCKET")
	if address == "" {
		return nil
	}
	if address[0] == '@' { // an abstract socket
		address = "\x00" + address[1:]
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		return err
	}
	_, err = conn.Write([]byte(state))
	return errors.Join(err, conn.Close())
}
