package cli

import (
	"context"

	"github.com/urfave/cli/v3"

	"github.com/onejob-dev/onejob/internal/config"
)

func configCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "config", Usage: "check and show the configuration, print its schema",
		Description: "A setting comes from the first of these that says something: a flag, the\nenvironment (ONEJOB_LISTEN, ONEJOB_WORKERS_SLOTS, …), the file, the default.",
		Commands: []*cli.Command{
			{
				Name: "check", Usage: "report everything that is wrong with it; exit code 2 if anything is",
				Flags: []cli.Flag{configFlag()},
				Action: func(_ context.Context, c *cli.Command) error {
					cfg, err := loadFor(env, c)
					if err != nil {
						return err
					}
					for _, warning := range cfg.Warnings {
						say(env, "warning: %s", warning)
					}
					if len(cfg.File.Kinds) == 0 {
						say(env, "warning: %s", noKinds(cfg))
					}
					say(env, "%s is valid: %s, %s%s", nameOf(cfg), many(len(cfg.File.Kinds), "kind"), many(len(cfg.File.Targets), "target"), endpointsOf(cfg))
					return nil
				},
			},
			{
				Name: "print", Usage: "write it as it is in effect, with where each setting comes from; never a secret",
				Flags: []cli.Flag{configFlag()},
				Action: func(_ context.Context, c *cli.Command) error {
					cfg, err := loadFor(env, c)
					if err != nil {
						return err
					}
					return cfg.Print(env.Stdout)
				},
			},
			{
				Name: "schema", Usage: "write the JSON Schema of the file, for editors",
				Action: func(_ context.Context, c *cli.Command) error {
					if err := noArguments(c); err != nil {
						return err
					}
					_, err := env.Stdout.Write(config.Schema())
					return err
				},
			},
		},
	}
}

// loadFor reads the configuration for a command that also takes it as an argument.
func loadFor(env Env, c *cli.Command) (*config.Config, error) {
	p := loadParams(env, c)
	switch c.Args().Len() {
	case 0:
	case 1:
		p.Path = c.Args().First()
	default:
		return nil, usage(c, "it takes one file")
	}
	return config.Load(p)
}

func nameOf(cfg *config.Config) string {
	if cfg.Path == "" {
		return "the configuration (there is no " + config.DefaultPath + " here)"
	}
	return cfg.Path
}

// noKinds is what keeps a configuration from being served.
func noKinds(cfg *config.Config) string {
	return "no kinds are declared in " + nameOf(cfg) + ": write one with onejob init, or try onejob dev"
}

// endpointsOf says how many webhook endpoints there are, if there are any.
func endpointsOf(cfg *config.Config) string {
	if n := len(cfg.Webhooks.Endpoints); n > 0 {
		return ", " + many(n, "webhook endpoint")
	}
	return ""
}
