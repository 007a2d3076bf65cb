package contract

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
)

// shapeKind is the type that an expression sees.
type shapeKind int

const (
	anyShape shapeKind = iota
	nullShape
	booleanShape
	integerShape
	numberShape
	textShape
	listShape
	objectShape
)

// shape is what expressions know of a value before there is one.
type shape struct {
	kind     shapeKind
	nullable bool
	name     string // of an object, unique below one root
	fields   map[string]*shape
	items    *shape
	most     uint64 // characters of a text, items of a list; zero: no bound is given
}

// shapes makes the shapes of one schema.
type shapes struct {
	root any
	made map[string]*shape // by pointer: schemas may refer to themselves
}

// shapeOf returns the shape of a schema's values.
func shapeOf(document any) *shape {
	s := &shapes{root: document, made: map[string]*shape{}}
	return s.of(document, "#")
}

func (s *shapes) of(node any, pointer string) *shape {
	if made := s.made[pointer]; made != nil {
		return made
	}
	made := &shape{}
	s.made[pointer] = made
	object, ok := node.(map[string]any)
	if !ok {
		return made
	}
	if ref, ok := object["$ref"].(string); ok {
		if target, found := s.resolve(ref); found && ref != pointer {
			s.made[pointer] = s.of(target, ref)
		}
		return s.made[pointer]
	}
	made.kind, made.nullable = kindOf(object)
	if choices, ok := object["anyOf"].([]any); ok && made.kind == anyShape {
		s.choose(made, choices, pointer)
	}
	s.fill(made, object, pointer)
	return made
}

// choose makes a shape of alternatives when all but null are one.
func (s *shapes) choose(made *shape, choices []any, pointer string) {
	var chosen []*shape
	nullable := false
	for i, choice := range choices {
		c := s.of(choice, pointer+"/anyOf/"+strconv.Itoa(i))
		if c.kind == nullShape {
			nullable = true
		} else {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 1 {
		*made = *chosen[0]
		made.nullable = made.nullable || nullable
	}
}

func (s *shapes) fill(made *shape, object map[string]any, pointer string) {
	switch made.kind {
	case objectShape:
		properties, _ := object["properties"].(map[string]any)
		if closed, isBool := object["additionalProperties"].(bool); !isBool || closed {
			if len(properties) == 0 {
				made.kind = anyShape // its members have no names
				return
			}
		}
		made.name, made.fields = pointer, map[string]*shape{}
		for name, property := range properties {
			made.fields[name] = s.of(property, pointer+"/properties/"+escapePointer(name))
		}
	case listShape:
		made.items = &shape{}
		if items, ok := object["items"]; ok && object["prefixItems"] == nil {
			made.items = s.of(items, pointer+"/items")
		}
		made.most = wholeOf(object["maxItems"])
	case textShape:
		made.most = wholeOf(object["maxLength"])
		for _, word := range words(object) {
			made.most = max(made.most, uint64(len(word)))
		}
	case anyShape, nullShape, booleanShape, integerShape, numberShape:
	}
}

// words lists the texts of an enum.
func words(object map[string]any) []string {
	var found []string
	list, _ := object["enum"].([]any)
	for _, v := range list {
		if word, ok := v.(string); ok {
			found = append(found, word)
		}
	}
	return found
}

func wholeOf(v any) uint64 {
	number, _ := v.(json.Number)
	n, err := strconv.ParseUint(number.String(), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// resolve finds what a reference within the schema points to.
func (s *shapes) resolve(ref string) (any, bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	node := s.root
	for _, token := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		if token == "" {
			continue
		}
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		object, ok := node.(map[string]any)
		if !ok {
			return nil, false
		}
		if node, ok = object[token]; !ok {
			return nil, false
		}
	}
	return node, true
}

// kindOf returns what a schema's type, enum or const say.
func kindOf(object map[string]any) (kind shapeKind, nullable bool) {
	names := typesOf(object)
	if len(names) == 0 {
		names = typesOfValues(object)
	}
	for _, name := range names {
		switch {
		case name == "null" && len(names) > 1:
			nullable = true
		case kind != anyShape && kind != kindNamed(name):
			return anyShape, false
		default:
			kind = kindNamed(name)
		}
	}
	return kind, nullable
}

func kindNamed(name string) shapeKind {
	return map[string]shapeKind{
		"null": nullShape, "boolean": booleanShape, "integer": integerShape, "number": numberShape,
		"string": textShape, "array": listShape, "object": objectShape,
	}[name]
}

// typesOfValues names the types of what an enum or const allows. Objects and lists
// among them say too little.
func typesOfValues(object map[string]any) []string {
	values, _ := object["enum"].([]any)
	if constant, ok := object["const"]; ok {
		values = []any{constant}
	}
	var names []string
	for _, v := range values {
		name := "any"
		switch v := v.(type) {
		case nil:
			name = "null"
		case bool:
			name = "boolean"
		case string:
			name = "string"
		case json.Number:
			name = "number"
			if wholeForm.MatchString(v.String()) {
				name = "integer"
			}
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// celType is the type that expressions are checked against.
func (s *shape) celType(root string) *cel.Type {
	switch s.kind {
	case nullShape:
		return cel.NullType
	case booleanShape:
		return nullableType(s, cel.BoolType)
	case integerShape:
		return nullableType(s, cel.IntType)
	case numberShape:
		return nullableType(s, cel.DoubleType)
	case textShape:
		return nullableType(s, cel.StringType)
	case listShape:
		if s.nullable {
			return cel.DynType
		}
		return cel.ListType(s.items.celType(root))
	case objectShape:
		return cel.ObjectType(root + s.name) // may be compared with null as it is
	case anyShape:
	}
	return cel.DynType
}

func nullableType(s *shape, t *cel.Type) *cel.Type {
	if s.nullable {
		return types.NewNullableType(t)
	}
	return t
}

// objects collects every object at or below s by its type's name.
func (s *shape) objects(root string, into map[string]*shape) {
	switch s.kind {
	case objectShape:
		if into[root+s.name] != nil {
			return
		}
		into[root+s.name] = s
		for _, field := range s.fields {
			field.objects(root, into)
		}
	case listShape:
		s.items.objects(root, into)
	case anyShape, nullShape, booleanShape, integerShape, numberShape, textShape:
	}
}

// names lists the members that an object has.
func (s *shape) names() []string { return slices.Sorted(maps.Keys(s.fields)) }

// celValue turns a decoded value into what expressions calculate with: whole numbers
// where the schema says so, others where it says that.
func (s *shape) celValue(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil && s.kind != numberShape {
			return n
		}
		f, _ := v.Float64()
		if s.kind == integerShape && f == float64(int64(f)) {
			return int64(f)
		}
		return f
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = s.below("").celValue(v[i])
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for name := range v {
			object[name] = s.below(name).celValue(v[name])
		}
		return object
	}
	return v
}

// below returns the shape of a member, or of an item.
func (s *shape) below(name string) *shape {
	if s.kind == listShape {
		return s.items
	}
	if field := s.fields[name]; field != nil {
		return field
	}
	return &shape{}
}
