package contract

import (
	"fmt"
	"maps"
	"slices"
)

// assertions compiles invariants and expectations against the schemas' types.
func (l *linter) assertions() {
	k := l.checker
	k.expectShape = l.expectShape()
	l.uniqueIDs()
	if l.Output.Media == MediaBinary && len(l.Invariants)+len(l.Expectations) > 0 {
		l.error("assertion-binary", "output.media", "there is nothing that an expression could read of a binary output; leave invariants and expectations out")
		return
	}
	if k.inputSchema == nil || k.outputSchema == nil && l.Output.Media != MediaText {
		return // said already, and no type can be known
	}
	shapes := map[string]*shape{inputVariable: k.inputSchema.shape, outputVariable: k.outputShape()}
	if v, ok := l.vocabulary(shapes); ok {
		for i, a := range l.Invariants {
			k.invariants = l.compile(k.invariants, v, a.ID, a.CEL, fmt.Sprintf("invariants[%d].cel", i))
		}
	}
	shapes = maps.Clone(shapes)
	shapes[expectVariable] = k.expectShape
	if v, ok := l.vocabulary(shapes); ok {
		for i, e := range l.Expectations {
			k.expectations = l.compile(k.expectations, v, e.ID, e.CEL, fmt.Sprintf("expectations[%d].cel", i))
			k.gates[e.ID] = e.Gate
		}
	}
}

func (l *linter) vocabulary(shapes map[string]*shape) (*vocabulary, bool) {
	v, err := newVocabulary(shapes)
	if err != nil {
		l.error("assertion-invalid", "invariants", "the schemas' types cannot be declared: "+err.Error())
	}
	return v, err == nil
}

func (l *linter) compile(list []*expression, v *vocabulary, id, text, path string) []*expression {
	e, err := v.compile(id, text)
	if err != nil {
		l.error("assertion-invalid", path, err.Error())
		return list
	}
	l.read[id] = e.expects
	return append(list, e)
}

// uniqueIDs: a violation is told by the id of what it breaks.
func (l *linter) uniqueIDs() {
	taken := map[string]bool{}
	unique := func(id, path string) {
		if taken[id] {
			l.error("assertion-id", path, fmt.Sprintf("the id %q is taken", id))
		}
		taken[id] = true
	}
	for i, a := range l.Invariants {
		unique(a.ID, fmt.Sprintf("invariants[%d].id", i))
	}
	for i, e := range l.Expectations {
		unique(e.ID, fmt.Sprintf("expectations[%d].id", i))
	}
}

// expectShape is what expectations know of expect: the members that cases have, with
// the types of the output's members of the same name.
func (l *linter) expectShape() *shape {
	s := &shape{kind: objectShape, name: "#", fields: map[string]*shape{}}
	for i := range l.CaseList {
		object, _ := expected(l.CaseList[i].Expect).(map[string]any)
		for name := range object {
			if s.fields[name] == nil {
				s.fields[name] = l.expectedMember(name)
			}
		}
	}
	return s
}

func (l *linter) expectedMember(name string) *shape {
	if o := l.checker.outputSchema; o != nil && o.shape.fields[name] != nil {
		return o.shape.fields[name]
	}
	return &shape{}
}

// cases holds the cases to the schemas and to each other.
func (l *linter) cases() {
	inputs := map[string]*Case{}
	for i := range l.CaseList {
		c := &l.CaseList[i]
		if c.Hostile() {
			l.report.Hostile++
		}
		if c.Expect != nil {
			l.report.Expected++
		}
		sum, err := canonicalSum(c.Input)
		if first := inputs[sum]; err == nil && first != nil {
			l.caseError("case-duplicate", c, "input", fmt.Sprintf("case %s has the input of %s (%s:%d); a case counts once", c.ID, first.ID, first.File, first.Line))
			continue
		}
		inputs[sum] = c
		l.caseInput(c)
		l.caseExpect(c)
	}
	l.report.Distinct = len(inputs)
	if l.report.Distinct < l.Cases.MinDistinct {
		l.error("cases-few", "cases.min_distinct", fmt.Sprintf("there are %d distinct cases; min_distinct asks for %d", l.report.Distinct, l.Cases.MinDistinct))
	}
	if l.report.Hostile == 0 {
		l.error("cases-tame", "cases.files", `no case is tagged "hostile"; add at least one: control tokens, a very long text, right-to-left, zero-width, nothing at all`)
	}
}

func (l *linter) caseInput(c *Case) {
	if s := l.checker.inputSchema; s != nil {
		for _, v := range bounded(s.violations(expected(c.Input))) {
			l.caseError("case-input", c, "input"+v.Path, fmt.Sprintf("case %s: %s", c.ID, v.Message))
		}
	}
}

// caseExpect: what a case expects is something that an output can have, and all that
// expectations read.
func (l *linter) caseExpect(c *Case) {
	if c.Expect == nil {
		return
	}
	expect, _ := expected(c.Expect).(map[string]any)
	for _, id := range slices.Sorted(maps.Keys(l.read)) {
		for _, name := range l.read[id] {
			if _, ok := expect[name]; !ok {
				l.caseError("case-expect", c, "expect", fmt.Sprintf("case %s does not say %q, which expectation %s reads", c.ID, name, id))
			}
		}
	}
	if l.checker.outputSchema == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(expect)) {
		part := l.checker.part(name)
		if part == nil {
			continue
		}
		if err := part.Validate(expect[name]); err != nil {
			for _, v := range bounded(violationsOf(err, expect[name])) {
				l.caseError("case-expect", c, "expect."+name+v.Path, fmt.Sprintf("case %s expects what no output may have: %s", c.ID, v.Message))
			}
		}
	}
}
