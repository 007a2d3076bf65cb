package onejob_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/onejob-dev/onejob"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, raw, want string }{
		{"WhiteSpaceIsNothing", " {\n\t\"a\" : [ 1 , 2 ] }\r\n", `{"a":[1,2]}`},
		{"MembersAreSorted", `{"b":1,"a":{"d":1,"c":2}}`, `{"a":{"c":2,"d":1},"b":1}`},
		{"MembersAreSortedByUTF16", "{\"\ue000\":1,\"\U0001f600\":2}", "{\"\U0001f600\":2,\"\ue000\":1}"},
		{"TheOrderOfArraysCounts", `[2,1]`, `[2,1]`},
		{"EscapesAreUndone", `"\u0061\/\u00e9"`, `"a/é"`},
		{"ControlCharactersAreEscaped", `"\u0008\u000a\u001f"`, `"\b\n\u001f"`},
		{"APairOfSurrogatesIsOneCharacter", `"\ud83d\ude00"`, `"😀"`},
		{"WholeNumbersAreOne", `[1,1.0,1e0,10e-1]`, `[1,1,1,1]`},
		{"FractionsAreShortest", `[0.10,1e-7,1.50E+2]`, `[0.1,1e-7,150]`},
		{"IntegersBeyondAFloatAreExact", `[9007199254740992,9007199254740993]`, `[9007199254740992,9007199254740993]`},
		{"DecimalsThatAFloatCannotTellApartAreOne", `[0.1,0.1000000000000000055]`, `[0.1,0.1]`},
		{"ZeroHasNoSign", `[0,-0,0.0,-0.0,0e-400]`, `[0,0,0,0,0]`},
		{"ALongIntegerIsExact", `1234567890123456789012345678901234567890`, `1234567890123456789012345678901234567890`},
		{"NullIsAValue", ` null `, `null`},
		{"TextIsNotNormalised", "[\"\u00e9\",\"e\u0301\"]", "[\"\u00e9\",\"e\u0301\"]"},
		{"ANameMayBeEmpty", `{"":1}`, `{"":1}`},
		{"TheSameNameInTwoObjectsIsNoDuplicate", `[{"a":1},{"a":1,"b":{"a":2}}]`, `[{"a":1},{"a":1,"b":{"a":2}}]`},
		{"TheDeepestThatIsAllowed", deep(onejob.MaxDepth), deep(onejob.MaxDepth)},
		{"TheLargestNumber", `1.7976931348623157e308`, `1.7976931348623157e+308`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := onejob.Canonical([]byte(tt.raw))
			if err != nil || string(got) != tt.want {
				t.Errorf("Canonical(%s) = %s, %v; want %s", tt.raw, got, err, tt.want)
			}
		})
	}
}

func deep(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

const canary = "SECRET4711"

func TestCanonicalRefusesWhatTwoReadersCouldReadDifferently(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, raw string }{
		{"DuplicateName", `{"a":"SECRET4711","a":2}`},
		{"DuplicateNameDeepInside", `[{"x":{"a":"SECRET4711","b":1,"a":2}}]`},
		{"DuplicateNameByEscape", `{"a":"SECRET4711","\u0061":2}`},
		{"DuplicateEmptyName", `{"":"SECRET4711","":2}`},
		{"BadUTF8", "[\"SECRET4711\xff\"]"},
		{"BadUTF8InAName", "{\"a\xc3\x28\":\"SECRET4711\"}"},
		{"EncodedSurrogate", "[\"SECRET4711\xed\xa0\x80\"]"},
		{"OverlongSlash", "[\"SECRET4711\xc0\xaf\"]"},
		{"LoneHighSurrogate", `["SECRET4711\ud800"]`},
		{"LoneLowSurrogate", `["SECRET4711\udc00"]`},
		{"SurrogatesInTheWrongOrder", `["SECRET4711\ude00\ud83d"]`},
		{"HugeNumber", `["SECRET4711",1e400]`},
		{"HugeNegativeNumber", `["SECRET4711",-1e400]`},
		{"IntegerOf400Digits", `["SECRET4711",` + strings.Repeat("7", 400) + `]`},
		{"NumberThatVanishes", `["SECRET4711",1e-400]`},
		{"NegativeNumberThatVanishes", `["SECRET4711",-0.001E-400]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			checkRefused(t, tt.raw, onejob.CodePayloadNotCanonical)
		})
	}
}

func TestCanonicalRefusesWhatIsNotOneJSONValue(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, raw string }{
		{"Empty", ""},
		{"WhiteSpaceOnly", " \n\t"},
		{"Unfinished", `{"a":"SECRET4711"`},
		{"NotANumber", `["SECRET4711",NaN]`},
		{"Infinity", `["SECRET4711",-Infinity]`},
		{"LeadingZero", `["SECRET4711",01]`},
		{"LeadingPlus", `["SECRET4711",+1]`},
		{"TrailingComma", `["SECRET4711",]`},
		{"Comment", `["SECRET4711"/* */]`},
		{"SingleQuotes", `['SECRET4711']`},
		{"RawControlCharacter", "[\"SECRET4711\n\"]"},
		{"UnknownEscape", `["SECRET4711\q"]`},
		{"ByteOrderMark", "\ufeff[\"SECRET4711\"]"},
		{"TwoValues", `"SECRET4711" 1`},
		{"TrailingBytes", `{"a":"SECRET4711"}x`},
		{"TrailingZeroByte", "\"SECRET4711\"\x00"},
		{"OneTooDeep", deep(onejob.MaxDepth + 1)},
		{"OneTooDeepInObjects", strings.Repeat(`{"a":`, onejob.MaxDepth+1) + `"SECRET4711"` + strings.Repeat("}", onejob.MaxDepth+1)},
		{"AMillionDeep", strings.Repeat("[", 1_000_000)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			checkRefused(t, tt.raw, onejob.CodeInvalidRequest)
		})
	}
}

// checkRefused also holds the refusal to silence: what it says shows no value.
func checkRefused(t *testing.T, raw string, code onejob.Code) {
	t.Helper()
	got, err := onejob.Canonical([]byte(raw))
	e := wantError(t, err, code)
	if got != nil {
		t.Errorf("beside the error came %q", got)
	}
	if e.Message == "" {
		t.Error("the refusal has no message")
	}
	for _, text := range []string{e.Message, err.Error()} {
		for _, value := range []string{canary, "777", "400"} {
			if strings.Contains(text, value) {
				t.Errorf("the refusal %q shows the value %s", text, value)
			}
		}
	}
}

func TestCanonicalLeavesItsInputAlone(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{`{"b" : 1.0, "a":[ "\u0061" ]}`, `{"b":1,"b":2}`, `[1e400]`, `{"b":1,"a":`} {
		input := []byte(raw)
		_, _ = onejob.Canonical(input)
		if string(input) != raw {
			t.Errorf("Canonical changed its input %s to %s", raw, input)
		}
	}
}

func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{
		`{"b":[1,2.50,{"c":null}],"a":"\u0061\ud83d\ude00"}`, `{"a":1,"\u0061":2}`, `-0`, `[1e400]`, `9007199254740993`,
		`1e-400`, `"\ud800"`, "\"\xff\"", ` [] x`, deep(onejob.MaxDepth + 1),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := bytes.Clone(raw)
		canonical, err := onejob.Canonical(raw)
		if !bytes.Equal(raw, before) {
			t.Fatalf("Canonical changed its input from %q to %q", before, raw)
		}
		if err != nil {
			var e *onejob.Error
			if !errors.As(err, &e) || (e.Code != onejob.CodeInvalidRequest && e.Code != onejob.CodePayloadNotCanonical) {
				t.Fatalf("Canonical(%q) returned %v", raw, err)
			}
			return
		}
		if !json.Valid(canonical) || !json.Valid(raw) {
			t.Fatalf("Canonical(%q) = %q; one of them is not JSON", raw, canonical)
		}
		again, err := onejob.Canonical(canonical)
		if err != nil || !bytes.Equal(again, canonical) {
			t.Fatalf("Canonical(%q) = %q, %v; want it unchanged", canonical, again, err)
		}
	})
}

// strict reads raw as a reader does who takes one token at a time, and says whether
// it may be taken.
func strict(raw []byte) bool {
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	for {
		tok, err := dec.ReadToken()
		if err != nil || dec.StackDepth() > onejob.MaxDepth {
			return false
		}
		if tok.Kind() == '0' {
			f, err := strconv.ParseFloat(tok.String(), 64)
			if err != nil || (f == 0 && strings.ContainsAny(strings.SplitN(strings.ToLower(tok.String()), "e", 2)[0], "123456789")) {
				return false
			}
		}
		if dec.StackDepth() == 0 {
			_, err := dec.ReadToken()
			return errors.Is(err, io.EOF)
		}
	}
}

func FuzzCanonicalTakesWhatAStrictReaderTakes(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,-2.5e3,"\\\"",{"\u0062":null}]}`, `"\\\\\""`, `["\\",1e400]`, `[1e-400]`, `{"a":1,"a":2}`, "\"\xff\"", deep(onejob.MaxDepth + 1), ` 1 2`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if _, err := onejob.Canonical(raw); (err == nil) != strict(raw) {
			t.Errorf("Canonical(%q): %v; a strict reader takes it: %t", raw, err, strict(raw))
		}
	})
}
