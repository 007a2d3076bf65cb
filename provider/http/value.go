package httpcall

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/url"
	"strconv"
	"strings"

	"github.com/ardanlabs/jinja"

	shared "github.com/onejob-dev/onejob/internal/template"
)

func dict(pairs ...any) jinja.Value {
	d := jinja.NewDict()
	for i := 0; i+1 < len(pairs); i += 2 {
		d.AsDict().Set(pairs[i].(string), pairs[i+1].(jinja.Value))
	}
	return d
}

// The functions that outputs are wrapped in.
const (
	putRaw    = "onejob_raw"
	putValue  = "onejob_value"  // JSON, outside quotes
	putQuoted = "onejob_quoted" // JSON, inside quotes
	putForm   = "onejob_form"
	putXML    = "onejob_xml"
)

// putterOf picks the function for an output. A filter that makes it ready must be of
// all of it, or the caller's bytes beside would go out as they are.
func (t *template) putterOf(inside bool, output string) (string, error) {
	filter, ofAll := lastFilter(output)
	put := t.putter(inside, filter)
	if put == putRaw && !ofAll {
		return put, fmt.Errorf("{{ %s }}: %s is of the last operand alone; put parentheses around what stands before it", strings.TrimSpace(output), filter)
	}
	return put, nil
}

// putter picks the function for an output that ends with filter. One that the
// filter has made ready already is left alone where that is safe.
func (t *template) putter(inside bool, filter string) string {
	switch {
	case filter == "safe":
		return putRaw
	case t.mode == formMode && filter == "urlencode":
		return putRaw
	case t.mode == formMode:
		return putForm
	case t.mode == xmlMode && (filter == "escape" || filter == "e"):
		return putRaw
	case t.mode == xmlMode:
		return putXML
	case inside:
		return putQuoted
	case filter == "tojson":
		return putRaw
	}
	return putValue
}

// functions are the names that every template sees. They shadow what the engine
// would give: a clock, and loops without a bound.
func (t *template) functions() map[string]jinja.Value {
	return map[string]jinja.Value{
		putRaw:         put(putRaw, textOf),
		putValue:       put(putValue, jsonOf),
		putQuoted:      put(putQuoted, quotedOf),
		putForm:        put(putForm, formOf),
		putXML:         put(putXML, xmlOf),
		"urlencode":    put("urlencode", formOf),
		"range":        jinja.NewCallable("range", shared.Range),
		"strftime_now": jinja.Undefined(),
	}
}

// put makes a function of one value that must be there.
func put(name string, write func(jinja.Value) (string, error)) jinja.Value {
	return jinja.NewCallable(name, func(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
		if len(args) != 1 {
			return jinja.Undefined(), errors.New("an output is one value")
		}
		if args[0].IsUndefined() {
			return jinja.Undefined(), errors.New("a value is undefined")
		}
		text, err := write(args[0])
		return jinja.NewString(text), err
	})
}

func quotedOf(v jinja.Value) (string, error) {
	text, err := textOf(v)
	if err != nil {
		return "", err
	}
	quoted, err := encode(text)
	return strings.TrimSuffix(strings.TrimPrefix(quoted, `"`), `"`), err
}

func formOf(v jinja.Value) (string, error) {
	text, err := textOf(v)
	return url.QueryEscape(text), err
}

func xmlOf(v jinja.Value) (string, error) {
	text, err := textOf(v)
	return html.EscapeString(text), err
}

// textOf writes a string as it is, nothing for none, and all else as JSON.
func textOf(v jinja.Value) (string, error) {
	switch {
	case v.IsString():
		return v.AsString(), nil
	case v.IsNone():
		return "", nil
	}
	return jsonOf(v)
}

// jsonOf writes any value as JSON.
func jsonOf(v jinja.Value) (string, error) {
	switch {
	case v.IsNone():
		return "null", nil
	case v.IsBool():
		return strconv.FormatBool(v.AsBool()), nil
	case v.IsInt():
		return strconv.FormatInt(v.AsInt(), 10), nil
	case v.IsFloat():
		return encode(v.AsFloat())
	case v.IsString():
		return encode(v.AsString())
	case v.IsList():
		return listOf(v.AsList())
	case v.IsDict():
		return objectOf(v.AsDict())
	}
	return "", errors.New("a value is undefined")
}

func listOf(list *jinja.List) (string, error) {
	items := make([]string, 0, list.Len())
	for _, v := range list.Items {
		item, err := jsonOf(v)
		if err != nil {
			return "", err
		}
		items = append(items, item)
	}
	return "[" + strings.Join(items, ",") + "]", nil
}

func objectOf(object *jinja.Dict) (string, error) {
	members := make([]string, 0, object.Len())
	for _, key := range object.Keys {
		name, err := encode(key)
		if err != nil {
			return "", err
		}
		value, err := jsonOf(object.Data[key])
		if err != nil {
			return "", err
		}
		members = append(members, name+":"+value)
	}
	return "{" + strings.Join(members, ",") + "}", nil
}

// encode writes JSON without escaping what only HTML minds.
func encode(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", errors.New("a number is no JSON number")
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}
