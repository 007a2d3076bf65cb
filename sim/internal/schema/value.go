// Package schema writes the JSON value that a JSON Schema asks for.
//
// It is what an honest model with constrained decoding does: whatever the input
// says, the answer has the shape. [Value] keeps the order of members, so that the
// answer comes as the schema lists it.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Kind is the sort of a JSON value.
type Kind byte

// The sorts of JSON values.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// Value is a JSON value whose members keep their order. The zero Value is null.
type Value struct {
	Kind  Kind
	Text  string   // of a string its text, of a number and a bool their JSON
	Items []*Value // of an array, or the values of an object's members
	Names []string // of an object's members; one may be there twice
	By    *Value   // the schema that it was written for; nil: none
}

// maxNesting bounds how deep a value that is read may be.
const maxNesting = 512

// Parse reads one JSON value. It fails on invalid JSON, on trailing data and on
// more than 512 levels.
func Parse(raw []byte) (*Value, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	v, err := next(dec, maxNesting)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}

// next reads a value of so many levels at most.
func next(dec *json.Decoder, levels int) (*Value, error) {
	if levels == 0 {
		return nil, errors.New("the value is nested too deep")
	}
	token, err := dec.Token()
	if errors.Is(err, io.EOF) {
		return nil, io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case bool:
		return &Value{Kind: Bool, Text: fmt.Sprint(t)}, nil
	case json.Number:
		return &Value{Kind: Number, Text: t.String()}, nil
	case string:
		return Str(t), nil
	case json.Delim:
		if t == '{' {
			return members(dec, levels-1)
		}
		return elements(dec, levels-1)
	}
	return &Value{}, nil
}

func members(dec *json.Decoder, levels int) (*Value, error) {
	v := &Value{Kind: Object}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		item, err := next(dec, levels)
		if err != nil {
			return nil, err
		}
		v.Names, v.Items = append(v.Names, name.(string)), append(v.Items, item)
	}
	_, err := dec.Token()
	return v, err
}

func elements(dec *json.Decoder, levels int) (*Value, error) {
	v := &Value{Kind: Array}
	for dec.More() {
		item, err := next(dec, levels)
		if err != nil {
			return nil, err
		}
		v.Items = append(v.Items, item)
	}
	_, err := dec.Token()
	return v, err
}

// Str is a string.
func Str(text string) *Value { return &Value{Kind: String, Text: text} }

// Obj is an object with the members named, in turn name and value.
func Obj(name string, item *Value) *Value {
	return &Value{Kind: Object, Names: []string{name}, Items: []*Value{item}}
}

// Get finds a member of an object, the last of its name; nil if there is none.
func (v *Value) Get(path ...string) *Value {
	for _, name := range path {
		if v == nil || v.Kind != Object {
			return nil
		}
		i := len(v.Names) - 1
		for i >= 0 && v.Names[i] != name {
			i--
		}
		if i < 0 {
			return nil
		}
		v = v.Items[i]
	}
	return v
}

// Has reports whether an object has a member.
func (v *Value) Has(name string) bool { return v.Get(name) != nil }

// Set replaces a member of an object, or adds it at the end.
func (v *Value) Set(name string, item *Value) {
	if i := slices.Index(v.Names, name); i >= 0 {
		v.Items[i] = item
		return
	}
	v.Names, v.Items = append(v.Names, name), append(v.Items, item)
}

// Str is the text of a string; empty of anything else, nil included.
func (v *Value) Str() string {
	if v == nil || v.Kind != String {
		return ""
	}
	return v.Text
}

// Is reports the kind of a value, which may be nil.
func (v *Value) Is(kind Kind) bool { return v != nil && v.Kind == kind }

// Clone copies a value, to be changed.
func (v *Value) Clone() *Value {
	c := *v
	c.Names = slices.Clone(v.Names)
	c.Items = make([]*Value, len(v.Items))
	for i, item := range v.Items {
		c.Items[i] = item.Clone()
	}
	return &c
}

// Walk visits a value and everything in it, outside first, until visit returns false.
func (v *Value) Walk(visit func(*Value) bool) bool {
	if !visit(v) {
		return false
	}
	for _, item := range v.Items {
		if !item.Walk(visit) {
			return false
		}
	}
	return true
}

// String is the JSON text, without white space.
func (v *Value) String() string { return string(v.append(nil)) }

// MarshalJSON returns the JSON text. It never fails.
func (v *Value) MarshalJSON() ([]byte, error) { return v.append(nil), nil }

func (v *Value) append(b []byte) []byte {
	switch v.Kind {
	case Bool, Number:
		return append(b, v.Text...)
	case String:
		return append(b, Quote(v.Text)...)
	case Array, Object:
		open, end := byte('['), byte(']')
		if v.Kind == Object {
			open, end = '{', '}'
		}
		b = append(b, open)
		for i, item := range v.Items {
			if i > 0 {
				b = append(b, ',')
			}
			if v.Kind == Object {
				b = append(append(b, Quote(v.Names[i])...), ':')
			}
			b = item.append(b)
		}
		return append(b, end)
	case Null:
	}
	return append(b, "null"...)
}

// Quote writes a JSON string, escaping only what must be.
func Quote(text string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a string always encodes
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}
