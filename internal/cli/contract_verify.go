package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/certify"
	"github.com/onejob-dev/onejob/verification"
)

func contractVerifyCommand(env Env) *cli.Command {
	return onKind(env, "verify", "find out whether a target meets a kind's contract, and certify it if it does",
		`Goes through the stages S0 to S6, the cheap ones first, and stops at the first that
fails. Calls go to the target itself and cost money there, within the ceilings of the
contract. Exit code 0: certified. 1: it does not meet the contract. 2: nothing could be
asked. 6: too little was shown. 8: the target could not be reached.`,
		[]cli.Flag{
			targetFlag("the target to verify"),
			&cli.StringFlag{Name: "against", Usage: "the target that it is to stand in for (default: the kind's first, where the contract asks for agreement)"},
			&cli.StringFlag{Name: "stage", Usage: "stop after a stage, S0 to S6; with less than all nothing is certified"},
			&cli.FloatFlag{Name: "max-spend", Usage: "ceiling in dollars", DefaultText: "the contract's"},
			&cli.BoolFlag{Name: "dry-run", Usage: "keep nothing and certify nothing"},
		},
		func(ctx context.Context, c *cli.Command, d desk, kind string) error {
			if err := needs(c, "target"); err != nil {
				return err
			}
			if c.IsSet("max-spend") && c.Float("max-spend")*microsPerUnit < 1 {
				return usage(c, "--max-spend is more than 0")
			}
			bar := newVerifyBar(env)
			result, err := d.office.Verify(ctx, certify.VerifyParams{
				Kind: kind, Target: c.String("target"), Against: c.String("against"), Actor: actor(env), UpTo: verification.Stage(strings.ToUpper(c.String("stage"))),
				MaxSpendMicros: int64(c.Float("max-spend") * microsPerUnit), Keep: !c.Bool("dry-run"), ProgressFunc: bar.show,
			})
			bar.done()
			return printVerdict(env, c, &result, err)
		})
}

const microsPerUnit = 1_000_000

// printVerdict prints a report, if there is one, and ends as the verdict says.
func printVerdict(env Env, c *cli.Command, r *verification.Result, failed error) error {
	if len(r.Report.Stages) > 0 {
		if err := printReport(env, c, &r.Report); err != nil {
			return err
		}
	}
	var coded *onejob.Error
	switch {
	case errors.Is(failed, verification.ErrUnreachable):
		return &exitError{ExitUnreachable, failed.Error()}
	case errors.As(failed, &coded), errors.Is(failed, context.Canceled):
		return failed
	case failed != nil && len(r.Report.Stages) == 0:
		return &exitError{ExitUsage, failed.Error()}
	case r.State == onejob.RunRefused:
		return &exitError{ExitFailed, ""}
	case r.State != onejob.RunCertified:
		return &exitError{ExitNotCertified, ""}
	}
	return nil
}

func printReport(env Env, c *cli.Command, r *verification.Report) error {
	if c.String("output") == formTable {
		return r.WriteTable(env.Stdout)
	}
	raw, err := readable(r)
	if err != nil {
		return err
	}
	if c.String("output") == formJSON {
		return printJSON(env.Stdout, raw)
	}
	return printJSONLine(env.Stdout, raw)
}

// verifyBar shows how far a verification is, to people only.
type verifyBar struct {
	env   Env
	shown bool
	last  time.Time
}

func newVerifyBar(env Env) *verifyBar { return &verifyBar{env: env} }

const (
	verifyWidth = 24
	verifyEvery = 100 * time.Millisecond
)

func (b *verifyBar) show(p verification.Progress) {
	if !colours(b.env, b.env.Stderr) || p.Done < p.Planned && time.Since(b.last) < verifyEvery {
		return
	}
	b.last, b.shown = time.Now(), true
	filled := verifyWidth * p.Done / max(p.Planned, 1)
	_, _ = fmt.Fprintf(b.env.Stderr, "\r%s [%s%s] %d/%d  $%.4f\x1b[K", p.Stage,
		strings.Repeat("=", filled), strings.Repeat(" ", verifyWidth-filled), p.Done, p.Planned, float64(p.SpendMicros)/microsPerUnit)
}

// done takes the bar away.
func (b *verifyBar) done() {
	if b.shown {
		_, _ = fmt.Fprint(b.env.Stderr, "\r\x1b[K")
	}
}

func contractReplayCommand(env Env) *cli.Command {
	return onKind(env, "replay", "judge outputs that were kept by the contract as it is now, without a call",
		"Nothing is certified by it. Exit codes as those of verify.",
		[]cli.Flag{targetFlag("the target"), &cli.StringFlag{Name: "of", Usage: "digest of the contract that they were made for, or how it begins (default: the same)"}},
		func(ctx context.Context, c *cli.Command, d desk, kind string) error {
			if err := needs(c, "target"); err != nil {
				return err
			}
			of, err := d.digestOf(ctx, kind, c.String("target"), c.String("of"))
			if err != nil {
				return err
			}
			result, err := d.office.Replay(ctx, kind, c.String("target"), of)
			return printVerdict(env, c, &result, err)
		})
}

// digestOf finds the contract that a target was verified for by how its digest begins.
func (d desk) digestOf(ctx context.Context, kind, target, begins string) (string, error) {
	if begins == "" {
		return "", nil
	}
	if _, err := d.office.ContractOf(kind); err != nil {
		return "", err
	}
	known, err := d.office.Certificates(ctx, onejob.CertificateListParams{Kind: kind, TargetName: target, Limit: maxShownCertificates})
	if err != nil {
		return "", err
	}
	var found []string
	for i := range known {
		if digest := known[i].ContractDigest; strings.HasPrefix(digest, begins) && !slices.Contains(found, digest) {
			found = append(found, digest)
		}
	}
	switch len(found) {
	case 0:
		return "", &exitError{ExitNotFound, fmt.Sprintf("%s was never verified for a contract %q; see onejob contract show %s --target %[1]s", target, begins, kind)}
	case 1:
		return found[0], nil
	}
	return "", &exitError{ExitUsage, fmt.Sprintf("several contracts begin with %q: %s", begins, strings.Join(found, ", "))}
}

func contractRenderCommand(env Env) *cli.Command {
	return onKind(env, "render", "write the request of a case as a target would be sent it; nothing is called",
		"The name of the model and the key are added when it is sent, and are not shown.",
		[]cli.Flag{
			targetFlag("the target"),
			&cli.StringFlag{Name: "case", Usage: "`ID` of the case (default: the first)"},
			&cli.BoolFlag{Name: "count", Usage: "ask the target how many tokens it has; no execution"},
		},
		func(ctx context.Context, c *cli.Command, d desk, kind string) error {
			if err := needs(c, "target"); err != nil {
				return err
			}
			return renderCase(ctx, env, c, d, kind)
		})
}

func renderCase(ctx context.Context, env Env, c *cli.Command, d desk, kind string) error {
	t, err := d.office.TargetOf(kind, c.String("target"))
	if err != nil {
		return err
	}
	held := d.cfg.Contracts[kind]
	input := held.CaseList[0].Input
	if id := c.String("case"); id != "" {
		input = nil
		for i := range held.CaseList {
			if held.CaseList[i].ID == id {
				input = held.CaseList[i].Input
			}
		}
		if input == nil {
			return &exitError{ExitNotFound, fmt.Sprintf("the contract has no case %q", id)}
		}
	}
	body := []byte(input)
	prompter, able := t.Provider.(onejob.Prompter)
	if held.Contract.Prompt != nil && able {
		prompt, err := held.Checker.Prompt(input)
		if err != nil {
			return &exitError{ExitFailed, err.Error()}
		}
		rendered, err := prompter.Render(prompt)
		if err != nil {
			return &exitError{ExitFailed, err.Error()}
		}
		body = rendered.Body
		if len(rendered.Dropped) > 0 {
			say(env, "dropped: %s", strings.Join(rendered.Dropped, ", "))
		}
	}
	if err := sayCount(ctx, env, c, t.Provider, body); err != nil {
		return err
	}
	_, err = fmt.Fprintln(env.Stdout, strings.TrimRight(string(body), "\n"))
	return err
}

// sayCount tells how many tokens a request has, if that was asked.
func sayCount(ctx context.Context, env Env, c *cli.Command, p onejob.Provider, body []byte) error {
	if !c.Bool("count") {
		return nil
	}
	counter, able := p.(onejob.TokenCounter)
	n, err := 0, errors.ErrUnsupported
	if able {
		n, err = counter.CountTokens(ctx, body)
	}
	if err != nil {
		return &exitError{ExitUnreachable, "the target does not say how many tokens it has"}
	}
	say(env, "%s tokens", strconv.Itoa(n))
	return nil
}
