package onejob_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/memory"
)

// A timeout proves nothing. The attempt is unknown, the job waits, and no second
// attempt starts until somebody finds out what became of the first.
func ExampleClient_StartAttempt_unknownBlocks() {
	ctx := context.Background()
	store := memory.Open(memory.Options{})
	client, err := onejob.New(store, onejob.Options{
		Secret: []byte("a secret of this instance"),
		Kinds: map[string]onejob.Kind{
			"charge_card": {Policy: onejob.Policy{
				Effect: onejob.EffectExternal, Targets: []string{"acme", "borealis"},
				Failover: onejob.FailoverDeclared, FailoverWhy: "both charge the same account",
			}},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	job, _, err := client.Submit(ctx, onejob.SubmitParams{
		Owner: "alice", Key: "order-42", Kind: "charge_card", Input: []byte(`{"amount":700}`),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	attemptThatFallsSilent(ctx, store)

	_, _, err = client.StartAttempt(ctx, onejob.StartAttemptParams{JobID: job.ID, Owner: "alice", Key: "press-1", Target: "borealis"})
	fmt.Println("the fallback button:", onejob.CodeOf(err))

	job, err = client.Get(ctx, "alice", job.ID)
	fmt.Println("the job:", job.State, job.Blocked.Reason, err)

	_, job, err = client.Resolve(ctx, onejob.AttemptResolveParams{
		ID: job.Attempts[0].ID, Actor: "bob", Outcome: onejob.OutcomeSucceeded,
		Evidence: "the charge is on acme's dashboard", Result: &onejob.Result{Body: []byte(`{"charged":true}`)},
	})
	fmt.Println("after looking:", job.State, string(job.Result.Body), err)
	// Output:
	// the fallback button: attempt-unresolved
	// the job: blocked attempt_unknown <nil>
	// after looking: succeeded {"charged":true} <nil>
}

// attemptThatFallsSilent does what an engine does: claim, mark, send, and record
// that no answer came.
func attemptThatFallsSilent(ctx context.Context, store onejob.Store) {
	targets := map[string]onejob.TargetPins{"acme": {MaxExecution: time.Minute}}
	claim, err := store.AttemptClaim(ctx, onejob.AttemptClaimParams{
		StartParams: onejob.StartParams{Worker: "w1", Lease: time.Minute, Targets: targets}, Max: 1,
	})
	a := claim.Claimed[0].Attempt
	ref := onejob.AttemptRef{Part: a.Part, JobID: a.JobID, ID: a.ID}
	_, errMark := store.AttemptMark(ctx, []onejob.AttemptMarkParams{{
		Ref: ref, ClaimToken: a.ClaimToken, Lease: time.Minute, SendWithin: time.Second, Pins: targets["acme"],
	}})
	_, errFinish := store.AttemptFinish(ctx, []onejob.AttemptFinishParams{{
		Ref: ref, ClaimToken: a.ClaimToken, Outcome: onejob.OutcomeUnknown, Phase: onejob.PhaseSent,
	}})
	if err := errors.Join(err, errMark, errFinish); err != nil {
		fmt.Println(err)
	}
}
