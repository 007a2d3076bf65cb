package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing that is wrong with the configuration, and where.
type Fault struct {
	File   string // or "environment", "flags"
	Line   int    // from 1; zero: no place in a file
	Column int    // from 1
	Path   string // as in kinds.charge_card.timeout; may be empty
	// Message says what is wrong and what would be right. It holds no secret.
	Message string
}

// String returns the fault as one line, in the form editors can jump to.
func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", f.Line, f.Column)
	}
	b.WriteString(": ")
	if f.Path != "" {
		b.WriteString(f.Path + ": ")
	}
	b.WriteString(f.Message)
	return b.String()
}

// Error is everything that is wrong with a configuration.
type Error struct {
	Faults []Fault // in the order of the file, at least one
}

// Error returns one line a fault.
func (e *Error) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

func sortFaults(faults []Fault) {
	slices.SortStableFunc(faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// Suggest ends a sentence that refuses got: it asks whether the nearest of valid
// was meant, or lists them all when none is near.
func Suggest(got string, valid []string) string {
	if len(valid) == 0 {
		return ""
	}
	nearest, distance := "", 1+max(2, len(got)/3)
	for _, v := range valid {
		if d := editDistance(strings.ToLower(got), v); d < distance {
			nearest, distance = v, d
		}
	}
	if nearest != "" {
		return fmt.Sprintf("; did you mean %q?", nearest)
	}
	return "; there is " + strings.Join(valid, ", ")
}

// editDistance counts the insertions, deletions and substitutions from a to b.
func editDistance(a, b string) int {
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
