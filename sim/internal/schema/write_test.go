package schema_test

import (
	"strings"
	"testing"

	"github.com/onejob-dev/onejob/sim/internal/schema"
)

// input is a Reader of what a test says.
type input struct {
	said  map[string]string
	about string
}

func (in input) Said(name string) (string, bool) { text, said := in.said[name]; return text, said }

func (in input) Chosen(choices []string) (int, bool) {
	for i, c := range choices {
		if c == in.about {
			return i, true
		}
	}
	return 0, false
}

func (input) Words() string { return "hello" }

func TestAValueHasTheShapeThatItsSchemaAsksFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ schema, want string }{
		"MembersComeInTheOrderOfTheSchema": {`{"type":"object","properties":{"z":{"type":"boolean"},"a":{"type":"integer"}},"required":["a"]}`, `{"z":false,"a":0}`},
		"ARequiredMemberNeedsNoProperty":   {`{"type":"object","required":["a"]}`, `{"a":"hello"}`},
		"ConstIsCopied":                    {`{"const":{"b":1,"a":[null]}}`, `{"b":1,"a":[null]}`},
		"EnumTakesTheFirst":                {`{"enum":["low","high"]}`, `"low"`},
		"EnumTakesWhatTheInputIsAbout":     {`{"enum":["low","chosen"]}`, `"chosen"`},
		"ANumberIsZeroWhereItMayBe":        {`{"type":"integer","minimum":-5}`, `0`},
		"ANumberIsAtTheNearerEnd":          {`{"type":"integer","minimum":3,"maximum":9}`, `3`},
		"ANegativeNumberToo":               {`{"type":"number","maximum":-2.5}`, `-2.5`},
		"AnOpenEndIsNotTaken":              {`{"type":"integer","exclusiveMinimum":3}`, `4`},
		"BetweenTwoOpenEnds":               {`{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1}`, `0.5`},
		"AMultipleIsOne":                   {`{"type":"integer","minimum":7,"multipleOf":5}`, `10`},
		"SaidNumbersAreTaken":              {`{"type":"object","properties":{"n":{"type":"integer"},"big":{"type":"integer","maximum":5}}}`, `{"n":42,"big":0}`},
		"SaidWordsAreTaken":                {`{"type":"object","properties":{"w":{"type":"string"},"yes":{"type":"boolean"}}}`, `{"w":"Umeå 🐙","yes":true}`},
		"LengthsAreInCharacters":           {`{"type":"object","properties":{"w":{"type":"string","maxLength":6},"x":{"type":"string","minLength":7}}}`, `{"w":"Umeå 🐙","x":"hello.."}`},
		"ALongTextIsCut":                   {`{"type":"string","maxLength":2}`, `"he"`},
		"APatternIsMet":                    {`{"type":"string","pattern":"^T-[0-9]{6}$"}`, `"T-000000"`},
		"WordsThatMatchStay":               {`{"type":"string","pattern":"^h"}`, `"hello"`},
		"AlternativesTakeTheFirst":         {`{"type":"string","pattern":"^(ab|cd)+x?$"}`, `"ab"`},
		"AFormatIsMet":                     {`{"type":"string","format":"date"}`, `"2026-01-02"`},
		"AnArrayHasOneItem":                {`{"type":"array","items":{"type":"null"}}`, `[null]`},
		"OrAsManyAsItMust":                 {`{"type":"array","items":{"type":"boolean"},"minItems":2}`, `[false,false]`},
		"OrAsTheInputLists":                {`{"type":"object","properties":{"list":{"type":"array","items":{"type":"integer"}}}}`, `{"list":[1,2,3]}`},
		"UniqueItemsDiffer":                {`{"type":"array","items":{"enum":["a","b"]},"minItems":2,"uniqueItems":true}`, `["a","b"]`},
		"UniqueNumbersDiffer":              {`{"type":"array","items":{"type":"integer","maximum":0},"minItems":3,"uniqueItems":true}`, `[0,-1,-2]`},
		"FirstItemsHaveSchemasOfTheirOwn":  {`{"prefixItems":[{"const":1}],"items":{"const":2},"minItems":2}`, `[1,2]`},
		"AReferenceIsFollowed":             {`{"$defs":{"a/b":{"const":1}},"properties":{"x":{"$ref":"#/$defs/a~1b"}}}`, `{"x":1}`},
		"ARecursionEnds":                   {`{"$defs":{"n":{"type":"object","properties":{"v":{"const":1},"n":{"$ref":"#/$defs/n"}},"required":["v"]}},"$ref":"#/$defs/n"}`, `{"v":1,"n":{"v":1,"n":{"v":1,"n":{"v":1,"n":{"v":1}}}}}`},
		"AllOfIsAllOfThem":                 {`{"allOf":[{"properties":{"a":{"const":1}},"required":["a"]},{"properties":{"b":{"const":2}},"required":["b"]}]}`, `{"a":1,"b":2}`},
		"AnyOfTakesTheFirstThatIsNotNull":  {`{"anyOf":[{"type":"null"},{"type":"integer"}]}`, `0`},
		"AListOfTypesToo":                  {`{"type":["null","boolean"]}`, `false`},
		"ANullableMemberMayBeNullOnly":     {`{"type":["null"]}`, `null`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input{map[string]string{"n": "42", "big": "7", "w": "Umeå 🐙", "yes": "Yes", "list": "[1, 2,3]"}, "chosen"}
			if got := written(t, c.schema, in); got != c.want {
				t.Errorf("%s asks for %s; want %s", c.schema, got, c.want)
			}
		})
	}
}

func written(t *testing.T, text string, in input) string {
	t.Helper()
	s, err := schema.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	v, err := schema.Write(s, in)
	if err != nil {
		t.Fatal(err)
	}
	return v.String()
}

func TestASchemaThatCannotBeMetIsRefusedWithItsPlace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"properties":{"a":{"type":"text"}}}`:             `#/properties/a: "text" is not a type`,
		`{"properties":{"a":false}}`:                       `#/properties/a: a schema is an object`,
		`{"$ref":"#/$defs/none"}`:                          `there is no "#/$defs/none"`,
		`{"$ref":"https://example.com/s"}`:                 `there is no`,
		`{"$ref":"#"}`:                                     `in a circle`,
		`{"enum":[]}`:                                      `at least one`,
		`{"type":"integer","minimum":2,"maximum":1}`:       `within the bounds`,
		`{"type":"string","minLength":2,"maxLength":1}`:    `minLength is more`,
		`{"type":"string","pattern":"["}`:                  `pattern`,
		`{"type":"string","pattern":"^ab$","minLength":3}`: `has the length`,
		`{"type":"array","minItems":9999}`:                 `at most`,
		`{"type":"array","minItems":9,"items":{"type":"string","minLength":1000000}}`:                   `more than is ever written`,
		`{"$defs":{"n":{"required":["n"],"properties":{"n":{"$ref":"#/$defs/n"}}}},"$ref":"#/$defs/n"}`: `more than is ever written`,
	} {
		s, err := schema.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if v, err := schema.Write(s, input{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want an error with %q", text, v, err, want)
		}
	}
}

func TestAValueIsReadAndWrittenAsItWas(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"b":1,"a":[1.50,"x\"\u0001<é🐙",true,null],"b":{}}`, `[]`, `""`, `-1e9`} {
		if v, err := schema.Parse([]byte(text)); err != nil || v.String() != text || v.Clone().String() != text {
			t.Errorf("%s became %v, %v", text, v, err)
		}
	}
	for _, text := range []string{strings.Repeat("[", 600) + strings.Repeat("]", 600), ``, `{`, `{"a":1`, `[1] 2`, `{a:1}`} {
		if v, err := schema.Parse([]byte(text)); err == nil {
			t.Errorf("%q became %v; want an error", text, v)
		}
	}
}
