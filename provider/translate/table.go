package translate

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/onejob-dev/onejob/provider/wire/prompt"
)

// Request is a request in the other protocol.
type Request struct {
	Body []byte
	// Dropped are the members that were left out, because they ask for nothing, sorted.
	Dropped []string
}

// refusal says which member has no place in the other protocol. It repeats no value.
type refusal struct{ member, why string }

func (r *refusal) Error() string {
	return fmt.Sprintf("the member %q cannot be translated: %s", r.member, r.why)
}

func refuse(member, why string) error { return &refusal{member, why} }

const noPlace = "the other API has no place for it"

// row says what becomes of one member.
type row struct {
	member string
	step   step
}

// step brings the value of a member into the translation.
type step func(t *translation, member string, v jsontext.Value) error

// table says it of all members of a request. Those that are not in it are refused.
type table []row

// translation is a request on its way. Members stand in the order of the original.
type translation struct {
	out     prompt.Body
	dropped []string
	oneCall bool           // of a tool at a time
	choice  string         // of tools. Empty: none is said
	system  *content       // the system's word, where it is not a message
	talk    []*prompt.Body // the messages of a chat
}

// translate goes through the members of an object. Null says nothing.
func (t table) translate(object []byte, last func(*translation) error) (Request, error) {
	members, err := membersOf("", object)
	if err != nil {
		return Request{}, err
	}
	var tr translation
	for _, m := range members {
		i := slices.IndexFunc(t, func(r row) bool { return r.member == m.name })
		switch {
		case i < 0:
			return Request{}, refuse(printable(m.name), noPlace)
		case m.value.Kind() == 'n':
			continue
		}
		if err := t[i].step(&tr, m.name, m.value); err != nil {
			return Request{}, err
		}
	}
	if err := last(&tr); err != nil {
		return Request{}, err
	}
	body, err := tr.out.MarshalJSON()
	slices.Sort(tr.dropped)
	return Request{Body: body, Dropped: slices.Compact(tr.dropped)}, err
}

func (t *translation) drop(name string) { t.dropped = append(t.dropped, name) }

// set puts a value at a path of the other request, for a member of this one.
func (t *translation) set(member, path string, v any) error {
	if err := t.out.SetValue(path, v); err != nil {
		return refuse(member, err.Error())
	}
	return nil
}

// Steps.

// to copies the value, byte for byte.
func to(path string) step {
	return func(t *translation, member string, v jsontext.Value) error { return t.set(member, path, raw(v)) }
}

// words puts one word for another. Those that have none are refused; an empty one says
// what the other API does anyway.
func words(path string, of map[string]string) step {
	return func(t *translation, member string, v jsontext.Value) error {
		word, known := of[literal(v)]
		switch {
		case !known:
			return refuse(member, "the other API has no word for its value")
		case word == "":
			return nil
		}
		return t.set(member, path, word)
	}
}

// only takes values that ask for what the other API does anyway.
func only(values ...string) step {
	return func(_ *translation, member string, v jsontext.Value) error {
		if !slices.Contains(values, literal(v)) {
			return refuse(member, noPlace)
		}
		return nil
	}
}

// number copies one that both APIs take alike.
func number(path string, low, high float64) step {
	return func(t *translation, member string, v jsontext.Value) error {
		n, err := strconv.ParseFloat(string(v), 64)
		if v.Kind() != '0' || err != nil || n < low || n > high {
			return refuse(member, fmt.Sprintf("the other API takes %v to %v", low, high))
		}
		return t.set(member, path, raw(v))
	}
}

// dropped leaves out what asks for nothing, and tells.
func dropped(t *translation, member string, _ jsontext.Value) error {
	t.drop(member)
	return nil
}

// refused says that it has no place, and is read as nothing only where it is null.
func refused(_ *translation, member string, _ jsontext.Value) error { return refuse(member, noPlace) }

// Reading.

type member struct {
	name  string
	value jsontext.Value
}

// membersOf reads an object, whose names are all different.
func membersOf(path string, v jsontext.Value) ([]member, error) {
	var members []member
	d := jsontext.NewDecoder(strings.NewReader(string(v)))
	if d.PeekKind() != '{' {
		return nil, refuse(path, "it is not an object")
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, refuse(path, "it cannot be read")
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, refuse(path, "it cannot be read")
		}
		text := name.String()
		value, err := d.ReadValue()
		if err != nil {
			return nil, refuse(path, "it cannot be read")
		}
		members = append(members, member{text, value.Clone()})
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, refuse(path, "it cannot be read")
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, refuse(path, "something follows it")
	}
	return members, nil
}

// fields reads an object all of whose members are known. Those that are null are left
// out: null says nothing.
func fields(path string, v jsontext.Value, known ...string) (map[string]jsontext.Value, error) {
	members, err := membersOf(path, v)
	if err != nil {
		return nil, err
	}
	found := map[string]jsontext.Value{}
	for _, m := range members {
		switch {
		case !slices.Contains(known, m.name):
			return nil, refuse(path+"."+printable(m.name), noPlace)
		case m.value.Kind() != 'n':
			found[m.name] = m.value
		}
	}
	return found, nil
}

// list reads a list.
func list(path string, v jsontext.Value) ([]jsontext.Value, error) {
	var values []jsontext.Value
	if v.Kind() != '[' || json.Unmarshal(v, &values) != nil {
		return nil, refuse(path, "it is not a list")
	}
	return values, nil
}

// text reads a text.
func text(path string, v jsontext.Value) (string, error) {
	var s string
	if v.Kind() != '"' || json.Unmarshal(v, &s) != nil {
		return "", refuse(path, "it is not a text")
	}
	return s, nil
}

// literal is a value to be compared: a text without its quotes, of another value the
// bytes without blanks.
func literal(v jsontext.Value) string {
	if s, err := text("", v); err == nil {
		return s
	}
	compact := v.Clone()
	if compact.Compact() != nil {
		return ""
	}
	return string(compact)
}

// wordOf is the text that a member of an object has. Empty: it has none.
func wordOf(name string, object jsontext.Value) string {
	members, err := membersOf("", object)
	i := slices.IndexFunc(members, func(m member) bool { return m.name == name })
	if err != nil || i < 0 {
		return ""
	}
	return literal(members[i].value)
}
