package onejob_test

import (
	"context"
	"fmt"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/memory"
)

// The click that is repeated with the same key is the same job, however its
// input is written.
func ExampleClient_Submit_doubleClick() {
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
	first, existed, err := client.Submit(ctx, onejob.SubmitParams{
		Owner: "alice", Key: "order-42", Kind: "charge_card", Input: []byte(`{"order":42,"amount":700}`),
	})
	fmt.Println("first click: existed", existed, err)

	second, existed, err := client.Submit(ctx, onejob.SubmitParams{
		Owner: "alice", Key: "order-42", Kind: "charge_card", Input: []byte(`{ "amount": 700, "order": 42 }`),
	})
	fmt.Println("second click: existed", existed, err)
	fmt.Println("one job:", first.ID == second.ID)
	// Output:
	// first click: existed false <nil>
	// second click: existed true <nil>
	// one job: true
}
