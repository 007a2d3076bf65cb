package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/engine"
)

// lookout is a store that is looked at as a whole, and counts what it is asked.
type lookout struct {
	onejob.Store
	found atomic.Pointer[onejob.WorkFound]
	looks atomic.Int32
	asked atomic.Pointer[onejob.WorkLookParams]
	rest  atomic.Int32 // every other question of an idle engine
}

func (l *lookout) WorkLook(_ context.Context, p onejob.WorkLookParams) (onejob.WorkFound, error) {
	l.looks.Add(1)
	l.asked.Store(&p)
	var found onejob.WorkFound
	if f := l.found.Load(); f != nil {
		found = *f
	}
	if len(p.Held) == 0 {
		found.Cancelled = nil
	}
	return found, nil
}

func (l *lookout) AttemptClaim(ctx context.Context, p onejob.AttemptClaimParams) (onejob.AttemptClaimResult, error) {
	l.rest.Add(1)
	return l.Store.AttemptClaim(ctx, p)
}

func (l *lookout) AttemptExpired(ctx context.Context, limit int) ([]onejob.AttemptRef, error) {
	l.rest.Add(1)
	return l.Store.AttemptExpired(ctx, limit)
}

func (l *lookout) JobDecide(ctx context.Context, limit int) ([]onejob.JobRef, error) {
	l.rest.Add(1)
	return l.Store.JobDecide(ctx, limit)
}

// looked is a setting whose engine has a lookout. It hears others once its signals
// begin to.
func looked(l *lookout) setting {
	return setting{
		policy: onejob.Policy{Effect: onejob.EffectExternal}, targets: map[string]behaviour{"a": answers(`1`)},
		engine: engine.Options{Looker: l}, signals: &onejob.Signals{},
		wrap: func(s onejob.Store) onejob.Store { l.Store = s; return l },
	}
}

func TestAnIdleEngineLooksOnceForEverything(t *testing.T) {
	l := &lookout{}
	s := looked(l)
	in(t, s, func(*world) {
		s.signals.BeginHearing()
		time.Sleep(time.Minute) // until claims that find nothing rest
		looks, rest := l.looks.Load(), l.rest.Load()
		time.Sleep(10 * time.Minute)
		if n := l.looks.Load() - looks; n < 120 || n > 200 {
			t.Errorf("it looked %d times in ten minutes; want a look every 3 to 5 s", n)
		}
		if n := l.rest.Load() - rest; n > 15 {
			t.Errorf("it asked for something else %d times in ten minutes; want about once a minute", n)
		}
	})
}

func TestAJobThatNobodyToldOfIsFoundByTheNextLook(t *testing.T) {
	l := &lookout{}
	s := looked(l)
	in(t, s, func(w *world) {
		s.signals.BeginHearing()
		time.Sleep(time.Minute)
		strangers, err := onejob.New(w.store, onejob.Options{ // a program with signals of its own
			Secret: []byte("a secret of sixteen"), Kinds: map[string]onejob.Kind{"k": {Policy: onejob.Policy{Effect: onejob.EffectNone, Targets: []string{"a"}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		job, _, err := strangers.Submit(w.t.Context(), onejob.SubmitParams{Owner: "o", Key: "1", Kind: "k", Input: []byte(`1`)})
		if err != nil {
			t.Fatal(err)
		}
		l.found.Store(&onejob.WorkFound{Due: true})
		time.Sleep(5 * time.Second)
		if got := w.get(job.ID).State; got != onejob.JobSucceeded {
			t.Errorf("the job is %s a look later; want succeeded", got)
		}
	})
}

func TestALeaseThatALookFoundOverIsEnded(t *testing.T) {
	l := &lookout{}
	in(t, looked(l), func(w *world) {
		w.stop()
		id := w.submit("1").ID
		claimAndVanish(w, false)
		s := looked(l)
		s.engine.Signals = s.signals
		defer runEngine(w.newEngine(l, s))()
		time.Sleep(time.Minute)
		if got := w.get(id).State; got != onejob.JobRunning {
			t.Fatalf("the job is %s, and no look found anything; want running", got)
		}
		l.found.Store(&onejob.WorkFound{Expired: true})
		time.Sleep(10 * time.Second)
		if job := w.get(id); states(job) != "succeeded: 1@a=failed 2@a=succeeded" {
			t.Errorf("two looks later: %s; want it tried again", states(job))
		}
	})
}

func TestACancelThatWasNotHeardOfReachesTheProviderByTheNextLook(t *testing.T) {
	l := &lookout{}
	s := looked(l)
	s.engine.Lease = time.Minute
	s.targets["a"] = answersAfter(time.Minute, `1`)
	s.probe = map[string]probing{"a": func(context.Context, onejob.ProbeRequest) (onejob.ProbeAnswer, error) {
		return onejob.ProbeAnswer{}, nil
	}}
	in(t, s, func(w *world) {
		s.signals.BeginHearing()
		id := w.submit("1").ID
		w.until(id, onejob.JobRunning)
		synctest.Wait() // an attempt that nobody has sent would end with the cancel
		if _, err := w.store.JobCancel(w.t.Context(), []onejob.JobCancelParams{{ID: id}}); err != nil {
			t.Fatal(err)
		}
		l.found.Store(&onejob.WorkFound{Cancelled: []string{id}})
		time.Sleep(12 * time.Second) // less than until the lease is renewed
		if n := w.calls.cancelled.Load(); n != 1 {
			t.Errorf("the provider was asked to give up %d times; want once", n)
		}
		if p := l.asked.Load(); len(p.Held) != 0 {
			t.Errorf("the looks ask about %d jobs still; want none once the provider was asked", len(p.Held))
		}
	})
}
