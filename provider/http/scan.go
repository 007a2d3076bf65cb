package httpcall

import (
	"errors"
	"slices"
	"strings"

	shared "github.com/onejob-dev/onejob/internal/template"
)

// lastFilter is the filter that an expression ends with, outside parentheses, and
// whether it is of all of that: after an operator it is of the last operand alone.
func lastFilter(text string) (name string, ofAll bool) {
	depth, at := 0, -1
	var outside strings.Builder // of quotes and parentheses
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b == '\'' || b == '"':
			i += shared.Quoted(text[i:]) - 1
		case strings.IndexByte("([{", b) >= 0:
			depth++
		case strings.IndexByte(")]}", b) >= 0:
			depth--
		case depth == 0:
			outside.WriteByte(b)
			if b == '|' {
				at = i
			}
		}
	}
	if at < 0 {
		return "", false
	}
	rest := strings.TrimSpace(text[at+1:])
	end := 0
	for end < len(rest) && shared.IsName(rest[end]) {
		end++
	}
	name, rest = rest[:end], strings.TrimSpace(rest[end:])
	if rest != "" && !(strings.HasPrefix(rest, "(") && strings.HasSuffix(rest, ")")) {
		return "", false // something follows, as in "x | tojson if y"
	}
	return name, !hasOperator(outside.String())
}

// operators are those that are written as words.
var operators = []string{"and", "or", "not", "in", "is", "if", "else"}

func hasOperator(text string) bool {
	return strings.ContainsAny(text, "+-*/%~<>=!") ||
		slices.ContainsFunc(shared.Names(text), func(name string) bool { return slices.Contains(operators, name) })
}

// quotes follows whether the text of a JSON template stands inside a string.
type quotes struct {
	inside, escaped bool
	open            []bool // inside, at the start of each open block
}

func (q *quotes) read(text string) {
	for i := range len(text) {
		switch {
		case q.escaped:
			q.escaped = false
		case q.inside && text[i] == '\\':
			q.escaped = true
		case text[i] == '"':
			q.inside = !q.inside
		}
	}
}

var errBranches = errors.New("the branches of a block do not agree on whether they stand inside a JSON string")

// statement holds the branches of a block to each other: whichever is taken,
// what follows must stand where it seems to.
func (q *quotes) statement(verb string) error {
	switch verb {
	case "if", "for":
		q.open = append(q.open, q.inside)
	case "elif", "else", "endif", "endfor":
		if len(q.open) == 0 {
			return nil // the engine will say so
		}
		if q.open[len(q.open)-1] != q.inside {
			return errBranches
		}
		if strings.HasPrefix(verb, "end") {
			q.open = q.open[:len(q.open)-1]
		}
	}
	return nil
}
