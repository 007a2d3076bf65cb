package e2e_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/sim"
)

const waitFor = 20 * time.Second

// The id was lost with the process that waited, and the work was paid for twice
// (vargHQ/sdk#92, daiki-beppu/youtube-automation#4947): it is committed before
// anything else, and whoever comes after asks by it.
func TestAResponseWhoseMakerDiedIsFoundByItsID(t *testing.T) {
	onBothStores(t, func(t *testing.T, storeURL string) {
		st, addr := newStudio(t), freeAddr(t)
		s := newStudioSite(t, storeURL, addr, st)
		n := s.newNodeAt(addr)
		n.start()
		st.deep.ScriptFor("one", sim.MustParse("accepted=2s")...)
		r := n.ask(t.Context(), "essay", "one")
		if !eventually(waitFor, func() bool { return n.attemptOf(r.job.ID).ProviderID != "" }) {
			t.Fatalf("the provider's id is not committed: %+v", n.attemptOf(r.job.ID))
		}
		n.kill()
		n.start()
		if a := n.attemptOf(r.job.ID); a.AcceptedAt == "" || a.State == "running" && a.NextProbeAt == "" {
			t.Errorf("the attempt does not say since when it is accepted, or when it is asked about: %+v", a)
		}
		n.wantState(r.job.ID, "succeeded")
		if a := n.attemptOf(r.job.ID); st.deep.Executions("one") != 1 || a.State != "succeeded" {
			t.Errorf("%d executions, attempt %+v; want one of each", st.deep.Executions("one"), a)
		}
	})
}

// A crash between the provider's answer and the commit leaves doubt, and no second
// execution.
func TestACrashBeforeTheIDIsStoredLeavesDoubtAndNothingIsSentAgain(t *testing.T) {
	onBothStores(t, func(t *testing.T, storeURL string) {
		st, addr := newStudio(t), freeAddr(t)
		s := newStudioSite(t, storeURL, addr, st)
		n := s.newNodeAt(addr)
		n.start()
		made, answer := make(chan struct{}), make(chan struct{})
		st.beforeResponse = func() {
			made <- struct{}{}
			<-answer
		}
		r := n.ask(t.Context(), "essay", "one")
		<-made
		n.kill()
		close(answer)
		n.start()
		got := n.wantState(r.job.ID, "blocked")
		if got.job.Blocked.Reason != "attempt_unknown" {
			t.Errorf("blocked for %s; want attempt_unknown", got.job.Blocked.Reason)
		}
		pause(t.Context(), 2*time.Second)
		if a := n.attemptOf(r.job.ID); a.State != "unknown" || a.ProviderID != "" || st.deep.Executions("one") != 1 {
			t.Errorf("attempt %+v after %d executions; want it unknown after 1", a, st.deep.Executions("one"))
		}
	})
}

// Killed at whatever moment after the answer left, there is one execution, and the
// attempt is either found by its id or in doubt.
func TestKillingANodeRightAfterTheAnswerNeverMakesASecondResponse(t *testing.T) {
	st, addr := newStudio(t), freeAddr(t)
	s := newStudioSite(t, "sqlite:"+t.TempDir()+"/onejob.db", addr, st)
	n := s.newNodeAt(addr)
	n.start()
	made := make(chan struct{}, 1)
	st.beforeResponse = func() { made <- struct{}{} }
	const rounds = 10
	ids := map[string]string{}
	for i := range rounds {
		name := fmt.Sprintf("essay-%d", i)
		ids[name] = n.ask(t.Context(), "essay", name).job.ID
		<-made
		pause(t.Context(), time.Duration(i)*time.Millisecond) // the answer leaves, and is committed or not
		n.kill()
		n.start()
	}
	found := 0
	for name, id := range ids {
		var last reply
		if !eventually(waitFor, func() bool {
			var err error
			last, err = n.get(t.Context(), id)
			return err == nil && (last.job.State == "succeeded" || last.job.State == "blocked")
		}) {
			t.Errorf("%s is %+v; want it found or in doubt", name, last.job)
		}
		if last.job.State == "succeeded" {
			found++
		}
		if executions := st.deep.Executions(name); executions != 1 || len(last.job.Attempts) != 1 {
			t.Errorf("%s: %d executions, %d attempts; want 1 of each", name, executions, len(last.job.Attempts))
		}
	}
	t.Logf("%d kills right after the answer: %d found by their id, %d in doubt, none made twice", rounds, found, rounds-found)
}

// A cancel that is acknowledged ends nothing: the provider is asked until it says
// how the work ended.
func TestACancelIsOverWhenTheProviderSaysSo(t *testing.T) {
	st, addr := newStudio(t), freeAddr(t)
	s := newStudioSite(t, "sqlite:"+t.TempDir()+"/onejob.db", addr, st)
	n := s.newNodeAt(addr)
	n.start()
	for name, want := range map[string]string{"heard": "cancelled", "deaf": "succeeded"} {
		step := "accepted=3s"
		if name == "deaf" {
			step += ",deaf"
		}
		st.deep.ScriptFor(name, sim.MustParse(step)...)
		r := n.ask(t.Context(), "essay", name)
		if !eventually(waitFor, func() bool { return n.attemptOf(r.job.ID).ProviderID != "" }) {
			t.Fatal("the provider's id is not committed")
		}
		asked, err := n.send(t.Context(), http.MethodPost, "/v1/jobs/"+r.job.ID+"/cancel", "")
		if err != nil || asked.status != http.StatusAccepted {
			t.Errorf("%s: the cancel is answered %d, %v; want 202", name, asked.status, err)
		}
		n.wantState(r.job.ID, want)
		if got := n.attemptOf(r.job.ID); got.State != want || st.deep.Executions(name) != 1 {
			t.Errorf("%s: attempt %s after %d executions; want it %s after 1", name, got.State, st.deep.Executions(name), want)
		}
	}
}

// Failed at the provider: the doubt ends, and what is known of the failure is kept.
func TestAResponseThatFailsThereFailsHere(t *testing.T) {
	st, addr := newStudio(t), freeAddr(t)
	s := newStudioSite(t, "sqlite:"+t.TempDir()+"/onejob.db", addr, st)
	n := s.newNodeAt(addr)
	n.start()
	st.deep.ScriptFor("bad", sim.MustParse("accepted=500ms,ends=failed")...)
	r := n.ask(t.Context(), "essay", "bad")
	n.wantState(r.job.ID, "failed")
	if a := n.attemptOf(r.job.ID); a.Outcome != "executed_failed" || st.deep.Executions("bad") != 1 {
		t.Errorf("attempt %+v after %d executions; want it executed and failed once", a, st.deep.Executions("bad"))
	}
}
