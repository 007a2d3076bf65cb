package contract

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// structure judges an output by itself, and returns its value.
func (k *Checker) structure(a Answer) (any, []Violation) {
	switch k.output.Media {
	case MediaBinary:
		if len(a.Raw) == 0 {
			return nil, []Violation{{Class: ClassEmpty, Message: "there is no output"}}
		}
		return nil, nil
	case MediaText:
		return string(a.Raw), k.textViolations(a.Raw)
	}
	value, found := k.document(a.Raw)
	if len(found) > 0 {
		return nil, found
	}
	found = k.outputSchema.outputViolations(value)
	if k.output.Integers == "literal" {
		found = append(found, integerViolations(value, k.outputSchema.shape)...)
	}
	return value, found
}

func (k *Checker) textViolations(raw []byte) []Violation {
	if v, unfit := unfit(raw); unfit {
		return []Violation{v}
	}
	if thoughts.Match(raw) {
		return []Violation{{Class: ClassReasoning, Message: "the model's reasoning stands in the content"}}
	}
	if bytes.ContainsFunc(raw, isControl) {
		return []Violation{{Class: ClassControl, Message: "there is a control character in the text"}}
	}
	return nil
}

// unfit names what is wrong with content before anybody reads it.
func unfit(raw []byte) (Violation, bool) {
	switch {
	case len(raw) > MaxOutputBytes:
		return Violation{Class: ClassTooLarge, Message: fmt.Sprintf("it has more than %d bytes", MaxOutputBytes)}, true
	case len(bytes.TrimSpace(raw)) == 0:
		return Violation{Class: ClassEmpty, Message: "there is no output"}, true
	case !utf8.Valid(raw):
		return Violation{Class: ClassNotUTF8, Message: "it is not valid UTF-8"}, true
	}
	return Violation{}, false
}

// jsonSpace is the white space that JSON has around values.
const jsonSpace = " \t\r\n"

// document reads content that is to be one JSON value and nothing else.
func (k *Checker) document(raw []byte) (any, []Violation) {
	if v, unfit := unfit(raw); unfit {
		return nil, []Violation{v}
	}
	text := bytes.Trim(raw, jsonSpace)
	if len(text) == 0 {
		return nil, []Violation{{Class: ClassNotJSON, Message: "it is white space that JSON does not know"}}
	}
	var r reader
	value, rest, err := r.read(text)
	switch {
	case err != nil:
		return nil, []Violation{classify(text, err)}
	case len(rest) > 0 && isScalar(value):
		return nil, []Violation{classifyText(text)} // a word or number that text begins with
	case len(rest) > 0:
		return nil, []Violation{{Class: ClassTrailing, Message: "something follows the JSON value"}}
	}
	return value, r.found
}

func isScalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// outputViolations judges a value by the schema, and names the shapes in which right
// answers come wrong.
func (s *schema) outputViolations(value any) []Violation {
	err := s.compiled.Validate(value)
	if err == nil {
		return nil
	}
	if v, ok := s.disguised(value); ok {
		return []Violation{v}
	}
	return violationsOf(err, value)
}

// violations judges a value by the schema.
func (s *schema) violations(value any) []Violation {
	if err := s.compiled.Validate(value); err != nil {
		return violationsOf(err, value)
	}
	return nil
}

// disguised recognises an output that is there, but inside something.
func (s *schema) disguised(value any) (Violation, bool) {
	switch v := value.(type) {
	case string:
		if holdsDocument(v) {
			return Violation{Class: ClassDoubleEncoded, Message: "the whole output is a JSON text with JSON in it"}, true
		}
		if refusals.MatchString(v) {
			return Violation{Class: ClassRefusal, Message: "it reads like a refusal"}, true
		}
	case map[string]any:
		if _, known := s.shape.fields["error"]; v["error"] != nil && !known {
			return Violation{Class: ClassErrorBody, Path: "/error", Message: "there is an error where the output belongs"}, true
		}
		for name, inner := range v {
			if len(v) == 1 && s.shape.fields[name] == nil && s.resembles(inner) {
				return Violation{Class: ClassWrapped, Path: "/" + escapePointer(clip(name)), Message: fmt.Sprintf("the output stands inside one more member, %q", clip(name))}, true
			}
		}
	}
	return Violation{}, false
}

// resembles reports whether a value has members that the schema's root has.
func (s *schema) resembles(value any) bool {
	if text, ok := value.(string); ok && holdsDocument(text) {
		value = expected(json.RawMessage(text))
	}
	object, ok := value.(map[string]any)
	if !ok {
		return false
	}
	for name := range object {
		if s.shape.fields[name] != nil {
			return true
		}
	}
	return false
}

// holdsDocument reports whether a text is a JSON object or list.
func holdsDocument(text string) bool {
	text = strings.TrimSpace(text)
	return len(text) > 1 && (text[0] == '{' || text[0] == '[') && json.Valid([]byte(text))
}

func violationsOf(err error, value any) []Violation {
	var broken *jsonschema.ValidationError
	if !errors.As(err, &broken) {
		return []Violation{{Class: ClassSchema, Message: "it breaks the schema"}}
	}
	var found []Violation
	for _, leaf := range leaves(broken) {
		if v := violationOf(leaf, value); !slices.Contains(found, v) {
			found = append(found, v)
		}
	}
	slices.SortStableFunc(found, func(a, b Violation) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Keyword, b.Keyword))
	})
	return found
}

// violationOf names one thing that a schema refuses. value is the whole output.
func violationOf(leaf *jsonschema.ValidationError, value any) Violation {
	v := Violation{Class: ClassSchema, Path: pointerOf(leaf.InstanceLocation)}
	if keywords := leaf.ErrorKind.KeywordPath(); len(keywords) > 0 {
		v.Keyword = keywords[len(keywords)-1]
	}
	v.Message = "it breaks " + v.Keyword
	switch k := leaf.ErrorKind.(type) {
	case *kind.Type:
		v.Message = fmt.Sprintf("there is %s where %s belongs", k.Got, strings.Join(k.Want, " or "))
		if text, ok := valueAt(value, leaf.InstanceLocation).(string); ok {
			v.Class = classOfText(text, k.Want)
		}
	case *kind.Enum:
		v.Class, v.Message = ClassEnum, fmt.Sprintf("it is none of %s", listed(k.Want))
	case *kind.Format:
		v.Message = "it is not a valid " + k.Want
	case *kind.Pattern:
		v.Message = "it does not match the pattern"
	case *kind.Const:
		v.Message = "it is not the one value that is allowed"
	case *kind.Required:
		v.Message = "missing: " + strings.Join(k.Missing, ", ")
	case *kind.AdditionalProperties:
		v.Message = "there are members that the schema does not know: " + clip(strings.Join(k.Properties, ", "))
	case *kind.MaxLength:
		v.Message = fmt.Sprintf("it has %d characters; there may be %d", k.Got, k.Want)
	case *kind.MinLength:
		v.Message = fmt.Sprintf("it has %d characters; there must be %d", k.Got, k.Want)
	case *kind.MaxItems:
		v.Message = fmt.Sprintf("it has %d items; there may be %d", k.Got, k.Want)
	case *kind.MinItems:
		v.Message = fmt.Sprintf("it has %d items; there must be %d", k.Got, k.Want)
	}
	return v
}

// isChoice reports whether an error is that none of several alternatives fits.
func isChoice(e *jsonschema.ValidationError) bool {
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf, *kind.Not, *kind.Contains:
		return true
	}
	return false
}

// classOfText names a text where something else belongs.
func classOfText(text string, want []string) Class {
	trimmed := strings.TrimSpace(text)
	for _, w := range want {
		switch w {
		case "integer", "number":
			if numberForm.MatchString(strings.ReplaceAll(trimmed, ",", "")) {
				return ClassStringlyTyped
			}
		case "boolean":
			if strings.EqualFold(trimmed, "true") || strings.EqualFold(trimmed, "false") {
				return ClassStringlyTyped
			}
		case "null":
			if strings.EqualFold(trimmed, "null") || strings.EqualFold(trimmed, "none") {
				return ClassStringlyTyped
			}
		case "object", "array":
			if holdsDocument(trimmed) {
				return ClassDoubleEncoded
			}
		}
	}
	return ClassSchema
}

func listed(values []any) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = fmt.Sprint(v)
	}
	return clip(strings.Join(words, ", "))
}

func pointerOf(tokens []string) string {
	var b strings.Builder
	for _, token := range tokens {
		b.WriteString("/" + escapePointer(clip(token)))
	}
	return b.String()
}

func valueAt(value any, tokens []string) any {
	for _, token := range tokens {
		switch v := value.(type) {
		case map[string]any:
			value = v[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// integerViolations looks for whole numbers that are not written as such: readers in
// many languages refuse 1200.0 for an integer, and what is beyond 64 bits.
func integerViolations(value any, s *shape) []Violation {
	var found []Violation
	below := func(step string, value any, s *shape) {
		for _, v := range integerViolations(value, s) {
			v.Path = "/" + escapePointer(clip(step)) + v.Path
			found = append(found, v)
		}
	}
	switch v := value.(type) {
	case json.Number:
		if _, err := v.Int64(); s.kind == integerShape && err != nil {
			return []Violation{{Class: ClassInteger, Message: "it is not written as a whole number of 64 bits"}}
		}
	case []any:
		for i := range v {
			below(strconv.Itoa(i), v[i], s.below(""))
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			below(name, v[name], s.below(name))
		}
	}
	return found
}
