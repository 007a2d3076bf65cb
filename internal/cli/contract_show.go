package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
)

// certificateView is a certificate as it is printed.
type certificateView struct {
	ID        string                   `json:"id"`
	Kind      string                   `json:"kind"`
	Contract  string                   `json:"contract"`
	Target    string                   `json:"target"`
	Verdict   onejob.RunState          `json:"verdict"`
	Status    onejob.CertificateStatus `json:"status"`
	Reason    string                   `json:"reason,omitempty"`
	Detail    string                   `json:"detail,omitempty"`
	IssuedAt  time.Time                `json:"issued_at"`
	ExpiresAt time.Time                `json:"expires_at,omitzero"`
}

func contractShowCommand(env Env) *cli.Command {
	return onKind(env, "show", "list the certificates of a kind, newest first", "", []cli.Flag{
		&cli.StringFlag{Name: "target", Usage: "of this target only"},
	},
		func(ctx context.Context, c *cli.Command, d desk, kind string) error {
			if _, err := d.office.ContractOf(kind); err != nil {
				return err
			}
			found, err := d.office.Certificates(ctx, onejob.CertificateListParams{Kind: kind, TargetName: c.String("target"), Limit: maxShownCertificates})
			if err != nil {
				return err
			}
			list := rows{headings: []string{"ID", "TARGET", "VERDICT", "STATUS", "REASON", "CONTRACT", "ISSUED", "EXPIRES"}}
			for i := range found {
				v := &found[i]
				view := certificateView{v.ID, v.Kind, v.ContractDigest, v.TargetName, v.Verdict, v.Status, v.Reason, v.Detail, v.IssuedAt.UTC(), v.ExpiresAt.UTC()}
				if err := list.add(view, v.ID, v.TargetName, string(v.Verdict), string(v.Status), v.Reason, shortDigest(v.ContractDigest), when(v.IssuedAt), when(v.ExpiresAt)); err != nil {
					return err
				}
			}
			return list.whole(env, c)
		})
}

const maxShownCertificates = 200

func contractDiffCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "diff", ArgsUsage: "A B", Usage: "compare two contracts: whether evidence for one is evidence for the other",
		Description: "A and B are files. Exit code 0: the same digest, so that certificates stay. 1: another\none, and what differs.",
		Flags:       []cli.Flag{outputFlag()},
		Action: func(_ context.Context, c *cli.Command) error {
			if c.Args().Len() != 2 {
				return usage(c, "it takes two contract files")
			}
			a, err := readContractFile(c.Args().Get(0))
			if err != nil {
				return err
			}
			b, err := readContractFile(c.Args().Get(1))
			if err != nil {
				return err
			}
			return printDiff(env, c, a, b)
		},
	}
}

// difference is what differs between two contracts.
type difference struct {
	Same    bool     `json:"same" doc:"Evidence for one is evidence for the other"`
	A       string   `json:"a"`
	B       string   `json:"b"`
	Members []string `json:"members"`
}

func printDiff(env Env, c *cli.Command, a, b *contract.Contract) error {
	d := difference{Members: contract.Diff(a, b)}
	var err error
	if d.A, err = contract.Digest(a); err != nil {
		return err
	}
	if d.B, err = contract.Digest(b); err != nil {
		return err
	}
	d.Same = d.A == d.B
	if c.String("output") == formTable {
		verdict := "the same digest: certificates stay"
		if !d.Same {
			verdict = "another digest: every target is to be verified again"
		}
		_, err = fmt.Fprintf(env.Stdout, "%s -> %s  %s\n", shortDigest(d.A), shortDigest(d.B), verdict)
		for _, member := range d.Members {
			_, _ = fmt.Fprintf(env.Stdout, "  %s\n", member)
		}
	} else {
		var raw []byte
		if raw, err = json.Marshal(d); err == nil {
			err = printJSONLine(env.Stdout, raw)
		}
	}
	if err == nil && !d.Same {
		return &exitError{ExitFailed, ""}
	}
	return err
}

func contractRecordCommand(env Env) *cli.Command {
	return onKind(env, "record", "draft cases from the inputs of real jobs, to be reviewed and redacted",
		`Writes one case a line to stdout, from the newest jobs of the kind that succeeded. Real
inputs hold what people wrote: name what is to be blanked with --redact, once for each
member, as in --redact input.body; --redact none says that nothing needs to be. What is
expected of a case is for a person to add.`,
		[]cli.Flag{
			&cli.BoolFlag{Name: "from-jobs", Usage: "from jobs in the store (required)"},
			&cli.IntFlag{Name: "sample", Value: 100, Usage: "at most so many cases"},
			&cli.StringSliceFlag{Name: "redact", Usage: "a `MEMBER` of the input to blank, or none (required)"},
		},
		func(ctx context.Context, c *cli.Command, d desk, kind string) error {
			redact := c.StringSlice("redact")
			switch {
			case !c.Bool("from-jobs"):
				return usage(c, "--from-jobs is required: it is where cases come from")
			case len(redact) == 0:
				return usage(c, "--redact is required: a member of the input, as in input.body, or none")
			case c.Int("sample") < 1:
				return usage(c, "--sample is at least 1")
			}
			held, err := d.office.ContractOf(kind)
			if err != nil {
				return err
			}
			return recordCases(ctx, env, d, held, c.Int("sample"), slices.DeleteFunc(redact, func(m string) bool { return m == "none" }))
		})
}

// recordCases writes cases for the inputs of jobs, each input once.
func recordCases(ctx context.Context, env Env, d desk, held *contract.Contract, most int, redact []string) error {
	seen, before := map[string]bool{}, (*onejob.JobCursor)(nil)
	for len(seen) < most {
		page, err := d.store.JobList(ctx, onejob.JobListParams{Kind: held.Kind, States: []onejob.JobState{onejob.JobSucceeded}, Before: before, Limit: 200})
		if err != nil {
			return err
		}
		for _, job := range page.Jobs {
			before = &onejob.JobCursor{CreatedAt: job.CreatedAt, ID: job.ID}
			if len(seen) == most {
				break
			}
			if err := recordCase(ctx, env, d, job.ID, redact, seen); err != nil {
				return err
			}
		}
		if !page.More {
			break
		}
	}
	say(env, "%d cases; review them before they go into a file", len(seen))
	return nil
}

func recordCase(ctx context.Context, env Env, d desk, id string, redact []string, seen map[string]bool) error {
	results, err := d.store.JobGet(ctx, []onejob.JobGetParams{{ID: id, WithInput: true}})
	if err == nil {
		err = results[0].Err
	}
	if err != nil || len(results[0].Job.Input) == 0 {
		return err // emptied meanwhile
	}
	input, err := redacted(results[0].Job.Input, redact)
	if err != nil || seen[string(input)] {
		return err
	}
	seen[string(input)] = true
	line, err := json.Marshal(map[string]any{"id": "job-" + strings.TrimPrefix(id, "job_"), "input": input, "tags": []string{"recorded"}})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(env.Stdout, string(line))
	return err
}

// redacted blanks members of an input: a text keeps its length, in x; anything else
// becomes null.
func redacted(input []byte, members []string) (json.RawMessage, error) {
	if len(members) == 0 {
		return input, nil
	}
	value, err := decodeExact(input)
	if err != nil {
		return nil, err
	}
	for _, member := range members {
		path := strings.Split(strings.TrimPrefix(member, "input."), ".")
		at, known := value.(map[string]any)
		for _, step := range path[:len(path)-1] {
			if known {
				at, known = at[step].(map[string]any)
			}
		}
		if _, there := at[path[len(path)-1]]; known && there {
			at[path[len(path)-1]] = blank(at[path[len(path)-1]])
		}
	}
	return json.Marshal(value)
}

func blank(v any) any {
	if text, isText := v.(string); isText {
		return strings.Repeat("x", len([]rune(text)))
	}
	return nil
}

// decodeExact reads JSON with its numbers as they are written.
func decodeExact(raw []byte) (value any, err error) {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	err = d.Decode(&value)
	return value, err
}
