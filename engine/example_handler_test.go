package engine_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/engine"
	"github.com/onejob-dev/onejob/store/memory"
)

// Jobs of a kind can be done by a Go function in this process.
func ExampleHandler() {
	ctx, stop := context.WithCancel(context.Background())
	shout := engine.Handler(func(_ context.Context, r onejob.Request) (onejob.Answer, error) {
		return onejob.Answer{Body: []byte(strings.ToUpper(string(r.Input))), ContentType: "application/json"}, nil
	})

	store, signals := memory.Open(memory.Options{}), &onejob.Signals{}
	tries, err := engine.New(store, []onejob.Target{{Name: "here", Provider: shout}}, engine.Options{Signals: signals})
	if err != nil {
		panic(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- tries.Run(ctx) }()

	client, err := onejob.New(store, onejob.Options{
		Secret: []byte("a secret of the instance"), Starter: tries, Signals: signals,
		Kinds: map[string]onejob.Kind{"shout": {Policy: onejob.Policy{Effect: onejob.EffectNone, Targets: []string{"here"}}}},
	})
	if err != nil {
		panic(err)
	}
	job, _, err := client.Submit(ctx, onejob.SubmitParams{Owner: "shop", Key: "greeting-1", Kind: "shout", Input: []byte(`"hello"`)})
	if err != nil {
		panic(err)
	}
	job, err = client.WatchUntil(ctx, "shop", job.ID, func(j *onejob.Job) bool { return j.State.Terminal() })
	if err != nil {
		panic(err)
	}
	stop()
	fmt.Println(job.State, string(job.Result.Body), <-ended)
	// Output: succeeded "HELLO" <nil>
}
