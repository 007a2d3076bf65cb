package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// maxExpressionCost bounds an expression over one answer.
const maxExpressionCost = 100_000

// Expression is a compiled CEL expression over status, headers (names in lower
// case) and body (parsed JSON, or null). It is safe for concurrent use.
type Expression struct {
	Text    string
	program cel.Program
}

// Compile compiles an expression. Its cost is limited: an evaluation beyond the
// limit is an error.
func Compile(text string) (*Expression, error) { return compile(text, cel.DynType) }

// CompileCondition compiles an expression that is true or false.
func CompileCondition(text string) (*Expression, error) { return compile(text, cel.BoolType) }

func compile(text string, want *cel.Type) (*Expression, error) {
	env, err := cel.NewEnv(
		cel.CrossTypeNumericComparisons(true),
		cel.Variable("status", cel.IntType),
		cel.Variable("headers", cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable("body", cel.DynType),
	)
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(text)
	if issues != nil && issues.Err() != nil {
		return nil, fmt.Errorf("expression %q: %s", text, explain(issues))
	}
	if got := ast.OutputType(); want != cel.DynType && got != cel.DynType && !got.IsExactType(want) {
		return nil, fmt.Errorf("expression %q gives %s, want %s", text, got, want)
	}
	program, err := env.Program(ast, cel.CostLimit(maxExpressionCost), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", text, err)
	}
	return &Expression{Text: text, program: program}, nil
}

// explain says in one line what is wrong with an expression, without the drawing of
// the place that CEL adds.
func explain(issues *cel.Issues) string {
	var said []string
	for _, e := range issues.Errors() {
		said = append(said, fmt.Sprintf("%s (at character %d)", e.Message, e.Location.Column()+1))
	}
	return strings.Join(said, "; ")
}

// eval evaluates e over an answer.
func (e *Expression) eval(s *Seen) (ref.Val, error) {
	v, _, err := e.program.Eval(s.activation())
	return v, err
}

// Holds evaluates a condition. Anything but true does not hold, an error included.
func (e *Expression) Holds(s *Seen) bool {
	v, err := e.eval(s)
	if err != nil {
		return false
	}
	holds, ok := v.Value().(bool)
	return ok && holds
}

// AsText evaluates e to a string or whole number, written as text.
func (e *Expression) AsText(s *Seen) (string, error) {
	v, err := e.eval(s)
	if err != nil {
		return "", err
	}
	switch v := v.Value().(type) {
	case string:
		return v, nil
	case int64, uint64:
		return fmt.Sprint(v), nil
	}
	return "", fmt.Errorf("expression %q gives neither text nor a whole number", e.Text)
}

var errNotWhole = errors.New("not a whole number of at least zero")

// AsMicros evaluates e to a whole number that is not negative.
func (e *Expression) AsMicros(s *Seen) (int64, error) {
	v, err := e.eval(s)
	if err != nil {
		return 0, err
	}
	switch v := v.Value().(type) {
	case int64:
		if v >= 0 {
			return v, nil
		}
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v), nil
		}
	case float64:
		if v >= 0 && v < math.MaxInt64 && v == math.Trunc(v) {
			return int64(v), nil
		}
	}
	return 0, fmt.Errorf("expression %q: %w", e.Text, errNotWhole)
}

// AsJSON evaluates e to any value, written as JSON. Nil for null. The expression
// "body" gives the body byte for byte.
func (e *Expression) AsJSON(s *Seen) (json.RawMessage, error) {
	if strings.TrimSpace(e.Text) == "body" && s.IsJSON {
		return s.Body, nil
	}
	v, err := e.eval(s)
	if err != nil || v.Type() == types.NullType {
		return nil, err
	}
	return json.Marshal(plain(v))
}

// plain turns a CEL value into what encoding/json writes.
func plain(v any) any {
	switch v := v.(type) {
	case ref.Val:
		if v.Type() == types.NullType {
			return nil
		}
		return plain(v.Value())
	case []ref.Val:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plain(v[i])
		}
		return list
	case map[ref.Val]ref.Val:
		m := make(map[string]any, len(v))
		for name, value := range v {
			m[fmt.Sprint(name.Value())] = plain(value)
		}
		return m
	}
	return v
}

// activation is what an expression sees.
func (s *Seen) activation() map[string]any {
	return map[string]any{"status": int64(s.Status), "headers": lowered(s.Header), "body": celValue(s.JSON)}
}

func lowered(h http.Header) map[string]string {
	m := make(map[string]string, len(h))
	for name, values := range h {
		m[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	return m
}

// celValue turns JSON's numbers into CEL's: whole ones stay whole.
func celValue(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = celValue(v[i])
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(v))
		for name := range v {
			m[name] = celValue(v[name])
		}
		return m
	}
	return v
}
