package contract

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
	isName   bool
	fallback string
	enum     []string
	min, max string
}

// fieldsOf returns the keys that a struct describes, in its order.
func fieldsOf(t reflect.Type) []field {
	fields := make([]field, 0, t.NumField())
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		f := field{
			key: tag.Get("yaml"), index: i, required: tag.Get("required") == "true", isName: tag.Get("form") == "name",
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

func keysOf(fields []field) []string {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	return keys
}
