package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/onejob-dev/onejob/internal/config"
)

// Env is the world a command may touch.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(name string) string
	NowFunc        func() time.Time // nil means [time.Now]
	RenewEvery     time.Duration    // how often a server looks for certificates to renew; zero: as it does by itself
}

// Main runs the command that args name, args[0] being the program, and returns
// its exit code. When ctx ends, servers drain and everything else gives up.
func Main(ctx context.Context, env Env, args []string) int {
	if env.NowFunc == nil {
		env.NowFunc = time.Now
	}
	err := root(env).Run(ctx, args)
	if err == nil {
		return ExitOK
	}
	if text := err.Error(); text != "" {
		if ctx.Err() != nil { // by a person, who knows nothing of contexts
			text = strings.Replace(text, context.Canceled.Error(), "interrupted", 1)
		}
		say(env, "onejob: %s", text)
	}
	var usage *usageError
	if errors.As(err, &usage) {
		say(env, "See %q.", usage.command+" --help")
	}
	return exitCode(ctx, err)
}

// say writes one line of talk.
func say(env Env, format string, args ...any) {
	_, _ = fmt.Fprintf(env.Stderr, strings.TrimRight(format, "\n")+"\n", args...)
}

func root(env Env) *cli.Command {
	return &cli.Command{
		Name:  "onejob",
		Usage: "one job per intent: tried by attempts that never overlap in doubt, answered with one result",
		Description: `Start with "onejob dev": a throw-away server with fake providers, one key and
commands to paste. Then "onejob init" writes a configuration and "onejob serve"
serves it.

Client commands find the server by --server or ONEJOB_SERVER (default
` + defaultServer + `) and the credential by ONEJOB_API_KEY.

Exit codes: 0 ok, 1 failed, 2 usage or configuration, 3 not found, 4 conflict,
5 blocked by an unknown attempt, 6 not certified, 7 fracture found, 8 server or
provider unreachable, 130 interrupted.`,
		Writer: env.Stdout, ErrWriter: env.Stderr, Reader: env.Stdin,
		Version: buildOf().Version, HideHelpCommand: true, Suggest: true,
		EnableShellCompletion: true,
		ConfigureShellCompletionCommand: func(c *cli.Command) {
			c.Hidden, c.Usage = false, "write a completion script for bash, zsh, fish or pwsh to stdout"
		},
		OnUsageError:   asUsage,
		ExitErrHandler: func(context.Context, *cli.Command, error) {}, // Main decides
		Action:         unknownCommand,
		Commands:       commands(env),
	}
}

func commands(env Env) []*cli.Command {
	list := []*cli.Command{
		serveCommand(env), devCommand(env), demoCommand(env), initCommand(env), simCommand(env), benchCommand(env), doctorCommand(env),
		submitCommand(env), jobsCommand(env), attemptsCommand(env), webhooksCommand(env), incidentsCommand(env), costsCommand(env),
		keysCommand(env), auditCommand(env), restoreCommand(env), migrateCommand(env), configCommand(env), contractCommand(env),
		openapiCommand(env), versionCommand(env),
	}
	for _, c := range list {
		prepare(c)
	}
	return list
}

// prepare gives a command and those below it what all of them share.
func prepare(c *cli.Command) {
	c.OnUsageError = asUsage
	c.HideHelpCommand = true
	if len(c.Commands) > 0 && c.Action == nil {
		c.Action = unknownCommand
	}
	for _, sub := range c.Commands {
		prepare(sub)
	}
}

// unknownCommand shows the help of a command that only groups others, and
// refuses what is none of them.
func unknownCommand(_ context.Context, c *cli.Command) error {
	if c.Args().First() == "help" && c.Args().Len() > 1 {
		return usage(c, "help of a command is asked for as %s %s --help", c.FullName(), strings.Join(c.Args().Tail(), " "))
	}
	if c.Args().Present() && c.Args().First() != "help" {
		var names []string
		for _, sub := range c.Commands {
			names = append(names, sub.Name)
		}
		return usage(c, "there is no command %q%s", c.Args().First(), config.Suggest(c.Args().First(), names))
	}
	return cli.ShowSubcommandHelp(c)
}

// asUsage says which flag was perhaps meant.
func asUsage(_ context.Context, c *cli.Command, err error, _ bool) error {
	given, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !unknown {
		return usage(c, "%w", err)
	}
	var names []string
	for _, f := range c.Flags {
		names = append(names, f.Names()[0])
	}
	return usage(c, "there is no flag --%s%s", given, config.Suggest(given, names))
}

// oneArgument returns the single argument that a command takes.
func oneArgument(c *cli.Command, name string) (string, error) {
	if c.Args().Len() != 1 || c.Args().First() == "" {
		return "", usage(c, "it takes exactly one argument: %s", name)
	}
	return c.Args().First(), nil
}

// noArguments refuses stray ones, which are often a flag without its dashes.
func noArguments(c *cli.Command) error {
	if c.Args().Present() {
		return usage(c, "it takes no argument, and got %q", c.Args().First())
	}
	return nil
}
