package engine_test

import (
	"sync/atomic"
	"testing"

	"github.com/onejob-dev/onejob"
)

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
	in(t, setting{policy: onejob.Policy{Targets: []string{"a", "b"}, PerTarget: 1}, targets: targets, wrap: wrap, waived: true}, func(opened *world) {
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
	})
}
