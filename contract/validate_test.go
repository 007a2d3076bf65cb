package contract_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/onejob-dev/onejob/contract"
)

const (
	smallInput = `{"text":"one","limit":3}`
	goodSmall  = `{"grade":"low","count":3,"ratio":0.5,"flags":[true],"note":null,"inner":{"steps":[1,2]}}`
)

func TestAnOutputIsJudgedAsTheTextItIs(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		raw  string
		want []string // class path keyword
	}{
		{"Good", goodSmall, nil},
		{"AWholeNumberForARatio", edit(t, goodSmall, "0.5", "1"), nil},
		{"APointZero", edit(t, goodSmall, `"count":3`, `"count":3.0`), []string{"integer_literal /count"}},
		{"AnExponent", edit(t, goodSmall, `"count":3`, `"count":3e0`), []string{"integer_literal /count"}},
		{"BeyondSixtyFourBits", edit(t, goodSmall, `"count":3`, `"count":-9223372036854775809`), []string{"integer_literal /count"}},
		{"APointZeroInAList", edit(t, goodSmall, "[1,2]", "[1,2.0]"), []string{"integer_literal /inner/steps/1"}},
		{"AFraction", edit(t, goodSmall, `"count":3`, `"count":3.5`), []string{"schema /count type", "integer_literal /count"}},
		{"ADuplicateName", edit(t, goodSmall, `"count":3`, `"count":9,"count":3`), []string{"duplicate_name /count"}},
		{"ADuplicateWithAnEscape", edit(t, goodSmall, `"count":3`, `"c\u006funt":9,"count":3`), []string{"duplicate_name /count"}},
		{"ADuplicateFarDown", edit(t, goodSmall, `"steps":[1,2]`, `"steps":[1],"steps":[2]`), []string{"duplicate_name /inner/steps"}},
		{"AnInfiniteNumber", edit(t, goodSmall, "0.5", "1e999"), []string{"number_range /ratio"}},
		{"AnEndlessExponent", edit(t, goodSmall, "0.5", "1e999999999"), []string{"number_range /ratio"}},
		{"ATinyNumber", edit(t, goodSmall, "0.5", "1e-999"), []string{"number_range /ratio"}},
		{"BadUTF8", edit(t, goodSmall, "null", "\"\xff\""), []string{"not_utf8"}},
		{"ALoneSurrogate", edit(t, goodSmall, "null", `"\ud83d"`), []string{"not_utf8"}},
		{"AnEscapedControl", edit(t, goodSmall, "null", `"a\u0007"`), []string{"control_character /note"}},
		{"AC1Control", edit(t, goodSmall, "null", "\"a\u0085\""), []string{"control_character /note"}},
		{"ARawLineEnd", edit(t, goodSmall, "null", "\"a\nb\""), []string{"control_character"}},
		{"TabsAndLinesInText", edit(t, goodSmall, "null", `"a\tb\r\n"`), nil},
		{"AByteOrderMark", "\ufeff" + goodSmall, []string{"prose"}},
		{"ANoBreakSpace", "\u00a0" + goodSmall, []string{"prose"}},
		{"OnlyANoBreakSpace", "\u00a0", []string{"empty"}},
		{"SingleQuotes", `{'grade':'low'}`, []string{"not_json"}},
		{"ATrailingComma", edit(t, goodSmall, `[1,2]}}`, `[1,2]},}`), []string{"not_json"}},
		{"AComment", goodSmall + " // done", []string{"trailing_data"}},
		{"TheSameTwice", goodSmall + "\n" + goodSmall, []string{"trailing_data"}},
		{"ACutEscape", `{"grade":"lo\u00`, []string{"cut"}},
		{"ACutLiteral", `{"flags":[tr`, []string{"cut"}},
		{"AFenceWithoutALanguage", "```\n" + goodSmall + "\n```", []string{"fenced"}},
		{"AFenceAfterProse", "Here:\n```json\n" + goodSmall + "\n```", []string{"fenced"}},
		{"ProseWithCutJSON", `Here it is: {"grade":"lo`, []string{"prose"}},
		{"TextThatBeginsWithANumber", "1. The grade is low.", []string{"not_json"}},
		{"TextThatBeginsWithAWord", "true enough, it is low", []string{"not_json"}},
		{"AList", "[" + goodSmall + "]", []string{"schema  type"}},
		{"Null", "null", []string{"schema  type"}},
		{"NestedJSONInText", edit(t, goodSmall, `{"steps":[1,2]}`, `"{\"steps\":[1]}"`), []string{"double_encoded /inner type"}},
		{"AListInText", edit(t, goodSmall, `[true]`, `"[true]"`), []string{"double_encoded /flags type"}},
		{"NumbersWithCommas", edit(t, goodSmall, `"count":3`, `"count":"1,200"`), []string{"stringly_typed /count type"}},
		{"AWordForANumber", edit(t, goodSmall, `"count":3`, `"count":"three"`), []string{"schema /count type"}},
		{"WrappedAndEncoded", fmt.Sprintf(`{"input":%q}`, goodSmall), []string{"wrapped_in_key /input"}},
		{"OneUnknownMemberOnly", `{"answer":{"text":"low"}}`, []string{"schema  additionalProperties", "schema  required"}},
		{"AnExtraMember", edit(t, goodSmall, `"grade"`, `"why":"x","grade"`), []string{"schema  additionalProperties"}},
		{"TwoThingsAtOnce", edit(t, goodSmall, `"low"`, `"mid"`, "[1,2]", `[1,2,3,4,5,6]`), []string{"enum /grade enum", "schema /inner/steps maxItems"}},
		{"AnInvariant", edit(t, goodSmall, `"count":3`, `"count":4`), []string{"invariant within"}},
		{"TooDeep", strings.Repeat("[", 65) + strings.Repeat("]", 65), []string{"too_deep"}},
		{"TooLarge", strings.Repeat(" ", contract.MaxOutputBytes) + goodSmall, []string{"too_large"}},
	}
	k := checker(t, parse(t, small, smallCases))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var got []string
			for _, v := range k.Validate([]byte(tt.raw), []byte(smallInput)) {
				got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s%s", v.Class, v.Path, v.Keyword, v.Assertion)))
			}
			for i := range tt.want {
				tt.want[i] = strings.TrimSpace(tt.want[i])
			}
			if squeezed(got) != squeezed(tt.want) {
				t.Errorf("%.200s\ngot  %q\nwant %q", tt.raw, got, tt.want)
			}
		})
	}
}

func squeezed(list []string) string {
	return strings.Join(strings.Fields(strings.Join(list, " ; ")), " ")
}

func TestIntegersMayBeAllowedAsValues(t *testing.T) {
	t.Parallel()

	k := checker(t, parse(t, edit(t, small, "  media: json\n", "  media: json\n  integers: value\n"), smallCases))
	if got := k.Validate([]byte(edit(t, goodSmall, `"count":3`, `"count":3.0`)), []byte(smallInput)); len(got) > 0 {
		t.Errorf("3.0 with integers: value: %v; want nothing", got)
	}
	if got := k.Validate([]byte(edit(t, goodSmall, `"count":3`, `"count":4.0`)), []byte(smallInput)); len(got) != 1 || got[0].Assertion != "within" {
		t.Errorf("4.0 above the limit of 3: %v; want the invariant", got)
	}
}

// What a violation says ends in logs and certificates. The output's values do not.
func TestAViolationShowsNoValue(t *testing.T) {
	t.Parallel()

	const secret = "4000000000000002"
	k := checker(t, parse(t, small, smallCases))
	for _, raw := range []string{
		edit(t, goodSmall, `"low"`, `"`+secret+`"`),
		edit(t, goodSmall, `"count":3`, `"count":"`+secret+`"`),
		edit(t, goodSmall, `"count":3`, `"count":`+secret),
		edit(t, goodSmall, "null", `"`+strings.Repeat(secret, 9)+`"`),
		secret, "I can't: " + secret, "```" + secret, `{"error":"` + secret + `"}`, `"` + secret + `"`, "{" + secret,
	} {
		got := k.Validate([]byte(raw), []byte(smallInput))
		if len(got) == 0 || strings.Contains(fmt.Sprint(got), secret) {
			t.Errorf("%s: %v; want violations without the value", raw, got)
		}
	}
}

func TestViolationsAreBounded(t *testing.T) {
	t.Parallel()

	k := checker(t, parse(t, edit(t, small, "maxItems: 8, ", ""), smallCases))
	flags := strings.TrimSuffix(strings.Repeat(`"x",`, 5000), ",")
	got := k.Validate([]byte(edit(t, goodSmall, "[true]", "["+flags+"]")), []byte(smallInput))
	if len(got) != 33 || got[32].Class != contract.ClassTooManyFindings || got[32].Message != "and 4968 more" {
		t.Errorf("%d violations, the last %v; want 32 and how many more", len(got), got[len(got)-1])
	}
	names := strings.Repeat(`"n":1,`, 5000)
	if got := k.Validate([]byte("{"+names+goodSmall[1:]), []byte(smallInput)); len(got) > 34 {
		t.Errorf("%d violations for duplicate names", len(got))
	}
}

func TestAnInvariantThatGivesNoAnswerIsAViolation(t *testing.T) {
	t.Parallel()

	tests := []struct{ name, cel, raw string }{
		{"DividesByZero", "output.count / (output.count - 3) < 5", goodSmall},
		{"ReadsAnItemThatIsNotThere", "output.inner.steps[4] > 0", goodSmall},
		{"Overflows", "output.count * output.count > 0", edit(t, goodSmall, `"count":3`, `"count":9223372036854775807`)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			k := checker(t, parse(t, edit(t, small, "output.count <= input.limit", tt.cel), smallCases))
			got := k.Validate([]byte(tt.raw), []byte(smallInput))
			if len(got) != 1 || got[0].Class != contract.ClassUndecidable || got[0].Assertion != "within" {
				t.Errorf("%s: %v; want undecidable", tt.cel, got)
			}
		})
	}
	k := checker(t, parse(t, small, smallCases))
	if got := k.Validate([]byte(goodSmall), []byte(`{"text":`)); len(got) != 1 || got[0].Class != contract.ClassUndecidable {
		t.Errorf("an input that is cut: %v; want undecidable", got)
	}
}

func TestWhatWasSaidBesideTheOutputCounts(t *testing.T) {
	t.Parallel()

	k := checker(t, parse(t, small, smallCases))
	tests := []struct {
		name   string
		answer contract.Answer
		want   contract.Class
	}{
		{"Length", contract.Answer{Finish: contract.FinishLength}, contract.ClassCut},
		{"AtTheCap", contract.Answer{OutputTokens: 64}, contract.ClassCut},
		{"BelowTheCap", contract.Answer{OutputTokens: 63}, ""},
		{"Tool", contract.Answer{Finish: contract.FinishTool}, contract.ClassFinish},
		{"Refusal", contract.Answer{Finish: contract.FinishRefusal}, contract.ClassRefusal},
		{"AWindow", contract.Answer{InputTokens: 8190, OutputTokens: 2}, contract.ClassContextCut},
		{"NotQuiteAWindow", contract.Answer{InputTokens: 8190, OutputTokens: 3}, ""},
		{"ASmallPowerOfTwo", contract.Answer{InputTokens: 1000, OutputTokens: 24}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			tt.answer.Raw = []byte(goodSmall)
			var got contract.Class
			if found := k.ValidateAnswer(tt.answer, []byte(smallInput)); len(found) > 0 {
				got = found[0].Class
			}
			if got != tt.want {
				t.Errorf("got %q; want %q", got, tt.want)
			}
		})
	}
}

func TestAnExpectationJudgesACaseThatExpects(t *testing.T) {
	t.Parallel()

	c := readExample(t)
	k := checker(t, c)
	first := &c.CaseList[0] // low, no human, no refund
	good := `{"severity":"low","needs_human":false,"refund_cents":200,"summary":"Where is the kettle?"}`
	if semantic, advisory := k.Expect([]byte(good), first); len(semantic)+len(advisory) > 0 {
		t.Errorf("as expected: %v, %v; want nothing", semantic, advisory)
	}
	semantic, advisory := k.Expect([]byte(edit(t, good, `"low"`, `"medium"`, "false", "true", "200", "201")), first)
	if fmt.Sprint(semantic) != "[expectation at severity: it does not hold expectation at refund_near: it does not hold]" {
		t.Errorf("semantic %v; want severity and refund_near", semantic)
	}
	if len(advisory) != 1 || advisory[0].Assertion != "human" {
		t.Errorf("advisory %v; want human", advisory)
	}
	if semantic, _ := k.Expect([]byte("{"), first); len(semantic) != 1 || semantic[0].Class != contract.ClassCut {
		t.Errorf("cut: %v; want a failure all the same", semantic)
	}
	hostile := &c.CaseList[len(c.CaseList)-1]
	if semantic, advisory := k.Expect([]byte("{"), hostile); len(semantic)+len(advisory) > 0 {
		t.Errorf("a case that expects nothing: %v, %v", semantic, advisory)
	}
}

func TestAnInputIsHeldToItsSchema(t *testing.T) {
	t.Parallel()

	k := checker(t, readExample(t))
	for input, want := range map[string]string{
		triageInput: "[]",
		edit(t, triageInput, `"T-100001"`, `"100001"`): "[schema at /ticket_id: it does not match the pattern]",
		edit(t, triageInput, "5000", `"5000"`):         "[stringly_typed at /order_total_cents: there is string where integer belongs]",
		`{"ticket_id":`:                                "[cut: the JSON ends before it is complete]",
	} {
		if got := fmt.Sprint(k.ValidateInput([]byte(input))); got != want {
			t.Errorf("%s: %s; want %s", input, got, want)
		}
	}
}

func TestTextAndBinaryAreJudgedByWhatTheyAre(t *testing.T) {
	t.Parallel()

	text := parse(t, edit(t, textContract(t), "output.count <= input.limit", "output.size() <= input.limit"), smallCases)
	binary := parse(t, edit(t, textContract(t), "media: text", "media: binary", "invariants:\n  - {id: within, cel: \"output.count <= input.limit\"}\n", "",
		"  invariants: {min_rate: 0.5, max_failures: 0}\n", ""), smallCases)
	tests := []struct {
		name string
		c    *contract.Contract
		raw  string
		want contract.Class
	}{
		{"Text", text, "abc", ""},
		{"TextTooLong", text, "abcd", contract.ClassInvariant},
		{"TextEmpty", text, " \n", contract.ClassEmpty},
		{"TextWithControls", text, "a\x00", contract.ClassControl},
		{"TextNotUTF8", text, "a\xff", contract.ClassNotUTF8},
		{"TextWithThoughts", text, "<think>a</think>b", contract.ClassReasoning},
		{"Binary", binary, "\x00\xff", ""},
		{"BinaryEmpty", binary, "", contract.ClassEmpty},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var got contract.Class
			if found := checker(t, tt.c).Validate([]byte(tt.raw), []byte(smallInput)); len(found) > 0 {
				got = found[0].Class
			}
			if got != tt.want {
				t.Errorf("%q: %q; want %q", tt.raw, got, tt.want)
			}
		})
	}
}

// textContract is the small contract for an output that is text.
func textContract(t *testing.T) string {
	t.Helper()
	before, rest, _ := strings.Cut(small, "  media: json\n")
	_, after, _ := strings.Cut(rest, "params:\n")
	return before + "  media: text\nparams:\n" + after
}

// Whatever stands there, it is judged, and only what the schema takes passes.
func TestNoTextBreaksTheJudge(t *testing.T) {
	t.Parallel()

	k := checker(t, parse(t, small, smallCases))
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.IntRange(0, len(goodSmall)).Draw(t, "at")
		junk := rapid.SliceOfN(rapid.SampledFrom([]byte("{}[]\",:0123456789.eE+-\\u tfn`<>\x00\xff")), 1, 6).Draw(t, "junk")
		raw := slices.Concat([]byte(goodSmall[:at]), junk, []byte(goodSmall[at:]))
		for _, v := range k.Validate(raw, []byte(smallInput)) {
			if !slices.Contains(contract.Classes(), v.Class) || v.Message == "" {
				t.Fatalf("%q: %+v is no class with a message", raw, v)
			}
		}
		if got := k.Validate([]byte(goodSmall[:at]), []byte(smallInput)); at < len(goodSmall) && len(got) == 0 {
			t.Fatalf("%q passes", goodSmall[:at])
		}
	})
}
