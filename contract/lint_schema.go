package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemas checks and compiles the schemas of input and output.
func (l *linter) schemas() {
	l.checker.inputSchema = l.schema(l.InputSchema, "input_schema")
	l.requireObject("input_schema", l.checker.inputSchema)
	wants := l.Output.Media != MediaText && l.Output.Media != MediaBinary
	switch given := len(l.Output.Schema) > 0; {
	case wants && !given:
		l.error("schema-missing", "output", "schema is required for media "+l.Output.Media)
	case !wants && given:
		l.error("schema-unused", "output.schema", "media "+l.Output.Media+" has no schema; leave it out")
	case wants:
		l.checker.outputSchema = l.schema(l.Output.Schema, "output.schema")
		l.requireObject("output.schema", l.checker.outputSchema)
		l.portability()
	}
}

// requireObject: targets that take a schema want an object at its root.
func (l *linter) requireObject(path string, s *schema) {
	if s != nil && s.shape.kind != objectShape {
		l.error("schema-root", path, "the root is an object with properties: write type: object")
	}
}

// schema checks one schema, and compiles it if it may be. Nil: it may not.
func (l *linter) schema(raw Schema, path string) *schema {
	if len(raw) == 0 {
		return nil
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		l.error("schema-invalid", path, err.Error())
		return nil
	}
	before := len(l.report.Findings)
	l.walk(document, path, keywords())
	compiled, err := compileSchema(raw)
	if err != nil {
		l.schemaErrors(err, path, len(l.report.Findings) > before)
		return nil
	}
	return compiled
}

// schemaErrors says why a schema does not compile, unless it was said already.
func (l *linter) schemaErrors(err error, path string, said bool) {
	for _, f := range schemaFaults(err) {
		at := path
		for _, step := range f.where {
			at = stepDown(at, step)
		}
		if len(f.where) == 0 && said {
			continue
		}
		l.error("schema-invalid", at, f.message)
	}
}

// stepDown goes one step down a path.
func stepDown(path, step string) string {
	if _, err := strconv.Atoi(step); err == nil {
		return path + "[" + step + "]"
	}
	return join(path, step)
}

// walk holds a schema, and every one below it, to what contracts ask of schemas.
func (l *linter) walk(node any, path string, known map[string]carriage) {
	object, ok := node.(map[string]any)
	if !ok {
		if node != false {
			l.error("schema-open", path, "a schema that takes anything is none; say what belongs here")
		}
		return
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		l.keyword(name, object[name], path, known)
	}
	l.closed(object, path)
	if untyped(object) {
		l.error("schema-untyped", path, "it takes values of any type; give a type, an enum or a const")
	}
	subschemas(object, path, func(schema any, at string) {
		if schema != false || !strings.HasSuffix(at, ".additionalProperties") {
			l.walk(schema, at, known)
		}
	})
}

func (l *linter) keyword(name string, value any, path string, known map[string]carriage) {
	at := join(path, name)
	switch how, ok := known[name]; {
	case !ok:
		l.error("schema-keyword", at, fmt.Sprintf("JSON Schema has no keyword %q%s", name, suggest(name, slices.Sorted(maps.Keys(known)))))
	case how == refused:
		l.error("schema-keyword", at, name+" is not for contracts: a schema refers to its own $defs only")
	case name == "$ref" && !isLocal(value):
		l.error("schema-ref", at, `a reference stays inside the schema, as in "#/$defs/address"; nothing is read from a network or a disk`)
	case name == "$schema" && value != draft:
		l.error("schema-draft", at, "contracts are written in draft 2020-12: leave it out, or write "+draft)
	case name == "format" && !slices.Contains(strings.Fields(formats), fmt.Sprint(value)):
		l.error("schema-format", at, fmt.Sprintf("nobody would check the format %q%s", value, suggest(fmt.Sprint(value), strings.Fields(formats))))
	}
}

func isLocal(ref any) bool {
	text, ok := ref.(string)
	return ok && (text == "#" || strings.HasPrefix(text, "#/"))
}

// closed: every object says that it has no other members, and that it has them all.
func (l *linter) closed(object map[string]any, path string) {
	properties, _ := object["properties"].(map[string]any)
	if !slices.Contains(typesOf(object), "object") && properties == nil {
		return
	}
	if object["additionalProperties"] != false {
		l.error("schema-open", path, "additionalProperties: false is required: an extra member is a violation")
	}
	required, _ := object["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !slices.Contains(required, any(name)) {
			l.error("schema-optional", join(join(path, "properties"), name),
				name+" is not in required; for what may be missing write type: [string, \"null\"], or the like")
		}
	}
	for i, name := range required {
		if text, ok := name.(string); ok && properties[text] == nil {
			l.error("schema-required", fmt.Sprintf("%s.required[%d]", path, i), fmt.Sprintf("there is no property %q%s", text, suggest(text, slices.Sorted(maps.Keys(properties)))))
		}
	}
}

// untyped reports whether a schema lets values of any type pass.
func untyped(object map[string]any) bool {
	for _, name := range []string{"type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf", "not", "if"} {
		if _, ok := object[name]; ok {
			return false
		}
	}
	return true
}

// portability says what targets will not see of the output's schema, or see
// differently.
func (l *linter) portability() {
	known := keywords()
	var document any
	_ = json.Unmarshal(l.Output.Schema, &document)
	places := map[string][]string{}
	var look func(node any, path string)
	look = func(node any, path string) {
		object, _ := node.(map[string]any)
		for name := range object {
			if known[name] == stripped || known[name] == uneven {
				places[name] = append(places[name], path)
			}
		}
		if types := typesOf(object); len(types) > 2 || len(types) == 2 && !slices.Contains(types, "null") {
			l.warning("schema-portability", join(path, "type"), "targets disagree about several types at once; use one type, or one type and null")
		}
		subschemas(object, path, look)
	}
	look(document, "output.schema")
	for _, name := range slices.Sorted(maps.Keys(places)) {
		first := join(places[name][0], name)
		if known[name] == uneven {
			l.warning("schema-portability", first, name+" is refused by some targets, and accepted and ignored by others; it is held here in any case")
		}
	}
	if off := offTheWire(places, known); len(off) > 0 {
		l.note("schema-stripped", "output.schema", "not every target enforces these, so that they are stripped for the wire and held here: "+strings.Join(off, ", "))
	}
}

func offTheWire(places map[string][]string, known map[string]carriage) []string {
	var off []string
	for _, name := range slices.Sorted(maps.Keys(places)) {
		if known[name] == stripped {
			off = append(off, fmt.Sprintf("%s (%d)", name, len(places[name])))
		}
	}
	return off
}
