package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/onejob-dev/onejob/contract"
)

func contractCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "contract", Usage: "say what a kind needs of any target, verify targets, and ask who may stand in for whom",
		Description: "All but lint and diff work on the store directly, by the configuration, so that they\nneed no server.",
		Commands: []*cli.Command{
			{
				Name: "lint", Usage: "report everything about contracts that can be told without a target; exit code 2 if anything is wrong",
				ArgsUsage:   "FILE…",
				Description: "Reads each contract and the case files it names, and calls nothing. What is\nfound, and what the plan of each gate shows, goes to stdout.",
				Flags:       []cli.Flag{outputFlag()},
				Action: func(_ context.Context, c *cli.Command) error {
					return lintContracts(env, c)
				},
			},
			contractListCommand(env), contractShowCommand(env), contractMatrixCommand(env), contractCanFailoverCommand(env),
			contractRenderCommand(env), contractVerifyCommand(env), contractReplayCommand(env), contractDiffCommand(env),
			contractWaiveCommand(env), contractRevokeCommand(env), contractRecordCommand(env),
		},
	}
}

// linted is what lint says of one file. A file that cannot be read has no report of
// its own.
type linted struct {
	OK bool `json:"ok"`
	*contract.Report
}

// lintContracts lints every file, whatever is wrong with the others.
func lintContracts(env Env, c *cli.Command) error {
	if !c.Args().Present() {
		return usage(c, "it takes one or more contract files")
	}
	results := make([]linted, 0, c.Args().Len())
	wrong := 0
	for _, path := range c.Args().Slice() {
		report, err := lintContract(path)
		if err != nil {
			return err
		}
		if !report.OK() {
			wrong++
		}
		results = append(results, linted{report.OK(), report})
	}
	if err := printLinted(env, c, results); err != nil {
		return err
	}
	if wrong > 0 {
		return &exitError{ExitUsage, fmt.Sprintf("%d of %d contracts cannot be used", wrong, len(results))}
	}
	return nil
}

func parseContract(path string, text []byte) (*contract.Contract, error) {
	return contract.Parse(filepath.ToSlash(path), text, os.DirFS(filepath.Dir(path)))
}

// readContractFile reads a contract, whatever lint would say of it.
func readContractFile(path string) (*contract.Contract, error) {
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return nil, &exitError{ExitUsage, "the contract cannot be read: " + err.Error()}
	}
	read, err := parseContract(path, text)
	if err != nil {
		return nil, &exitError{ExitUsage, err.Error()}
	}
	return read, nil
}

// lintContract reads and lints one file. Its error is that the file cannot be read.
func lintContract(path string) (*contract.Report, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > contract.MaxFileBytes {
		err = fmt.Errorf("%s is larger than %d bytes", path, contract.MaxFileBytes)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(filepath.Clean(path))
	}
	if err != nil {
		return nil, &exitError{ExitUsage, "the contract cannot be read: " + err.Error()}
	}
	read, err := parseContract(path, text)
	var faults *contract.Error
	switch {
	case errors.As(err, &faults):
		return unreadable(path, faults), nil
	case err != nil:
		return nil, err
	}
	return contract.Lint(read), nil
}

// unreadable is the report of a file that says nothing certain.
func unreadable(path string, faults *contract.Error) *contract.Report {
	report := &contract.Report{File: filepath.ToSlash(path), Bounds: []contract.Bound{}}
	for _, f := range faults.Faults {
		report.Findings = append(report.Findings, contract.Finding{Severity: contract.SeverityError, Rule: "file", Fault: f})
	}
	return report
}

func printLinted(env Env, c *cli.Command, results []linted) error {
	items := make([]json.RawMessage, len(results))
	for i, r := range results {
		item, err := json.Marshal(r)
		if err != nil {
			return err
		}
		items[i] = item
	}
	switch c.String("output") {
	case formJSON:
		envelope, err := json.Marshal(map[string]any{"items": items})
		if err != nil {
			return err
		}
		return printJSON(env.Stdout, envelope)
	case formJSONL:
		return rows{items: items}.print(env, c)
	}
	for _, r := range results {
		if _, err := fmt.Fprint(env.Stdout, lintText(r)); err != nil {
			return err
		}
	}
	return nil
}

// many counts things, of which one has no s.
func many(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// lintText is a report for people.
func lintText(r linted) string {
	var b strings.Builder
	for _, f := range r.Findings {
		b.WriteString(clean(f.String()) + "\n")
	}
	verdict := "PASS"
	if !r.OK {
		verdict = "FAIL"
	}
	if r.Digest == "" {
		fmt.Fprintf(&b, "%s %s\n", verdict, clean(r.File))
		return b.String()
	}
	fmt.Fprintf(&b, "%s %s: %s %s\n", verdict, clean(r.File), r.Kind, r.Digest)
	fmt.Fprintf(&b, "  cases        %d distinct, %d hostile, %d with expect; %s with %s each\n",
		r.Distinct, r.Hostile, r.Expected, many(r.Calls, "call"), many(r.Repeats, "repeat"))
	for _, bound := range r.Bounds {
		fmt.Fprintf(&b, "  %-12s %s; a target right 99 %% of the time passes %.0f %% of the time\n", bound.Gate, bound, bound.GoodTargetPasses*100)
	}
	b.WriteString("  A bound is about these cases, which were chosen. It says nothing about rare inputs.\n")
	return b.String()
}
