package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/onejob-dev/onejob"
)

// Handler makes a provider of a function in this process: the target of jobs that
// Go code does itself. do is called once for each attempt, after the commit that
// marks it, and never begins after the request's SendBy.
//
// A nil error is a success, unless the answer's Outcome says otherwise:
// [onejob.OutcomeExecutedFailed] for work that was done and failed. An error proves
// nothing and leaves the attempt unknown, ctx's included and a panic too, unless it
// wraps [onejob.ErrNotSent] or [onejob.ErrRefused], which promise that nothing
// happened. ctx ends after the job's timeout and linger, or with the engine's drain.
//
// What do calls in its turn should get the request's ProviderKey, which stays the
// same for the job at its target.
func Handler(do func(ctx context.Context, r onejob.Request) (onejob.Answer, error)) onejob.Provider {
	return handler{do}
}

type handler struct {
	do func(context.Context, onejob.Request) (onejob.Answer, error)
}

// Call implements [onejob.Provider].
func (h handler) Call(ctx context.Context, r onejob.Request) (onejob.Answer, error) {
	if !r.SendBy.IsZero() && time.Now().After(r.SendBy) {
		return onejob.Answer{}, fmt.Errorf("the process stood still until the attempt's time to begin was over: %w", onejob.ErrNotSent)
	}
	if r.Sent != nil {
		r.Sent()
	}
	return h.do(ctx, r)
}
