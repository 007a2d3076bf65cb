package onejob_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/memory"
)

// A key means one intent for ever: another one under it is refused, and never
// done.
func ExampleClient_Submit_conflict() {
	ctx := context.Background()
	client, err := onejob.New(memory.Open(memory.Options{}), onejob.Options{
		Secret: []byte("a secret of this instance"),
		Kinds: map[string]onejob.Kind{
			"charge_card": {Policy: onejob.Policy{Effect: onejob.EffectExternal, Targets: []string{"acme"}}},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	charge := onejob.SubmitParams{Owner: "alice", Key: "order-42", Kind: "charge_card", Input: []byte(`{"amount":200}`)}
	job, _, err := client.Submit(ctx, charge)
	fmt.Println("200:", job.State, err)

	charge.Input = []byte(`{"amount":500}`)
	_, _, err = client.Submit(ctx, charge)
	fmt.Println("500:", onejob.CodeOf(err))
	fmt.Println("a conflict:", errors.Is(err, onejob.ErrKeyConflict))
	// Output:
	// 200: queued <nil>
	// 500: idempotency-key-conflict
	// a conflict: true
}
