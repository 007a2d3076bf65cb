package e2e_test

import (
	"slices"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

// A node that stands still at the worst point, and goes on when others have long
// taken over: fencing by leases alone lets it send, or store, once more
// (Kleppmann's pause; taskforcesh/bullmq#3183).
func TestANodeFrozenAtAnyPointDoesNotSendOrStoreWhenItWakes(t *testing.T) {
	t.Parallel()
	type stands struct{ asked, mute []string }
	one := func(states string) []string { return []string{states} }
	rows := []struct {
		at        string
		meanwhile stands // as another node sees it; on one SQLite there is none
		executed  int    // by then, at the target that cannot be asked
		awake     stands
	}{
		{
			"claim.after",
			stands{one(again.states), one(again.states)},
			1,
			stands{[]string{again.states, once.states}, []string{again.states, once.states}}, // alone, its claim may still be good
		},
		{"mark.after", stands{one(again.states), one(doubtful.states)}, 0, stands{one(again.states), one(again.states)}},
		{"answer.after", stands{one(once.states), one(doubtful.states)}, 1, stands{one(once.states), one(once.states)}},
	}
	onBothStoresAtOnce(t, func(t *testing.T, store func(*testing.T) string) {
		for _, row := range rows {
			for _, kind := range []string{asked, mute} {
				t.Run(row.at+"/"+kind, func(t *testing.T) {
					t.Parallel()
					meanwhile, awake, executed := row.meanwhile.asked, row.awake.asked, 1
					if kind == mute {
						meanwhile, awake, executed = row.meanwhile.mute, row.awake.mute, row.executed
					}
					s := newCrashSite(t, store(t), sim.Options{})
					d := s.doom(row.at, "stop")
					r, err := d.submitKind(t.Context(), kind, "one")
					if err != nil || !eventually(15*time.Second, d.still) {
						t.Fatalf("the node did not stand still: %v", err)
					}
					if s.onPostgres() {
						other := s.newNode()
						other.start()
						other.settlesAs(t, r.job.ID, meanwhile[0], executed)
					} else {
						pause(t.Context(), 4*time.Second) // two leases, and beyond send_by
					}
					d.wake()
					d.wakesTo(t, r.job.ID, awake)
				})
			}
		}
	})
}

// wakesTo holds a node that goes on to leaving one execution, of one request.
func (d *doomed) wakesTo(t *testing.T, id string, states []string) {
	t.Helper()
	var last reply
	stands := func() bool {
		var err error
		last, err = d.get(t.Context(), id)
		return err == nil && slices.Contains(states, last.job.states())
	}
	if !eventually(20*time.Second, stands) {
		t.Errorf("awake again, the job is %q (%+v); want %q", last.job.states(), last.job.Blocked, states)
	}
	pause(t.Context(), time.Second) // for what would still be sent or stored
	if !stands() {
		t.Errorf("a second later the job is %q; want it to stay %q", last.job.states(), states)
	}
	if n := d.site.provider.TotalExecutions(); n != 1 || len(d.site.provider.Duplicates()) != 0 {
		t.Errorf("%d executions; want 1", n)
	}
}
