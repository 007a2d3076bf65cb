package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// span is where a member lies in a JSON object: its name as it is written from at to
// named, its value from start to end.
type span struct {
	name       string
	at, named  int
	start, end int
}

var errNotObject = errors.New("not a JSON object")

// members finds the top-level members of a JSON object in the order in which
// they are written, duplicates included.
func members(object []byte) ([]span, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(object), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, errNotObject
	}
	var spans []span
	for d.PeekKind() != '}' {
		at := int(d.InputOffset())
		at += bytes.IndexByte(object[at:], '"') // only a comma and blanks come before it
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		s := span{name: name.String(), at: at, named: int(d.InputOffset())} // the token is gone with the next
		value, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		s.end = int(d.InputOffset())
		s.start = s.end - len(value)
		spans = append(spans, s)
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(object[d.InputOffset():])) > 0 {
		return nil, errNotObject
	}
	return spans, nil
}

// Member returns the value of a top-level member of a JSON object, byte for byte.
// Nil: object is none, or the member is absent, null or there twice.
func Member(object []byte, name string) json.RawMessage {
	spans, err := members(object)
	if err != nil {
		return nil
	}
	var value json.RawMessage
	for _, s := range spans {
		if s.name != name {
			continue
		}
		if value != nil {
			return nil
		}
		value = object[s.start:s.end:s.end]
	}
	if string(value) == "null" {
		return nil
	}
	return slices.Clone(value)
}

// Object is a JSON object whose top-level members have been found.
type Object struct {
	text  []byte
	spans []span
}

// ReadObject finds the top-level members of a JSON object. It returns an error for
// what is none. text must not change while the object is in use.
func ReadObject(text []byte) (Object, error) {
	spans, err := members(text)
	if err != nil {
		return Object{}, fmt.Errorf("the input is %w", errNotObject)
	}
	return Object{text, spans}, nil
}

// WithMember is [Object.With] of an object that is read for nothing else.
func WithMember(object []byte, name string, value json.RawMessage) ([]byte, error) {
	spans, err := members(object)
	if err != nil {
		return nil, err
	}
	return Object{object, spans}.With(name, value)
}

// With returns the object with a top-level member set to value, all other bytes as
// they were. A member that is there twice is an error: two readers could take
// different ones.
func (o Object) With(name string, value json.RawMessage) ([]byte, error) {
	object, at := o.text, -1
	for i, s := range o.spans {
		if s.name != name {
			continue
		}
		if at >= 0 {
			return nil, fmt.Errorf("member %q is there twice", name)
		}
		at = i
	}
	if at >= 0 {
		s := o.spans[at]
		return slices.Concat(object[:s.start], value, object[s.end:]), nil
	}
	quoted, err := json.Marshal(name)
	if err != nil {
		return nil, err
	}
	open := bytes.IndexByte(object, '{') + 1
	added := slices.Concat(quoted, []byte(":"), value)
	if len(o.spans) > 0 {
		added = append(added, ',')
	}
	return slices.Concat(object[:open], added, object[open:]), nil
}

// HasMember reports whether a JSON object has a top-level member, null included.
func HasMember(object []byte, name string) bool {
	spans, _ := members(object)
	return slices.ContainsFunc(spans, func(s span) bool { return s.name == name })
}

// WantsStream reports whether a request's body asks for its answer in pieces. It
// returns an error for one that says so in no way that all read alike.
func (o Object) WantsStream() (bool, error) {
	said, wants := false, false
	for _, s := range o.spans {
		if s.name != "stream" {
			continue
		}
		value := string(o.text[s.start:s.end])
		if said || value != "true" && value != "false" && value != "null" {
			return false, errors.New("the input says stream twice, or neither true nor false")
		}
		said, wants = true, value == "true"
	}
	return wants, nil
}
