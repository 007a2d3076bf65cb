package contract

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxDepth bounds the nesting of a contract's file.
const maxDepth = 32

// nameForm is what kinds, assertions and cases may be called.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`)

// place is where something stands in the file.
type place struct{ line, column int }

// decoder walks a YAML tree and a Go value together, and notes every fault instead
// of stopping at the first.
type decoder struct {
	file   string
	faults []Fault
	places map[string]place // of keys and list items, by path
	depth  int
}

// customNode decodes itself.
type customNode interface {
	decodeNode(d *decoder, n ast.Node, path string)
}

// textValue reads itself from the text of a scalar.
type textValue interface{ parse(text string) error }

// parse returns the root of the file, nil when there is none.
func (d *decoder) parse(text []byte) ast.Node {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		d.faults = append(d.faults, d.syntaxFault(err))
		return nil
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.CommentType {
			bodies = append(bodies, doc.Body)
		}
	}
	switch len(bodies) {
	case 0:
		d.faults = append(d.faults, Fault{File: d.file, Message: "the file is empty; a contract begins with apiVersion: onejob/contract.v1"})
		return nil
	case 1:
		return bodies[0]
	}
	d.faultAt(bodies[1], "", "a second document starts here; one file is one contract")
	return nil
}

func (d *decoder) syntaxFault(err error) Fault {
	f := Fault{File: d.file, Message: "this is not valid YAML"}
	var syntax yaml.Error
	if errors.As(err, &syntax) {
		f.Message += ": " + syntax.GetMessage()
		if t := syntax.GetToken(); t != nil && t.Position != nil {
			f.Line, f.Column = t.Position.Line, t.Position.Column
		}
	}
	return f
}

// decode fills v from n. Nil means that nothing was said: defaults are filled in.
func (d *decoder) decode(n ast.Node, path string, v reflect.Value, f field) {
	d.depth++
	defer func() { d.depth-- }()
	if d.depth > maxDepth {
		d.faultAt(n, path, "it is nested too deeply")
		return
	}
	if !d.plain(n, path) {
		return
	}
	if custom, ok := v.Addr().Interface().(customNode); ok {
		if n != nil {
			custom.decodeNode(d, n, path)
		}
		return
	}
	if _, ok := v.Addr().Interface().(textValue); ok {
		d.decodeScalar(n, path, v, f)
		return
	}
	switch v.Kind() {
	case reflect.Pointer: // absent: nil
		if n != nil {
			v.Set(reflect.New(v.Type().Elem()))
			d.decode(n, path, v.Elem(), f)
		}
	case reflect.Struct:
		d.decodeStruct(n, path, v)
	case reflect.Map:
		d.decodeMap(n, path, v)
	case reflect.Slice:
		d.decodeSlice(n, path, v, f)
	default:
		d.decodeScalar(n, path, v, f)
	}
}

// plain refuses what would let the file say something at one place and mean it at
// another: a contract is written out in full.
func (d *decoder) plain(n ast.Node, path string) bool {
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		d.faultAt(n, path, "anchors, aliases, merges and tags are not for contracts; write it out")
		return false
	}
	return true
}

// entry is one key of a mapping with its value.
type entry struct {
	key   string
	at    *token.Token
	value ast.Node // nil for null
}

// entries lists what a mapping holds.
func (d *decoder) entries(n ast.Node, path string) ([]entry, bool) {
	var values []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		values = m.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{m}
	default:
		d.faultAt(n, path, "keys with values belong here")
		return nil, false
	}
	list := make([]entry, 0, len(values))
	for _, value := range values {
		if value.Key.IsMergeKey() {
			d.faultToken(value.Key.GetToken(), path, "anchors, aliases, merges and tags are not for contracts; write it out")
			continue
		}
		key, ok := keyText(value.Key)
		if !ok {
			d.faultToken(value.Key.GetToken(), path, "a key is text; put it in quotes")
			continue
		}
		e := entry{key: key, at: value.Key.GetToken(), value: value.Value}
		if _, isNull := e.value.(*ast.NullNode); isNull {
			e.value = nil
		}
		d.places[join(path, key)] = placeOf(e.at)
		list = append(list, e)
	}
	return list, true
}

func keyText(n ast.MapKeyNode) (string, bool) {
	s, ok := n.(*ast.StringNode)
	if !ok {
		return "", false
	}
	return s.Value, true
}

func (d *decoder) decodeStruct(n ast.Node, path string, v reflect.Value) {
	fields := fieldsOf(v.Type())
	given := map[string]ast.Node{}
	if n != nil {
		entries, ok := d.entries(n, path)
		if !ok {
			return
		}
		for _, e := range entries {
			switch f, known := fieldNamed(fields, e.key); {
			case !known:
				d.faultToken(e.at, path, fmt.Sprintf("unknown key %q%s", e.key, suggest(e.key, keysOf(fields))))
			case e.value == nil:
				d.faultToken(e.at, join(path, f.key), "it is empty; give a value or leave the key out")
				given[e.key] = &ast.NullNode{}
			default:
				given[e.key] = e.value
			}
		}
	}
	for _, f := range fields {
		value, said := given[f.key]
		if _, isNull := value.(*ast.NullNode); isNull {
			continue
		}
		if !said && f.required {
			d.fault(path, f.key+" is required"+oneOf(f.enum))
			continue
		}
		d.decode(value, join(path, f.key), v.Field(f.index), f)
	}
}

func oneOf(enum []string) string {
	if len(enum) == 0 {
		return ""
	}
	return ": " + strings.Join(enum, ", ")
}

func (d *decoder) decodeMap(n ast.Node, path string, v reflect.Value) {
	if n == nil {
		return
	}
	entries, ok := d.entries(n, path)
	if !ok {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, e := range entries {
		value := reflect.New(v.Type().Elem()).Elem()
		if e.value == nil {
			d.faultToken(e.at, join(path, e.key), "it is empty; give a value or leave the key out")
			continue
		}
		d.decode(e.value, join(path, e.key), value, field{})
		v.SetMapIndex(reflect.ValueOf(e.key), value)
	}
}

func (d *decoder) decodeSlice(n ast.Node, path string, v reflect.Value, f field) {
	if n == nil {
		if f.fallback != "" {
			v.Set(reflect.ValueOf(strings.Fields(f.fallback)))
		}
		return
	}
	sequence, ok := n.(*ast.SequenceNode)
	if !ok {
		d.faultAt(n, path, "a list belongs here, as in [a, b]")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(sequence.Values), len(sequence.Values)))
	for i, item := range sequence.Values {
		at := path + "[" + strconv.Itoa(i) + "]"
		d.places[at] = placeOf(tokenOf(item))
		if _, isNull := item.(*ast.NullNode); isNull {
			d.faultAt(item, at, "it is empty")
			continue
		}
		d.decode(item, at, v.Index(i), field{enum: f.enum, required: true})
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// tokenOf returns the first token of n. A block mapping's own token is a colon.
func tokenOf(n ast.Node) *token.Token {
	switch m := n.(type) {
	case *ast.MappingNode:
		if !m.IsFlowStyle && len(m.Values) > 0 {
			return m.Values[0].Key.GetToken()
		}
	case *ast.MappingValueNode:
		return m.Key.GetToken()
	}
	return n.GetToken()
}

func placeOf(t *token.Token) place {
	if t == nil || t.Position == nil {
		return place{}
	}
	return place{t.Position.Line, t.Position.Column}
}

func (d *decoder) faultAt(n ast.Node, path, message string) { d.faultToken(tokenOf(n), path, message) }

func (d *decoder) faultToken(t *token.Token, path, message string) {
	d.note(placeOf(t), path, message)
}

func (d *decoder) note(p place, path, message string) {
	f := Fault{File: d.file, Line: p.line, Column: p.column, Path: path, Message: message}
	if !slices.Contains(d.faults, f) {
		d.faults = append(d.faults, f)
	}
}

// fault notes a fault at a path, or at the nearest place above it that there is.
func (d *decoder) fault(path, message string) { d.note(nearest(d.places, path), path, message) }

// nearest returns where path stands, or what is above it.
func nearest(places map[string]place, path string) place {
	for at := path; at != ""; at = at[:max(0, strings.LastIndexAny(at, ".["))] {
		if p, ok := places[at]; ok {
			return p
		}
	}
	return place{1, 1}
}
