package schema

import (
	"fmt"
	"slices"
	"strings"
)

// Reader is what the input says.
type Reader interface {
	// Said is what the input says a member is to be; false: nothing.
	Said(name string) (text string, said bool)
	// Chosen is which of the choices the input is about; false: none.
	Chosen(choices []string) (index int, chosen bool)
	// Words is what to write where nothing was said.
	Words() string
}

// The bounds of what is written for one schema.
const (
	maxDepth  = 32
	maxValues = 10_000
	maxItems  = 256
	maxBytes  = 4 << 20 // of text
	// deep is how far down members that are not required are written too.
	deep = 4
)

// Write returns the value that a schema asks for and the input leads to: the same
// for the same two. It fails where the schema cannot be met or read: with the
// place in the schema, as a JSON pointer.
//
// It knows type, const, enum, properties, required, items, prefixItems, the bounds on numbers,
// lengths and counts, uniqueItems, pattern, format, $ref within the schema, allOf,
// anyOf and oneOf (the first branch that is not null). The rest it does not read.
func Write(schema *Value, r Reader) (*Value, error) {
	w := writer{root: schema, r: r}
	return w.value(schema, place{at: "#"})
}

type writer struct {
	root    *Value
	r       Reader
	written int
	bytes   int // of text
}

// place is where a value is being written.
type place struct {
	at    string // the JSON pointer of its schema
	name  string // of the member that it is in
	index int    // in an array whose items are to differ
	depth int
	said  *string // what the input says of this very value
}

func (p place) fail(format string, args ...any) error {
	return fmt.Errorf("%s: %s", p.at, fmt.Sprintf(format, args...))
}

func (p place) below(path string) place {
	p.at += "/" + path
	p.depth++
	return p
}

// what the input says of the value at this place.
func (w *writer) said(p place) (string, bool) {
	if p.said != nil {
		return *p.said, true
	}
	if p.name == "" {
		return "", false
	}
	return w.r.Said(p.name)
}

func (w *writer) value(s *Value, p place) (*Value, error) {
	if w.written++; w.written > maxValues || p.depth > maxDepth {
		return nil, p.fail("the schema asks for more than is ever written")
	}
	s, p, err := w.resolve(s, p)
	if err != nil {
		return nil, err
	}
	v, err := w.typed(s, p)
	if err != nil {
		return nil, err
	}
	v.By = s
	return v, nil
}

func (w *writer) typed(s *Value, p place) (*Value, error) {
	if fixed := s.Get("const"); fixed != nil {
		return fixed.Clone(), nil
	}
	if choices := s.Get("enum"); choices != nil {
		return w.choice(choices, p)
	}
	switch kind := typeOf(s); kind {
	case "object":
		return w.object(s, p)
	case "array":
		return w.array(s, p)
	case "string":
		return w.text(s, p)
	case "integer", "number":
		return w.number(s, p, kind == "integer")
	case "boolean":
		said, _ := w.said(p)
		said = strings.ToLower(strings.TrimSpace(said))
		yes := said == "true" || said == "yes" || said == "1"
		return &Value{Kind: Bool, Text: fmt.Sprint(yes != (p.index%2 == 1))}, nil
	case "null":
		return &Value{}, nil
	default:
		return nil, p.fail("%q is not a type", kind)
	}
}

// resolve follows references and picks branches, until a schema stands by itself.
func (w *writer) resolve(s *Value, p place) (*Value, place, error) {
	for range maxDepth {
		if s.Is(Bool) && s.Text == "true" {
			s = &Value{Kind: Object}
		}
		if !s.Is(Object) {
			return nil, p, p.fail("a schema is an object")
		}
		var branch *Value
		switch ref, all := s.Get("$ref"), s.Get("allOf"); {
		case ref != nil:
			branch = w.find(ref.Str())
			if branch == nil {
				return nil, p, p.fail("there is no %s in the schema", ref)
			}
			s = without(s, "$ref")
		case all.Is(Array) && len(all.Items) > 0:
			branch = all.Items[0]
			rest := &Value{Kind: Array, Items: all.Items[1:]}
			s = without(s, "allOf")
			if len(rest.Items) > 0 {
				s.Set("allOf", rest)
			}
		default:
			name := "anyOf"
			if s.Has("oneOf") {
				name = "oneOf"
			}
			if branch = firstBranch(s.Get(name)); branch == nil {
				return s, p, nil
			}
			s = without(s, name)
		}
		if s = merge(s, branch); s == nil {
			return nil, p, p.fail("a branch is not an object")
		}
	}
	return nil, p, p.fail("its references go in a circle")
}

func firstBranch(branches *Value) *Value {
	if !branches.Is(Array) {
		return nil
	}
	for _, b := range branches.Items {
		if b.Get("type").Str() != "null" {
			return b
		}
	}
	return nil
}

func without(s *Value, name string) *Value {
	c := &Value{Kind: Object}
	for i, n := range s.Names {
		if n != name {
			c.Names, c.Items = append(c.Names, n), append(c.Items, s.Items[i])
		}
	}
	return c
}

// merge puts what both schemas ask into one. Nil: one of them is not an object.
func merge(s, branch *Value) *Value {
	if branch.Is(Bool) && branch.Text == "true" {
		return s
	}
	if !branch.Is(Object) {
		return nil
	}
	c := without(s, "")
	for i, name := range branch.Names {
		mine, theirs := c.Get(name), branch.Items[i]
		switch {
		case name == "properties" && mine.Is(Object) && theirs.Is(Object):
			both := without(mine, "")
			for j, property := range theirs.Names {
				both.Set(property, theirs.Items[j])
			}
			theirs = both
		case name == "required" && mine.Is(Array) && theirs.Is(Array):
			theirs = &Value{Kind: Array, Items: slices.Concat(mine.Items, theirs.Items)}
		}
		c.Set(name, theirs)
	}
	return c
}

// find follows a reference within the schema; nil if it leads nowhere.
func (w *writer) find(ref string) *Value {
	path, inside := strings.CutPrefix(ref, "#")
	if !inside {
		return nil
	}
	v := w.root
	for _, name := range strings.Split(path, "/")[1:] {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		if v = v.Get(name); v == nil {
			return nil
		}
	}
	return v
}

// typeOf is the first type that is not null, or the one that the keywords tell of.
func typeOf(s *Value) string {
	if t := s.Get("type"); t.Is(String) {
		return t.Text
	} else if t.Is(Array) {
		for _, item := range t.Items {
			if item.Str() != "null" {
				return item.Str()
			}
		}
		return "null"
	}
	for _, hint := range []struct{ keyword, is string }{
		{"properties", "object"},
		{"required", "object"},
		{"items", "array"},
		{"prefixItems", "array"},
		{"minimum", "number"},
		{"maximum", "number"},
		{"multipleOf", "number"},
	} {
		if s.Has(hint.keyword) {
			return hint.is
		}
	}
	return "string"
}

func (w *writer) choice(choices *Value, p place) (*Value, error) {
	if !choices.Is(Array) || len(choices.Items) == 0 {
		return nil, p.fail("an enum lists at least one value")
	}
	texts := make([]string, len(choices.Items))
	for i, item := range choices.Items {
		texts[i] = item.String()
		if item.Kind == String {
			texts[i] = item.Text
		}
	}
	picked := -1
	if said, found := w.said(p); found {
		picked = slices.IndexFunc(texts, func(t string) bool { return strings.EqualFold(t, strings.TrimSpace(said)) })
	}
	if picked < 0 {
		picked = 0
		if chosen, found := w.r.Chosen(texts); found {
			picked = chosen
		}
	}
	return choices.Items[(picked+p.index)%len(texts)].Clone(), nil
}

func (w *writer) object(s *Value, p place) (*Value, error) {
	v := &Value{Kind: Object}
	properties, required := s.Get("properties"), names(s.Get("required"))
	if properties.Is(Object) {
		for i, name := range properties.Names {
			if p.depth >= deep && !slices.Contains(required, name) {
				continue
			}
			if err := w.member(v, name, properties.Items[i], p.below("properties/"+name)); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range required {
		if v.Has(name) {
			continue
		}
		other := s.Get("additionalProperties")
		if other == nil {
			other = &Value{Kind: Object}
		}
		if err := w.member(v, name, other, p.below("additionalProperties")); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (w *writer) member(v *Value, name string, s *Value, p place) error {
	p.name, p.said, p.index = name, nil, 0
	item, err := w.value(s, p)
	if err == nil {
		v.Names, v.Items = append(v.Names, name), append(v.Items, item)
	}
	return err
}

func names(list *Value) []string {
	var found []string
	if list.Is(Array) {
		for _, item := range list.Items {
			found = append(found, item.Str())
		}
	}
	return found
}

// array has as many items as the input lists, separated by commas, else one; within its bounds.
func (w *writer) array(s *Value, p place) (*Value, error) {
	v, n, least := &Value{Kind: Array}, 1, 0
	var listed []string
	if said, found := w.said(p); found {
		for item := range strings.SplitSeq(strings.Trim(said, "[]"), ",") {
			listed = append(listed, strings.Trim(item, " \"'"))
		}
		n = len(listed)
	}
	if min, found := count(s, "minItems"); found {
		least, n = min, max(n, min)
	}
	if most, found := count(s, "maxItems"); found {
		n = min(n, most)
	}
	if n > maxItems || n < least {
		return nil, p.fail("an array has at most %d items and minItems at most maxItems", maxItems)
	}
	items, firsts := s.Get("items"), s.Get("prefixItems")
	for i := range n {
		of, at := items, p.below("items")
		if firsts.Is(Array) && i < len(firsts.Items) {
			of, at = firsts.Items[i], p.below(fmt.Sprint("prefixItems/", i))
		}
		if of == nil {
			of = &Value{Kind: Object}
		}
		at.said, at.index = nil, 0
		if i < len(listed) {
			at.said = &listed[i]
		} else if unique := s.Get("uniqueItems"); unique.Is(Bool) && unique.Text == "true" {
			at.index = i
		}
		item, err := w.value(of, at)
		if err != nil {
			return nil, err
		}
		v.Items = append(v.Items, item)
	}
	return v, nil
}

// Attach tells every part of a value that was not written by [Write] which part of
// the schema it is for, as far as the names lead.
func Attach(v, s *Value) {
	w := writer{root: s}
	w.attach(v, s, place{at: "#"})
}

func (w *writer) attach(v, s *Value, p place) {
	s, p, err := w.resolve(s, p)
	if err != nil || p.depth > maxDepth {
		return
	}
	v.By = s
	for i, item := range v.Items {
		of := s.Get("items")
		if v.Kind == Object {
			of = s.Get("properties", v.Names[i])
		}
		if of != nil {
			w.attach(item, of, p.below("items"))
		}
	}
}
