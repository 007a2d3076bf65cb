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
		Name: "demo", ArgsUsage: "[NAME…|all]", Usage: "act out each fracture against a real server, and count",
		Description: "Servers and fake providers are started and thrown away. Each act ends in one line,\nPASS or FAIL, with what was counted; exit code 7 if any failed.\n\n" + demo.Describe(),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "store", Usage: "`URL` of a store without data in it, instead of a throw-away SQLite file"},
			outputFlag(),
		},
		Action: func(ctx context.Context, c *cli.Command) error {
			program, err := os.Executable()
			if err != nil {
				return err
			}
			err = demo.Play(ctx, env.Stdout, c.Args().Slice(), demo.Options{
				Program: program, Store: c.String("store"),
				JSON: c.String("output") != formTable, Color: colours(env, env.Stdout),
			})
			if errors.Is(err, demo.ErrFailed) {
				return &exitError{code: ExitFracture, message: err.Error()}
			}
			if err != nil && ctx.Err() == nil {
				return usage(c, "%w", err)
			}
			return err
		},
	}
}
