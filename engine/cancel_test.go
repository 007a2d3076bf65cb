package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/engine"
)

var undecided = probing(func(context.Context, onejob.ProbeRequest) (onejob.ProbeAnswer, error) {
	return onejob.ProbeAnswer{}, nil
})

func TestACancelReachesTheProviderWithoutWaitingForTheNextRenewal(t *testing.T) {
	in(t, setting{
		targets: map[string]behaviour{"a": answersAfter(20*time.Second, `1`)}, probe: map[string]probing{"a": undecided},
		policy: onejob.Policy{Effect: onejob.EffectExternal, Timeout: time.Minute}, engine: engine.Options{Lease: time.Hour},
	}, func(w *world) {
		job, other := w.submit("1"), w.submit("2")
		time.Sleep(time.Second)
		if _, err := w.client.Cancel(w.t.Context(), onejob.JobCancelParams{ID: job.ID, Owner: "o"}); err != nil {
			w.t.Fatal(err)
		}
		synctest.Wait()
		if n := w.calls.cancelled.Load(); n != 1 {
			w.t.Errorf("the provider was asked to give up %d calls; want one", n)
		}
		w.until(other.ID, onejob.JobSucceeded)
		w.until(job.ID, onejob.JobSucceeded) // it was done all the same
	})
}

// A ring is a hint: only the store says that a job is to be given up.
func TestACancelThatNobodyAskedForReachesNoProvider(t *testing.T) {
	signals := &onejob.Signals{}
	in(t, setting{
		targets: map[string]behaviour{"a": answersAfter(20*time.Second, `1`)}, probe: map[string]probing{"a": undecided},
		policy: onejob.Policy{Timeout: time.Minute}, signals: signals, engine: engine.Options{Lease: time.Hour},
	}, func(w *world) {
		job := w.submit("1")
		time.Sleep(time.Second)
		signals.Hear(onejob.News{Cancelled: []string{job.ID}, All: true})
		synctest.Wait()
		if n := w.calls.cancelled.Load(); n != 0 {
			w.t.Errorf("the provider was asked to give up %d calls; want none", n)
		}
		w.until(job.ID, onejob.JobSucceeded)
	})
}

func TestAnEngineThatHearsOthersHardlyLooksWhileNothingHappens(t *testing.T) {
	claims, signals := &claimCounter{}, &onejob.Signals{}
	wrap := func(s onejob.Store) onejob.Store { claims.Store = s; return claims }
	in(t, setting{targets: map[string]behaviour{"a": answers(`1`)}, wrap: wrap, signals: signals}, func(w *world) {
		looks := func() int32 {
			before := claims.n.Load()
			time.Sleep(time.Minute)
			return claims.n.Load() - before
		}
		alone := looks()
		signals.BeginHearing()
		if quiet := looks(); alone < 100 || quiet > 25 {
			w.t.Errorf("%d looks a minute alone, %d with others; want about 120 and 16", alone, quiet)
		}
		began := time.Now()
		w.until(w.submit("1").ID, onejob.JobSucceeded)
		if took := time.Since(began); took > 100*time.Millisecond {
			w.t.Errorf("work that was rung for was found after %s", took)
		}
		signals.EndHearing()
		if again := looks(); again < 100 {
			w.t.Errorf("%d looks a minute after the others were lost; want about 120", again)
		}
	})
}
