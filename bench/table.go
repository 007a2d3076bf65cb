package main

import (
	"bytes"
	"fmt"
	"strings"
)

// print writes all tables, in Markdown.
func (r report) print(w *bytes.Buffer) {
	for _, h := range r.Contests {
		h.print(w)
	}
	if len(r.Goals) == 0 {
		return
	}
	fmt.Fprint(w, "### Goals\n\n| goal | wanted | got | |\n|---|---|---:|---|\n")
	for _, g := range r.Goals {
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", g.What, g.Want, g.Got, g.verdict())
	}
	fmt.Fprintln(w)
}

func (h held) print(w *bytes.Buffer) {
	fmt.Fprintf(w, "### %s\n\n%s\n\n", h.Title, h.About)
	fmt.Fprintf(w, "%s; %s.\n\n", h.Machine, h.turns())
	if len(h.Rows) > 0 {
		columns := h.columns()
		heads, rules := []string{"on", "what", "callers"}, []string{"---", "---", "---:"}
		for _, c := range columns {
			heads, rules = append(heads, c.head), append(rules, "---:")
		}
		line(w, append(heads, "durability, where it differs"))
		line(w, append(rules, "---"))
		for _, row := range h.Rows {
			line(w, row.cells(columns))
		}
		fmt.Fprintln(w)
	}
	for _, l := range h.LeftOut {
		fmt.Fprintf(w, "Left out: %s, since %s.\n", l.Name, l.Missing)
	}
	if len(h.LeftOut) > 0 {
		fmt.Fprintln(w)
	}
}

func (h held) turns() string {
	if h.Rounds == 1 {
		return "one turn each"
	}
	of := ""
	if h.Runs > 1 {
		of = fmt.Sprintf("%d runs of ", h.Runs)
	}
	return fmt.Sprintf("medians of %s%d rounds, turns of %s", of, h.Rounds, h.Turn)
}

// columns are those of the contest that some row has a figure for.
func (h held) columns() (columns []column) {
	for _, c := range allContests() {
		if c.name != h.Name {
			continue
		}
		for _, col := range c.columns {
			for _, r := range h.Rows {
				if _, ok := r.Figures[col.figure]; ok {
					columns = append(columns, col)
					break
				}
			}
		}
	}
	return columns
}

func (r row) cells(columns []column) []string {
	cells := []string{string(r.On), r.Name, ""}
	if r.Callers > 0 {
		cells[2] = fmt.Sprint(r.Callers)
	}
	for _, c := range columns {
		cell := "–"
		if v, ok := r.Figures[c.figure]; ok {
			cell = fmt.Sprintf(c.format, v)
		}
		cells = append(cells, cell)
	}
	return append(cells, r.Durable)
}

func line(w *bytes.Buffer, cells []string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }
