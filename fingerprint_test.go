package onejob_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/onejob-dev/onejob"
)

func fingerprintOf(t tester, p onejob.SubmitParams) []byte {
	t.Helper()
	return rowOf(t, instanceSecret, p).Fingerprint
}

// Stored fingerprints are compared with the algorithm of their version for ever:
// this one is frozen, as the code over exactly this text.
func TestVersionOneOfTheFingerprintIsFrozen(t *testing.T) {
	t.Parallel()
	row := rowOf(t, instanceSecret, onejob.SubmitParams{
		Owner: "alice", Key: "k1", Kind: "draw", Target: "b", Input: []byte(`{"prompt":"a \u0063at","n":1.0}`),
		RunAfter: noon, Deadline: noon.Add(time.Hour + time.Nanosecond), Supersedes: "job_0",
	})
	mac := hmac.New(sha256.New, instanceSecret)
	mac.Write([]byte(`{"deadline":"2026-07-01T13:00:00.000000001Z","input":{"n":1,"prompt":"a cat"},"kind":"draw",` +
		`"operation":"submit","run_after":"2026-07-01T12:00:00Z","supersedes":"job_0","target":"b","v":1}`))
	if want := mac.Sum(nil); !bytes.Equal(row.Fingerprint, want) || row.FingerprintVersion != 1 {
		t.Errorf("fingerprint %x, version %d; want %x, 1", row.Fingerprint, row.FingerprintVersion, want)
	}
	again, err := row.FingerprintFunc(1)
	if err != nil || !bytes.Equal(again, row.Fingerprint) {
		t.Errorf("FingerprintFunc(1) = %x, %v; want %x", again, err, row.Fingerprint)
	}
	_, err = row.FingerprintFunc(2)
	wantCode(t, err, onejob.CodeInternal)
}

func TestAnotherSecretIsAnotherFingerprint(t *testing.T) {
	t.Parallel()
	one, other := rowOf(t, instanceSecret, drawing(`1`)), rowOf(t, []byte("fedcba9876543210"), drawing(`1`))
	if bytes.Equal(one.Fingerprint, other.Fingerprint) {
		t.Error("two instances make the same fingerprint of the same intent")
	}
}

// changes are the ways to change one member of an intent.
var changes = map[string]func(p *onejob.SubmitParams, s string){
	"kind":       func(p *onejob.SubmitParams, s string) { p.Kind += s },
	"target":     func(p *onejob.SubmitParams, s string) { p.Target += s },
	"supersedes": func(p *onejob.SubmitParams, s string) { p.Supersedes += s },
	"run_after":  func(p *onejob.SubmitParams, s string) { p.RunAfter = p.RunAfter.Add(time.Duration(len(s))) },
	"deadline":   func(p *onejob.SubmitParams, s string) { p.Deadline = p.Deadline.Add(time.Duration(len(s))) },
	"input":      func(p *onejob.SubmitParams, s string) { p.Input = fmt.Appendf(nil, `[%s,%q]`, p.Input, s) },
}

func TestEveryMemberOfAnIntentCounts(t *testing.T) {
	t.Parallel()
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				p := anIntent(t)
				before := fingerprintOf(t, p)
				change(&p, rapid.StringMatching(`[ -~]{1,8}`).Draw(t, "by"))
				if bytes.Equal(before, fingerprintOf(t, p)) {
					t.Fatalf("another %s has the same fingerprint: %+v", name, p)
				}
			})
		})
	}
}

// What one member gains another may lose: their borders count.
func TestTextCannotMoveFromOneMemberToTheNext(t *testing.T) {
	t.Parallel()
	move := func(kind, target, supersedes string) string {
		p := drawing(`1`)
		p.Kind, p.Target, p.Supersedes = kind, target, supersedes
		return string(fingerprintOf(t, p))
	}
	seen := map[string]bool{
		move("draw", "ab", "c"): true, move("draw", "a", "bc"): true, move("drawa", "b", "c"): true,
		move("draw", `","target":"`, ""): true, move("draw", "", `","target":"`): true,
		move("draw", "\xff", ""): true, move("draw", "ff", ""): true, move("draw", `x"ff"`, ""): true,
	}
	if len(seen) != 8 {
		t.Errorf("8 intents have %d fingerprints", len(seen))
	}
}

func TestWhatIsNotPartOfTheIntentDoesNotCount(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(p *onejob.SubmitParams){
		"owner":    func(p *onejob.SubmitParams) { p.Owner = "bob" },
		"key":      func(p *onejob.SubmitParams) { p.Key = "k2" },
		"metadata": func(p *onejob.SubmitParams) { p.Metadata = []byte(`{"page":7}`) },
		"priority": func(p *onejob.SubmitParams) { p.Priority = 7 },
		"trace":    func(p *onejob.SubmitParams) { p.Trace = "00-1-2-01" },
		"zone": func(p *onejob.SubmitParams) {
			p.RunAfter = p.RunAfter.In(time.FixedZone("elsewhere", 2*60*60))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := drawing(`{"prompt":"a cat"}`)
			p.RunAfter = noon
			before := fingerprintOf(t, p)
			change(&p)
			if !bytes.Equal(before, fingerprintOf(t, p)) {
				t.Errorf("another %s has another fingerprint", name)
			}
		})
	}
}

func TestAnyWritingOfTheSameInputHasTheSameFingerprint(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := aValue(3).Draw(t, "value")
		one, other := write(t, v, "one"), write(t, v, "other")
		if !bytes.Equal(fingerprintOf(t, drawing(one)), fingerprintOf(t, drawing(other))) {
			t.Fatalf("%s and %s are the same value with two fingerprints", one, other)
		}
	})
}

func TestNumbersThatMustStayApart(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{
		{"9007199254740992", "9007199254740993"},
		{"-9007199254740992", "-9007199254740993"},
		{"18446744073709551615", "18446744073709551616"},
		{"1", "-1"},
		{"1", `"1"`},
		{"0", "null"},
		{"0", "false"},
		{"[1,2]", "[2,1]"},
		{"[[1],2]", "[1,[2]]"},
		{`{"a":1}`, `{"a":1,"b":null}`},
		{`"A"`, `"a"`},
		{"[]", "{}"},
	} {
		if bytes.Equal(fingerprintOf(t, drawing(pair[0])), fingerprintOf(t, drawing(pair[1]))) {
			t.Errorf("%s and %s have the same fingerprint", pair[0], pair[1])
		}
	}
}

func anIntent(t *rapid.T) onejob.SubmitParams {
	return onejob.SubmitParams{
		Owner: "alice", Key: "k1", Kind: rapid.SampledFrom([]string{"draw", "charge", "unknown"}).Draw(t, "kind"),
		Input:      []byte(write(t, aValue(2).Draw(t, "input"), "input")),
		Target:     rapid.StringMatching(`[ -~]{0,8}`).Draw(t, "target"),
		Supersedes: rapid.StringMatching(`[ -~]{0,8}`).Draw(t, "supersedes"),
		RunAfter:   noon.Add(time.Duration(rapid.IntRange(-1e12, 1e12).Draw(t, "run after"))),
		Deadline:   noon.Add(time.Duration(rapid.IntRange(-1e12, 1e12).Draw(t, "deadline"))),
	}
}

// member of an object, in the order in which it was made.
type member struct {
	name  string
	value any
}

// aValue makes a JSON value: nil, bool, int64, float64, string, []any or []member.
func aValue(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		switch rapid.IntRange(0, 5+min(depth, 1)*4).Draw(t, "sort") {
		case 0:
			return nil
		case 1:
			return rapid.Bool().Draw(t, "bool")
		case 2:
			return rapid.Int64().Draw(t, "int")
		case 3:
			return rapid.Float64().Draw(t, "float")
		case 4, 5:
			return rapid.String().Draw(t, "text")
		case 6, 7:
			return rapid.SliceOfN(aValue(depth-1), 0, 4).Draw(t, "array")
		}
		names := rapid.SliceOfNDistinct(rapid.String(), 0, 4, rapid.ID).Draw(t, "names")
		object := make([]member, len(names))
		for i, name := range names {
			object[i] = member{name, aValue(depth-1).Draw(t, "member")}
		}
		return object
	})
}

// write writes a value in one of the many ways that JSON allows.
func write(t *rapid.T, v any, label string) string {
	space := func() string { return rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(t, label) }
	var text string
	switch v := v.(type) {
	case nil:
		text = "null"
	case bool:
		text = strconv.FormatBool(v)
	case int64:
		text = strconv.FormatInt(v, 10)
	case float64:
		text = strconv.FormatFloat(v, rapid.SampledFrom([]byte("eEg")).Draw(t, label), -1, 64)
	case string:
		text = writeText(t, v, label)
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = write(t, v[i], label)
		}
		text = "[" + strings.Join(parts, ",") + "]"
	case []member:
		parts := make([]string, len(v))
		for i, m := range rapid.Permutation(v).Draw(t, label) {
			parts[i] = space() + writeText(t, m.name, label) + space() + ":" + write(t, m.value, label)
		}
		text = "{" + strings.Join(parts, ",") + "}"
	}
	return space() + text + space()
}

func writeText(t *rapid.T, s, label string) string {
	var b strings.Builder
	for _, r := range s {
		if r >= ' ' && r != '"' && r != '\\' && rapid.Bool().Draw(t, label) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, rapid.SampledFrom([]string{`\u%04x`, `\u%04X`}).Draw(t, label), unit)
		}
	}
	return `"` + b.String() + `"`
}
