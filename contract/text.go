package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/onejob-dev/onejob"
)

// MaxOutputBytes bounds an output that is judged. A longer one is a violation.
const MaxOutputBytes = 1 << 20

// reader reads one JSON value strictly, and notes what two readers could take
// differently.
type reader struct {
	dec   *jsontext.Decoder
	found []Violation
}

// read returns the first value in raw and what follows it. An error says that there
// is none.
func (r *reader) read(raw []byte) (value any, rest []byte, err error) {
	r.dec = jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	if value, err = r.value(); err != nil {
		return nil, nil, err
	}
	return value, bytes.TrimSpace(raw[r.dec.InputOffset():]), nil
}

var errTooDeep = errors.New("too deep")

func (r *reader) value() (any, error) {
	token, err := r.dec.ReadToken()
	if err != nil {
		return nil, err
	}
	if r.dec.StackDepth() > onejob.MaxDepth {
		return nil, errTooDeep
	}
	switch token.Kind() {
	case '{':
		return r.object()
	case '[':
		return r.list()
	case '"':
		text := token.String()
		r.checkText(text)
		return text, nil
	case '0':
		literal := token.String()
		r.checkNumber(literal)
		return json.Number(literal), nil
	case 't', 'f':
		return token.Bool(), nil
	}
	return nil, nil
}

func (r *reader) object() (any, error) {
	object := map[string]any{}
	for {
		switch r.dec.PeekKind() {
		case '}':
			_, err := r.dec.ReadToken()
			return object, err
		case '"':
		default:
			_, err := r.dec.ReadToken() // says what is wrong
			return nil, cmpOr(err, io.ErrUnexpectedEOF)
		}
		name, err := r.dec.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String()
		if _, twice := object[key]; twice {
			r.note(ClassDuplicateName, "the member is there twice; readers disagree about which counts")
		}
		r.checkText(key)
		value, err := r.value()
		if err != nil {
			return nil, err
		}
		object[key] = value
	}
}

func (r *reader) list() (any, error) {
	list := []any{}
	for r.dec.PeekKind() != ']' {
		value, err := r.value()
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	_, err := r.dec.ReadToken()
	return list, err
}

func cmpOr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

func (r *reader) note(class Class, message string) {
	if len(r.found) > maxViolations {
		return
	}
	r.found = append(r.found, Violation{Class: class, Path: clip(string(r.dec.StackPointer())), Message: message})
}

// checkText looks for what no text has in it, and a broken escape leaves behind.
func (r *reader) checkText(text string) {
	if i := strings.IndexFunc(text, isControl); i >= 0 {
		c, _ := utf8.DecodeRuneInString(text[i:])
		r.note(ClassControl, fmt.Sprintf("there is a control character (U+%04X) in the text", c))
	}
}

// isControl reports whether a character is one that texts do not have: all controls
// but tab and the ends of lines.
func isControl(c rune) bool {
	return c < ' ' && c != '\t' && c != '\n' && c != '\r' || c >= 0x7f && c < 0xa0
}

// checkNumber refuses what is no float64, before anything calculates with it.
func (r *reader) checkNumber(literal string) {
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil || math.IsInf(f, 0) || f == 0 && strings.ContainsAny(mantissa(literal), "123456789") {
		r.note(ClassNumberRange, "the number is too large or too small to be read the same way everywhere")
	}
}

func mantissa(literal string) string {
	m, _, _ := strings.Cut(strings.ToLower(literal), "e")
	return m
}

// classify names why content is not one JSON value, err being what the reader said.
func classify(text []byte, err error) Violation {
	var syntactic *jsontext.SyntacticError
	switch starts := text[0] == '{' || text[0] == '[' || text[0] == '"'; {
	case errors.Is(err, errTooDeep):
		return Violation{Class: ClassTooDeep, Message: fmt.Sprintf("it is nested deeper than %d", onejob.MaxDepth)}
	case starts && errors.Is(err, io.ErrUnexpectedEOF):
		return Violation{Class: ClassCut, Message: "the JSON ends before it is complete"}
	case starts && errors.As(err, &syntactic) && isEncodingFault(syntactic):
		return Violation{Class: ClassNotUTF8, Message: at(syntactic, "a text has half of a surrogate pair, or is not valid UTF-8")}
	case starts && errors.As(err, &syntactic) && isRawControl(text, syntactic):
		return Violation{Class: ClassControl, Message: at(syntactic, "a control character stands in a text without an escape")}
	case starts && errors.As(err, &syntactic):
		return Violation{Class: ClassNotJSON, Message: at(syntactic, "it begins like JSON and is none")}
	}
	return classifyText(text)
}

func at(e *jsontext.SyntacticError, message string) string {
	return fmt.Sprintf("%s (byte %d)", message, e.ByteOffset)
}

func isEncodingFault(e *jsontext.SyntacticError) bool {
	return e.Err != nil && (strings.Contains(e.Err.Error(), "UTF-8") || strings.Contains(e.Err.Error(), "surrogate"))
}

func isRawControl(text []byte, e *jsontext.SyntacticError) bool {
	return e.ByteOffset >= 0 && e.ByteOffset < int64(len(text)) && text[e.ByteOffset] < ' '
}

// thoughts are how reasoning begins that should not be in the content.
var thoughts = regexp.MustCompile(`(?i)^\s*<(think|thinking|thought|reasoning|analysis|scratchpad|reflection|\|channel\|)|</think(ing)?>`)

// refusals are how a refusal in plain text begins. A guess: the provider's own signal
// is better, where there is one.
var refusals = regexp.MustCompile(`(?i)^\W*(i('m| am)?( very| so)? (sorry|afraid)|sorry|my apologies|i apologi[sz]e|unfortunately|i (can ?not|can['’]?t|won['’]?t|will not|must decline|am unable|am not able|'m unable|refuse)\b|i['’]m (unable|not able|not allowed|not comfortable)|as an ai\b|this request (violates|goes against))`)

// ReadsLikeRefusal reports whether an output is a refusal in plain text, or a JSON text
// that is one. It is a guess, by how the text begins, in English.
func ReadsLikeRefusal(raw []byte) bool {
	var quoted string
	if json.Unmarshal(raw, &quoted) == nil {
		raw = []byte(quoted)
	}
	return refusals.Match(raw)
}

// classifyText names text that has no JSON value at its beginning.
func classifyText(text []byte) Violation {
	switch {
	case thoughts.Match(text):
		return Violation{Class: ClassReasoning, Message: "the model's reasoning stands in the content"}
	case bytes.HasPrefix(text, []byte("```")) || bytes.Contains(text, []byte("```json")):
		return Violation{Class: ClassFenced, Message: "the JSON stands in a Markdown fence"}
	case holdsJSON(text):
		return Violation{Class: ClassProse, Message: "there is text before the JSON"}
	case refusals.Match(text):
		return Violation{Class: ClassRefusal, Message: "it reads like a refusal"}
	}
	return Violation{Class: ClassNotJSON, Message: "it is text and no JSON"}
}

// maxSearches bounds how often a beginning of JSON is looked for in text.
const maxSearches = 8

// holdsJSON reports whether an object or list stands somewhere in the text, whole or
// cut.
func holdsJSON(text []byte) bool {
	for range maxSearches {
		i := bytes.IndexAny(text, "{[")
		if i < 0 {
			return false
		}
		text = text[i:]
		_, _, err := new(reader).read(text)
		if err == nil || errors.Is(err, io.ErrUnexpectedEOF) && bytes.Contains(text, []byte(`"`)) {
			return true
		}
		text = text[1:]
	}
	return false
}

func escapePointer(token string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(token)
}

// maxShown bounds what is shown of a name that somebody else chose.
const maxShown = 80

func clip(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + "…"
}
