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
func Canonical(raw []byte) ([]byte, error) {
	if err := checkStrict(raw); err != nil {
		return nil, err
	}
	v := jsontext.Value(bytes.Clone(raw))
	if err := v.Canonicalize(jsontext.CanonicalizeRawInts(false)); err != nil {
		return nil, notCanonical(err)
	}
	return v, nil
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
			return &Error{Code: CodeInvalidRequest, Message: fmt.Sprintf("the JSON is nested deeper than %d", MaxDepth)}
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
