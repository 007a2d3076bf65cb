package contract

import (
	"encoding/json"
	"regexp"
	"strconv"

	"github.com/goccy/go-yaml/ast"

	"github.com/onejob-dev/onejob"
)

// decodeNode reads a schema, and notes where each of its parts stands.
func (s *Schema) decodeNode(d *decoder, n ast.Node, path string) {
	if raw, ok := d.jsonOf(n, path); ok {
		*s = Schema(raw)
	}
}

// decodeNode reads any value.
func (v *Value) decodeNode(d *decoder, n ast.Node, path string) {
	if raw, ok := d.jsonOf(n, path); ok {
		*v = Value(raw)
	}
}

// jsonOf writes a YAML node as JSON. What JSON has no way to say is a fault.
func (d *decoder) jsonOf(n ast.Node, path string) (json.RawMessage, bool) {
	before := len(d.faults)
	value := d.jsonValue(n, path)
	if len(d.faults) > before {
		return nil, false
	}
	raw, err := json.Marshal(value)
	if err == nil {
		_, err = onejob.Canonical(raw)
	}
	if err != nil {
		d.faultAt(n, path, "it cannot be written as JSON that everybody reads alike: "+messageOf(err))
		return nil, false
	}
	return raw, true
}

func (d *decoder) jsonValue(n ast.Node, path string) any {
	d.depth++
	defer func() { d.depth-- }()
	if d.depth > maxDepth {
		d.faultAt(n, path, "it is nested too deeply")
		return nil
	}
	if !d.plain(n, path) {
		return nil
	}
	switch node := n.(type) {
	case nil, *ast.NullNode:
		return nil
	case *ast.MappingNode, *ast.MappingValueNode:
		return d.jsonObject(n, path)
	case *ast.SequenceNode:
		list := make([]any, len(node.Values))
		for i, item := range node.Values {
			at := path + "[" + strconv.Itoa(i) + "]"
			d.places[at] = placeOf(tokenOf(item))
			list[i] = d.jsonValue(item, at)
		}
		return list
	case *ast.StringNode:
		return node.Value
	case *ast.LiteralNode:
		return node.Value.Value
	case *ast.BoolNode:
		return node.Value
	case *ast.IntegerNode, *ast.FloatNode:
		return d.jsonNumber(n, path)
	}
	d.faultAt(n, path, "JSON has no such value; put text in quotes")
	return nil
}

func (d *decoder) jsonObject(n ast.Node, path string) any {
	entries, _ := d.entries(n, path)
	object := make(map[string]any, len(entries))
	for _, e := range entries {
		object[e.key] = d.jsonValue(e.value, join(path, e.key))
	}
	return object
}

// numberForm is a number as JSON writes it.
var numberForm = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

func (d *decoder) jsonNumber(n ast.Node, path string) any {
	text := n.GetToken().Value
	if !numberForm.MatchString(text) {
		d.faultAt(n, path, strconv.Quote(text)+" is not a number as JSON writes it; use decimal digits")
		return nil
	}
	return json.Number(text)
}
