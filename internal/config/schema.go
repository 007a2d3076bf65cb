package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"

	"github.com/onejob-dev/onejob"
)

// SchemaID names the schema of the file.
const SchemaID = "https://raw.githubusercontent.com/onejob-dev/onejob/main/api/onejob.schema.json"

// Schema returns the JSON Schema (draft 2020-12) of the file, made from the same
// structs as the decoder. It knows shapes; that targets exist and durations make
// sense together only [Load] knows.
func Schema() []byte {
	root := schemaOfStruct(reflect.TypeFor[File]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = SchemaID
	root["title"] = "onejob.yaml"
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil { // maps of strings, numbers and booleans always encode
		return nil
	}
	return append(out, '\n')
}

type object = map[string]any

func schemaOfStruct(t reflect.Type) object {
	properties, required := object{}, []string{}
	for _, f := range fieldsOf(t) {
		if f.later {
			continue
		}
		property := schemaOf(t.Field(f.index).Type, f)
		if f.doc != "" {
			property["description"] = f.doc
		}
		properties[f.key] = property
		if f.required {
			required = append(required, f.key)
		}
	}
	s := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

func schemaOf(t reflect.Type, f field) object {
	switch t {
	case reflect.TypeFor[Duration]():
		return withDefault(object{"type": "string", "pattern": durationPattern, "examples": []string{"30s", "10m", "24h", "30d"}}, f.fallback)
	case reflect.TypeFor[Lifetime]():
		return withDefault(object{"anyOf": []object{{"type": "string", "pattern": durationPattern}, {"const": forever}}}, f.fallback)
	case reflect.TypeFor[WebhookEvent]():
		return object{"enum": askableEvents()}
	case reflect.TypeFor[Secret]():
		return withDefault(object{"type": "string"}, f.fallback)
	case reflect.TypeFor[Failover]():
		return schemaOfFailover()
	case reflect.TypeFor[Target]():
		return schemaOfTarget()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem(), f)
	case reflect.Struct:
		return schemaOfStruct(t)
	case reflect.Map:
		s := object{"type": "object", "additionalProperties": schemaOf(t.Elem(), field{})}
		if f.named {
			s["propertyNames"] = object{"pattern": namePattern}
		}
		return s
	case reflect.Slice:
		s := object{"type": "array", "items": schemaOf(t.Elem(), field{})}
		if f.required {
			s["minItems"] = 1
		}
		return s
	}
	return schemaOfScalar(t, f)
}

func schemaOfScalar(t reflect.Type, f field) object {
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean", "default": f.fallback == "true"}
	case reflect.Int, reflect.Int64:
		return withRange(object{"type": "integer"}, f)
	case reflect.Float64:
		return withRange(object{"type": "number"}, f)
	}
	s := object{"type": "string"}
	switch {
	case len(f.enum) == 1:
		s = object{"const": f.enum[0]}
	case len(f.enum) > 1:
		s["enum"] = f.enum
	case f.required:
		s["minLength"] = 1
	}
	return withDefault(s, f.fallback)
}

func withDefault(s object, fallback string) object {
	if fallback != "" {
		s["default"] = fallback
	}
	return s
}

func withRange(s object, f field) object {
	for name, text := range map[string]string{"minimum": f.min, "maximum": f.max, "default": f.fallback} {
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			s[name] = n
		}
	}
	return s
}

func schemaOfFailover() object {
	return object{"default": onejob.FailoverCertified, "oneOf": []object{
		{"enum": []onejob.FailoverMode{onejob.FailoverCertified, onejob.FailoverNever}},
		{"type": "string", "pattern": `^declared: *\S`},
		{
			"type": "object", "additionalProperties": false, "required": []string{"declared"},
			"properties": object{"declared": object{"type": "string", "minLength": 1, "description": "Why the targets are equal."}},
		},
	}}
}

func schemaOfTarget() object {
	var choices []object
	for _, name := range providerNames() {
		_, member := variants()[name]()
		choice := schemaOfStruct(reflect.TypeOf(member).Elem())
		choice["title"] = fmt.Sprintf("a target of provider %s", name)
		choices = append(choices, choice)
	}
	return object{"type": "object", "required": []string{"provider"}, "oneOf": choices}
}
