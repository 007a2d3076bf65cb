package onejob_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob"
)

func TestParseKey(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("k", onejob.MaxKeyLength)
	for _, tt := range []struct{ name, header, want string }{
		{"Bare", "order-42", "order-42"},
		{"QuotedIsTheSameKey", `"order-42"`, "order-42"},
		{"WhiteSpaceAroundIsTheHeaders", " \torder-42 \t", "order-42"},
		{"WhiteSpaceAroundQuotes", ` "order-42" `, "order-42"},
		{"SpacesInside", "order 42", "order 42"},
		{"SpacesInsideQuotesAreTheKeys", `" order "`, " order "},
		{"EscapedQuote", `"a\"b"`, `a"b`},
		{"EscapedBackslash", `"a\\b"`, `a\b`},
		{"BareQuoteInside", `a"b`, `a"b`},
		{"BareBackslashIsNoEscape", `a\\b`, `a\\b`},
		{"EveryPrintableCharacter", `!"#$%&'()*+,-./:;<=>?@[\]^_{|}~`, `!"#$%&'()*+,-./:;<=>?@[\]^_{|}~`},
		{"TheLongest", longest, longest},
		{"TheLongestInQuotes", `"` + longest + `"`, longest},
		{"TheLongestOfEscapes", `"` + strings.Repeat(`\"`, onejob.MaxKeyLength) + `"`, strings.Repeat(`"`, onejob.MaxKeyLength)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := onejob.ParseKey(tt.header)
			if err != nil || got != tt.want {
				t.Errorf("ParseKey(%q) = %q, %v; want %q", tt.header, got, err, tt.want)
			}
		})
	}
}

func TestParseKeyRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, header string
		code         onejob.Code
	}{
		{"None", "", onejob.CodeKeyMissing},
		{"OnlySpaces", "  \t ", onejob.CodeKeyMissing},
		{"EmptyQuotes", `""`, onejob.CodeKeyInvalid},
		{"OneTooLong", strings.Repeat("k", onejob.MaxKeyLength+1), onejob.CodeKeyInvalid},
		{"OneTooLongInQuotes", `"` + strings.Repeat("k", onejob.MaxKeyLength+1) + `"`, onejob.CodeKeyInvalid},
		{"ALineBreak", "a\nb", onejob.CodeKeyInvalid},
		{"ATab", "a\tb", onejob.CodeKeyInvalid},
		{"AZeroByte", "a\x00b", onejob.CodeKeyInvalid},
		{"ADelete", "a\x7f", onejob.CodeKeyInvalid},
		{"ControlInQuotes", "\"a\nb\"", onejob.CodeKeyInvalid},
		{"AnUmlaut", "schlüssel", onejob.CodeKeyInvalid},
		{"BadUTF8", "a\xff", onejob.CodeKeyInvalid},
		{"ANoBreakSpace", "a\u00a0", onejob.CodeKeyInvalid},
		{"OneQuote", `"`, onejob.CodeKeyInvalid},
		{"UnclosedQuote", `"abc`, onejob.CodeKeyInvalid},
		{"TextAfterTheQuote", `"abc"d`, onejob.CodeKeyInvalid},
		{"ParametersAfterTheQuote", `"abc";v=1`, onejob.CodeKeyInvalid},
		{"QuoteInsideQuotes", `"a"b"`, onejob.CodeKeyInvalid},
		{"EscapedClosingQuote", `"abc\"`, onejob.CodeKeyInvalid},
		{"UnknownEscape", `"a\nb"`, onejob.CodeKeyInvalid},
		{"TwoKeys", `"a", "b"`, onejob.CodeKeyInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := onejob.ParseKey(tt.header)
			e := wantError(t, err, tt.code)
			if got != "" || e.Message == "" {
				t.Errorf("ParseKey(%q) = %q with message %q; want no key and a message", tt.header, got, e.Message)
			}
		})
	}
}

func TestAKeyIsStoredAsItsHash(t *testing.T) {
	t.Parallel()
	row := rowOf(t, instanceSecret, onejob.SubmitParams{Owner: "alice", Key: `"order-2026-42"`, Kind: "draw", Input: []byte(`1`)})
	if !bytes.Equal(row.KeyHash, onejob.HashKey("order-2026-42")) || len(row.KeyHash) != 32 {
		t.Errorf("key hash %x; want SHA-256 of the bare key", row.KeyHash)
	}
	if row.KeyPrefix != "order-20" {
		t.Errorf("key prefix %q; want eight characters for people", row.KeyPrefix)
	}
	if row.Part != onejob.PartOf("alice", "order-2026-42") {
		t.Errorf("part %d; want that of the bare key", row.Part)
	}
}

func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{"order-42", `"order-42"`, `"a\"b"`, `"a\\"`, `""`, ` `, `"`, "a\x7f", `"\`, `a"b`, "schlüssel"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		key, err := onejob.ParseKey(header)
		if err != nil {
			if code := onejob.CodeOf(err); key != "" || (code != onejob.CodeKeyMissing && code != onejob.CodeKeyInvalid) {
				t.Fatalf("ParseKey(%q) = %q, %v", header, key, err)
			}
			return
		}
		if len(key) < 1 || len(key) > onejob.MaxKeyLength || strings.Trim(key, printable) != "" {
			t.Fatalf("ParseKey(%q) = %q, which is no key", header, key)
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
		if again, err := onejob.ParseKey(quoted); err != nil || again != key {
			t.Fatalf("ParseKey(%q) = %q, %v; want %q", quoted, again, err, key)
		}
	})
}

// printable is every character that a key may have.
var printable = func() string {
	var b strings.Builder
	for c := byte(' '); c <= '~'; c++ {
		b.WriteByte(c)
	}
	return b.String()
}()
