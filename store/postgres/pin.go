package postgres

import (
	"reflect"

	"github.com/onejob-dev/onejob"
)

// pinned is a policy as it is written to jobs. The jobs of one call share it: most
// are of few kinds.
type pinned struct {
	policy  *onejob.Policy
	text    string
	invalid error
}

// maxPins bounds what a call looks through for a policy that it has seen.
const maxPins = 16

// pin returns the policy of an intent as it is written.
func (c *creating) pin(policy *onejob.Policy) *pinned {
	for _, p := range c.pins {
		if reflect.DeepEqual(p.policy, policy) {
			return p
		}
	}
	p := &pinned{policy: policy, text: onejob.EncodePolicy(*policy)}
	_, p.invalid = policy.WithDefaults()
	if len(c.pins) < maxPins {
		c.pins = append(c.pins, p)
	}
	return p
}
