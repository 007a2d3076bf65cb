package cli

import (
	"context"
	"errors"
	"os"

	"github.com/urfave/cli/v3"

	"github.com/onejob-dev/onejob/internal/demo"
)

func demoCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "demo", Usage: "act out the fractures against a real server, counted at the provider",
		ArgsUsage: "[NAME|all]",
		Description: `Each act starts this program's own server on a throw-away store, with a fake
provider that counts how often it did the work, and ends in one line:
PASS or FAIL, and what was counted. The acts are

` + demo.Describe() + `
It exits 0 only if every act passed, and 7 otherwise.`,
		Flags: []cli.Flag{
			outputFlag(),
			&cli.StringFlag{Name: "store", Usage: "an empty store at `URL` to play on, instead of throw-away SQLite files"},
		},
		Action: func(ctx context.Context, c *cli.Command) error {
			program, err := os.Executable()
			if err != nil {
				return err
			}
			err = demo.Play(ctx, env.Stdout, c.Args().Slice(), demo.Options{
				Program: program, Store: c.String("store"), JSON: c.String("output") != "table", Color: colours(env, env.Stdout),
			})
			if errors.Is(err, demo.ErrFailed) {
				return &exitError{code: ExitFracture, message: err.Error()}
			}
			return err
		},
	}
}
