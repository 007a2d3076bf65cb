package template

import (
	"fmt"
	"strings"
)

// Kind is what a segment is.
type Kind int

// The kinds of a segment.
const (
	Text Kind = iota
	Output
	Statement
	Comment
)

// Segment is one piece of a template. Open and End are its delimiters, trim marks
// included; they are empty for text.
type Segment struct {
	Kind            Kind
	Open, Text, End string
}

// String returns the piece as it was written.
func (s Segment) String() string { return s.Open + s.Text + s.End }

// Scan splits a template as its engine does, so that each place where it puts something
// out is known. Its segments, joined, are the template again. A tag that is never
// closed is an error.
func Scan(source string) ([]Segment, error) {
	var segments []Segment
	for source != "" {
		at, kind := nextTag(source)
		if at > 0 {
			segments = append(segments, Segment{Text: source[:at]})
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
func nextTag(source string) (at int, kind Kind) {
	for i := 0; i+1 < len(source); i++ {
		if source[i] != '{' {
			continue
		}
		switch source[i+1] {
		case '{':
			return i, Output
		case '%':
			return i, Statement
		case '#':
			return i, Comment
		}
	}
	return len(source), Text
}

// scanTag reads the tag that source begins with. Quoted strings may hold its end.
func scanTag(source string, kind Kind) (s Segment, rest string, err error) {
	closer := map[Kind]string{Output: "}}", Statement: "%}", Comment: "#}"}[kind]
	s = Segment{Kind: kind, Open: source[:2]}
	source = source[2:]
	if strings.HasPrefix(source, "-") {
		s.Open, source = s.Open+"-", source[1:]
	}
	for i := 0; i < len(source); i++ {
		switch {
		case kind != Comment && (source[i] == '\'' || source[i] == '"'):
			i += Quoted(source[i:]) - 1
		case strings.HasPrefix(source[i:], "-"+closer):
			s.Text, s.End = source[:i], "-"+closer
			return s, source[i+len(s.End):], nil
		case strings.HasPrefix(source[i:], closer):
			s.Text, s.End = source[:i], closer
			return s, source[i+len(s.End):], nil
		}
	}
	return s, "", fmt.Errorf("%s is never closed", s.Open)
}

// Quoted is the length of the quoted string that source begins with.
func Quoted(source string) int {
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

// Names lists the identifiers of a tag that are no member of something else.
func Names(text string) []string {
	var found []string
	previous := byte(' ')
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b == '\'' || b == '"':
			i += Quoted(text[i:]) - 1
			previous = b
		case IsName(b):
			start := i
			for i+1 < len(text) && IsName(text[i+1]) {
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

// IsName reports whether a byte can be part of a name.
func IsName(b byte) bool {
	return b == '_' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
}
