package httpcall

import (
	"errors"
	"fmt"
	"strings"
)

// A template is scanned as its engine scans it, so that each place where it puts
// something out can be escaped for where it stands.

type segmentKind int

const (
	textSegment segmentKind = iota
	outputSegment
	statementSegment
	commentSegment
)

// segment is one piece of a template. open and end are its delimiters, trim
// marks included.
type segment struct {
	kind            segmentKind
	open, text, end string
}

func (s segment) String() string { return s.open + s.text + s.end }

// scan splits a template. Its segments, joined, are the template again.
func scan(source string) ([]segment, error) {
	var segments []segment
	for source != "" {
		at, kind := nextTag(source)
		if at > 0 {
			segments = append(segments, segment{text: source[:at]})
		}
		if at == len(source) {
			break
		}
		s, rest, err := scanTag(source[at:], kind)
		if err != nil {
			return nil, err
		}
		segments, source = append(segments, s), rest
	}
	return segments, nil
}

// nextTag finds the first tag, or the end.
func nextTag(source string) (at int, kind segmentKind) {
	for i := 0; i+1 < len(source); i++ {
		if source[i] != '{' {
			continue
		}
		switch source[i+1] {
		case '{':
			return i, outputSegment
		case '%':
			return i, statementSegment
		case '#':
			return i, commentSegment
		}
	}
	return len(source), textSegment
}

// scanTag reads the tag that source begins with. Quoted strings may hold its end.
func scanTag(source string, kind segmentKind) (s segment, rest string, err error) {
	closer := map[segmentKind]string{outputSegment: "}}", statementSegment: "%}", commentSegment: "#}"}[kind]
	s = segment{kind: kind, open: source[:2]}
	source = source[2:]
	if strings.HasPrefix(source, "-") {
		s.open, source = s.open+"-", source[1:]
	}
	for i := 0; i < len(source); i++ {
		switch {
		case kind != commentSegment && (source[i] == '\'' || source[i] == '"'):
			i += quoted(source[i:]) - 1
		case strings.HasPrefix(source[i:], "-"+closer):
			s.text, s.end = source[:i], "-"+closer
			return s, source[i+len(s.end):], nil
		case strings.HasPrefix(source[i:], closer):
			s.text, s.end = source[:i], closer
			return s, source[i+len(s.end):], nil
		}
	}
	return s, "", fmt.Errorf("%s is never closed", s.open)
}

// quoted is the length of the quoted string that source begins with.
func quoted(source string) int {
	for i := 1; i < len(source); i++ {
		switch source[i] {
		case '\\':
			i++
		case source[0]:
			return i + 1
		}
	}
	return len(source)
}

// names lists the identifiers of a tag that are no member of something else.
func names(text string) []string {
	var found []string
	previous := byte(' ')
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b == '\'' || b == '"':
			i += quoted(text[i:]) - 1
			previous = b
		case isName(b):
			start := i
			for i+1 < len(text) && isName(text[i+1]) {
				i++
			}
			if previous != '.' {
				found = append(found, text[start:i+1])
			}
			previous = 'a'
		case b != ' ' && b != '\t' && b != '\n' && b != '\r':
			previous = b
		}
	}
	return found
}

func isName(b byte) bool {
	return b == '_' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
}

// lastFilter is the filter that an expression ends with, outside parentheses.
func lastFilter(text string) string {
	depth, at := 0, -1
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\'', '"':
			i += quoted(text[i:]) - 1
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case '|':
			if depth == 0 {
				at = i
			}
		}
	}
	if at < 0 {
		return ""
	}
	rest := strings.TrimSpace(text[at+1:])
	end := 0
	for end < len(rest) && isName(rest[end]) {
		end++
	}
	name, rest := rest[:end], strings.TrimSpace(rest[end:])
	if rest != "" && !(strings.HasPrefix(rest, "(") && strings.HasSuffix(rest, ")")) {
		return "" // something follows, as in "x | tojson if y"
	}
	return name
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
