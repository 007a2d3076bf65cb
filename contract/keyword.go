package contract

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// carriage is how well a keyword of JSON Schema travels to targets.
type carriage int

const (
	carried  carriage = iota + 1 // every target that takes a schema takes it
	stripped                     // taken off for the wire, and held here
	uneven                       // some targets refuse it, or accept and ignore it
	refused                      // not for contracts
)

// keywords are those of draft 2020-12. One that is not here is a spelling mistake.
func keywords() map[string]carriage {
	all := map[string]carriage{}
	for how, names := range map[carriage]string{
		carried: "type enum const properties required additionalProperties items anyOf $ref $defs title description",
		stripped: "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern format " +
			"minItems maxItems uniqueItems minProperties maxProperties default examples deprecated readOnly writeOnly $comment $schema",
		uneven: "oneOf allOf not if then else patternProperties propertyNames dependentRequired dependentSchemas prefixItems " +
			"contains minContains maxContains unevaluatedItems unevaluatedProperties contentEncoding contentMediaType contentSchema",
		refused: "$id $anchor $dynamicRef $dynamicAnchor $vocabulary",
	} {
		for _, name := range strings.Fields(names) {
			all[name] = how
		}
	}
	return all
}

// formats are those that are checked; of any other nobody would know.
const formats = "date date-time time duration email hostname ipv4 ipv6 uri uri-reference uuid json-pointer regex"

// draft is the only version of JSON Schema that a contract is written in.
const draft = "https://json-schema.org/draft/2020-12/schema"

// subschemas calls visit with every schema right below an object of one, and where
// it is, in an order that is always the same.
func subschemas(object map[string]any, path string, visit func(schema any, path string)) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		at := join(path, name)
		switch name {
		case "properties", "$defs", "patternProperties", "dependentSchemas":
			named, _ := object[name].(map[string]any)
			for _, key := range slices.Sorted(maps.Keys(named)) {
				visit(named[key], join(at, key))
			}
		case "anyOf", "oneOf", "allOf", "prefixItems":
			list, _ := object[name].([]any)
			for i, schema := range list {
				visit(schema, fmt.Sprintf("%s[%d]", at, i))
			}
		case "items", "additionalProperties", "contains", "not", "if", "then", "else", "propertyNames",
			"unevaluatedItems", "unevaluatedProperties", "contentSchema":
			visit(object[name], at)
		}
	}
}

// typesOf lists the types that a schema names.
func typesOf(object map[string]any) []string {
	switch t := object["type"].(type) {
	case string:
		return []string{t}
	case []any:
		var names []string
		for _, name := range t {
			if s, ok := name.(string); ok {
				names = append(names, s)
			}
		}
		return names
	}
	return nil
}
