package contract_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob/contract"
)

func TestTheExampleLintsClean(t *testing.T) {
	t.Parallel()

	r := contract.Lint(readExample(t))
	for _, f := range r.Findings {
		if f.Severity != contract.SeverityNote {
			t.Errorf("%s", f)
		}
	}
	if !r.OK() || r.Distinct != 116 || r.Hostile != 12 || r.Expected != 104 || r.Calls != 348 {
		t.Errorf("report %+v", r)
	}
	var bounds []string
	for _, b := range r.Bounds {
		bounds = append(bounds, b.Gate+": "+b.String())
	}
	want := []string{
		"structure: 116 cases, 0 failures allowed: ≥ 97.5 % (95 % one-sided, exact), gate 97 %",
		"invariants: 116 cases, 0 failures allowed: ≥ 97.5 % (95 % one-sided, exact), gate 97 %",
		"semantic: 104 cases, 5 failures allowed: ≥ 90.2 % (95 % one-sided, exact), gate 90 %",
		"equivalence: 116 cases, 10 disagreements allowed: ≥ 85.8 % (95 % one-sided, exact), gate 85 %",
	}
	if !slices.Equal(bounds, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(bounds, "\n"), strings.Join(want, "\n"))
	}
}

// lintRow changes the small contract, and says what lint must answer.
type lintRow struct {
	name        string
	text, cases string // empty: as they are
	want        string // a finding; empty: none but notes
}

func runLint(t *testing.T, rows []lintRow) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()

			if row.text == "" {
				row.text = small
			}
			if row.cases == "" {
				row.cases = smallCases
			}
			var got []string
			for _, f := range contract.Lint(parse(t, row.text, row.cases)).Findings {
				if f.Severity != contract.SeverityNote && (f.Rule != "plan-confidence" || strings.Contains(row.want, f.Path)) {
					got = append(got, f.String())
				}
			}
			if row.want == "" && len(got) > 0 || row.want != "" && !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, row.want) }) {
				t.Errorf("got\n%s\nwant %q", strings.Join(got, "\n"), row.want)
			}
		})
	}
}

func TestSchemasAreClosedAndComplete(t *testing.T) {
	t.Parallel()

	schema := func(old, new string) string { return edit(t, small, old, new) }
	runLint(t, []lintRow{
		{name: "Sound"},
		{"OpenRoot", schema("input_schema:\n  type: object\n  additionalProperties: false", "input_schema:\n  type: object"), "", "c.yaml:3:1: input_schema: additionalProperties: false is required"},
		{"OpenBelow", schema("        additionalProperties: false\n        required: [steps]", "        required: [steps]"), "", "c.yaml:22:7: output.schema.properties.inner: additionalProperties: false is required"},
		{"OpenWithASchema", schema("        additionalProperties: false\n        required: [steps]", "        additionalProperties: {type: string}\n        required: [steps]"), "", "c.yaml:22:7: output.schema.properties.inner: additionalProperties: false is required"},
		{"Optional", schema("required: [text, limit]", "required: [text]"), "", "c.yaml:9:5: input_schema.properties.limit: limit is not in required"},
		{"OptionalBelow", schema("        required: [steps]\n", ""), "", "c.yaml:26:11: output.schema.properties.inner.properties.steps: steps is not in required"},
		{"RequiredAndNotThere", schema("required: [text, limit]", "required: [text, limit, limits]"), "", `c.yaml:6:27: input_schema.required[2]: there is no property "limits"; did you mean "limit"?`},
		{"AMisspeltKeyword", schema("maxLength: 1000", "maxLenght: 1000"), "", `c.yaml:8:26: input_schema.properties.text.maxLenght: JSON Schema has no keyword "maxLenght"; did you mean "maxLength"?`},
		{"AType", schema("count: {type: integer}", "count: {type: int}"), "", "c.yaml:18:15: output.schema.properties.count.type: there is no such type; there is string, number, integer, boolean, object, array, null"},
		{"NoType", schema("count: {type: integer}", "count: {minimum: 1}"), "", "c.yaml:18:7: output.schema.properties.count: it takes values of any type"},
		{"Anything", schema("count: {type: integer}", "count: true"), "", "c.yaml:18:7: output.schema.properties.count: a schema that takes anything is none"},
		{"APatternGoHasNot", schema("maxLength: 1000", "pattern: \"(?!a)b\""), "", "c.yaml:8:26: input_schema.properties.text.pattern: it is no JSON Schema: it is not a valid regex"},
		{"AnUnknownFormat", schema("maxLength: 1000", "format: colour"), "", `c.yaml:8:26: input_schema.properties.text.format: nobody would check the format "colour"`},
		{"ANetworkReference", schema("count: {type: integer}", `count: {$ref: "https://schemas.example/count.json"}`), "", "c.yaml:18:15: output.schema.properties.count.$ref: a reference stays inside the schema"},
		{"AFileReference", schema("count: {type: integer}", `count: {$ref: "file:///etc/passwd"}`), "", "c.yaml:18:15: output.schema.properties.count.$ref: a reference stays inside the schema"},
		{"AReferenceToNothing", schema("count: {type: integer}", `count: {$ref: "#/$defs/count"}`), "", "c.yaml:12:3: output.schema: it does not compile"},
		{"AnID", schema("count: {type: integer}", `count: {$id: "https://schemas.example/count.json", type: integer}`), "", "c.yaml:18:15: output.schema.properties.count.$id: $id is not for contracts"},
		{"AnotherDraft", schema("input_schema:\n", "input_schema:\n  $schema: http://json-schema.org/draft-07/schema#\n"), "", "c.yaml:4:3: input_schema.$schema: contracts are written in draft 2020-12"},
		{"AListAtTheRoot", edit(t, textContract(t), "  media: text\n", "  media: json\n  schema: {type: array, items: {type: integer}}\n", "output.count <= input.limit", "output.size() <= input.limit"), "", "c.yaml:12:3: output.schema: the root is an object"},
		{"NoSchemaForJSON", edit(t, textContract(t), "media: text", "media: json", "output.count <= input.limit", "true"), "", "c.yaml:10:1: output: schema is required for media json"},
		{"ASchemaForText", schema("media: json", "media: text"), "", "c.yaml:12:3: output.schema: media text has no schema"},
		{"ALocalReference", edit(t, small, "count: {type: integer}", `count: {$ref: "#/$defs/count"}`, "  schema:\n", "  schema:\n    $defs: {count: {type: integer}}\n"), "", ""},
		{"ATree", edit(t, small, "inner:\n        type: object\n        additionalProperties: false\n        required: [steps]\n        properties:\n          steps: {type: array, maxItems: 5, items: {type: integer}}", `inner: {$ref: "#/$defs/node"}`,
			"  schema:\n", "  schema:\n    $defs: {node: {type: object, additionalProperties: false, required: [below], properties: {below: {type: array, maxItems: 3, items: {$ref: \"#/$defs/node\"}}}}}\n"), "", ""},
		{"OneOf", schema("count: {type: integer}", "count: {oneOf: [{type: integer}, {type: \"null\"}]}"), "", "c.yaml:18:15: output.schema.properties.count.oneOf: oneOf is refused by some targets"},
		{"TwoTypes", schema("count: {type: integer}", "count: {type: [integer, string]}"), "", "c.yaml:18:15: output.schema.properties.count.type: targets disagree about several types"},
	})
}

func TestTheNoteSaysWhatIsStrippedForTheWire(t *testing.T) {
	t.Parallel()

	r := contract.Lint(parse(t, small, smallCases))
	i := slices.IndexFunc(r.Findings, func(f contract.Finding) bool { return f.Rule == "schema-stripped" })
	if i < 0 || !strings.HasSuffix(r.Findings[i].Message, "held here: maxItems (2), maxLength (1)") {
		t.Errorf("findings %v", r.Findings)
	}
}

func TestAssertionsAreCheckedBeforeTheyAreNeeded(t *testing.T) {
	t.Parallel()

	invariant := func(cel string) string { return edit(t, small, "output.count <= input.limit", cel) }
	const where = "c.yaml:31:18: invariants[0].cel: "
	loops := "output.flags.all(a, output.flags.all(b, output.flags.all(c, a || b || c)))"
	runLint(t, []lintRow{
		{"ReadsExpect", invariant("output.grade == expect.grade"), "", where + "an invariant cannot read expect"},
		{"AnUnknownMember", invariant("output.cuont <= input.limit"), "", where + `there is no member "cuont"; did you mean "count"?`},
		{"AnUnknownMemberBelow", invariant("output.inner.stops.size() > 0"), "", where + `there is no member "stops"; did you mean "steps"?`},
		{"AnUnknownVariable", invariant("ouput.count <= input.limit"), "", where + `there is no "ouput"; did you mean "output"?`},
		{"AnUnknownFunction", invariant("output.count.isEven()"), "", where + `there is no "isEven"`},
		{"NotABoolean", invariant("output.count"), "", where + "it gives int; an assertion is true or false"},
		{"OfTheWrongType", invariant("output.grade == 3"), "", where + "found no matching overload for '_==_' applied to '(string, int)'"},
		{"ATypeError", invariant("output.grade < 3"), "", where + "found no matching overload"},
		{"ASyntaxError", invariant("output.count <="), "", where + "Syntax error"},
		{"ABadPattern", invariant("output.grade.matches('[')"), "", where},
		{"NothingBounds", edit(t, invariant(loops), "maxItems: 8, ", ""), "", where + "it may cost"},
		{"BoundedLoops", invariant(loops), "", ""},
		{"TooLong", invariant(strings.Repeat("true && ", 600) + "true"), "", where + "it is longer than 4096 bytes"},
		{"ANullableMember", invariant("output.note == null || output.note.size() < 5"), "", ""},
		{"ANumberAndAWholeNumber", invariant("output.ratio <= output.count"), "", ""},
		{"MathIsThere", invariant("math.abs(output.count) <= 5"), "", ""},
		{"AMemberThatIsAskedFor", invariant("has(output.note) && output.inner.steps.all(s, s > 0)"), "", ""},
		{"AnIDTwice", edit(t, small, "cases:\n", "  - {id: within, cel: \"true\"}\ncases:\n"), "", `c.yaml:32:6: invariants[1].id: the id "within" is taken`},
	})
}

func TestExpectationsAreCheckedAgainstTheCases(t *testing.T) {
	t.Parallel()

	with := func(cel string) string {
		return edit(t, small, "cases:\n", "expectations:\n  - {id: same, cel: \""+cel+"\", gate: semantic}\ncases:\n",
			"  invariants: {min_rate", "  semantic: {min_rate: 0.5, max_failures: 0}\n  invariants: {min_rate")
	}
	expecting := func(a, b string) string {
		return fmt.Sprintf(`{"id":"a","input":{"text":"one","limit":3},"expect":%s,"tags":["hostile"]}`+"\n"+`{"id":"b","input":{"text":"two","limit":4},"expect":%s}`, a, b)
	}
	runLint(t, []lintRow{
		{"Sound", with("output.grade == expect.grade"), expecting(`{"grade":"low"}`, `{"grade":"high"}`), ""},
		{"AMemberNoCaseHas", with("output.grade == expect.garde"), expecting(`{"grade":"low"}`, `{"grade":"high"}`), `c.yaml:33:16: expectations[0].cel: there is no member "garde"; did you mean "grade"?`},
		{"AMemberOneCaseLacks", with("output.count == expect.count"), expecting(`{"count":1}`, `{"grade":"low"}`), `cases.jsonl:2:1: expect: case b does not say "count", which expectation same reads`},
		{"AMemberThatIsAskedFor", with("!has(expect.count) || output.count == expect.count"), expecting(`{"count":1}`, `{"grade":"low"}`), ""},
		{"AValueNoOutputMayHave", with("output.grade == expect.grade"), expecting(`{"grade":"low"}`, `{"grade":"hihg"}`), "cases.jsonl:2:1: expect.grade: case b expects what no output may have: it is none of low, high"},
		{"AMemberOfItsOwn", with("output.count >= expect.least"), expecting(`{"least":1}`, `{"least":2}`), ""},
		{"NoCaseExpects", with("output.grade == expect.grade"), "", `c.yaml:33:16: expectations[0].cel: there is no member "grade"`},
		{"NobodyReads", "", expecting(`{"grade":"low"}`, `{"grade":"low"}`), "c.yaml:33:3: cases.files: cases carry expect, and there is no expectation to read it"},
	})
}

func TestCasesAreDistinctFitAndHostile(t *testing.T) {
	t.Parallel()

	runLint(t, []lintRow{
		{
			"TheSameInputTwice", "", `{"id":"a","input":{"text":"one","limit":3},"tags":["hostile"]}` + "\n" + `{"id":"b","input":{"limit":3.0,"text":"\u006fne"}}`,
			"cases.jsonl:2:1: input: case b has the input of a (cases.jsonl:1); a case counts once",
		},
		{"TooFew", edit(t, small, "min_distinct: 2", "min_distinct: 3"), "", "c.yaml:34:3: cases.min_distinct: there are 2 distinct cases; min_distinct asks for 3"},
		{"NoneHostile", "", edit(t, smallCases, `"hostile"`, `"nice"`), `c.yaml:33:3: cases.files: no case is tagged "hostile"`},
		{"AnInputThatDoesNotFit", "", edit(t, smallCases, `"limit":4`, `"limit":"4"`), "cases.jsonl:2:1: input/limit: case b: there is string where integer belongs"},
	})
}

func TestPlansMustBeAchievable(t *testing.T) {
	t.Parallel()

	runLint(t, []lintRow{
		{
			"TooFewCases", edit(t, small, "min_rate: 0.5", "min_rate: 0.9"), "",
			"c.yaml:36:3: gates.structure: with 2 cases and 0 failures allowed the bound is 54.77 %, less than min_rate 90 %: it takes 12 cases",
		},
		{
			"TooManyFailures", edit(t, small, "max_failures: 0", "max_failures: 1"), "",
			"c.yaml:36:3: gates.structure: with 2 cases and 1 failure allowed the bound is 16.33 %, less than min_rate 50 %: it takes 5 cases, or at most 0 failures",
		},
		{
			"FewerThanItSays", edit(t, small, "min_distinct: 2", "min_distinct: 1"), "",
			"c.yaml:36:3: gates.structure: with the 1 case of cases.min_distinct and 0 failures allowed the bound is 30.00 %",
		},
		{"NoGateForInvariants", edit(t, small, "  invariants: {min_rate: 0.5, max_failures: 0}\n", ""), "", "c.yaml:35:1: gates: invariants is required"},
		{"AGateForNothing", edit(t, small, "  invariants: {min_rate", "  semantic: {min_rate: 0.5, max_failures: 0}\n  invariants: {min_rate"), "", "c.yaml:37:3: gates.semantic: there is nothing for it to judge"},
		{"AHardlyConfidentBound", "", "", "c.yaml:38:12: sampling.confidence: a bound that is wrong 30 % of the time is hardly one"},
		{"EquivalenceOutOfReach", small + "equivalence: {compare: [output.grade], min_agreement: 0.9}\n", "", "c.yaml:40:40: equivalence.min_agreement: with 2 cases not even full agreement shows 90 %: it takes 12 cases"},
		{"EquivalenceOfNothing", small + "equivalence: {compare: [output.grad], min_agreement: 0.5}\n", "", `c.yaml:40:25: equivalence.compare[0]: "output.grad" is not a member of the output, as in output.severity; did you mean "output.grade"?`},
		{"MoreCallsThanAllowed", small + "verify: {max_calls: 5}\n", "", "c.yaml:40:10: verify.max_calls: 2 cases with 3 repeats are 6 calls, more than max_calls"},
		{"MoreSpentThanAllowed", edit(t, small, "gates:\n", "verify: {max_spend_usd: 0.01}\ngates:\n  operational: {max_cost_usd: 0.002}\n"), "", "c.yaml:35:10: verify.max_spend_usd: 6 calls at max_cost_usd may cost 0.01 dollars"},
	}[:])
}

func TestPromptsAndParametersAreComplete(t *testing.T) {
	t.Parallel()

	const sound = `prompt:
  user: "{{ input.text }} up to {{ input.limit }}"
  untrusted: [input.text]
render: {context: {reserve_output_tokens: 64}}
params:
  temperature: low
  required: {max_output_tokens: 64, response_schema: output.schema}
`
	prompt := func(pairs ...string) string {
		return edit(t, small, "params:\n  required: {max_output_tokens: 64}\n", edit(t, sound, pairs...))
	}
	runLint(t, []lintRow{
		{"Sound", prompt(), "", ""},
		{"NoCap", prompt("max_output_tokens: 64, ", ""), "", "c.yaml:34:3: params.required: max_output_tokens is required"},
		{"NoSchema", prompt(", response_schema: output.schema", ""), "", "c.yaml:34:3: params.required: response_schema: output.schema is required for media json"},
		{"NoTemperature", prompt("  temperature: low\n", ""), "", "c.yaml:32:1: params: temperature is required"},
		{"AWarmOne", prompt("temperature: low", "temperature: 0.7"), "", "c.yaml:33:3: params.temperature: above 0.3 structure breaks more often"},
		{"ATemperatureThatMayBeDropped", prompt("temperature: low", "tuning: {temperature: 0}"), "", "c.yaml:33:12: params.tuning.temperature: temperature stands beside"},
		{"AnUnknownParameter", prompt("max_output_tokens: 64", "max_output_tokens: 64, max_tokens: 64"), "", `c.yaml:34:37: params.required.max_tokens: there is no parameter "max_tokens"`},
		{"AParameterTwice", prompt("temperature: low", "temperature: low\n  tuning: {max_output_tokens: 64}"), "", "c.yaml:34:12: params.tuning.max_output_tokens: max_output_tokens is required already"},
		{"ACapOfNothing", prompt("max_output_tokens: 64", "max_output_tokens: 0"), "", "c.yaml:34:14: params.required.max_output_tokens: a whole number above 0 belongs here"},
		{"AnotherSchema", prompt("output.schema", "other.json"), "", "c.yaml:34:37: params.required.response_schema: write output.schema"},
		{"AStreamInWords", prompt("max_output_tokens: 64", "stream: perhaps, max_output_tokens: 64"), "", "c.yaml:34:14: params.required.stream: true or false belongs here"},
		{"TooSmallAReserve", prompt("reserve_output_tokens: 64", "reserve_output_tokens: 63"), "", "c.yaml:31:20: render.context.reserve_output_tokens: it reserves 63 tokens, and an output may take 64"},
		{"AnUnknownMember", prompt("{{ input.text }}", "{{ input.txet }}"), "", `c.yaml:29:3: prompt.user: input has no "txet"; did you mean "text"?`},
		{"ABrokenTemplate", prompt("{{ input.text }}", "{{ input.text"), "", "c.yaml:29:3: prompt.user: the template does not compile"},
		{"UntrustedTextUnsaid", prompt("  untrusted: [input.text]\n", ""), "", "c.yaml:28:1: prompt.untrusted: input.text is text and goes into the prompt"},
		{"AnUntrustedNothing", prompt("[input.text]", "[input.text, input.body]"), "", `c.yaml:30:27: prompt.untrusted[1]: "input.body" is not a member of the input`},
	})
}

func TestAnEffectIsNeverHadForEvidence(t *testing.T) {
	t.Parallel()

	external := edit(t, small, "side_effects: none", "side_effects: external")
	runLint(t, []lintRow{
		{"Live", external, "", "c.yaml:1:1: verify.mode: a live verification would have the effect"},
		{"Sandbox", external + "verify: {mode: sandbox}\n", "", ""},
		{"Shadow", external + "verify: {mode: sandbox}\nshadow: {rate: 0.1, max_per_day: 1, max_spend_usd_per_day: 1}\n", "", "c.yaml:41:1: shadow: shadow samples run a job's input again"},
		{"Automatic", external + "verify: {mode: sandbox}\nfailover: {automatic: true}\n", "", "c.yaml:41:12: failover.automatic: a fallback has the effect at another target"},
		{"AWindowTooSmall", small + "runtime: {suspend_after: {violations: 5, window: 4}}\n", "", "c.yaml:40:11: runtime.suspend_after: there are more violations"},
	})
}

func TestShadowSamplesThatNothingTakesAreWarnedOf(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		small: "shadow-absent note",
		small + "shadow: {rate: 0.1, max_per_day: 1, max_spend_usd_per_day: 1}\n": "shadow-idle warning",
	} {
		var got []string
		report := contract.Lint(parse(t, text, smallCases))
		for _, f := range report.Findings {
			if strings.HasPrefix(f.Rule, "shadow") {
				got = append(got, f.Rule+" "+string(f.Severity))
			}
		}
		if !slices.Equal(got, []string{want}) || !report.OK() {
			t.Errorf("lint says %q; want %q, and that it can be used", got, want)
		}
	}
}

func TestAContractThatDoesNotLintIsNotCompiled(t *testing.T) {
	t.Parallel()

	c := parse(t, edit(t, small, "required: [text, limit]", "required: [text]"), smallCases)
	k, err := contract.Compile(c)
	var faults *contract.Error
	if k != nil || !errors.As(err, &faults) || len(faults.Faults) != 1 || faults.Faults[0].Line != 9 {
		t.Errorf("checker %v, error %v; want the one fault of lint", k, err)
	}
	if got := checker(t, parse(t, small, smallCases)).Digest(); got != digest(t, parse(t, small, smallCases)) {
		t.Errorf("the checker's digest is %s", got)
	}
}
