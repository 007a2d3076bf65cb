package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/generation"
)

func restoreCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "restore", Usage: "go on after the store was restored from a backup, directly in the store",
		Description: `A store that went back in time has forgotten what was done after the backup was
made. Until a person confirms it nothing is sent and no job is taken; see
docs/restore.md.`,
		Commands: []*cli.Command{restoreStatusCommand(env), restoreConfirmCommand(env), restoreDeclareCommand(env)},
	}
}

func restoreFlags(more ...cli.Flag) []cli.Flag {
	return append(more, storeFlag(), configFlag(), outputFlag())
}

func restoreStatusCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "status", Usage: "say whether the store was restored and waits to be confirmed",
		Flags: restoreFlags(),
		Action: func(ctx context.Context, c *cli.Command) error {
			return withRestored(ctx, env, c, func(r *restored) error { return r.print(env, c, r.now) })
		},
	}
}

func restoreConfirmCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "confirm", Usage: "let a restored store take work again",
		Description: `Attempts that were under way in the backup become unknown, and every open job
waits for a person. Confirming lets new jobs in; the held ones wait on, each until
it is unblocked.`,
		Flags: restoreFlags(yesFlag()),
		Action: func(ctx context.Context, c *cli.Command) error {
			return withRestored(ctx, env, c, func(r *restored) error { return r.confirm(ctx, env, c) })
		},
	}
}

func restoreDeclareCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "declare", Usage: "say that the store was restored, when nothing else can tell",
		Description: `For a PostgreSQL without a generation file whose servers were all stopped: run it
after the backup is back and before the first server starts.`,
		Flags: restoreFlags(yesFlag()),
		Action: func(ctx context.Context, c *cli.Command) error {
			return withRestored(ctx, env, c, func(r *restored) error { return r.declare(ctx, env, c) })
		},
	}
}

func yesFlag() cli.Flag {
	return &cli.BoolFlag{Name: "yes", Usage: "do not ask"}
}

// restored is a store that may have been restored, and all of it held if it was.
type restored struct {
	store realStore
	now   onejob.Generation
	held  generation.Held // by this command
}

// withRestored opens the store of a command for as long as use takes. A store that
// is behind the mark outside is found here too, before any server starts.
func withRestored(ctx context.Context, env Env, c *cli.Command, use func(*restored) error) (err error) {
	if err := noArguments(c); err != nil {
		return err
	}
	cfg, err := loadForStore(env, c)
	if err != nil {
		return err
	}
	mark, err := markOf(cfg)
	if err != nil {
		return err
	}
	store, err := openStore(ctx, cfg, false, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	r := &restored{store: store}
	if r.now, err = store.RestoreDeclare(ctx, onejob.RestoreDeclareParams{Seen: mark}); err != nil {
		return err
	}
	return use(r)
}

func (r *restored) confirm(ctx context.Context, env Env, c *cli.Command) (err error) {
	if !r.now.Unconfirmed() {
		say(env, "the store was not restored; there is nothing to confirm")
		return r.print(env, c, r.now)
	}
	if r.held, err = generation.Hold(ctx, r.store); err != nil {
		return err
	}
	stats, err := r.store.Stats(ctx)
	if err != nil {
		return err
	}
	say(env, "the store was restored from a backup, found at %s", r.now.RestoredAt.UTC().Format(time.RFC3339))
	say(env, "%d jobs need an operator, %d wait for an attempt that may or may not have had its effect",
		stats.Blocked[onejob.BlockNeedsOperator], stats.Blocked[onejob.BlockAttemptUnknown])
	say(env, "keys that were used after the backup was made are lost: jobs under them can run again")
	if err := agree(env, c, "confirm"); err != nil {
		return err
	}
	if r.now, err = r.store.RestoreConfirm(ctx, actor(env)); err != nil {
		return err
	}
	say(env, "confirmed; new jobs are taken. The held ones wait for you:")
	say(env, "  onejob attempts list --state unknown                    settle each with: onejob attempts resolve")
	say(env, "  onejob jobs list --state blocked                        what needs an operator")
	say(env, `  onejob jobs unblock ID --reason "it did not happen"     lets one go on`)
	return r.print(env, c, r.now)
}

func (r *restored) declare(ctx context.Context, env Env, c *cli.Command) (err error) {
	if r.now.Unconfirmed() {
		say(env, "the store is known to have been restored; confirm it with: onejob restore confirm")
		return r.print(env, c, r.now)
	}
	say(env, "every open job will wait for a person, and attempts under way become unknown")
	if err := agree(env, c, "declare"); err != nil {
		return err
	}
	if r.now, err = r.store.RestoreDeclare(ctx, onejob.RestoreDeclareParams{Seen: r.now.Number + 1, Actor: actor(env)}); err != nil {
		return err
	}
	if r.held, err = generation.Hold(ctx, r.store); err != nil {
		return err
	}
	say(env, "held; go on with: onejob restore confirm")
	return r.print(env, c, r.now)
}

// agree returns nil once a person has agreed: by --yes, or by typing the word.
func agree(env Env, c *cli.Command, word string) error {
	if c.Bool("yes") {
		return nil
	}
	if in, ok := env.Stdin.(interface{ Fd() uintptr }); !ok || !isTerminalFd(in.Fd()) {
		return usage(c, "there is no terminal to ask at; say --yes")
	}
	_, _ = fmt.Fprintf(env.Stderr, "Type %q to go on: ", word)
	line, _ := bufio.NewReader(env.Stdin).ReadString('\n')
	if strings.TrimSpace(line) != word {
		return &exitError{code: ExitFailed, message: "nothing was changed"}
	}
	return nil
}

// generationView is where a store is, as it is printed.
type generationView struct {
	Generation   int64     `json:"generation"`
	Unconfirmed  bool      `json:"unconfirmed"`
	RestoredAt   time.Time `json:"restored_at,omitzero"`
	ConfirmedAt  time.Time `json:"confirmed_at,omitzero"`
	ConfirmedBy  string    `json:"confirmed_by,omitempty"`
	HeldAttempts int       `json:"held_attempts"` // by this command
	HeldJobs     int       `json:"held_jobs"`
}

func (r *restored) print(env Env, c *cli.Command, g onejob.Generation) error {
	raw, err := json.Marshal(generationView{
		Generation: g.Number, Unconfirmed: g.Unconfirmed(), RestoredAt: g.RestoredAt,
		ConfirmedAt: g.ConfirmedAt, ConfirmedBy: g.ConfirmedBy, HeldAttempts: r.held.Attempts, HeldJobs: r.held.Jobs,
	})
	if err != nil {
		return err
	}
	state := "in use"
	if g.Unconfirmed() {
		state = "restored, waits to be confirmed"
	}
	return pairs{
		{"state", state},
		{"generation", strconv.FormatInt(g.Number, 10)},
		{"restored at", when(g.RestoredAt)},
		{"confirmed at", when(g.ConfirmedAt)},
		{"confirmed by", clean(g.ConfirmedBy)},
	}.print(env, c, raw)
}
