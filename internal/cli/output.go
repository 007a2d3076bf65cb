package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/mattn/go-isatty"
	"github.com/urfave/cli/v3"
)

// Forms of output.
const (
	formTable = "table"
	formJSON  = "json"
	formJSONL = "jsonl"
)

func outputFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "output", Aliases: []string{"o"}, Value: formTable,
		Usage: "form of what goes to stdout: table, json or jsonl",
		Validator: func(form string) error {
			switch form {
			case formTable, formJSON, formJSONL:
				return nil
			}
			return fmt.Errorf("there is no output %q; there are table, json and jsonl", form)
		},
	}
}

// isTerminal reports whether w is one.
func isTerminal(w io.Writer) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && isTerminalFd(f.Fd())
}

func isTerminalFd(fd uintptr) bool { return isatty.IsTerminal(fd) }

// colours reports whether w may be written to in colour.
func colours(env Env, w io.Writer) bool {
	return isTerminal(w) && env.Getenv("NO_COLOR") == "" && env.Getenv("TERM") != "dumb"
}

// rows is a list as it is printed: cells for people, items for programs.
type rows struct {
	headings []string
	cells    [][]string
	items    []json.RawMessage
	envelope json.RawMessage // the whole answer, for -o json
}

// print writes the list in the form that the command was asked for.
func (r rows) print(env Env, c *cli.Command) error {
	switch c.String("output") {
	case formJSON:
		return printJSON(env.Stdout, r.envelope)
	case formJSONL:
		for _, item := range r.items {
			if err := printJSONLine(env.Stdout, item); err != nil {
				return err
			}
		}
		return nil
	}
	return printAligned(env, r)
}

func printAligned(env Env, r rows) error {
	var text strings.Builder
	out := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(out, strings.Join(r.headings, "\t"))
	for _, cells := range r.cells {
		_, _ = fmt.Fprintln(out, strings.Join(cells, "\t"))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	headings, lines, _ := strings.Cut(text.String(), "\n")
	if colours(env, env.Stdout) {
		headings = "\x1b[1m" + headings + "\x1b[0m"
	}
	_, err := io.WriteString(env.Stdout, headings+"\n"+lines)
	return err
}

func printJSON(w io.Writer, raw json.RawMessage) error {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(raw); err != nil {
		return err
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// readable is JSON in which < and > stand for themselves.
func readable(v any) (json.RawMessage, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

func printJSONLine(w io.Writer, raw json.RawMessage) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(raw)
}

// pairs is one thing as it is printed: a line a property.
type pairs [][2]string

// print writes the thing in the form that the command was asked for.
func (p pairs) print(env Env, c *cli.Command, raw json.RawMessage) error {
	switch c.String("output") {
	case formJSON:
		return printJSON(env.Stdout, raw)
	case formJSONL:
		return printJSONLine(env.Stdout, raw)
	}
	out := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
	for _, pair := range p {
		if pair[1] != "" {
			_, _ = fmt.Fprintf(out, "%s\t%s\n", pair[0], pair[1])
		}
	}
	return out.Flush()
}

// clean keeps text from moving the cursor of whoever reads it.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return ' '
		}
		return r
	}, text)
}
