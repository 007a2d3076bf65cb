package config

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// decoder walks a YAML tree and a Go value together, and notes every fault
// instead of stopping at the first.
type decoder struct {
	file    string
	getenv  func(string) string
	faults  []Fault
	anchors map[string]ast.Node
	places  map[string]*token.Position // of values, and of keys whose value is absent
	// overlaid are the paths that a flag or a variable spoke of, and which one.
	overlaid map[string]string
	depth    int
}

func newDecoder(file string, getenv func(string) string) *decoder {
	return &decoder{
		file: file, getenv: getenv, anchors: map[string]ast.Node{},
		places: map[string]*token.Position{}, overlaid: map[string]string{},
	}
}

// maxDepth bounds nesting, aliases included.
const maxDepth = 32

// nameForm is what targets and kinds may be called.
var nameForm = regexp.MustCompile(namePattern)

const namePattern = `^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`

// customNode decodes itself.
type customNode interface {
	decodeNode(d *decoder, n ast.Node, path string)
}

// textValue reads itself from the text of a scalar.
type textValue interface {
	parse(d *decoder, text string) error
}

// entry is one key of a mapping with its value.
type entry struct {
	key      string
	keyToken *token.Token
	value    ast.Node
}

// decodeInto fills the struct that target points to from n, which may be nil:
// then only defaults are filled in.
func (d *decoder) decodeInto(n ast.Node, path string, target any) {
	d.decode(n, path, reflect.ValueOf(target).Elem(), field{})
}

func (d *decoder) decode(n ast.Node, path string, v reflect.Value, f field) {
	d.depth++
	defer func() { d.depth-- }()
	if d.depth > maxDepth {
		d.faultAt(n, path, "nested too deeply")
		return
	}
	n = d.unalias(n)
	if n != nil && (d.places[path] == nil || isScalar(n)) {
		d.places[path] = tokenOf(n).Position // of anything else, its key is the better place
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
		d.decodeMap(n, path, v, f)
	case reflect.Slice:
		d.decodeSlice(n, path, v)
	default:
		d.decodeScalar(n, path, v, f)
	}
}

func isScalar(n ast.Node) bool {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode, *ast.SequenceNode:
		return false
	}
	return true
}

func (d *decoder) decodeStruct(n ast.Node, path string, v reflect.Value) {
	fields := fieldsOf(v.Type())
	values := map[string]ast.Node{}
	if n != nil {
		entries, ok := d.entries(n, path)
		if !ok {
			return
		}
		for i, e := range entries {
			d.places[join(path, e.key)] = e.keyToken.Position
			if d.knownKey(e, path, fields, d.emptyBefore(entries[:i])) {
				values[e.key] = e.value
			}
		}
	}
	for _, f := range fields {
		if f.later {
			continue
		}
		value := d.unalias(values[f.key])
		if value == nil && f.required {
			d.fault(path, fmt.Sprintf("%s is required%s", f.key, required(f)))
			continue
		}
		if value == nil && f.optional {
			continue
		}
		d.decode(value, join(path, f.key), v.Field(f.index), f)
	}
}

func required(f field) string {
	if len(f.enum) > 1 {
		return ": " + strings.Join(f.enum, ", ")
	}
	return ""
}

// emptyBefore returns the last of some keys if it has no value: what follows on it
// was perhaps to be indented.
func (d *decoder) emptyBefore(entries []entry) string {
	if n := len(entries); n > 0 && d.unalias(entries[n-1].value) == nil {
		return entries[n-1].key
	}
	return ""
}

// knownKey reports whether a key may stand here, and says why if not. above is the
// key before it, if that is empty.
func (d *decoder) knownKey(e entry, path string, fields []field, above string) bool {
	f, known := fieldNamed(fields, e.key)
	switch {
	case !known:
		message := "unknown key " + quote(e.key) + Suggest(e.key, keysOf(fields))
		if above != "" {
			message += "; if it belongs to " + quote(above) + ", indent it"
		}
		d.faultToken(e.keyToken, path, message)
	case f.later:
		d.faultToken(e.keyToken, path, notAvailable(e.key))
	default:
		return true
	}
	return false
}

func notAvailable(what string) string {
	return what + " is not available in this version of onejob"
}

func (d *decoder) decodeMap(n ast.Node, path string, v reflect.Value, f field) {
	if n == nil {
		return
	}
	entries, ok := d.entries(n, path)
	if !ok {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, e := range entries {
		at := join(path, e.key)
		if f.named && !nameForm.MatchString(e.key) {
			d.faultToken(e.keyToken, path, quote(e.key)+" is not a name: use letters, digits, _, . and -, at most 100")
			continue
		}
		d.places[at] = e.keyToken.Position
		value := reflect.New(v.Type().Elem()).Elem()
		if child := d.unalias(e.value); child == nil {
			d.faultToken(e.keyToken, at, "it is empty")
		} else {
			d.decode(child, at, value, field{})
		}
		v.SetMapIndex(reflect.ValueOf(e.key), value)
	}
}

func (d *decoder) decodeSlice(n ast.Node, path string, v reflect.Value) {
	if n == nil {
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
		if child := d.unalias(item); child == nil {
			d.faultAt(n, at, "it is empty")
		} else {
			d.decode(child, at, v.Index(i), field{})
		}
	}
}

// entries lists what a mapping holds, what it merges in included.
func (d *decoder) entries(n ast.Node, path string) ([]entry, bool) {
	var values []*ast.MappingValueNode
	switch m := d.unalias(n).(type) {
	case *ast.MappingNode:
		values = m.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{m}
	default:
		d.faultAt(n, path, "keys with values belong here")
		return nil, false
	}
	var own, merged []entry
	for _, value := range values {
		if value.Key.IsMergeKey() {
			merged = append(merged, d.merge(value, path)...)
			continue
		}
		own = append(own, entry{key: scalarText(value.Key), keyToken: value.Key.GetToken(), value: value.Value})
	}
	for _, e := range merged {
		if !slices.ContainsFunc(own, func(o entry) bool { return o.key == e.key }) {
			own = append(own, e)
		}
	}
	return own, true
}

func (d *decoder) merge(value *ast.MappingValueNode, path string) []entry {
	d.depth++
	defer func() { d.depth-- }()
	if d.depth > maxDepth {
		d.faultAt(value, path, "merged too deeply")
		return nil
	}
	entries, _ := d.entries(value.Value, path)
	return entries
}

// unalias follows aliases and takes anchors and tags off. Null, and no node at
// all, are nil.
func (d *decoder) unalias(n ast.Node) ast.Node {
	for range maxDepth {
		switch node := n.(type) {
		case *ast.AnchorNode:
			n = node.Value
		case *ast.AliasNode:
			n = d.anchors[node.Value.GetToken().Value]
		case *ast.TagNode:
			n = node.Value
		case *ast.NullNode, nil:
			return nil
		default:
			return n
		}
	}
	return nil
}

// collectAnchors notes what aliases may refer to.
func (d *decoder) collectAnchors(n ast.Node) {
	for _, a := range ast.Filter(ast.AnchorType, n) {
		if anchor, ok := a.(*ast.AnchorNode); ok {
			d.anchors[anchor.Name.GetToken().Value] = anchor.Value
		}
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func quote(s string) string { return strconv.Quote(s) }

// tokenOf returns the first token of n. A mapping's own token is a colon.
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

func (d *decoder) faultAt(n ast.Node, path, message string) {
	d.faultToken(tokenOf(n), path, message)
}

func (d *decoder) faultToken(t *token.Token, path, message string) {
	d.faultPosition(t.Position, path, message)
}

func (d *decoder) faultPosition(p *token.Position, path, message string) {
	f := Fault{File: d.file, Path: path, Message: message}
	if p != nil {
		f.Line, f.Column = p.Line, p.Column
	}
	if !slices.Contains(d.faults, f) {
		d.faults = append(d.faults, f)
	}
}

// fault notes a fault at a path: where its value is, or the nearest place above
// it that the file has.
func (d *decoder) fault(path, message string) {
	if source := d.overlaid[path]; source != "" {
		d.faults = append(d.faults, Fault{File: source, Path: path, Message: message})
		return
	}
	at := path
	for d.places[at] == nil && at != "" {
		at = at[:max(0, strings.LastIndexAny(at, ".["))]
	}
	d.faultPosition(d.places[at], path, message)
}

// faulty reports whether something at the path or below it is known to be wrong.
func (d *decoder) faulty(path string) bool {
	return slices.ContainsFunc(d.faults, func(f Fault) bool { return under(f.Path, path) })
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
