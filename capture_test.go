package onejob_test

import (
	"context"

	"github.com/onejob-dev/onejob"
)

// capture is a store that keeps what a client wants to create, and creates it
// never. It has no other method.
type capture struct {
	onejob.Store
	rows []onejob.JobCreateParams
}

func (c *capture) JobCreate(_ context.Context, params []onejob.JobCreateParams) ([]onejob.JobCreateResult, error) {
	c.rows = append(c.rows, params...)
	results := make([]onejob.JobCreateResult, len(params))
	for i, p := range params {
		results[i].Job = &onejob.Job{ID: p.ID, State: onejob.JobQueued}
	}
	return results, nil
}

var instanceSecret = []byte("0123456789abcdef")

func kinds() map[string]onejob.Kind {
	return map[string]onejob.Kind{
		"draw":   {Policy: onejob.Policy{Effect: onejob.EffectNone, Targets: []string{"a", "b"}}},
		"charge": {Policy: onejob.Policy{Effect: onejob.EffectExternal, Targets: []string{"a"}}},
	}
}

// rowOf returns the row that a client would create for an intent.
func rowOf(t tester, secret []byte, p onejob.SubmitParams) onejob.JobCreateParams {
	t.Helper()
	c := &capture{}
	client, err := onejob.New(c, onejob.Options{Secret: secret, Kinds: kinds()})
	if err != nil {
		t.Fatalf("%v", err)
	}
	if _, _, err := client.Submit(context.Background(), p); err != nil {
		t.Fatalf("submit: %v", err)
	}
	return c.rows[0]
}

func drawing(input string) onejob.SubmitParams {
	return onejob.SubmitParams{Owner: "alice", Key: "k1", Kind: "draw", Input: []byte(input)}
}
