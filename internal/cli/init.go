package cli

import (
	"context"
	_ "embed"
	"errors"
	"io/fs"
	"os"

	"github.com/urfave/cli/v3"

	"github.com/onejob-dev/onejob/internal/config"
)

// firstConfig is what init writes.
//
//go:embed init.yaml
var firstConfig string

func initCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "init", ArgsUsage: "[FILE]", Usage: "write a commented onejob.yaml to start from",
		Description: "An existing file is never overwritten.",
		Action: func(_ context.Context, c *cli.Command) error {
			if c.Args().Len() > 1 {
				return usage(c, "it takes one file")
			}
			path := c.Args().First()
			if path == "" {
				path = config.DefaultPath
			}
			if err := writeNew(path, firstConfig); err != nil {
				return err
			}
			say(env, "wrote %s; check it with: onejob config check %s", path, shellQuote(path))
			return nil
		},
	}
}

// writeNew writes a file that must not exist yet.
func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return &exitError{code: ExitConflict, message: path + " exists and is left as it is"}
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
