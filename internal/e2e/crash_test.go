package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

// crashRow is one row of the table of crash windows: a node dies at a point, or
// several do one after the other, and then the program is started on what they left.
type crashRow struct {
	name string
	at   []string // points of internal/crash
	work string   // what the provider does with the first request
	disk string   // what is left, right after the last death

	asked, mute follows // mute zero: the point needs a target that can be asked
}

// follows is what must come of it after the restart.
type follows struct {
	states     string
	executions int
}

var (
	once      = follows{"succeeded: succeeded", 1}        // nothing was lost
	again     = follows{"succeeded: failed succeeded", 1} // proven not sent, and tried again
	doubtful  = follows{"blocked: unknown", 1}            // done, and nobody can say so
	doubtful0 = follows{"blocked: unknown", 0}            // not done, and nobody can say so
)

// worksLater is work that is done only after the first look-up was told that there is
// none, and before quarantine ends.
const worksLater = "slow=3500ms"

var crashTable = []crashRow{
	{"1 request received", []string{"request.before"}, "", "nothing", once, once},
	{"2a inserted, not committed", []string{"create.within"}, "", "nothing", once, once},
	{"2b committed, no answer", []string{"create.after"}, "", "queued:", once, once},
	{"2b committed with its first attempt, no answer", []string{"start.after"}, "", "running: running", again, doubtful0},
	{"2c answered", []string{"respond.after"}, "", "queued:", once, once},
	{"3a claim not committed", []string{"claim.within"}, "", "queued:", once, once},
	{"3a claimed", []string{"claim.after"}, "", "running: starting", again, again},
	{"3b mark not committed", []string{"mark.within"}, "", "running: starting", again, again},
	{"3b marked, nothing on the wire", []string{"mark.after"}, "", "running: running", again, doubtful0},
	{"4 sent, executed later", []string{"send.after"}, worksLater, "running: running", once, doubtful},
	{"5 answer read, not stored", []string{"answer.after"}, "", "running: running", once, doubtful},
	{"6a finish written, not committed", []string{"finish.within"}, "", "running: running", once, doubtful},
	{"6b finish committed", []string{"finish.after"}, "", "succeeded: succeeded", once, once},

	{"sweeper, about to end a lease", []string{"answer.after", "sweep.before"}, "", "running: running", once, doubtful},
	{"sweeper, not committed", []string{"answer.after", "sweep.within"}, "", "running: running", once, doubtful},
	{"sweeper, committed", []string{"answer.after", "sweep.after"}, "", "blocked: unknown", once, doubtful},
	{"sweeper of a claim, not committed", []string{"claim.after", "sweep.within"}, "", "running: starting", again, again},
	{"sweeper of a claim, committed", []string{"claim.after", "sweep.after"}, "", "queued: failed", again, again},

	{"resolver, asked and not recorded", []string{"answer.after", "probe.before"}, "", "blocked: unknown", once, follows{}},
	{"resolver, not committed", []string{"answer.after", "probe.within"}, "", "blocked: unknown", once, follows{}},
	{"resolver, committed", []string{"answer.after", "probe.after"}, "", "succeeded: succeeded", once, follows{}},
	{"resolver of what was never sent", []string{"mark.after", "probe.before"}, "", "blocked: unknown", again, follows{}},
}

// Between any two steps of a job a process may die, and what it leaves must be read
// as what it proves and no more: every window is tried with a real SIGKILL there.
func TestACrashAtAnyPointLosesNothingAndExecutesNothingTwice(t *testing.T) {
	t.Parallel()
	onBothStoresAtOnce(t, func(t *testing.T, store func(*testing.T) string) {
		for _, row := range crashTable {
			for kind, want := range map[string]follows{asked: row.asked, mute: row.mute} {
				if want == (follows{}) {
					continue
				}
				t.Run(row.name+"/"+kind, func(t *testing.T) {
					t.Parallel()
					row.try(t, store(t), kind, want)
				})
			}
		}
	})
}

func (row *crashRow) try(t *testing.T, storeURL, kind string, want follows) {
	work := shortWork
	if row.work != "" {
		work = longWork
	}
	s := newBareCrashSite(t, storeURL, work, sim.Options{})
	s.prepare()
	if row.work != "" {
		s.provider.Script(sim.MustParse(row.work)...)
	}
	answered := ""
	for _, at := range row.at {
		d := s.doom(at, "kill")
		if r, err := d.submitKind(t.Context(), kind, "one"); err == nil && r.status/100 == 2 {
			answered = r.job.ID
		}
		if !d.waitForPoint(15 * time.Second) {
			t.Fatalf("the point %s never came; the log ends:\n%s", at, d.log.tail(2000))
		}
	}
	left := s.onDisk()
	if got := left.states(); got != row.disk {
		t.Errorf("on disk is %q; want %q", got, row.disk)
	}
	s.restart(t, kind, left.ID, answered, want)
}

// restart starts the program on what is left. A job that is there goes on whether
// or not its caller comes back, and the caller who does gets the same job.
func (s *site) restart(t *testing.T, kind, left, answered string, want follows) {
	t.Helper()
	n := s.newNode()
	n.start()
	if left != "" {
		n.settlesAs(t, left, want.states, want.executions)
	}
	r, err := n.submitKind(t.Context(), kind, "one")
	if err != nil || r.status/100 != 2 || r.replayed != (left != "") {
		t.Fatalf("the caller came back and was answered %d %s, replayed %t, %v; want replayed %t", r.status, r.job.Code, r.replayed, err, left != "")
	}
	for name, id := range map[string]string{"on disk": left, "answered": answered} {
		if id != "" && id != r.job.ID {
			t.Errorf("the job %s was %s and is %s now", name, id, r.job.ID)
		}
	}
	n.settlesAs(t, r.job.ID, want.states, want.executions)
}

// onBothStoresAtOnce is onBothStores for tests each of which needs a store of its own.
func onBothStoresAtOnce(t *testing.T, test func(t *testing.T, store func(*testing.T) string)) {
	for name, store := range map[string]func(*testing.T) string{"SQLite": newSQLite, "PostgreSQL": newPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, store)
		})
	}
}

// A commit whose acknowledgement is lost has happened or not, and the node that
// asked for it cannot know. It goes on living, and must get it right either way.
func TestACommitOfUnknownOutcomeIsNeitherLostNorDoneTwice(t *testing.T) {
	t.Parallel()
	rows := []struct {
		at     string
		times  string
		status int  // of the first answer
		found  bool // by the second
		want   follows
	}{
		{"create.before", "1", 202, true, once}, // asked once more, and recognised as our own
		{"create.after", "1", 202, true, once},
		{"create.before", "2", 503, false, once},
		{"create.after", "2", 503, true, once},
		{"claim.before", "1", 202, true, once},
		{"claim.after", "1", 202, true, again}, // its lease ends, and it was never marked
		{"mark.before", "1", 202, true, again}, // whoever is not sure of the mark does not send
		{"mark.after", "1", 202, true, again},
		{"finish.before", "3", 202, true, once}, // said again under the same token
		{"finish.after", "3", 202, true, once},
	}
	onBothStoresAtOnce(t, func(t *testing.T, store func(*testing.T) string) {
		for _, row := range rows {
			for _, kind := range []string{asked, mute} {
				t.Run(row.at+" "+row.times+"/"+kind, func(t *testing.T) {
					t.Parallel()
					s := newCrashSite(t, store(t), sim.Options{})
					d := s.doom(row.at, "doubt", "--times", row.times)
					first, err := d.submitKind(t.Context(), kind, "one")
					if err != nil || first.status != row.status || first.replayed {
						t.Fatalf("answered %d, replayed %t, %v; want %d, not replayed", first.status, first.replayed, err, row.status)
					}
					r, err := d.submitKind(t.Context(), kind, "one")
					if err != nil || r.status/100 != 2 || r.replayed != row.found {
						t.Fatalf("asked again: %d, replayed %t, %v; want replayed %t", r.status, r.replayed, err, row.found)
					}
					if row.status == http.StatusAccepted && r.job.ID != first.job.ID {
						t.Errorf("the job was %s and is %s now", first.job.ID, r.job.ID)
					}
					d.settlesAs(t, r.job.ID, row.want.states, row.want.executions)
				})
			}
		}
	})
}
