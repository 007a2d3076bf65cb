package sim_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob/sim"
)

var update = flag.Bool("update", false, "write docs/sim.md anew")

// simPage is where the tables of faults are explained.
var simPage = filepath.Join("..", "docs", "sim.md")

// The marks between which the page is printed.
const (
	printedFrom = "<!-- Printed from sim by: go test ./sim -run TestSimDoc -update -->\n"
	printedTo   = "<!-- The end of what is printed. -->\n"
)

func TestSimDoc(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(simPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), printedFrom)
	_, after, closed := strings.Cut(rest, printedTo)
	if !found || !closed {
		t.Fatalf("%s has no place for the tables", simPage)
	}
	want := before + printedFrom + faultTables() + printedTo + after
	if *update {
		if err := os.WriteFile(simPage, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(page) != want {
		t.Errorf("%s is not what the table of faults says: go test ./sim -run TestSimDoc -update", simPage)
	}
}

func faultTables() string {
	var b strings.Builder
	b.WriteString("\n### Of the answer as a whole\n\n| fault | takes | the work is done | what the client meets |\n|---|---|---|---|\n")
	for _, f := range sim.Faults() {
		if !f.Lie {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, f.Argument, f.Executes, f.Short)
		}
	}
	for _, silent := range []bool{true, false} {
		title := "Loud lies: a 400 instead of an answer, because the request has"
		if silent {
			title = "Silent lies: a 200 that is not what was asked"
		}
		fmt.Fprintf(&b, "\n### %s\n\n| lie | takes | class | what it is |\n|---|---|---|---|\n", title)
		for _, f := range sim.Faults() {
			if f.Lie && f.Silent == silent {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, f.Argument, f.Class, strings.ReplaceAll(f.Short, "<think>", "`<think>`"))
			}
		}
	}
	b.WriteString("\n")
	return b.String()
}
