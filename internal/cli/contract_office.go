package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/certify"
	"github.com/onejob-dev/onejob/internal/config"
)

// desk is what the commands about certificates work with: the store, directly, and
// what the configuration says of contracts and targets. A server need not run.
type desk struct {
	cfg    *config.Config
	store  realStore
	office *certify.Office
}

// withOffice opens it for as long as use takes.
func withOffice(ctx context.Context, env Env, c *cli.Command, use func(desk) error) (err error) {
	cfg, err := config.Load(loadParams(env, c, "store"))
	if err != nil {
		return err
	}
	if len(cfg.Contracts) == 0 {
		return &exitError{ExitUsage, "no kind in " + nameOf(cfg) + " has a contract"}
	}
	secret, err := cfg.InstanceSecret()
	if err != nil {
		return err
	}
	targets, err := cfg.Targets(secret)
	if err != nil {
		return err
	}
	store, err := openStore(ctx, cfg, false, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	certificates, able := store.(onejob.CertificateStore)
	if !able {
		return &exitError{ExitFailed, "the store keeps no certificates"}
	}
	if err := useContracts(ctx, cfg, certificates, targets); err != nil {
		return err
	}
	office, err := newOffice(cfg, targets, certify.Options{Store: certificates, NowFunc: env.NowFunc})
	if err != nil {
		return err
	}
	return use(desk{cfg, store, office})
}

// onKind makes a command about one kind, which works on the store directly.
func onKind(env Env, name, usageText, description string, flags []cli.Flag, do func(context.Context, *cli.Command, desk, string) error) *cli.Command {
	return &cli.Command{
		Name: name, ArgsUsage: "KIND", Usage: usageText, Description: description,
		Flags: append(flags, configFlag(), storeFlag(), outputFlag()),
		Action: func(ctx context.Context, c *cli.Command) error {
			kind, err := oneArgument(c, "the kind")
			if err != nil {
				return err
			}
			return withOffice(ctx, env, c, func(d desk) error { return do(ctx, c, d, kind) })
		},
	}
}

func targetFlag(usageText string) cli.Flag {
	return &cli.StringFlag{Name: "target", Usage: usageText + " (required)"}
}

func needs(c *cli.Command, flags ...string) error {
	for _, flag := range flags {
		if c.String(flag) == "" {
			return usage(c, "--%s is required", flag)
		}
	}
	return nil
}

func contractListCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list the contracts of kinds", Flags: []cli.Flag{configFlag(), storeFlag(), outputFlag()},
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := noArguments(c); err != nil {
				return err
			}
			return withOffice(ctx, env, c, func(d desk) error {
				list := rows{headings: []string{"KIND", "DIGEST", "ENV", "TARGETS", "CASES", "AUTOMATIC"}}
				for _, k := range d.office.Contracts() {
					if err := list.add(k, k.Kind, shortDigest(k.Digest), k.Environment, strings.Join(k.Targets, ","), fmt.Sprint(k.Cases), fmt.Sprint(k.Automatic)); err != nil {
						return err
					}
				}
				return list.whole(env, c)
			})
		},
	}
}

// add adds one item with its cells.
func (r *rows) add(item any, cells ...string) error {
	raw, err := readable(item)
	if err != nil {
		return err
	}
	for i := range cells {
		cells[i] = clean(cells[i])
	}
	r.items, r.cells = append(r.items, raw), append(r.cells, cells)
	return nil
}

// whole prints a list that has no pages.
func (r *rows) whole(env Env, c *cli.Command) error {
	items := r.items
	if items == nil {
		items = []json.RawMessage{}
	}
	envelope, err := readable(map[string]any{"items": items})
	if err != nil {
		return err
	}
	r.envelope = envelope
	return r.print(env, c)
}

// shortDigest is a digest for people.
func shortDigest(digest string) string {
	const enough = len("v1:") + 8
	if len(digest) <= enough {
		return digest
	}
	return digest[:enough]
}

func contractMatrixCommand(env Env) *cli.Command {
	return onKind(env, "matrix", "say which targets of a kind may take over from its first", "", nil,
		func(ctx context.Context, c *cli.Command, d desk, kind string) error {
			m, err := d.office.Matrix(ctx, kind)
			if err != nil {
				return err
			}
			if form := c.String("output"); form == formJSON {
				raw, err := readable(m)
				if err != nil {
					return err
				}
				return printJSON(env.Stdout, raw)
			}
			list := rows{headings: []string{"TARGET", "MAY TAKE OVER", "REASON", "CERTIFICATE", "EXPIRES", "DETAIL"}}
			for _, s := range m.Items {
				by := cmp.Or(s.Waiver, s.Certificate) // a waiver opens what a certificate does not
				detail := s.Detail
				if s.Waiver != "" {
					detail = strings.TrimSuffix("not certified: "+detail, ": ")
				}
				if err := list.add(s, s.Target, mayTakeOver(&s), s.Reason, by, when(s.ExpiresAt), detail); err != nil {
					return err
				}
			}
			return list.whole(env, c)
		})
}

func mayTakeOver(s *certify.Standing) string {
	switch {
	case s.Primary:
		return "primary"
	case s.Automatic:
		return "yes"
	case s.Allowed:
		return "if asked"
	}
	return "no"
}

func contractCanFailoverCommand(env Env) *cli.Command {
	return onKind(env, "can-failover", "say whether one target may stand in for another; exit code 6 if not",
		"As a decision at this moment would have it. An attempt in doubt, a budget and a\ndeadline are a job's own; no certificate overrides them.",
		[]cli.Flag{
			&cli.StringFlag{Name: "from", Usage: "the target that fails (default: the kind's first)"},
			&cli.StringFlag{Name: "to", Usage: "the target that would take over (required)"},
		},
		func(ctx context.Context, c *cli.Command, d desk, kind string) error {
			if err := needs(c, "to"); err != nil {
				return err
			}
			if _, err := d.office.ContractOf(kind); err != nil {
				return err
			}
			from := cmp.Or(c.String("from"), d.cfg.File.Kinds[kind].Targets[0])
			if from == c.String("to") {
				return usage(c, "--from and --to are both %s, which stands in for nobody", from)
			}
			f, err := d.office.CanFailover(ctx, kind, from, c.String("to"))
			if err != nil {
				return err
			}
			if err := printFailover(env, c, &f); err != nil {
				return err
			}
			if !f.Allowed {
				return &exitError{ExitNotCertified, ""}
			}
			return nil
		})
}

func printFailover(env Env, c *cli.Command, f *certify.Failover) error {
	if c.String("output") != formTable {
		raw, err := readable(f)
		if err != nil {
			return err
		}
		return printJSONLine(env.Stdout, raw)
	}
	_, err := fmt.Fprintln(env.Stdout, clean(failoverText(f)))
	return err
}

// failoverText is the answer in one line: what opens it, or what does not, and why.
func failoverText(f *certify.Failover) string {
	if !f.Allowed {
		text := "NO  " + f.Reason
		if f.Detail != "" {
			text += ": " + f.Detail
		}
		if f.Certificate != "" {
			text += " (" + f.Certificate + ")"
		}
		return text
	}
	text := "YES "
	if !f.Automatic {
		text += "if asked (" + f.Reason + ") "
	}
	if f.Waiver != "" {
		return text + "uncertified, by " + f.Waiver
	}
	text += f.Certificate
	if !f.ExpiresAt.IsZero() {
		text += " until " + f.ExpiresAt.UTC().Format(time.DateOnly)
	}
	return text
}

func contractWaiveCommand(env Env) *cli.Command {
	return onKind(env, "waive", "let a target take over without a certificate until a day",
		"A waiver is for the contract and the target as they are now. It stands in for a\ncertificate, and for nothing else.",
		[]cli.Flag{
			targetFlag("the target"),
			&cli.StringFlag{Name: "reason", Usage: "why; kept for ever in the audit (required)"},
			&cli.StringFlag{Name: "until", Usage: "when it ends: a day, a time or a duration like 72h, within 90 days (required)"},
		},
		func(ctx context.Context, c *cli.Command, d desk, kind string) error {
			if err := needs(c, "target", "reason", "until"); err != nil {
				return err
			}
			until, err := moment(env, c.String("until"))
			if err != nil {
				return usage(c, "%w", err)
			}
			w, err := d.office.Waive(ctx, certify.WaiveParams{
				Kind: kind, Target: c.String("target"), Actor: actor(env), Reason: c.String("reason"), Until: until,
			})
			if err != nil {
				return err
			}
			say(env, "%s may take over jobs of %s until %s, uncertified", w.TargetName, w.Kind, w.ExpiresAt.UTC().Format(time.RFC3339))
			if c.String("output") != formTable {
				return printWaiver(env, c, &w)
			}
			_, err = fmt.Fprintln(env.Stdout, w.ID)
			return err
		})
}

// printWaiver prints a waiver as the API does.
func printWaiver(env Env, c *cli.Command, w *onejob.Waiver) error {
	raw, err := json.Marshal(waiverView{
		w.ID, w.Kind, w.ContractDigest, w.TargetName, w.TargetDigest, w.Environment, w.Actor, w.Reason, w.GrantedAt.UTC(), w.ExpiresAt.UTC(),
	})
	if err != nil {
		return err
	}
	if c.String("output") == formJSON {
		return printJSON(env.Stdout, raw)
	}
	return printJSONLine(env.Stdout, raw)
}

// waiverView is a waiver as it is printed.
type waiverView struct {
	ID           string    `json:"id"`
	Kind         string    `json:"kind"`
	Contract     string    `json:"contract"`
	Target       string    `json:"target"`
	TargetDigest string    `json:"target_digest"`
	Environment  string    `json:"environment"`
	Actor        string    `json:"actor"`
	Reason       string    `json:"reason"`
	GrantedAt    time.Time `json:"granted_at"`
	ExpiresAt    time.Time `json:"expires_at"`
}

// moment reads a day, a time, or a duration from now.
func moment(env Env, text string) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return env.NowFunc().Add(d), nil
	}
	for _, form := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(form, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no day like 2027-01-31, no time like 2027-01-31T12:00:00Z and no duration like 72h", text)
}

func contractRevokeCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "revoke", ArgsUsage: "ID", Usage: "take a certificate or a waiver back; afterwards nothing starts by it",
		Flags: []cli.Flag{&cli.StringFlag{Name: "reason", Usage: "why; kept for ever in the audit (required for a certificate)"}, configFlag(), storeFlag()},
		Action: func(ctx context.Context, c *cli.Command) error {
			id, err := oneArgument(c, "the id of a certificate or waiver")
			if err != nil {
				return err
			}
			return withOffice(ctx, env, c, func(d desk) error {
				if strings.HasPrefix(id, "waiv_") {
					w, err := d.office.Unwaive(ctx, id, actor(env))
					if err == nil {
						say(env, "waiver %s for %s is revoked", w.ID, w.TargetName)
					}
					return err
				}
				if err := needs(c, "reason"); err != nil {
					return err
				}
				r, err := d.office.Revoke(ctx, id, actor(env), c.String("reason"))
				if err == nil {
					say(env, "certificate %s of %s is %s", r.ID, r.TargetName, r.Status)
				}
				return err
			})
		},
	}
}
