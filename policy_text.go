package onejob

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// policyTextVersion says which members a policy's text leaves out.
const policyTextVersion = 1

// policyLeftOut is what version 1 of a policy's text leaves out. It is frozen, as
// the rows are that were written by it; the defaults of new policies may change.
func policyLeftOut() Policy {
	return Policy{
		Lanes: 1, Timeout: 60_000_000_000, Linger: 600_000_000_000, SendWithin: 30_000_000_000,
		MaxAttempts: 5, PerTarget: 3, Backoff: Backoff{Initial: 1_000_000_000, Max: 60_000_000_000},
		Failover: FailoverCertified,
	}
}

// EncodePolicy is how a store keeps a policy: a JSON object with those members
// that are not as most policies have them. [DecodePolicy] gives back all of it.
func EncodePolicy(p Policy) string {
	said, leftOut := membersOf(p), membersOf(policyLeftOut())
	for name, value := range said {
		if bytes.Equal(value, leftOut[name]) {
			delete(said, name)
		}
	}
	said["v"], _ = json.Marshal(policyTextVersion)
	text, _ := json.Marshal(said) // members that were marshalled before
	return string(text)
}

func membersOf(p Policy) (members map[string]json.RawMessage) {
	text, _ := json.Marshal(p) // strings and numbers, which always marshal
	_ = json.Unmarshal(text, &members)
	return members
}

// DecodePolicy is the inverse of [EncodePolicy]. It also reads a policy that is
// written out, and fails for a text that a newer program wrote.
func DecodePolicy(text string) (p Policy, err error) {
	var head struct {
		Version int `json:"v"`
	}
	if err := json.Unmarshal([]byte(text), &head); err != nil {
		return p, err
	}
	switch head.Version {
	case 0: // nothing is left out
	case policyTextVersion:
		p = policyLeftOut()
	default:
		return p, fmt.Errorf("version %d of a policy is not known to this program", head.Version)
	}
	return p, json.Unmarshal([]byte(text), &p)
}
