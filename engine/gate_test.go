package engine_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/engine"
)

// gated remembers what an engine tells of the gate.
type gated struct {
	watched
	mu   sync.Mutex
	said []string
}

func (o *gated) GateDecided(_, target string, allowed bool, reason string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	decision := map[bool]string{true: "allowed", false: "refused"}[allowed]
	o.said = append(o.said, target+" "+decision+" "+reason)
}

func (o *gated) want(t *testing.T, want ...string) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Equal(o.said, want) {
		t.Errorf("of the gate %q was told; want %q", o.said, want)
	}
}

func TestWhatTheGateSaysIsToldOf(t *testing.T) {
	fast := func(o *gated) setting {
		return setting{
			policy:  onejob.Policy{Targets: []string{"a", "b"}, PerTarget: 1},
			targets: map[string]behaviour{"a": fails(onejob.ErrRefused, onejob.NextElsewhere), "b": answers(`"b"`)},
			waived:  true, engine: engine.Options{Observer: o},
		}
	}
	t.Run("LetsThrough", func(t *testing.T) {
		o := &gated{}
		in(t, fast(o), func(w *world) {
			w.until(w.submit("1").ID, onejob.JobSucceeded)
			o.want(t, "b allowed waiver")
		})
	})
	t.Run("Blocks", func(t *testing.T) {
		o := &gated{}
		in(t, fast(o), func(w *world) {
			w.takeBack()
			w.until(w.submit("1").ID, onejob.JobBlocked)
			synctest.Wait()
			o.want(t, "b refused no_certificate")
		})
	})
	t.Run("KeepsFromARace", func(t *testing.T) {
		o, s := &gated{}, fast(nil)
		s.policy.Lanes, s.policy.RaceAfter, s.policy.Timeout = 2, time.Second, time.Hour
		s.targets["a"], s.engine.Observer = answersAfter(time.Minute, `"a"`), o
		in(t, s, func(w *world) {
			w.takeBack()
			w.until(w.submit("1").ID, onejob.JobSucceeded)
			o.want(t, "b refused no_certificate")
		})
	})
}

// What lets a target take over may end between the start of an attempt and its mark.
func TestATargetThatMayNoLongerTakeOverIsSentNothing(t *testing.T) {
	var w *world
	var marks atomic.Int32
	wrap := func(s onejob.Store) onejob.Store {
		return &faulty{Store: s, mark: func(commit func()) error {
			if marks.Add(1) == 2 {
				w.takeBack()
			}
			commit()
			return nil
		}}
	}
	targets := map[string]behaviour{"a": fails(onejob.ErrRefused, onejob.NextElsewhere), "b": answers(`"b"`)}
	o := &gated{}
	policy := onejob.Policy{Targets: []string{"a", "b"}, PerTarget: 1}
	in(t, setting{policy: policy, targets: targets, wrap: wrap, waived: true, engine: engine.Options{Observer: o}}, func(opened *world) {
		w = opened
		job := w.until(w.submit("1").ID, onejob.JobBlocked)
		if got, want := states(job), "blocked: 1@a=failed 2@b=failed"; got != want || job.Blocked.Reason != onejob.BlockFailoverNotCertified {
			t.Errorf("%s for %s; want %s for want of a certificate", got, job.Blocked.Reason, want)
		}
		if n := w.calls.count(); n != 1 {
			t.Errorf("providers were called %d times; want once, at a", n)
		}
		second := w.attempt(job, 2)
		if second.Error == nil || second.Error.Code != onejob.FailureCertificateRevoked || !second.OwnFault {
			t.Errorf("the second attempt ended with %+v, own fault %t; want %s, a fault of our own", second.Error, second.OwnFault, onejob.FailureCertificateRevoked)
		}
		o.want(t, "b refused no_certificate")
	})
}
