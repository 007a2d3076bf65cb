package contract

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing that is wrong with a contract's files, and where.
type Fault struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`   // from 1; zero: no place in the file
	Column int    `json:"column,omitempty"` // from 1
	Path   string `json:"path,omitempty"`   // as in gates.structure.min_rate; may be empty
	// Message says what is wrong and what would be right.
	Message string `json:"message"`
}

// String returns the fault as one line, in the form editors can jump to.
func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", f.Line, max(f.Column, 1))
	}
	b.WriteString(": ")
	if f.Path != "" {
		b.WriteString(f.Path + ": ")
	}
	b.WriteString(f.Message)
	return b.String()
}

// Error is everything that is wrong with a contract's files.
type Error struct {
	Faults []Fault // file by file, in the order of lines; at least one
}

// Error returns one line a fault.
func (e *Error) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// byPlace orders faults of one file by line. Files keep the order in which they
// were read.
func byPlace(order map[string]int) func(a, b Fault) int {
	return func(a, b Fault) int {
		return cmp.Or(cmp.Compare(order[a.File], order[b.File]), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	}
}

func sortFaults(faults []Fault) {
	order := map[string]int{}
	for _, f := range faults {
		if _, seen := order[f.File]; !seen {
			order[f.File] = len(order)
		}
	}
	slices.SortStableFunc(faults, byPlace(order))
}

// suggest ends a sentence that refuses got: it asks whether the nearest of valid
// was meant, or lists them all when none is near.
func suggest(got string, valid []string) string {
	best, distance := "", 1+max(2, len(got)/3)
	for _, v := range valid {
		if d := editDistance(strings.ToLower(got), strings.ToLower(v)); d < distance {
			best, distance = v, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf("; did you mean %q?", best)
	case len(valid) == 0:
		return ""
	}
	return "; there is " + strings.Join(valid, ", ")
}

// editDistance counts the insertions, deletions and substitutions from a to b.
func editDistance(a, b string) int {
	if len(a) > maxNameLength {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substituted := diagonal
			if a[i] != b[j] {
				substituted++
			}
			diagonal = row[j+1]
			row[j+1] = min(substituted, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// maxNameLength bounds a name that is compared with others.
const maxNameLength = 100
