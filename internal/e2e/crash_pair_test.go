package e2e_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

// crashPoints are the points at which the first node of a pair dies; the second dies
// at one of these or of the recovering ones.
var (
	crashPoints = []string{
		"request.before", "create.within", "create.after", "start.after", "respond.after",
		"claim.within", "claim.after", "mark.within", "mark.after", "send.after", "answer.after", "finish.within", "finish.after",
	}
	recovering = []string{"sweep.before", "sweep.within", "sweep.after", "probe.before", "probe.within", "probe.after"}
)

// pairsOneIn is which share of all pairs is tried in ordinary runs.
const pairsOneIn = 8

// What one crash leaves another may find, and die of: every two points in a row.
func TestTwoCrashesInARowLoseNothingAndExecuteNothingTwice(t *testing.T) {
	t.Parallel()
	for i, first := range crashPoints {
		for j, second := range append(crashPoints, recovering...) {
			if !full() && (i+j)%pairsOneIn != 0 {
				continue
			}
			t.Run(first+" "+second, func(t *testing.T) {
				t.Parallel()
				dieTwice(t, asked, first, second)
				if full() {
					dieTwice(t, mute, first, second)
				}
			})
		}
	}
}

func dieTwice(t *testing.T, kind, first, second string) {
	t.Helper()
	s := newCrashSite(t, newSQLite(t), sim.Options{})
	ids := map[string]bool{}
	for _, at := range []string{first, second} {
		d := s.doom(at, "kill")
		r, err := d.submitKind(t.Context(), kind, "one")
		if err == nil && r.status/100 == 2 {
			ids[r.job.ID] = true
		}
		eventually(8*time.Second, func() bool { return d.gone() || over(t, d.node, r.job.ID) })
		d.end()
	}
	n := s.newNode()
	n.start()
	r, err := n.submitKind(t.Context(), kind, "one")
	if err != nil || r.status/100 != 2 {
		t.Fatalf("%s: the caller came back and was answered %d %s, %v", kind, r.status, r.job.Code, err)
	}
	ids[r.job.ID] = true
	var last reply
	ok := eventually(20*time.Second, func() bool {
		last, err = n.get(t.Context(), r.job.ID)
		return err == nil && (last.job.State == "succeeded" || kind == mute && last.job.State == "blocked")
	})
	executions := s.provider.TotalExecutions()
	if !ok || len(ids) != 1 || executions > 1 || last.job.State == "succeeded" && executions != 1 {
		t.Errorf("%s: the job is %q, %v; %d executions, %d ids; want it settled, one execution and one id", kind, last.job.states(), err, executions, len(ids))
	}
}

// over reports whether the job has ended.
func over(t *testing.T, n *node, id string) bool {
	if id == "" {
		return false
	}
	r, err := n.get(t.Context(), id)
	return err == nil && (r.job.State == "succeeded" || r.job.State == "failed")
}

// A migration that dies half way is what a deploy leaves that was killed; the next
// start must go on from there, on PostgreSQL once the lock of the dead one is stale.
func TestAMigrationKilledAtAnyCommitCanBeRunAgain(t *testing.T) {
	t.Parallel()
	onBothStoresAtOnce(t, func(t *testing.T, store func(*testing.T) string) {
		const enough = 30
		var killed []*site
		for len(killed) < enough {
			s := newBareCrashSite(t, store(t), shortWork, sim.Options{})
			cmd := s.crash("--do", "migrate", "--at", "migrate.within", "--spare", fmt.Sprint(len(killed)))
			out, err := cmd.CombinedOutput()
			if err == nil {
				break // it has no more commits
			}
			if status := cmd.ProcessState.ExitCode(); status != -1 {
				t.Fatalf("the migration ended with %d at commit %d, and was not killed:\n%s", status, len(killed)+1, out)
			}
			killed = append(killed, s)
		}
		t.Logf("killed at each of %d commits", len(killed))
		if len(killed) < 2 || len(killed) == enough {
			t.Errorf("a migration was killed at %d commits; it has more than one and fewer than %d", len(killed), enough)
		}
		for i, s := range killed {
			t.Run(fmt.Sprint("at commit ", i+1), func(t *testing.T) {
				t.Parallel() // each waits until the lock of the dead is stale
				s.t = t
				s.prepare()
				n := s.newNode()
				n.start()
				r, err := n.submitKind(t.Context(), asked, "one")
				if err != nil {
					t.Fatal(err)
				}
				n.settlesAs(t, r.job.ID, once.states, once.executions)
				n.kill()
			})
		}
	})
}

// Emptying a payload half way would let its key run again, or keep what was to go.
func TestAPurgeThatDiesIsRunAgainAndItsKeyNeverStartsASecondJob(t *testing.T) {
	t.Parallel()
	onBothStoresAtOnce(t, func(t *testing.T, store func(*testing.T) string) {
		for at, status := range map[string]int{"purge.before": 200, "purge.within": 200, "purge.after": 410} {
			t.Run(at, func(t *testing.T) {
				t.Parallel()
				s := newCrashSite(t, store(t), sim.Options{})
				n := s.newNode()
				n.start()
				r, err := n.submitKind(t.Context(), asked, "one")
				if err != nil {
					t.Fatal(err)
				}
				n.settlesAs(t, r.job.ID, once.states, once.executions)
				n.kill()
				cmd := s.crash("--do", "purge", "--at", at)
				if out, err := cmd.CombinedOutput(); err == nil || cmd.ProcessState.ExitCode() != -1 {
					t.Fatalf("the purge was not killed: %v\n%s", err, out)
				}
				for _, want := range []int{status, http.StatusGone} {
					n.start()
					if again, err := n.submitKind(t.Context(), asked, "one"); err != nil || again.status != want {
						t.Errorf("the key answers %d %s, %v; want %d", again.status, again.job.Code, err, want)
					}
					n.kill()
					if out, err := s.crash("--do", "purge").CombinedOutput(); err != nil {
						t.Fatalf("the purge after it: %v\n%s", err, out)
					}
				}
				if left := s.onDisk(); left.ID != r.job.ID && left.ID != "" || s.provider.TotalExecutions() != 1 {
					t.Errorf("%d executions, and on disk is %+v; want one, and no other job than %s", s.provider.TotalExecutions(), left, r.job.ID)
				}
			})
		}
	})
}
