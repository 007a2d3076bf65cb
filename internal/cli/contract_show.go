package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
)

// certificateView is a certificate as it is printed.
type certificateView struct {
	ID           string                   `json:"id"`
	Kind         string                   `json:"kind"`
	Contract     string                   `json:"contract"`
	Target       string                   `json:"target"`
	TargetDigest string                   `json:"target_digest"`
	Environment  string                   `json:"environment"`
	Verdict      onejob.RunState          `json:"verdict"`
	Status       onejob.CertificateStatus `json:"status"`
	Sandbox      bool                     `json:"sandbox,omitzero"`
	Reason       string                   `json:"reason,omitempty"`
	Detail       string                   `json:"detail,omitempty"`
	Dropped      []string                 `json:"dropped_params,omitempty"`
	Verification string                   `json:"verification_id"`
	IssuedAt     time.Time                `json:"issued_at"`
	ExpiresAt    time.Time                `json:"expires_at,omitzero"`
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
				view := certificateView{
					v.ID, v.Kind, v.ContractDigest, v.TargetName, v.TargetDigest, v.Environment, v.Verdict, v.Status, v.Sandbox,
					v.Reason, v.Detail, v.Dropped, v.RunID, v.IssuedAt.UTC(), v.ExpiresAt.UTC(),
				}
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
