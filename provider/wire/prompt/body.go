package prompt

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Body is a JSON object under construction. Members stand in the order in which they
// were first set. The zero value is an empty object.
type Body struct {
	names []string
	of    map[string]any // json.RawMessage or *Body
}

// Set puts a value at a path of members, dots between. Setting below a value that is
// no object, or over one that is there, is an error.
func (b *Body) Set(path string, value json.RawMessage) error {
	name, rest, deeper := strings.Cut(path, ".")
	there := b.of[name]
	inner, isObject := there.(*Body)
	switch {
	case !deeper && there == nil:
		b.put(name, value)
		return nil
	case !deeper, there != nil && !isObject:
		return fmt.Errorf("two parameters go to %s", name)
	case there == nil:
		inner = &Body{}
		b.put(name, inner)
	}
	return inner.Set(rest, value)
}

// SetValue is [Body.Set] of what v marshals to.
func (b *Body) SetValue(path string, v any) error {
	value, err := encode(v)
	if err != nil {
		return err
	}
	return b.Set(path, value)
}

func (b *Body) put(name string, v any) {
	if b.of == nil {
		b.of = map[string]any{}
	}
	b.names = append(b.names, name)
	b.of[name] = v
}

// MarshalJSON writes the object.
func (b *Body) MarshalJSON() ([]byte, error) {
	var text strings.Builder
	text.WriteByte('{')
	for i, name := range b.names {
		if i > 0 {
			text.WriteByte(',')
		}
		quoted, err := encode(name)
		if err != nil {
			return nil, err
		}
		value, err := encode(b.of[name])
		if err != nil {
			return nil, err
		}
		text.Write(quoted)
		text.WriteByte(':')
		text.Write(value)
	}
	text.WriteByte('}')
	return []byte(text.String()), nil
}

// encode writes JSON as it is, without escaping what only HTML minds.
func encode(v any) (json.RawMessage, error) {
	switch v := v.(type) {
	case json.RawMessage:
		return v, nil
	case *Body:
		return v.MarshalJSON()
	}
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return json.RawMessage(strings.TrimSuffix(text.String(), "\n")), nil
}
