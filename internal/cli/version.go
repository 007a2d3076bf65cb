package cli

import (
	"context"
	"encoding/json"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v3"
)

// build is what this program was built from.
type build struct {
	Version  string `json:"version"`  // of the module; "devel" for a working tree
	Revision string `json:"revision"` // empty when it is not known
	Modified bool   `json:"modified"` // the tree was not clean
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func buildOf() build {
	b := build{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	read, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := read.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range read.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func versionCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "print the version", Flags: []cli.Flag{outputFlag()},
		Action: func(_ context.Context, c *cli.Command) error {
			if err := noArguments(c); err != nil {
				return err
			}
			b := buildOf()
			raw, err := json.Marshal(b)
			if err != nil {
				return err
			}
			return pairs{{"onejob", b.Version}, {"revision", b.Revision}, {"go", b.Go}, {"platform", b.Platform}}.print(env, c, raw)
		},
	}
}
