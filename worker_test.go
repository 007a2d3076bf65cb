package onejob_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/memory"
)

// interrupted is a store whose caller may leave while a claim is being committed.
type interrupted struct {
	onejob.Store
	leave func()
}

func (s interrupted) AttemptClaim(ctx context.Context, p onejob.AttemptClaimParams) (onejob.AttemptClaimResult, error) {
	r, err := s.Store.AttemptClaim(ctx, p)
	s.leave()
	return r, err
}

// pool is a client of kind k, which workers do, with one job to be had.
func pool(t *testing.T, timeout time.Duration, leave func()) (*onejob.Client, *onejob.Job) {
	t.Helper()
	client, err := onejob.New(interrupted{memory.Open(memory.Options{}), leave}, onejob.Options{
		Secret: []byte("a secret of sixteen"),
		Kinds: map[string]onejob.Kind{"k": {Policy: onejob.Policy{
			Effect: onejob.EffectExternal, Targets: []string{"pool"}, Timeout: timeout, Backoff: onejob.Backoff{Initial: time.Nanosecond, Max: time.Nanosecond},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	job, _, err := client.Submit(t.Context(), onejob.SubmitParams{Owner: "o", Key: "k1", Kind: "k", Input: []byte("1")})
	if err != nil {
		t.Fatal(err)
	}
	return client, job
}

func claimParams(lease time.Duration) onejob.AttemptClaimParams {
	return onejob.AttemptClaimParams{
		Owner: "o", Kinds: []string{"k"}, Max: 1,
		StartParams: onejob.StartParams{Worker: "w", Lease: lease, Targets: map[string]onejob.TargetPins{"pool": {}}},
	}
}

func TestAClaimWhoseCallerLeftIsGivenBack(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	client, job := pool(t, time.Minute, func() { leave() })
	if claimed, err := client.AwaitAttempts(ctx, claimParams(time.Second)); err != nil || len(claimed) != 0 {
		t.Errorf("claimed %v, %v; want nothing, for nobody is there", claimed, err)
	}
	again, err := client.AwaitAttempts(t.Context(), claimParams(time.Second))
	if err != nil || len(again) != 1 || again[0].Attempt.Number != 2 {
		t.Fatalf("the next worker got %+v, %v; want the second attempt of the job", again, err)
	}
	first := again[0].Job.Attempts[0]
	if first.State != onejob.AttemptFailed || first.Outcome != onejob.OutcomeNotExecuted || !first.OwnFault || again[0].Job.ID != job.ID {
		t.Errorf("the first attempt is %s, %s, our fault: %t; want it failed, not executed, through our fault", first.State, first.Outcome, first.OwnFault)
	}
}

func TestAClaimIsHandedOutThoughTheWaitIsOver(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	soon, done := context.WithTimeout(ctx, 20*time.Millisecond)
	defer done()
	client, _ := pool(t, time.Minute, func() { <-soon.Done() })
	if claimed, err := client.AwaitAttempts(soon, claimParams(time.Second)); err != nil || len(claimed) != 1 {
		t.Errorf("claimed %v, %v; want the attempt, for the caller is still there", claimed, err)
	}
}

func TestNoLeaseIsLongerThanTheTimeoutOfTheWork(t *testing.T) {
	t.Parallel()
	client, _ := pool(t, 2*time.Second, func() {})
	claimed, err := client.ClaimAttempts(t.Context(), claimParams(time.Hour))
	if err != nil || len(claimed) != 1 {
		t.Fatalf("claimed %v, %v", claimed, err)
	}
	a := claimed[0].Attempt
	if got := a.LeaseExpiresAt.Sub(a.MarkedAt); got != 2*time.Second || !a.SendBy.Equal(a.LeaseExpiresAt) || a.State != onejob.AttemptRunning {
		t.Errorf("a lease of %s, begun until %s, %s; want 2s, until its end, running", got, a.SendBy, a.State)
	}
	p := onejob.WorkerParams{AttemptID: a.ID, Owner: "o", ClaimToken: a.ClaimToken}
	renewed, err := client.RenewAttempt(t.Context(), p, time.Hour)
	if err != nil || renewed.Attempt.LeaseExpiresAt.After(a.MarkedAt.Add(2*time.Second+50*time.Millisecond)) {
		t.Errorf("renewed until %s, %v; want no later than %s", renewed.Attempt.LeaseExpiresAt, err, a.MarkedAt.Add(2*time.Second))
	}
}

// A worker that takes anybody's jobs would otherwise work for the first owner only.
func TestWorkersOfAnyOwnerTakeTurns(t *testing.T) {
	t.Parallel()
	client, _ := pool(t, time.Minute, func() {})
	submit := func(owner, key string) {
		if _, _, err := client.Submit(t.Context(), onejob.SubmitParams{Owner: owner, Key: key, Kind: "k", Input: []byte("1")}); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"k2", "k3", "k4"} {
		submit("o", key)
	}
	submit("z", "k1")
	p := claimParams(time.Second)
	p.Owner = ""
	var owners []string
	for range 3 {
		claimed, err := client.ClaimAttempts(t.Context(), p)
		if err != nil || len(claimed) != 1 {
			t.Fatalf("claimed %v, %v; want one", claimed, err)
		}
		owners = append(owners, claimed[0].Job.Owner)
	}
	if want := []string{"o", "z", "o"}; !slices.Equal(owners, want) {
		t.Errorf("the workers were given jobs of %q; want %q", owners, want)
	}
}

// A node whose clock is not the store's denied every heartbeat, or none of them.
func TestAHeartbeatGoesByTheStoresClock(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{2 * time.Minute, -2 * time.Minute} {
		t.Run(skew.String(), func(t *testing.T) {
			t.Parallel()
			now := noon
			kinds := map[string]onejob.Kind{"k": {Policy: onejob.Policy{Effect: onejob.EffectExternal, Targets: []string{"pool"}, Timeout: time.Minute}}}
			client, err := onejob.New(memory.Open(memory.Options{NowFunc: func() time.Time { return now }}), onejob.Options{
				Secret: instanceSecret, Kinds: kinds, NowFunc: func() time.Time { return now.Add(skew) },
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := client.Submit(t.Context(), onejob.SubmitParams{Owner: "o", Key: "k1", Kind: "k", Input: []byte("1")}); err != nil {
				t.Fatal(err)
			}
			claimed, err := client.ClaimAttempts(t.Context(), claimParams(40*time.Second))
			if err != nil || len(claimed) != 1 {
				t.Fatalf("claimed %v, %v; want one", claimed, err)
			}
			a := claimed[0].Attempt
			p := onejob.WorkerParams{AttemptID: a.ID, ClaimToken: a.ClaimToken}
			now = now.Add(30 * time.Second)
			r, err := client.RenewAttempt(t.Context(), p, 40*time.Second)
			if err != nil || !r.Attempt.LeaseExpiresAt.Equal(a.MarkedAt.Add(time.Minute)) {
				t.Fatalf("half way the heartbeat is answered with a lease until %s, %v; want until the job's timeout", r.Attempt.LeaseExpiresAt, err)
			}
			now = now.Add(30 * time.Second)
			_, err = client.RenewAttempt(t.Context(), p, 40*time.Second)
			wantCode(t, err, onejob.CodeClaimLost)
		})
	}
}
