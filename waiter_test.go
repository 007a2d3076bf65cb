package onejob_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/onejob-dev/onejob"
)

// keyless is a call without a key.
func keyless(change ...func(*onejob.KeylessParams)) onejob.KeylessParams {
	p := onejob.KeylessParams{SubmitParams: onejob.SubmitParams{Owner: "alice", Kind: "draw", Input: []byte(`{"n":7}`)}, Route: "/v1/chat"}
	for _, c := range change {
		c(&p)
	}
	return p
}

// retrying lets a call take over.
func retrying(p *onejob.KeylessParams) { p.TakeOverWithin = time.Minute }

func (w *world) submitKeyless(change ...func(*onejob.KeylessParams)) onejob.KeylessResult {
	w.Helper()
	r, err := w.client.SubmitKeyless(w.Context(), keyless(change...))
	w.noError(err)
	w.Cleanup(r.Watch.Stop)
	return r
}

func TestAMadeKeyLiesInTheWantedPart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		owner, part := rapid.String().Draw(t, "owner"), rapid.Uint8().Draw(t, "part")
		key := onejob.KeyInPart(owner, part)
		if got := onejob.PartOf(owner, key); got != part {
			t.Fatalf("the key %q of %q lies in part %d; want %d", key, owner, got, part)
		}
		if parsed, err := onejob.ParseKey(key); err != nil || parsed != key {
			t.Fatalf("the key %q reads as %q, %v", key, parsed, err)
		}
	})
}

func TestIntentsWithoutAKeyThatAreAlikeAreTwoJobsInOnePart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.submitKeyless(), w.submitKeyless()
	if a.Job.ID == b.Job.ID || a.TakenOver || b.TakenOver {
		t.Errorf("jobs %s and %s; want two", a.Job.ID, b.Job.ID)
	}
	if a.Job.Part != b.Job.Part || a.Waiter.Part != a.Job.Part || a.Waiter.ID != a.Job.ID {
		t.Errorf("jobs in parts %d and %d, the first awaited as %+v; want one part", a.Job.Part, b.Job.Part, a.Waiter)
	}
}

func TestARetryWithoutAKeyTakesOverWhatLostItsCaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.submitKeyless()
	if again := w.submitKeyless(retrying); again.TakenOver {
		t.Error("a job was taken over whose caller waits")
	}
	w.noError(w.client.StopWaiting(w.Context(), onejob.WaiterEndParams{Waiter: first.Waiter}))
	if again := w.submitKeyless(); again.TakenOver {
		t.Error("a call that is no retry took over")
	}
	again := w.submitKeyless(retrying)
	if !again.TakenOver || again.Job.ID != first.Job.ID || again.Waiter.Token == first.Waiter.Token {
		t.Fatalf("the retry was given %+v; want job %s, and a waiting of its own", again, first.Job.ID)
	}
	w.noError(w.client.KeepWaiting(w.Context(), []onejob.Waiter{again.Waiter}, time.Hour))
	w.advance(2 * onejob.DefaultWaiterLease)
	if r := w.submitKeyless(retrying, func(p *onejob.KeylessParams) { p.Lease = time.Hour }); r.Job.ID == first.Job.ID {
		t.Error("a job was taken over whose caller is said to wait on")
	}
}

func TestADayLaterNothingIsTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.submitKeyless()
	w.noError(w.client.StopWaiting(w.Context(), onejob.WaiterEndParams{Waiter: first.Waiter}))
	w.advance(onejob.MaxTakeOverWithin + time.Second)
	if r := w.submitKeyless(func(p *onejob.KeylessParams) { p.TakeOverWithin = 1000 * time.Hour }); r.TakenOver {
		t.Error("a job was taken over that purging may have forgotten")
	}
}

func TestWhatIsWrongWithAnIntentWithoutAKeyIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for code, p := range map[onejob.Code]onejob.KeylessParams{
		onejob.CodeInvalidArgument:     keyless(func(p *onejob.KeylessParams) { p.Owner = "" }),
		onejob.CodePayloadNotCanonical: keyless(func(p *onejob.KeylessParams) { p.Input = []byte(`{"a":1,"a":2}`) }),
		onejob.CodeInvalidJob:          keyless(func(p *onejob.KeylessParams) { p.Kind = "none" }),
	} {
		if r, err := w.client.SubmitKeyless(w.Context(), p); onejob.CodeOf(err) != code || r.Job != nil {
			t.Errorf("the answer is %v, %v; want %s", r.Job, err, code)
		}
	}
}

// forgetful loses the answer to the first taking over.
type forgetful struct {
	onejob.Store
	onejob.WaiterStore
	lost bool
}

func (f *forgetful) WaiterTake(ctx context.Context, p onejob.WaiterTakeParams) (onejob.JobRef, bool, error) {
	ref, taken, err := f.WaiterStore.WaiterTake(ctx, p)
	if !f.lost {
		f.lost = true
		return onejob.JobRef{}, false, errors.New("the connection was lost")
	}
	return ref, taken, err
}

func TestATakingOverWhoseAnswerWasLostIsFoundAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world, _ *onejob.Options) {
		w.store = &forgetful{Store: w.store, WaiterStore: w.store.(onejob.WaiterStore)}
	})
	first := w.submitKeyless()
	w.noError(w.client.StopWaiting(w.Context(), onejob.WaiterEndParams{Waiter: first.Waiter}))
	if again := w.submitKeyless(retrying); again.Job.ID != first.Job.ID {
		t.Errorf("the retry was given job %s; want %s", again.Job.ID, first.Job.ID)
	}
}

func TestAStoreWithoutWaitersTakesNothingOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world, _ *onejob.Options) { w.store = struct{ onejob.Store }{w.store} })
	first := w.submitKeyless()
	w.noError(w.client.KeepWaiting(w.Context(), []onejob.Waiter{first.Waiter}, time.Hour))
	w.noError(w.client.StopWaiting(w.Context(), onejob.WaiterEndParams{Waiter: first.Waiter}))
	if again := w.submitKeyless(retrying); again.TakenOver {
		t.Error("a job was taken over")
	}
}
