package contract_test

import (
	"flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob/contract"
)

var update = flag.Bool("update", false, "rewrite what is printed from code")

// verifiable is the closed list of what a v1 digest covers. A key that is added here
// changes the digest of contracts that say it: if it changes those that do not, because
// it has a default, the version of the digest must change with it, or every certificate
// is lost without a word.
var verifiable = strings.Fields(`
	input_schema output prompt params render invariants expectations side_effects
	output.media output.extract output.schema output.integers output.finish
	prompt.system prompt.user prompt.untrusted
	params.required params.tuning params.temperature
	render.forbid_unrendered render.special_tokens_in_untrusted render.round_trip render.content_fidelity
	render.hidden_content render.bos render.context render.count_tolerance
	render.context.max_fraction render.context.reserve_output_tokens render.count_tolerance.local_vs_remote
	invariants.id invariants.cel expectations.id expectations.cel expectations.gate`)

func TestEveryFieldIsInTheDigestOrOutOfIt(t *testing.T) {
	t.Parallel()

	var in []string
	digestKeys(t, reflect.TypeFor[contract.File](), "", &in)
	slices.Sort(in)
	want := slices.Sorted(slices.Values(verifiable))
	if !slices.Equal(in, want) {
		t.Errorf("the digest covers\n%v\nwant\n%v", in, want)
	}
	var ofCase []string
	for i := range reflect.TypeFor[contract.Case]().NumField() {
		f := reflect.TypeFor[contract.Case]().Field(i)
		switch f.Tag.Get("digest") {
		case "in":
			ofCase = append(ofCase, f.Name)
		case "out":
		default:
			t.Errorf("Case.%s is neither in the digest nor out of it", f.Name)
		}
	}
	if strings.Join(ofCase, " ") != "ID Input Expect" {
		t.Errorf("the digest covers %v of a case", ofCase)
	}
}

// digestKeys collects the keys that are in the digest. Below one that is out, none is.
func digestKeys(t *testing.T, typ reflect.Type, path string, in *[]string) {
	t.Helper()
	for i := range typ.NumField() {
		f := typ.Field(i)
		at := strings.TrimPrefix(path+"."+f.Tag.Get("yaml"), ".")
		tag := f.Tag.Get("digest")
		inner := f.Type
		if inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice && inner.Elem().Kind() == reflect.Struct {
			inner = inner.Elem()
		}
		switch {
		case tag != "in" && tag != "out":
			t.Errorf("%s is neither in the digest nor out of it", at)
		case tag == "in":
			*in = append(*in, at)
			fallthrough
		default:
			if inner.Kind() == reflect.Struct {
				digestKeys(t, inner, at, in)
			}
		}
	}
}

// A digest that was given is never given anew: certificates would be lost.
func TestTheDigestOfTheExampleNeverChanges(t *testing.T) {
	t.Parallel()

	const path = "testdata/triage.digest"
	got := digest(t, readExample(t)) + "\n"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || got != string(want) {
		t.Errorf("digest %s; want %s (%v). If the example was meant to change: go test ./contract -update", got, want, err)
	}
}

func TestWhatEvidenceDependsOnChangesTheDigest(t *testing.T) {
	t.Parallel()

	base := digest(t, parse(t, small, smallCases))
	if !strings.HasPrefix(base, "v1:") || len(base) != len("v1:")+64 {
		t.Fatalf("digest %q", base)
	}
	tests := []struct {
		name        string
		text, cases string
		changes     bool
	}{
		{"AnInputSchema", edit(t, small, "maxLength: 1000", "maxLength: 1001"), smallCases, true},
		{"AnOutputSchema", edit(t, small, "[low, high]", "[low, mid, high]"), smallCases, true},
		{"AnOutputSetting", edit(t, small, "  media: json\n", "  media: json\n  integers: value\n"), smallCases, true},
		{"AFinish", edit(t, small, "  media: json\n", "  media: json\n  finish: [complete, length]\n"), smallCases, true},
		{"ARequiredParameter", edit(t, small, "64", "65"), smallCases, true},
		{"ATuningParameter", edit(t, small, "params:\n", "params:\n  tuning: {seed: 7}\n"), smallCases, true},
		{"ATemperature", edit(t, small, "params:\n", "params:\n  temperature: low\n"), smallCases, true},
		{"APrompt", edit(t, small, "params:\n", "prompt: {user: \"{{ input.text }}\"}\nparams:\n"), smallCases, true},
		{"ARenderCheck", edit(t, small, "params:\n", "render: {bos: allow}\nparams:\n"), smallCases, true},
		{"AnInvariant", edit(t, small, "<= input.limit", "< input.limit"), smallCases, true},
		{"AnExpectation", edit(t, small, "cases:\n", "expectations:\n  - {id: e, cel: \"true\", gate: advisory}\ncases:\n"), smallCases, true},
		{"AnEffect", edit(t, small, "side_effects: none", "side_effects: external"), smallCases, true},
		{"AnInput", small, edit(t, smallCases, "two", "three"), true},
		{"AnExpectedValue", small, edit(t, smallCases, `"tags"`, `"expect":{"grade":"low"},"tags"`), true},
		{"ACaseMore", small, smallCases + `{"id":"c","input":{"text":"three","limit":4}}`, true},
		{"ANumberBeyondTwoToThe53", edit(t, small, "minimum: 0", "minimum: 9007199254740993"), smallCases, true},

		{"Nothing", small, smallCases, false},
		{"ADefaultWrittenOut", edit(t, small, "  media: json\n", "  media: json\n  integers: literal\n  finish: [complete]\n"), smallCases, false},
		{"AMaintainer", edit(t, small, "kind: grade", "kind: grade\nmaintainer: somebody"), smallCases, false},
		{"AThreshold", edit(t, small, "min_rate: 0.5", "min_rate: 0.6"), smallCases, false},
		{"HowManyCases", edit(t, small, "min_distinct: 2", "min_distinct: 1"), smallCases, false},
		{"Sampling", edit(t, small, "sampling: {", "sampling: {repeats: 5, "), smallCases, false},
		{"ALifetime", small + "certificate: {ttl: {alias: 5d}}\n", smallCases, false},
		{"Shadow", small + "shadow: {rate: 0.1, max_per_day: 5, max_spend_usd_per_day: 1}\n", smallCases, false},
		{"Failover", small + "failover: {automatic: true}\n", smallCases, false},
		{"ABudget", small + "verify: {max_calls: 9}\n", smallCases, false},
		{"Equivalence", small + "equivalence: {compare: [output.grade], min_agreement: 0.5}\n", smallCases, false},
		{"Comments", "# one\n" + small, smallCases, false},
		{"TheOrderOfKeys", edit(t, small, "kind: grade\n", "") + "kind: grade\n", smallCases, false},
		{"TheOrderOfCases", small, smallCases[strings.Index(smallCases, "\n")+1:] + smallCases[:strings.Index(smallCases, "\n")], false},
		{"Tags", small, edit(t, smallCases, `["hostile"]`, `["hostile","x"]`), false},
		{"TheWritingOfACase", small, edit(t, smallCases, `"limit":3`, `"limit": 3.0`), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			if got := digest(t, parse(t, tt.text, tt.cases)); (got != base) != tt.changes {
				t.Errorf("changed: %v; want %v", got != base, tt.changes)
			}
		})
	}
	a := digest(t, parse(t, edit(t, small, "minimum: 0", "minimum: 9007199254740992"), smallCases))
	b := digest(t, parse(t, edit(t, small, "minimum: 0", "minimum: 9007199254740993"), smallCases))
	if a == b {
		t.Error("2^53 and 2^53+1 have one digest; two contracts would share their certificates")
	}
}
