package contract

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"
)

// Limits of an expression.
const (
	// MaxExpressionCost bounds one evaluation, in CEL's units of cost: both what is
	// estimated from the schemas' bounds, and what is really used.
	MaxExpressionCost  = 1_000_000
	maxExpressionBytes = 4096
)

// The variables of expressions.
const (
	inputVariable  = "input"
	outputVariable = "output"
	expectVariable = "expect"
)

// vocabulary is what an expression may speak of: variables with their shapes.
type vocabulary struct {
	env    *cel.Env
	shapes map[string]*shape // by variable
}

// newVocabulary declares variables, with the types that their schemas say.
func newVocabulary(shapes map[string]*shape) (*vocabulary, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	provider := &shapeTypes{Registry: registry, objects: map[string]*shape{}}
	options := []cel.EnvOption{cel.CrossTypeNumericComparisons(true), ext.Math(), cel.CustomTypeProvider(provider), cel.CustomTypeAdapter(registry)}
	for name, s := range shapes {
		s.objects(name, provider.objects)
		options = append(options, cel.Variable(name, s.celType(name)))
	}
	env, err := cel.NewEnv(options...)
	return &vocabulary{env: env, shapes: shapes}, err
}

// shapeTypes tells CEL the members of objects.
type shapeTypes struct {
	*types.Registry
	objects map[string]*shape // by the name of their type
}

// FindStructType returns an object's type.
func (p *shapeTypes) FindStructType(name string) (*types.Type, bool) {
	if p.objects[name] == nil {
		return p.Registry.FindStructType(name)
	}
	return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
}

// FindStructFieldNames lists an object's members.
func (p *shapeTypes) FindStructFieldNames(name string) ([]string, bool) {
	if s := p.objects[name]; s != nil {
		return s.names(), true
	}
	return p.Registry.FindStructFieldNames(name)
}

// FindStructFieldType returns the type of an object's member.
func (p *shapeTypes) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	s := p.objects[name]
	if s == nil {
		return p.Registry.FindStructFieldType(name, field)
	}
	member := s.fields[field]
	if member == nil {
		return nil, false
	}
	root, _, _ := strings.Cut(name, "#")
	return &types.FieldType{Type: member.celType(root)}, true
}

// expression is one that was compiled. It is safe for concurrent use.
type expression struct {
	id      string
	program cel.Program
	// expects are the members of expect that it reads and does not first ask for.
	expects []string
	// worst is the most that it can cost, in CEL's units.
	worst uint64
}

// compile compiles an expression that is true or false. All that is wrong with it is
// in the error, one line each.
func (v *vocabulary) compile(id, text string) (*expression, error) {
	if len(text) > maxExpressionBytes {
		return nil, fmt.Errorf("it is longer than %d bytes", maxExpressionBytes)
	}
	checked, issues := v.env.Compile(text)
	if issues != nil && issues.Err() != nil {
		return nil, v.explain(issues)
	}
	if got := checked.OutputType(); !got.IsExactType(cel.BoolType) {
		return nil, fmt.Errorf("it gives %s; an assertion is true or false", got)
	}
	estimate, err := v.env.EstimateCost(checked, &estimator{v.shapes})
	if err != nil {
		return nil, err
	}
	if estimate.Max > MaxExpressionCost {
		return nil, fmt.Errorf("it may cost %s, more than %d: bound what it goes over with maxItems and maxLength, or say it with fewer loops",
			costText(estimate.Max), MaxExpressionCost)
	}
	program, err := v.env.Program(checked, cel.CostLimit(MaxExpressionCost), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, err
	}
	return &expression{id: id, program: program, expects: expectsOf(checked), worst: estimate.Max}, nil
}

func costText(n uint64) string {
	if n > 1<<62 {
		return "without a bound"
	}
	return fmt.Sprint(n)
}

// explain says in words what CEL found, and what was perhaps meant.
func (v *vocabulary) explain(issues *cel.Issues) error {
	var errs []error
	for _, e := range issues.Errors() {
		errs = append(errs, errors.New(v.explainOne(e)))
	}
	return errors.Join(errs...)
}

func (v *vocabulary) explainOne(e *common.Error) string {
	at := fmt.Sprintf(" (at character %d of the expression)", e.Location.Column()+1)
	_, hasExpect := v.shapes[expectVariable]
	if name, ok := between(e.Message, "undeclared reference to '", "'"); ok {
		if name == expectVariable && !hasExpect {
			return "an invariant cannot read expect: it holds in production too, where nothing is expected; make it an expectation" + at
		}
		return fmt.Sprintf("there is no %q%s%s", name, suggest(name, []string{inputVariable, outputVariable}), at)
	}
	if name, ok := between(e.Message, "undefined field '", "'"); ok {
		return fmt.Sprintf("there is no member %q%s%s", name, suggest(name, v.allNames()), at)
	}
	return e.Message + at
}

// between returns what stands between two texts.
func between(text, before, after string) (string, bool) {
	_, rest, found := strings.Cut(text, before)
	if !found {
		return "", false
	}
	inner, _, found := strings.Cut(rest, after)
	return inner, found
}

// allNames lists the members of every object, for suggestions.
func (v *vocabulary) allNames() []string {
	objects := map[string]*shape{}
	for name, s := range v.shapes {
		s.objects(name, objects)
	}
	var names []string
	for _, s := range objects {
		names = append(names, s.names()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// expectsOf lists the members of expect that an expression reads as a matter of
// course: not those it asks for with has().
func expectsOf(checked *cel.Ast) []string {
	var read []string
	ast.PreOrderVisit(checked.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.SelectKind {
			return
		}
		s := e.AsSelect()
		if s.Operand().Kind() != ast.IdentKind || s.Operand().AsIdent() != expectVariable || slices.Contains(read, s.FieldName()) {
			return
		}
		if asked := hasOf(checked, s.FieldName()); !asked {
			read = append(read, s.FieldName())
		}
	}))
	return read
}

// hasOf reports whether an expression asks has(expect.name).
func hasOf(checked *cel.Ast, name string) bool {
	asked := false
	ast.PreOrderVisit(checked.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly() && e.AsSelect().FieldName() == name {
			asked = true
		}
	}))
	return asked
}

// holds evaluates the expression. An error is neither true nor false.
func (e *expression) holds(values map[string]any) (bool, error) {
	result, _, err := e.program.Eval(values)
	if err != nil {
		return false, errors.New(evaluationFault(err))
	}
	holds, ok := result.Value().(bool)
	if !ok {
		return false, errors.New("it gave neither true nor false")
	}
	return holds, nil
}

// evaluationFault says why there was no answer, without any value.
func evaluationFault(err error) string {
	switch text := err.Error(); {
	case strings.Contains(text, "cost limit"):
		return "it costs more than is allowed"
	case strings.Contains(text, "no such key"):
		return "it reads a member that is not there"
	case strings.Contains(text, "overflow"):
		return "a number in it is too large"
	case strings.Contains(text, "divi"), strings.Contains(text, "modulus"):
		return "it divides by zero"
	case strings.Contains(text, "out of bounds"), strings.Contains(text, "out of range"):
		return "it reads an item that is not there"
	}
	return "it could not be evaluated"
}

// estimator bounds the sizes of values by what their schemas say.
type estimator struct{ shapes map[string]*shape }

// maxBytesOfRune is how many bytes a character can take.
const maxBytesOfRune = 4

// EstimateSize returns how large a value can be.
func (e *estimator) EstimateSize(node cost.AstNode) *cost.SizeEstimate {
	path := node.Path()
	if len(path) == 0 {
		return nil
	}
	s := e.shapes[path[0]]
	if s == nil {
		return nil // a variable of a loop
	}
	for _, step := range path[1:] {
		s = s.below(strings.TrimPrefix(step, "@items"))
	}
	most := s.most
	switch {
	case s.kind == booleanShape || s.kind == integerShape || s.kind == numberShape || s.kind == nullShape:
		return nil
	case s.kind == objectShape:
		most = uint64(len(s.fields))
	case most == 0:
		most = MaxOutputBytes
	case s.kind == textShape:
		most *= maxBytesOfRune
	}
	return &cost.SizeEstimate{Min: 0, Max: min(most, MaxOutputBytes)}
}

// EstimateCallCost leaves functions to CEL.
func (e *estimator) EstimateCallCost(_, _ string, _ *cost.AstNode, _ []cost.AstNode) *cost.CallEstimate {
	return nil
}
