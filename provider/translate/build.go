package translate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/onejob-dev/onejob/provider/wire/prompt"
)

// raw is JSON as it is written.
type raw = json.RawMessage

// builder makes one object. What is absent is left out.
type builder struct {
	out prompt.Body
	err error
}

func (b *builder) value(name string, v any) {
	if b.err == nil {
		b.err = b.out.SetValue(name, v)
	}
}

func (b *builder) copy(name string, v jsontext.Value) {
	if v != nil {
		b.value(name, raw(v))
	}
}

// content puts a text or blocks.
func (b *builder) content(whole jsontext.Value, blocks []*prompt.Body) {
	if whole != nil {
		b.copy("content", whole)
		return
	}
	b.value("content", bodies(blocks))
}

func (b *builder) body(path string) (*prompt.Body, error) {
	if b.err != nil {
		return nil, refuse(path, b.err.Error())
	}
	return &b.out, nil
}

// bodies is a list, never null.
func bodies(list []*prompt.Body) []*prompt.Body {
	if list == nil {
		return []*prompt.Body{}
	}
	return list
}

// written is an answer as JSON, without escaping what only HTML minds.
func written(v any) ([]byte, error) {
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(text.String(), "\n")), nil
}

func at(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// objectIn reads the object that a text holds. An empty text holds an empty one.
func objectIn(v jsontext.Value) (jsontext.Value, error) {
	s, err := text("", v)
	switch {
	case err != nil:
		return nil, errors.New("it is not a text")
	case strings.TrimSpace(s) == "":
		return jsontext.Value("{}"), nil
	}
	object := jsontext.Value(s)
	if object.Kind() != '{' || !object.IsValid() {
		return nil, errors.New("it does not hold an object")
	}
	return object, nil
}

// maxName bounds a caller's name for a member in a message.
const maxName = 60

// printable keeps a caller's name for a member from forging lines.
func printable(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, name)
	if len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "")
	}
	return name
}
