// Command onejob records one job per intent, tries it by attempts that never
// overlap in doubt, and answers with exactly one result. See "onejob --help".
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/onejob-dev/onejob/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	env := cli.Env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv}
	code := cli.Main(ctx, env, os.Args)
	stop()
	os.Exit(code)
}
