package config

import (
	"reflect"
	"slices"
	"strings"
)

// field is one key of a mapping, as a struct's member describes it.
type field struct {
	key      string
	index    int
	required bool
	later    bool // refused by name
	optional bool // a mapping that may be left out whole, its required keys with it
	named    bool // the keys of the map are names
	fallback string
	enum     []string
	min, max string
	doc      string
}

// fieldsOf returns the keys that a struct describes, in its order.
func fieldsOf(t reflect.Type) []field {
	fields := make([]field, 0, t.NumField())
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		f := field{
			optional: tag.Get("optional") == "true",
			key:      tag.Get("yaml"), index: i, doc: tag.Get("doc"),
			required: tag.Get("required") == "true", named: tag.Get("keys") == "names",
			later:    t.Field(i).Type == reflect.TypeFor[later](),
			fallback: tag.Get("default"), min: tag.Get("min"), max: tag.Get("max"),
		}
		if enum := tag.Get("enum"); enum != "" {
			f.enum = strings.Split(enum, "|")
		}
		fields = append(fields, f)
	}
	return fields
}

func fieldNamed(fields []field, key string) (field, bool) {
	i := slices.IndexFunc(fields, func(f field) bool { return f.key == key })
	if i < 0 {
		return field{}, false
	}
	return fields[i], true
}

// keysOf lists the keys that can be used now.
func keysOf(fields []field) []string {
	var keys []string
	for _, f := range fields {
		if !f.later {
			keys = append(keys, f.key)
		}
	}
	return keys
}
