package grouped_test

import (
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/grouped"
	"github.com/onejob-dev/onejob/store/memory"
)

func TestWaitersReachTheStoreBehind(t *testing.T) {
	t.Parallel()
	s := open(t, memory.Open(memory.Options{}), grouped.Options{})
	policy, err := onejob.Policy{Effect: onejob.EffectNone, Targets: []string{"a"}}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	p := onejob.JobCreateParams{ID: "job_1", Owner: "alice", KeyHash: []byte("k"), Fingerprint: []byte("f"), Token: "t", Kind: "chat", Policy: policy}
	p.Waiter = &onejob.WaiterCreateParams{Route: "chat", Token: "w1", Lease: onejob.DefaultWaiterLease}
	if created, err := s.JobCreate(t.Context(), []onejob.JobCreateParams{p}); err != nil || created[0].Err != nil {
		t.Fatalf("JobCreate: %v, %v", err, created)
	}
	waiter := onejob.Waiter{JobRef: onejob.JobRef{Part: p.Part, ID: p.ID}, Token: "w1"}
	if held, err := s.WaiterRenew(t.Context(), []onejob.WaiterRenewParams{{Waiter: waiter, Lease: onejob.DefaultWaiterLease}}); err != nil || !held[0] {
		t.Errorf("WaiterRenew answered %v, %v; want it held", held, err)
	}
	if ended, err := s.WaiterEnd(t.Context(), []onejob.WaiterEndParams{{Waiter: waiter}}); err != nil || !ended[0] {
		t.Errorf("WaiterEnd answered %v, %v; want it ended", ended, err)
	}
	ref, taken, err := s.WaiterTake(t.Context(), onejob.WaiterTakeParams{
		Part: p.Part, Owner: p.Owner, Route: "chat", Fingerprint: p.Fingerprint, Token: "w2",
		Lease: onejob.DefaultWaiterLease, Within: onejob.DefaultWaiterLease,
	})
	if err != nil || !taken || ref != waiter.JobRef {
		t.Errorf("WaiterTake answered %v, %t, %v; want %v", ref, taken, err, waiter.JobRef)
	}
}

func TestWithoutWaitersNothingIsTakenOver(t *testing.T) {
	t.Parallel()
	s := open(t, &slowStore{}, grouped.Options{})
	if ref, taken, err := s.WaiterTake(t.Context(), onejob.WaiterTakeParams{Token: "w1"}); taken || err != nil {
		t.Errorf("WaiterTake answered %v, %t, %v; want nothing taken", ref, taken, err)
	}
}
