package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// What stands between these lines of a page is replaced.
const (
	pageBegin = "<!-- bench: begin -->\n"
	pageEnd   = "<!-- bench: end -->"
)

// write replaces the tables of a page. The figures are kept beside it, in a file of
// the page's name that ends in .json, so that a run of one contest leaves the others'.
func (r report) write(page string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, begins := bytes.Cut(text, []byte(pageBegin))
	_, after, ends := bytes.Cut(rest, []byte(pageEnd))
	if !begins || !ends {
		return fmt.Errorf("%s lacks the lines %q and %q, between which the tables go", page, strings.TrimSpace(pageBegin), pageEnd)
	}
	kept := strings.TrimSuffix(page, filepath.Ext(page)) + ".json"
	older, err := readReport(kept)
	if err != nil {
		return fmt.Errorf("read the figures kept in %s: %w", kept, err)
	}
	all := r.over(older)
	if err := all.save(kept); err != nil {
		return err
	}
	var tables bytes.Buffer
	all.print(&tables)
	return os.WriteFile(page, bytes.Join([][]byte{before, []byte(pageBegin), tables.Bytes(), []byte(pageEnd), after}, nil), 0o644)
}
