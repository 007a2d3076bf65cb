package contract

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// decodeScalar reads one value, or its default when n is nil.
func (d *decoder) decodeScalar(n ast.Node, path string, v reflect.Value, f field) {
	if n == nil {
		if f.fallback != "" {
			_ = setText(f.fallback, v, f) // a test holds that every default is valid
		}
		return
	}
	err := rightNode(n, v)
	if err == nil {
		err = setText(scalarText(n), v, f)
	}
	if err != nil {
		d.faultAt(n, path, err.Error())
	}
}

// rightNode refuses a number where text belongs, and the reverse.
func rightNode(n ast.Node, v reflect.Value) error {
	_, isInt := n.(*ast.IntegerNode)
	_, isFloat := n.(*ast.FloatNode)
	_, isBool := n.(*ast.BoolNode)
	_, isString := n.(*ast.StringNode)
	_, isBlock := n.(*ast.LiteralNode)
	_, isMoney := v.Addr().Interface().(*USD)
	_, isDuration := v.Addr().Interface().(*Duration)
	_, isTemperature := v.Addr().Interface().(*Temperature)
	switch kind := v.Kind(); {
	case !isInt && !isFloat && !isBool && !isString && !isBlock:
		return errors.New("a single value belongs here")
	case isDuration && !isString:
		return fmt.Errorf("%s has no unit; write a duration like 12h or 30d", scalarText(n))
	case isMoney && !isInt && !isFloat:
		return errors.New("an amount of dollars belongs here, as in 2.00")
	case isTemperature && isBool:
		return errors.New("low, or a number, belongs here")
	case isMoney || isTemperature || isDuration:
		return nil
	case kind == reflect.String && !isString && !isBlock:
		return errors.New("text belongs here: put it in quotes")
	case kind == reflect.Bool && !isBool:
		return errors.New("true or false belongs here")
	case kind == reflect.Int && !isInt:
		return errors.New("a whole number belongs here")
	case kind == reflect.Float64 && !isInt && !isFloat:
		return errors.New("a number belongs here")
	}
	return nil
}

// setText sets v from the text of a scalar or of a default.
func setText(text string, v reflect.Value, f field) error {
	if value, ok := v.Addr().Interface().(textValue); ok {
		if err := value.parse(text); err != nil {
			return err
		}
		return checkDuration(v, f)
	}
	switch v.Kind() {
	case reflect.String:
		return setString(text, v, f)
	case reflect.Bool:
		v.SetBool(text == "true")
		return nil
	case reflect.Float64:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return fmt.Errorf("%q is not a number", text)
		}
		v.SetFloat(n)
		return checkRange(n, f)
	}
	if !wholeForm.MatchString(text) {
		return fmt.Errorf("%q is not a whole number; write it in decimal digits", text)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fmt.Errorf("%q is too large", text)
	}
	v.SetInt(n)
	return checkRange(float64(n), f)
}

// wholeForm is a whole number that everybody reads alike: no 0x10, no 1_000, no 010.
var wholeForm = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

func setString(text string, v reflect.Value, f field) error {
	switch {
	case len(f.enum) > 0 && !slices.Contains(f.enum, text):
		return fmt.Errorf("%q is not one of %s", text, strings.Join(f.enum, ", "))
	case f.isName && !nameForm.MatchString(text):
		return fmt.Errorf("%q is not a name: use letters, digits, _, . and -, at most %d", text, maxNameLength)
	case f.required && strings.TrimSpace(text) == "":
		return errors.New("it is empty")
	}
	v.SetString(text)
	return nil
}

func checkRange(n float64, f field) error {
	low, high := bound(f.min, math.Inf(-1)), bound(f.max, math.Inf(1))
	switch {
	case n < low:
		return fmt.Errorf("it is at least %s", f.min)
	case n > high && f.min == f.max:
		return fmt.Errorf("it can only be %s", f.max)
	case n > high:
		return fmt.Errorf("it is at most %s", f.max)
	}
	return nil
}

func bound(text string, otherwise float64) float64 {
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return n
	}
	return otherwise
}

func checkDuration(v reflect.Value, f field) error {
	d, ok := v.Interface().(Duration)
	if !ok {
		return nil
	}
	low, _ := parseDuration(f.min)
	high, _ := parseDuration(f.max)
	switch {
	case f.min != "" && time.Duration(d) < low:
		return fmt.Errorf("it is at least %s", f.min)
	case f.max != "" && time.Duration(d) > high:
		return fmt.Errorf("it is at most %s", f.max)
	}
	return nil
}

func (d *Duration) parse(text string) error {
	parsed, err := parseDuration(text)
	*d = Duration(parsed)
	return err
}

// maxDays bounds a duration in days, so that it fits.
const maxDays = 100_000

func parseDuration(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= maxDays {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	parsed, err := time.ParseDuration(text)
	if err != nil || parsed < 0 {
		return 0, fmt.Errorf("%q is not a duration; write one like 12h or 30d", text)
	}
	return parsed, nil
}

// moneyForm is an amount to the millionth.
var moneyForm = regexp.MustCompile(`^(0|[1-9][0-9]{0,11})(?:\.([0-9]{1,6}))?$`)

func (u *USD) parse(text string) error {
	m := moneyForm.FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("%q is not an amount of dollars; write one like 2.00, to the millionth at most", text)
	}
	n, err := strconv.ParseInt(m[1]+(m[2] + "000000")[:6], 10, 64)
	*u = USD(n)
	return err
}

// maxTemperature is above what any target takes.
const maxTemperature = 2

func (t *Temperature) parse(text string) error {
	n, err := strconv.ParseFloat(text, 64)
	if text != "low" && (err != nil || math.IsNaN(n) || n < 0 || n > maxTemperature) {
		return fmt.Errorf("%q is neither low nor a number from 0 to %d", text, maxTemperature)
	}
	*t = Temperature(text)
	return nil
}

// scalarText returns a scalar as it reads without its quotes.
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
