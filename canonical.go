package onejob

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is how deep JSON that reaches onejob may be nested.
const MaxDepth = 64

// Canonical returns the canonical form of one JSON value: members in the order
// of RFC 8785, no white space, shortest numbers, but integers kept exactly, since
// the RFC would merge 2^53 and 2^53+1.
//
// It is strict where two readers of the same bytes could see different things:
// duplicate names, invalid UTF-8, lone surrogates and numbers too large or too
// small for a float64 are refused with [CodePayloadNotCanonical]. What is not
// JSON, or nested deeper than [MaxDepth], is refused with [CodeInvalidRequest].
// raw is not changed.
func Canonical(raw []byte) ([]byte, error) { return appendCanonical(nil, raw) }

// appendCanonical appends the canonical form of raw to dst. The canonicaliser reads
// raw strictly by itself, so that only what it does not mind is looked for besides.
func appendCanonical(dst, raw []byte) ([]byte, error) {
	start := len(dst)
	dst = append(dst, raw...)
	v := jsontext.Value(dst[start:])
	if err := v.Canonicalize(jsontext.CanonicalizeRawInts(false)); err != nil {
		return nil, whyNotCanonical(raw, err)
	}
	if err := checkBounds(raw); err != nil {
		return nil, err
	}
	return append(dst[:start], v...), nil
}

// checkBounds reads raw, which is known to be one JSON value, for nesting and numbers
// that others may not read, or not read the same way.
func checkBounds(raw []byte) error {
	depth := 0
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			i += stringLength(raw[i:]) - 1
		case c == '[' || c == '{':
			if depth++; depth > MaxDepth {
				return tooDeep()
			}
		case c == ']' || c == '}':
			depth--
		case c == '-' || isDigit(c):
			n := numberLength(raw[i:])
			if err := checkNumber(string(raw[i : i+n])); err != nil {
				return err
			}
			i += n - 1
		}
	}
	return nil
}

// stringLength is how long the valid JSON string is that b begins with.
func stringLength(b []byte) int {
	for end := 1; ; {
		n := bytes.IndexByte(b[end:], '"')
		if n < 0 {
			return len(b)
		}
		end += n + 1
		escapes := 0
		for b[end-2-escapes] == '\\' { // the quote that opens the string ends this
			escapes++
		}
		if escapes%2 == 0 {
			return end
		}
	}
}

// numberLength is how long the valid JSON number is that b begins with.
func numberLength(b []byte) int {
	n := 0
	for n < len(b) && (isDigit(b[n]) || strings.IndexByte("+-.eE", b[n]) >= 0) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// whyNotCanonical reads raw once more, token by token, for the first thing that is
// wrong with it. err is what the canonicaliser said.
func whyNotCanonical(raw []byte, err error) error {
	if why := checkStrict(raw); why != nil {
		return why
	}
	return notCanonical(err)
}

func tooDeep() error {
	return &Error{Code: CodeInvalidRequest, Message: fmt.Sprintf("the JSON is nested deeper than %d", MaxDepth)}
}

// checkStrict reads raw once, token by token.
func checkStrict(raw []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	for n := 0; ; n++ {
		tok, err := dec.ReadToken()
		switch {
		case errors.Is(err, io.EOF) && n > 0:
			return nil
		case errors.Is(err, io.EOF):
			return &Error{Code: CodeInvalidRequest, Message: "the JSON is empty"}
		case err != nil:
			return notCanonical(err)
		}
		if dec.StackDepth() > MaxDepth {
			return tooDeep()
		}
		if tok.Kind() == '0' {
			if err := checkNumber(tok.String()); err != nil {
				return err
			}
		}
		if dec.StackDepth() == 0 {
			return checkNothingFollows(dec)
		}
	}
}

func checkNumber(literal string) error {
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil || math.IsInf(f, 0) || (f == 0 && !isZero(literal)) {
		return &Error{Code: CodePayloadNotCanonical, Message: "a number is too large or too small to be read the same way everywhere"}
	}
	return nil
}

// isZero reports whether every digit before the exponent is 0.
func isZero(literal string) bool {
	mantissa, _, _ := strings.Cut(strings.ToLower(literal), "e")
	return !strings.ContainsAny(mantissa, "123456789")
}

func checkNothingFollows(dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return &Error{Code: CodeInvalidRequest, Message: "something follows the JSON value"}
	}
	return nil
}

// notCanonical tells JSON that readers could take differently from what is no
// JSON at all. The text of the error never shows a value.
func notCanonical(err error) error {
	var syntactic *jsontext.SyntacticError
	where := ""
	if errors.As(err, &syntactic) {
		where = fmt.Sprintf(" at byte %d", syntactic.ByteOffset)
	}
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return &Error{Code: CodePayloadNotCanonical, Message: "the JSON has a duplicate member name" + where, Err: err}
	case syntactic != nil && isUTF8Fault(syntactic):
		return &Error{Code: CodePayloadNotCanonical, Message: "the JSON has text that is not valid UTF-8" + where, Err: err}
	}
	return &Error{Code: CodeInvalidRequest, Message: "the body is not valid JSON" + where, Err: err}
}

func isUTF8Fault(err *jsontext.SyntacticError) bool {
	if err.Err == nil {
		return false
	}
	text := err.Err.Error()
	return bytes.Contains([]byte(text), []byte("UTF-8")) || bytes.Contains([]byte(text), []byte("surrogate"))
}
