package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/apikey"
)

func keysCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "keys", Usage: "make, list and revoke API keys, directly in the store",
		Commands: []*cli.Command{keysCreateCommand(env), keysListCommand(env), keysRevokeCommand(env)},
	}
}

func keysCreateCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "create", Usage: "make a key and write it to stdout; it is shown this once",
		Description: `  export ONEJOB_API_KEY=$(onejob keys create --owner shop)
  onejob keys create --owner ops --role operator --store postgres://…`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "owner", Usage: "whose jobs it is for (required)"},
			&cli.StringFlag{Name: "role", Value: string(onejob.RoleSubmitter), Usage: "viewer, submitter, operator or admin; each may do what those before it may"},
			&cli.BoolFlag{Name: "act-as", Usage: "may name sub-owners in the header Onejob-Owner"},
			storeFlag(), configFlag(),
		},
		Action: func(ctx context.Context, c *cli.Command) error { return runKeysCreate(ctx, env, c) },
	}
}

func runKeysCreate(ctx context.Context, env Env, c *cli.Command) error {
	if err := noArguments(c); err != nil {
		return err
	}
	if c.String("owner") == "" {
		return usage(c, "--owner is required")
	}
	printed, key, err := apikey.Generate(apikey.Params{
		Owner: c.String("owner"), Role: onejob.Role(c.String("role")), ActAs: c.Bool("act-as"), Now: env.NowFunc(),
	})
	if err != nil {
		return usage(c, "%s", messageOf(err))
	}
	_, url, err := storeOf(env, c)
	if err != nil {
		return err
	}
	return withKeys(ctx, env, c, func(keys onejob.KeyStore) error {
		if err := keys.KeyCreate(ctx, onejob.KeyCreateParams{Key: key, Actor: actor(env)}); err != nil {
			return err
		}
		say(env, "key %s of owner %s, role %s, in %s; it is shown this once", key.ID, key.Owner, key.Role, url)
		_, err := fmt.Fprintln(env.Stdout, printed)
		return err
	})
}

// messageOf is what an error says to people, without its code.
func messageOf(err error) string {
	var e *onejob.Error
	if errors.As(err, &e) && e.Message != "" {
		return e.Message
	}
	return err.Error()
}

// withKeys opens the store of a command for its keys.
func withKeys(ctx context.Context, env Env, c *cli.Command, use func(onejob.KeyStore) error) error {
	return withStore(ctx, env, c, func(store realStore) error { return use(store) })
}

// withStore opens the store of a command for as long as use takes.
func withStore(ctx context.Context, env Env, c *cli.Command, use func(realStore) error) (err error) {
	cfg, err := loadForStore(env, c)
	if err != nil {
		return err
	}
	store, err := openStore(ctx, cfg, false, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return use(store)
}

// keyView is a key as it is printed: never its secret, of which only a hash is
// known.
type keyView struct {
	ID        string      `json:"id"`
	Owner     string      `json:"owner"`
	Role      onejob.Role `json:"role"`
	ActAs     bool        `json:"act_as"`
	CreatedAt time.Time   `json:"created_at"`
	RevokedAt time.Time   `json:"revoked_at,omitzero"`
}

func keysListCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list the keys, without their secrets",
		Flags: []cli.Flag{storeFlag(), configFlag(), outputFlag()},
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := noArguments(c); err != nil {
				return err
			}
			return withKeys(ctx, env, c, func(keys onejob.KeyStore) error {
				all, err := keys.KeyList(ctx)
				if err != nil {
					return err
				}
				return printKeys(env, c, all)
			})
		},
	}
}

func printKeys(env Env, c *cli.Command, keys []onejob.APIKey) error {
	list := rows{headings: []string{"ID", "OWNER", "ROLE", "ACT AS", "CREATED", "REVOKED"}}
	views := make([]keyView, len(keys))
	for i, k := range keys {
		views[i] = keyView{k.ID, k.Owner, k.Role, k.ActAs, k.CreatedAt.UTC(), k.RevokedAt.UTC()}
		item, err := json.Marshal(views[i])
		if err != nil {
			return err
		}
		list.items = append(list.items, item)
		list.cells = append(list.cells, []string{k.ID, clean(k.Owner), string(k.Role), strconv.FormatBool(k.ActAs), when(k.CreatedAt), when(k.RevokedAt)})
	}
	envelope, err := json.Marshal(map[string]any{"items": views})
	if err != nil {
		return err
	}
	list.envelope = envelope
	return list.print(env, c)
}

func keysRevokeCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "revoke", ArgsUsage: "ID", Usage: "make a key worthless, within seconds everywhere",
		Description: "Revoke by the key's id, as \"onejob keys list\" shows it. It is safe to repeat. The\nowner and its jobs stay.",
		Flags:       []cli.Flag{storeFlag(), configFlag()},
		Action: func(ctx context.Context, c *cli.Command) error {
			id, err := oneArgument(c, "the key's id")
			if err != nil {
				return err
			}
			if parsed, err := apikey.Parse(id); err == nil {
				id = parsed.ID // the whole key was pasted
			}
			return withKeys(ctx, env, c, func(keys onejob.KeyStore) error {
				if err := keys.KeyRevoke(ctx, onejob.KeyRevokeParams{ID: id, Actor: actor(env)}); err != nil {
					return err
				}
				say(env, "key %s is revoked", id)
				return nil
			})
		},
	}
}
