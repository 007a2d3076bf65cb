package onejob

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"hash"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// FingerprintVersion is the algorithm that new jobs are fingerprinted with.
const FingerprintVersion = 1

// intent is what a key is bound to: everything that decides what is done.
// Metadata, priority and webhooks are not in it.
type intent struct {
	kind, target, supersedes string
	input                    []byte // as it was given
	runAfter, deadline       time.Time
}

func intentOf(p *SubmitParams) intent {
	return intent{kind: p.Kind, target: p.Target, supersedes: p.Supersedes, input: p.Input, runAfter: p.RunAfter, deadline: p.Deadline}
}

// appendText appends what version 1 fingerprints: the canonical JSON object of the
// members below.
func (in *intent) appendText(b []byte) ([]byte, error) {
	b = append(b, `{"deadline":`...)
	b = appendQuotedTime(b, in.deadline)
	b = append(b, `,"input":`...)
	b, err := appendCanonical(b, in.input)
	if err != nil {
		return nil, err
	}
	b = append(b, `,"kind":`...)
	b = appendQuoted(b, in.kind)
	b = append(b, `,"operation":"submit","run_after":`...)
	b = appendQuotedTime(b, in.runAfter)
	b = append(b, `,"supersedes":`...)
	b = appendQuoted(b, in.supersedes)
	b = append(b, `,"target":`...)
	b = appendQuoted(b, in.target)
	return append(b, `,"v":1}`...), nil
}

func appendQuoted(b []byte, s string) []byte {
	quoted, err := jsontext.AppendQuote(b, s)
	if err != nil { // invalid UTF-8, which no door lets through: written as no string is
		return fmt.Appendf(b, `x"%x"`, s)
	}
	return quoted
}

func quote(s string) string { return string(appendQuoted(nil, s)) }

func appendQuotedTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, "null"...)
	}
	b = append(b, '"')
	b = t.UTC().AppendFormat(b, time.RFC3339Nano)
	return append(b, '"')
}

// fingerprinter binds intents under one secret. It keeps what each would make anew:
// the state after the secret, and room for an intent's text.
type fingerprinter struct{ idle sync.Pool }

type binding struct {
	mac  hash.Hash
	text []byte
}

// maxKeptText is the most room that is kept between intents.
const maxKeptText = 64 << 10

func newFingerprinter(secret []byte) *fingerprinter {
	return &fingerprinter{idle: sync.Pool{New: func() any { return &binding{mac: hmac.New(sha256.New, secret)} }}}
}

// bind fingerprints an intent under the given version of the algorithm. It returns
// what [Canonical] returns for an input that is refused.
//
// Version 1 is HMAC-SHA-256, with the instance secret, over the intent's text. An
// unknown version is an error: the row was written by a newer program.
func (f *fingerprinter) bind(in *intent, version int) ([]byte, error) {
	if version != 1 {
		return nil, &Error{Code: CodeInternal, Message: fmt.Sprintf("fingerprint version %d is not known to this program", version)}
	}
	b := f.idle.Get().(*binding) //nolint:forcetypeassert // nothing else is put there
	defer f.idle.Put(b)
	text, err := in.appendText(b.text[:0])
	if err != nil {
		return nil, err
	}
	if cap(text) <= maxKeptText {
		b.text = text
	}
	b.mac.Reset()
	_, _ = b.mac.Write(text)
	return b.mac.Sum(nil), nil
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
