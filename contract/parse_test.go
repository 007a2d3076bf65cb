package contract_test

import (
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/onejob-dev/onejob/contract"
)

// faultsOf returns the lines of the error that parsing must give.
func faultsOf(t *testing.T, text, cases string) []string {
	t.Helper()
	_, err := contract.Parse("c.yaml", []byte(text), folder(cases))
	var faults *contract.Error
	if !errors.As(err, &faults) {
		t.Fatalf("error %v; want faults", err)
	}
	return strings.Split(faults.Error(), "\n")
}

func TestEveryFaultHasItsPlaceAndWhatWouldBeRight(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		text string
		want string
	}{
		{"AnUnknownKey", edit(t, small, "kind: grade", "kind: grade\nmaintainr: x"), `c.yaml:3:1: unknown key "maintainr"; did you mean "maintainer"?`},
		{"AnUnknownKeyFarDown", edit(t, small, "max_failures: 0", "max_failure: 0"), `c.yaml:36:30: gates.structure: unknown key "max_failure"; did you mean "max_failures"?`},
		{"AMissingKey", edit(t, small, "kind: grade\n", ""), "c.yaml:1:1: kind is required"},
		{"AMissingKeyFarDown", edit(t, small, ", max_failures: 0", ""), "c.yaml:36:3: gates.structure: max_failures is required"},
		{"AMissingWord", edit(t, small, "side_effects: none\n", ""), "c.yaml:1:1: side_effects is required: none, idempotent, external"},
		{"AWordOutsideTheSet", edit(t, small, "side_effects: none", "side_effects: maybe"), `c.yaml:39:15: side_effects: "maybe" is not one of none, idempotent, external`},
		{"AnotherVersion", edit(t, small, "contract.v1", "contract.v2"), `c.yaml:1:13: apiVersion: "onejob/contract.v2" is not one of onejob/contract.v1`},
		{"ANumberForText", edit(t, small, "kind: grade", "kind: 7"), "c.yaml:2:7: kind: text belongs here: put it in quotes"},
		{"TextForANumber", edit(t, small, "min_distinct: 2", "min_distinct: two"), "c.yaml:34:17: cases.min_distinct: a whole number belongs here"},
		{"AFractionForAWholeNumber", edit(t, small, "min_distinct: 2", "min_distinct: 2.5"), "c.yaml:34:17: cases.min_distinct: a whole number belongs here"},
		{"AHexNumber", edit(t, small, "min_distinct: 2", "min_distinct: 0x2"), `c.yaml:34:17: cases.min_distinct: "0x2" is not a whole number; write it in decimal digits`},
		{"AQuotedNumber", edit(t, small, "min_rate: 0.5", `min_rate: "0.5"`), "c.yaml:36:25: gates.structure.min_rate: a number belongs here"},
		{"ARateAboveOne", edit(t, small, "min_rate: 0.5", "min_rate: 97"), "c.yaml:36:25: gates.structure.min_rate: it is at most 0.9999"},
		{"AnEmptyValue", edit(t, small, "kind: grade", "kind:"), "c.yaml:2:1: kind: it is empty; give a value or leave the key out"},
		{"AnEmptyText", edit(t, small, "kind: grade", `kind: ""`), `c.yaml:2:7: kind: "" is not a name: use letters, digits, _, . and -, at most 100`},
		{"AListForAMapping", edit(t, small, "gates:\n", "verify: [live]\ngates:\n"), "c.yaml:35:9: verify: keys with values belong here"},
		{"AMappingForAList", edit(t, small, "files: [cases.jsonl]", "files: cases.jsonl"), "c.yaml:33:10: cases.files: a list belongs here, as in [a, b]"},
		{"ADurationWithoutUnit", small + "certificate: {ttl: {alias: 3}}\n", "c.yaml:40:28: certificate.ttl.alias: 3 has no unit; write a duration like 12h or 30d"},
		{"ADurationTooLong", small + "certificate: {ttl: {alias: 900d}}\n", "c.yaml:40:28: certificate.ttl.alias: it is at most 366d"},
		{"MoneyTooFine", small + "verify: {max_spend_usd: 0.00000001}\n", `c.yaml:40:25: verify.max_spend_usd: "0.00000001" is not an amount of dollars; write one like 2.00, to the millionth at most`},
		{"AProbeMayNotFail", edit(t, small, "gates:\n", "gates:\n  probes: {max_failures: 1}\n"), "c.yaml:36:26: gates.probes.max_failures: it can only be 0"},
		{"ATemperatureInWords", edit(t, small, "params:\n", "params:\n  temperature: cool\n"), `c.yaml:29:16: params.temperature: "cool" is neither low nor a number from 0 to 2`},
		{"AnAnchor", edit(t, small, "gates:\n", "verify: &v {mode: live}\ngates:\n"), "c.yaml:35:9: verify: anchors, aliases, merges and tags are not for contracts; write it out"},
		{"ATag", edit(t, small, "kind: grade", "kind: !!str grade"), "c.yaml:2:7: kind: anchors, aliases, merges and tags are not for contracts; write it out"},
		{"ATwiceGivenKey", edit(t, small, "kind: grade", "kind: grade\nkind: other"), `c.yaml:3:1: this is not valid YAML: mapping key "kind" already defined at [2:1]`},
		{"ASecondDocument", small + "---\nkind: x\n", "c.yaml:41:1: a second document starts here; one file is one contract"},
		{"NoYAML", "kind: [", "c.yaml:1:7: this is not valid YAML: sequence end token ']' not found"},
		{"Nothing", "# nothing\n", "c.yaml: the file is empty; a contract begins with apiVersion: onejob/contract.v1"},
		{"ANumberJSONHasNot", edit(t, small, "minimum: 0}", "minimum: .inf}"), "c.yaml:9:37: input_schema.properties.limit.minimum: JSON has no such value; put text in quotes"},
		{"ACaseFileOutside", edit(t, small, "[cases.jsonl]", "[../cases.jsonl]"), `c.yaml:33:11: cases.files[0]: "../cases.jsonl" is not a path below the contract's folder`},
		{"ACaseFileThatIsNotThere", edit(t, small, "[cases.jsonl]", "[case.jsonl]"), "c.yaml:33:11: cases.files[0]: case.jsonl cannot be read: file does not exist"},
		{"ACaseFileTwice", edit(t, small, "[cases.jsonl]", "[cases.jsonl, cases.jsonl]"), `c.yaml:33:24: cases.files[1]: "cases.jsonl" is named twice`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got := faultsOf(t, tt.text, smallCases)
			if !slices.Contains(got, tt.want) {
				t.Errorf("got  %s\nwant %s", strings.Join(got, "\n     "), tt.want)
			}
		})
	}
}

func TestAllFaultsAreReportedAtOnce(t *testing.T) {
	t.Parallel()

	text := edit(t, small, "kind: grade", "kind: 7", "min_distinct: 2", "min_distinct: two", "side_effects: none", "side_effects: maybe")
	got := faultsOf(t, text, "{}\n"+smallCases+"nothing\n")
	if len(got) != 5 || !strings.HasPrefix(got[3], "cases.jsonl:1:1: ") || !strings.HasPrefix(got[4], "cases.jsonl:4:") {
		t.Errorf("%d faults:\n%s\nwant three of the file and two of the cases, in order", len(got), strings.Join(got, "\n"))
	}
}

func TestACaseIsOneStrictLine(t *testing.T) {
	t.Parallel()

	const good = `{"id":"a","input":{"text":"one","limit":3}}`
	tests := []struct{ name, lines, want string }{
		{"AnEmptyLine", good + "\n\n", "cases.jsonl:2:1: the line is empty; every line is one case"},
		{"NoJSON", good + "\nnothing\n", `cases.jsonl:2:2: the body is not valid JSON at byte 1; a line is one case: {"id": …, "input": …, "expect": …, "tags": […]}`},
		{"ADuplicateName", `{"id":"a","id":"b","input":1}`, "cases.jsonl:1:11: the JSON has a duplicate member name"},
		{"TwoCasesOnALine", good + good, "cases.jsonl:1:1: something follows the JSON value"},
		{"ANumberTooLarge", edit(t, good, "3", "1e999"), "cases.jsonl:1:1: a number is too large"},
		{"NoObject", "[1]", `cases.jsonl:1:1: a case is an object`},
		{"AnUnknownMember", edit(t, good, "{", `{"expects":{},`), `cases.jsonl:1:2: unknown member "expects"; did you mean "expect"?`},
		{"NoID", `{"input":1}`, "cases.jsonl:1:1: id is required"},
		{"AnIDThatIsNoName", edit(t, good, `"a"`, `"a b"`), "cases.jsonl:1:2: id: an id is text of letters, digits, _, . and -"},
		{"NoInput", `{"id":"a"}`, "cases.jsonl:1:1: input: input is required"},
		{"ExpectIsNoObject", edit(t, good, "{", `{"expect":null,`), "cases.jsonl:1:2: expect: an object belongs here"},
		{"TagsAreNoTexts", edit(t, good, "{", `{"tags":[1],`), "cases.jsonl:1:2: tags: a list of texts belongs here"},
		{"AnIDTwice", good + "\n" + edit(t, good, "one", "two"), `cases.jsonl:2:1: id: the id "a" is taken by cases.jsonl:1`},
		{"NoCases", "", "c.yaml:33:11: cases.files[0]: cases.jsonl has no case in it"},
		{"TooLongALine", strings.Repeat("x", contract.MaxCaseBytes+1), "c.yaml:33:11: cases.files[0]: cases.jsonl: line 1 is longer than 1048576 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			if got := faultsOf(t, small, tt.lines); len(got) != 1 || !strings.HasPrefix(got[0], tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestALineMayEndAsItDoesOnWindows(t *testing.T) {
	t.Parallel()

	c := parse(t, small, strings.ReplaceAll(smallCases, "\n", "\r\n"))
	if len(c.CaseList) != 2 || c.CaseList[1].ID != "b" || c.CaseList[1].Line != 2 {
		t.Errorf("cases %+v; want a and b", c.CaseList)
	}
}

func TestDefaultsAreFilledIn(t *testing.T) {
	t.Parallel()

	c := parse(t, small, smallCases)
	got := []any{
		c.Output.Extract, c.Output.Integers, c.Output.Finish[0], c.Sampling.Repeats, c.Sampling.Unit, c.Sampling.StopEarly,
		c.Verify.Mode, c.Verify.MaxSpendUSD, c.Failover.Automatic, c.Failover.OnUncertified, time.Duration(c.Certificate.TTL.PinnedSnapshot),
		c.Certificate.Drift.SystemFingerprint, c.Runtime.SuspendAfter.Window, c.Render.Context.MaxFraction, len(c.Render.ForbidUnrendered),
	}
	want := []any{
		"strict", "literal", contract.FinishComplete, 3, "case", "on_fail_only",
		"live", contract.USD(1_000_000), false, "hold", 30 * 24 * time.Hour,
		"reverify", 50, 0.6, 4,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if c.Equivalence != nil || c.Shadow != nil || c.Prompt != nil || c.Gates.Semantic != nil {
		t.Error("a section that was left out is there")
	}
}

func TestTheExampleIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()

	c := readExample(t)
	if len(c.CaseList) != 116 || c.CaseList[0].File != "cases/golden.jsonl" || c.CaseList[104].Line != 1 {
		t.Errorf("%d cases, the first of %s", len(c.CaseList), c.CaseList[0].File)
	}
	if c.Gates.Operation.MaxCostUSD != 4000 || c.Verify.MaxSpendUSD.String() != "2.00" || string(c.Params.Required["max_output_tokens"]) != "400" {
		t.Errorf("cost %d, spend %s, params %s", c.Gates.Operation.MaxCostUSD, c.Verify.MaxSpendUSD, c.Params.Required)
	}
}

func TestBoundsHoldForFiles(t *testing.T) {
	t.Parallel()

	if got := faultsOf(t, strings.Repeat("#", contract.MaxFileBytes+1), ""); got[0] != "c.yaml: a contract is at most 1048576 bytes" {
		t.Errorf("got %q", got)
	}
	deep := "kind: " + strings.Repeat("[", 100) + strings.Repeat("]", 100)
	if got := faultsOf(t, edit(t, small, "type: object", "x: "+deep[6:]), smallCases); !strings.Contains(strings.Join(got, "\n"), "nested too deeply") {
		t.Errorf("got %q", got)
	}
	if _, err := contract.Parse("c.yaml", []byte(small), nil); err == nil {
		t.Error("without case files it is no contract")
	}
	if _, err := contract.Parse("c.yaml", []byte("kind: a\x00"), fstest.MapFS{}); err == nil {
		t.Error("a NUL is no text")
	}
}

// No default may be refused by its own field.
func TestEveryDefaultIsValid(t *testing.T) {
	t.Parallel()

	checkDefaults(t, reflect.TypeFor[contract.File](), "")
}

func checkDefaults(t *testing.T, typ reflect.Type, path string) {
	t.Helper()
	for i := range typ.NumField() {
		f := typ.Field(i)
		at := path + "." + f.Tag.Get("yaml")
		if f.Tag.Get("yaml") == "" {
			t.Errorf("%s.%s has no yaml tag", path, f.Name)
		}
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct {
			checkDefaults(t, inner, at)
			continue
		}
		if text := f.Tag.Get("default"); text != "" {
			if err := contract.CheckDefault(f); err != nil {
				t.Errorf("%s: default %q: %v", at, text, err)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(small, smallCases)
	if text, err := os.ReadFile(examplePath); err == nil {
		f.Add(string(text), smallCases)
	}
	f.Fuzz(func(t *testing.T, text, cases string) {
		c, err := contract.Parse("c.yaml", []byte(text), folder(cases))
		if (c == nil) == (err == nil) {
			t.Fatalf("contract %v and error %v", c != nil, err)
		}
		if c != nil {
			contract.Lint(c)
		}
	})
}
