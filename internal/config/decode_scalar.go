package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/onejob-dev/onejob"
)

// decodeScalar reads one value, or its default when n is nil.
func (d *decoder) decodeScalar(n ast.Node, path string, v reflect.Value, f field) {
	if n == nil {
		if f.fallback != "" {
			_ = d.setText(f.fallback, v, f) // a test holds that every default is valid
		}
		return
	}
	if err := rightNode(n, v); err != nil {
		d.faultAt(n, path, err.Error())
		return
	}
	if err := d.setText(scalarText(n), v, f); err != nil {
		d.faultAt(n, path, err.Error())
	}
}

// rightNode refuses a number where text belongs, and the reverse.
func rightNode(n ast.Node, v reflect.Value) error {
	if !isScalar(n) {
		return errors.New("a single value belongs here")
	}
	_, isInt := n.(*ast.IntegerNode)
	_, isFloat := n.(*ast.FloatNode)
	_, isBool := n.(*ast.BoolNode)
	_, isText := v.Addr().Interface().(textValue)
	switch kind := v.Kind(); {
	case isText && (isInt || isFloat):
		if _, isSecret := v.Addr().Interface().(*Secret); isSecret {
			return errors.New("text belongs here: put it in quotes")
		}
		return fmt.Errorf("%s has no unit; write a duration like 500ms, 30s, 10m, 24h or 30d", scalarText(n))
	case kind == reflect.String && (isInt || isFloat || isBool):
		return errors.New("text belongs here: put it in quotes")
	case kind == reflect.Bool && !isBool:
		return errors.New("true or false belongs here")
	case (kind == reflect.Int || kind == reflect.Int64) && !isInt && !isText:
		return errors.New("a whole number belongs here")
	case kind == reflect.Float64 && !isInt && !isFloat:
		return errors.New("a number belongs here")
	}
	return nil
}

// setText sets v from the text of a scalar, of a flag or of a variable.
func (d *decoder) setText(text string, v reflect.Value, f field) error {
	if value, ok := v.Addr().Interface().(textValue); ok {
		if err := value.parse(d, text); err != nil {
			return err
		}
		return checkDurationRange(v, f)
	}
	switch v.Kind() {
	case reflect.String:
		return setString(text, v, f)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		v.SetBool(b)
	case reflect.Float64:
		return setFloat(text, v, f)
	default:
		return setInt(text, v, f)
	}
	return nil
}

func setString(text string, v reflect.Value, f field) error {
	switch {
	case len(f.enum) > 0 && !slices.Contains(f.enum, text):
		return fmt.Errorf("%q is not one of %s%s", text, strings.Join(f.enum, ", "), nearest(text, f.enum))
	case text == "" && f.required:
		return errors.New("it is empty")
	case strings.Contains(text, "${"):
		return errors.New("${…} is resolved only in secrets: api_key, values of headers, secret and store")
	}
	v.SetString(text)
	return nil
}

// nearest is [Suggest], silent when nothing is near.
func nearest(got string, valid []string) string {
	if s := Suggest(got, valid); strings.HasPrefix(s, "; did") {
		return s
	}
	return ""
}

func setInt(text string, v reflect.Value, f field) error {
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		return fmt.Errorf("%q is not a whole number", text)
	}
	if err := checkRange(float64(n), f, parseNumber); err != nil {
		return err
	}
	v.SetInt(n)
	return nil
}

func setFloat(text string, v reflect.Value, f field) error {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return fmt.Errorf("%q is not a number", text)
	}
	if err := checkRange(n, f, parseNumber); err != nil {
		return err
	}
	v.SetFloat(n)
	return nil
}

func checkDurationRange(v reflect.Value, f field) error {
	d, ok := v.Interface().(Duration)
	if !ok {
		return nil
	}
	return checkRange(float64(d), f, func(bound string) float64 {
		parsed, _ := parseDuration(bound)
		return float64(parsed)
	})
}

func parseNumber(bound string) float64 {
	n, _ := strconv.ParseFloat(bound, 64)
	return n
}

func checkRange(n float64, f field, parse func(bound string) float64) error {
	switch {
	case f.min != "" && n < parse(f.min) && f.min == "1ms":
		return errors.New("it is more than nothing; leave the key out for the default")
	case f.min != "" && n < parse(f.min):
		return fmt.Errorf("it is at least %s", f.min)
	case f.max != "" && n > parse(f.max):
		return fmt.Errorf("it is at most %s", f.max)
	}
	return nil
}

// scalarText returns a scalar as it reads without its quotes, and nothing for
// what is no scalar.
func scalarText(n ast.Node) string {
	switch s := n.(type) {
	case *ast.StringNode:
		return s.Value
	case *ast.LiteralNode:
		return s.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value
	}
	return ""
}

// decodeNode reads certified, never or {declared: why}.
func (f *Failover) decodeNode(d *decoder, n ast.Node, path string) {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		var declared struct {
			Why string `yaml:"declared" required:"true"`
		}
		d.decodeInto(n, path, &declared)
		*f = Failover{Mode: onejob.FailoverDeclared, Why: strings.TrimSpace(declared.Why)}
		return
	}
	text := scalarText(n)
	why, isDeclared := strings.CutPrefix(text, "declared:")
	switch {
	case isDeclared:
		*f = Failover{Mode: onejob.FailoverDeclared, Why: strings.Trim(strings.TrimSpace(why), `"'`)}
		if f.Why == "" {
			d.faultAt(n, path, declaredNeedsReason)
		}
	case text == string(onejob.FailoverCertified), text == string(onejob.FailoverNever):
		*f = Failover{Mode: onejob.FailoverMode(text)}
	case text == string(onejob.FailoverDeclared):
		d.faultAt(n, path, declaredNeedsReason)
	default:
		d.faultAt(n, path, fmt.Sprintf("%q is not certified, never or {declared: \"<why>\"}%s", text, nearest(text, []string{"certified", "never"})))
	}
}

const declaredNeedsReason = `declared needs the reason why the targets are equal: write {declared: "<why>"}`
