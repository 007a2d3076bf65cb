package wire

import (
	"errors"
	"fmt"
	"slices"

	"github.com/onejob-dev/onejob"
)

// Rule overrides the table: when its condition holds for an answer, Class is what
// the answer proves.
type Rule struct {
	When  string // CEL, true or false
	Class onejob.Outcome
	// TargetFault says that the target is at fault, not the input: another one
	// may take over.
	TargetFault bool
}

// Rules are the compiled rules of one target. Nil decides nothing.
type Rules struct{ rules []rule }

type rule struct {
	Rule
	when *Expression
}

// Accepts reports whether one of rules says that work was accepted.
func Accepts(rules []Rule) bool {
	return slices.ContainsFunc(rules, func(r Rule) bool { return r.Class == accepted })
}

// NewRules compiles rules. All that is wrong with them is returned at once.
func NewRules(rules []Rule) (*Rules, error) {
	var errs []error
	rs := &Rules{}
	for i, r := range rules {
		when, err := CompileCondition(r.When)
		if err != nil {
			errs = append(errs, fmt.Errorf("outcomes[%d]: %w", i, err))
		}
		if !slices.Contains(Classes(), r.Class) {
			errs = append(errs, fmt.Errorf("outcomes[%d]: class %q is none of %v", i, r.Class, Classes()))
		}
		rs.rules = append(rs.rules, rule{Rule: r, when: when})
	}
	return rs, errors.Join(errs...)
}

// Classes lists what a rule may say.
func Classes() []onejob.Outcome {
	return []onejob.Outcome{notExecuted, refused, failed, succeeded, unknown, lost, accepted}
}

// decide finds the first rule that holds. A success that broke off is never put
// to the rules: nobody can say what it would have been.
func (rs *Rules) decide(s *Seen) (rule, bool) {
	if rs == nil || s.Status == 0 || (s.is2xx() && s.Trouble != "") {
		return rule{}, false
	}
	for _, r := range rs.rules {
		if r.when.Holds(s) {
			return r, true
		}
	}
	return rule{}, false
}

// row is what the rule says of s instead of the table. A success whose body was cut
// is one whose result cannot be had.
func (r rule) row(s *Seen) Row {
	if r.Class == succeeded && s.cut() {
		return Row{Code: "rule_result_lost", Condition: "a rule of the target says that it succeeded, and its body was cut", Outcome: lost}
	}
	next := map[onejob.Outcome]onejob.Next{notExecuted: again, refused: nowhere, failed: elsewhere}[r.Class]
	if r.TargetFault && next != "" {
		next = elsewhere
	}
	return Row{Code: "rule_" + string(r.Class), Condition: "a rule of the target", Outcome: r.Class, Next: next}
}
