package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ardanlabs/jinja"
)

// maxRange bounds the loops that an input can ask for.
const maxRange = 10_000

// Value reads JSON for a template, members in the order in which they are
// written. A whole number that a template cannot carry exactly is refused.
func Value(text []byte) (jinja.Value, error) {
	if !json.Valid(text) { // bounds the depth, too
		return jinja.Undefined(), errors.New("not JSON")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return readValue(d)
}

func readValue(d *json.Decoder) (jinja.Value, error) {
	token, err := d.Token()
	if err != nil {
		return jinja.Undefined(), err
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return readObject(d)
		}
		return readArray(d)
	case json.Number:
		return number(t)
	case string:
		return jinja.NewString(t), nil
	case bool:
		return jinja.NewBool(t), nil
	}
	return jinja.None(), nil
}

func readObject(d *json.Decoder) (jinja.Value, error) {
	object := jinja.NewDict()
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return object, err
		}
		v, err := readValue(d)
		if err != nil {
			return object, err
		}
		object.AsDict().Set(fmt.Sprint(name), v)
	}
	_, err := d.Token()
	return object, err
}

func readArray(d *json.Decoder) (jinja.Value, error) {
	var items []jinja.Value
	for d.More() {
		v, err := readValue(d)
		if err != nil {
			return v, err
		}
		items = append(items, v)
	}
	_, err := d.Token()
	return jinja.NewList(items), err
}

func number(n json.Number) (jinja.Value, error) {
	if i, err := n.Int64(); err == nil {
		return jinja.NewInt(i), nil
	}
	f, err := n.Float64()
	if err != nil || !strings.ContainsAny(n.String(), ".eE") {
		return jinja.Undefined(), errors.New("a number is too large for a template")
	}
	return jinja.NewFloat(f), nil
}

// Range is Jinja's range, with an end.
func Range(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
	bounds := []int64{0, 0, 1}
	for i, a := range args {
		if !a.IsInt() || i >= len(bounds) {
			return jinja.Undefined(), errors.New("range takes up to three whole numbers")
		}
		bounds[i] = a.AsInt()
	}
	if len(args) == 1 {
		bounds[0], bounds[1] = 0, bounds[0]
	}
	start, stop, step := bounds[0], bounds[1], bounds[2]
	if len(args) == 0 || step == 0 {
		return jinja.Undefined(), errors.New("range takes up to three whole numbers, its step not zero")
	}
	var items []jinja.Value
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		if len(items) == maxRange {
			return jinja.Undefined(), fmt.Errorf("range is longer than %d", maxRange)
		}
		items = append(items, jinja.NewInt(i))
	}
	return jinja.NewList(items), nil
}
