package contract

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Checker judges outputs by a contract. It is safe for concurrent use.
type Checker struct {
	output       Output
	cap          int // of output tokens; zero: none is known
	inputSchema  *schema
	outputSchema *schema // nil for text and binary
	invariants   []*expression
	expectations []*expression
	gates        map[string]string // of expectations, by id
	expectShape  *shape
	parts        map[string]*jsonschema.Schema // of members of the output, while linting
	digest       string
	prompt       *promptTemplates // nil: the target's configuration makes the request
	terms        Render
}

// Compile makes a checker of a contract. A contract that does not pass [Lint] has
// none: its errors are returned, as an [*Error].
func Compile(c *Contract) (*Checker, error) {
	k, _, err := Review(c)
	return k, err
}

// Review is [Lint] and [Compile] at once.
func Review(c *Contract) (*Checker, *Report, error) {
	l := lint(c)
	if faults := l.errors(); len(faults) > 0 {
		return nil, &l.report, &Error{Faults: faults}
	}
	return l.checker, &l.report, nil
}

// Digest of the contract.
func (k *Checker) Digest() string { return k.digest }

// ValidateInput judges an input: whether it is JSON that everybody reads alike and
// keeps to the contract's schema. Nil: it does.
func (k *Checker) ValidateInput(raw []byte) []Violation {
	value, found := k.document(raw)
	if len(found) > 0 {
		return found
	}
	return bounded(k.inputSchema.violations(value))
}

// ValidateDocument judges only whether raw is one JSON value and nothing else, written as
// everybody reads it alike; no schema is asked. Nil: it is.
func (k *Checker) ValidateDocument(raw []byte) []Violation {
	_, found := k.document(raw)
	return bounded(found)
}

// Validate judges the whole output of a target, as the raw text it is, for an input
// that the contract takes. Nil: nothing is wrong with it. What stands first explains
// the most; invariants are asked only about an output whose structure is right.
//
// Nothing is taken off, unwrapped or converted before it is judged.
func (k *Checker) Validate(raw, input []byte) []Violation {
	return k.ValidateAnswer(Answer{Raw: raw}, input)
}

// ValidateAnswer is [Checker.Validate] with what the provider said beside the
// output: how it ended, and how many tokens it took.
func (k *Checker) ValidateAnswer(a Answer, input []byte) []Violation {
	beside := k.beside(a)
	value, found := k.structure(a)
	if len(found) == 0 && len(beside) == 0 && len(k.invariants) > 0 {
		found = k.assert(ClassInvariant, k.invariants, value, input, nil)
	}
	return bounded(append(beside, found...))
}

// Expect judges an output whose structure and invariants are right by what its case
// expects, and returns the violations of each gate apart. A case that expects nothing
// has none.
func (k *Checker) Expect(raw []byte, c *Case) (semantic, advisory []Violation) {
	if c.Expect == nil {
		return nil, nil
	}
	value, found := k.structure(Answer{Raw: raw})
	if len(found) == 0 {
		found = k.assert(ClassExpectation, k.expectations, value, c.Input, c.Expect)
	}
	for _, v := range found {
		if k.gates[v.Assertion] == GateAdvisory {
			advisory = append(advisory, v)
		} else {
			semantic = append(semantic, v)
		}
	}
	return bounded(semantic), bounded(advisory)
}

// beside judges what was said beside the output.
func (k *Checker) beside(a Answer) []Violation {
	var found []Violation
	note := func(class Class, message string) { found = append(found, Violation{Class: class, Message: message}) }
	refuses := func(f Finish) bool { return !slices.Contains(k.output.Finish, f) }
	switch total := a.InputTokens + a.OutputTokens; {
	case a.Refused && refuses(FinishRefusal), a.Finish == FinishRefusal && refuses(FinishRefusal):
		note(ClassRefusal, "the provider says that it was refused")
	case a.Finish == FinishLength && refuses(FinishLength):
		note(ClassCut, "the provider says that it was cut at the limit of tokens")
	case k.cap > 0 && a.OutputTokens >= k.cap && refuses(FinishLength):
		note(ClassCut, fmt.Sprintf("it took all %d tokens that it may, so that it is not believed to be complete", k.cap))
	case a.Finish != "" && refuses(a.Finish):
		note(ClassFinish, fmt.Sprintf("it ended with %q; the contract takes %v", a.Finish, k.output.Finish))
	case a.InputTokens > 0 && a.OutputTokens > 0 && isWindow(total):
		note(ClassContextCut, fmt.Sprintf("input and output come to exactly %d tokens, as they do when the input was cut in silence", total))
	}
	if a.ToolCalls > 0 && k.output.Media != MediaToolCall {
		note(ClassUnexpectedCall, "there are tool calls beside the content")
	}
	return found
}

// smallestWindow is the least context that a model is served with.
const smallestWindow = 2048

// isWindow reports whether a number of tokens is a power of two that contexts have.
func isWindow(tokens int) bool { return tokens >= smallestWindow && tokens&(tokens-1) == 0 }

// assert evaluates assertions. One that gives no answer is a violation, too.
func (k *Checker) assert(class Class, assertions []*expression, output any, input, expect json.RawMessage) []Violation {
	in, found := k.document(input)
	if len(found) > 0 {
		return []Violation{{Class: ClassUndecidable, Message: "the input is not JSON, so that nothing can be said of its output"}}
	}
	values := map[string]any{inputVariable: k.inputSchema.shape.celValue(in), outputVariable: k.outputShape().celValue(output)}
	if expect != nil {
		values[expectVariable] = k.expectShape.celValue(expected(expect))
	}
	for _, e := range assertions {
		switch holds, err := e.holds(values); {
		case err != nil:
			found = append(found, Violation{Class: ClassUndecidable, Assertion: e.id, Message: err.Error()})
		case !holds:
			found = append(found, Violation{Class: class, Assertion: e.id, Message: "it does not hold"})
		}
	}
	return found
}

func (k *Checker) outputShape() *shape {
	if k.outputSchema == nil {
		return &shape{kind: textShape}
	}
	return k.outputSchema.shape
}

// part returns the schema of one member of the output, compiled once. Nil: it has
// none.
func (k *Checker) part(name string) *jsonschema.Schema {
	if part, known := k.parts[name]; known {
		return part
	}
	if k.parts == nil {
		k.parts = map[string]*jsonschema.Schema{}
	}
	k.parts[name] = k.outputSchema.part(name)
	return k.parts[name]
}
