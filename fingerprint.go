package onejob

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// FingerprintVersion is the algorithm that new jobs are fingerprinted with.
const FingerprintVersion = 1

// intent is what a key is bound to: everything that decides what is done.
// Metadata, priority and webhooks are not in it.
type intent struct {
	kind, target, supersedes string
	canonicalInput           []byte
	runAfter, deadline       time.Time
}

// fingerprint binds the intent under the given version of the algorithm.
//
// Version 1 is HMAC-SHA-256, with the instance secret, over the canonical JSON
// object of the members below. An unknown version is an error: the row was
// written by a newer program.
func (in intent) fingerprint(secret []byte, version int) ([]byte, error) {
	if version != 1 {
		return nil, &Error{Code: CodeInternal, Message: fmt.Sprintf("fingerprint version %d is not known to this program", version)}
	}
	mac := hmac.New(sha256.New, secret)
	write := func(parts ...string) {
		for _, p := range parts {
			_, _ = mac.Write([]byte(p))
		}
	}
	write(`{"deadline":`, quoteTime(in.deadline), `,"input":`)
	_, _ = mac.Write(in.canonicalInput)
	write(`,"kind":`, quote(in.kind), `,"operation":"submit","run_after":`, quoteTime(in.runAfter),
		`,"supersedes":`, quote(in.supersedes), `,"target":`, quote(in.target), `,"v":1}`)
	return mac.Sum(nil), nil
}

func quote(s string) string {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil { // invalid UTF-8, which no door lets through: written as no string is
		return fmt.Sprintf(`x"%x"`, s)
	}
	return string(b)
}

func quoteTime(t time.Time) string {
	if t.IsZero() {
		return "null"
	}
	return quote(t.UTC().Format(time.RFC3339Nano))
}

// MaxKeyLength is the longest idempotency key, in bytes.
const MaxKeyLength = 255

// keyPrefixLength is how much of a key is kept readable, for people.
const keyPrefixLength = 8

// ParseKey reads an idempotency key as a header or a member carries it: bare, or
// as a quoted structured-field string, which is the same key. It returns
// [CodeKeyMissing] for none and [CodeKeyInvalid] for one that is not 1 to 255
// printable ASCII characters.
func ParseKey(s string) (string, error) {
	key := strings.Trim(s, " \t")
	if key == "" {
		return "", &Error{Code: CodeKeyMissing, Message: "Idempotency-Key is required; make one per intent and send it again with every retry"}
	}
	if key[0] == '"' {
		var ok bool
		if key, ok = unquoteKey(key); !ok {
			return "", invalidKey("its quotes do not match")
		}
	}
	switch {
	case key == "":
		return "", invalidKey("it is empty")
	case len(key) > MaxKeyLength:
		return "", invalidKey(fmt.Sprintf("it has %d characters; at most %d are allowed", len(key), MaxKeyLength))
	case strings.IndexFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) >= 0:
		return "", invalidKey("it may hold only printable ASCII characters")
	}
	return key, nil
}

func invalidKey(why string) error {
	return &Error{Code: CodeKeyInvalid, Message: "the idempotency key is not valid: " + why}
}

// unquoteKey reads a structured-field string (RFC 8941, section 3.3.3).
func unquoteKey(s string) (string, bool) {
	if len(s) < 2 || s[len(s)-1] != '"' {
		return "", false
	}
	var b strings.Builder
	for body := s[1 : len(s)-1]; body != ""; body = body[1:] {
		switch body[0] {
		case '"':
			return "", false
		case '\\':
			if len(body) < 2 || (body[1] != '"' && body[1] != '\\') {
				return "", false
			}
			body = body[1:]
		}
		b.WriteByte(body[0])
	}
	return b.String(), true
}

// HashKey returns the hash under which a key is stored: SHA-256.
func HashKey(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return sum[:]
}

func keyPrefix(key string) string { return key[:min(len(key), keyPrefixLength)] }
