package engine_test

import (
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
)

// A loser's late success must not flip the winner, whoever comes first
// (windmill-labs/windmill#9214, Pulsefy/Soter#263).
func TestOfTwoAttemptsFinishingInReverseOrderTheSecondToReturnLoses(t *testing.T) {
	policy := onejob.Policy{Targets: []string{"slow", "fast"}, Timeout: time.Second, Linger: time.Hour, SendWithin: time.Second, Failover: onejob.FailoverDeclared, FailoverWhy: "test"}
	targets := map[string]behaviour{"slow": answersAfter(10*time.Minute, `"slow"`), "fast": answers(`"fast"`)}
	in(t, setting{policy: policy, targets: targets}, func(w *world) {
		id := w.submit("1").ID
		blocked := w.until(id, onejob.JobBlocked)
		ruling := onejob.AttemptResolveParams{ID: blocked.Attempts[0].ID, Owner: "o", Actor: "ann", Outcome: onejob.OutcomeExecutedFailed, Evidence: "seen in their log"}
		if _, _, err := w.client.Resolve(w.t.Context(), ruling); onejob.CodeOf(err) != onejob.CodeQuarantined {
			t.Errorf("a ruling before the end of quarantine was answered %v; want quarantined", err)
		}
		time.Sleep(2 * time.Minute)
		if _, _, err := w.client.Resolve(w.t.Context(), ruling); err != nil {
			t.Fatal(err)
		}
		won := w.until(id, onejob.JobSucceeded)
		if got, want := states(won), "succeeded: 1@slow=failed 2@fast=succeeded"; got != want {
			t.Fatalf("%s; want %s", got, want)
		}
		time.Sleep(10 * time.Minute)
		after := w.get(id)
		if got, want := states(after), "succeeded: 1@slow=discarded 2@fast=succeeded"; got != want {
			t.Errorf("%s; want %s", got, want)
		}
		if string(after.Result.Body) != `"fast"` || after.Version != won.Version || after.CompletedBy != won.CompletedBy {
			t.Errorf("result %s, version %d, by %s; want those of the winner: %s, %d, %s",
				after.Result.Body, after.Version, after.CompletedBy, won.Result.Body, won.Version, won.CompletedBy)
		}
		loser := w.attempt(after, 1)
		if loser.Discarded == nil || loser.Discarded.Winner != after.CompletedBy || string(loser.Result.Body) != `"slow"` {
			t.Errorf("the loser is %+v with %+v; want it kept with its own result, lost to the winner", loser.Discarded, loser.Result)
		}
	})
}

func TestOfTwoLanesTheFirstToFinishWins(t *testing.T) {
	policy := onejob.Policy{Targets: []string{"slow", "fast"}, Lanes: 2, Timeout: time.Hour}
	targets := map[string]behaviour{"slow": answersAfter(10*time.Minute, `"slow"`), "fast": answersAfter(time.Minute, `"fast"`)}
	in(t, setting{policy: policy, targets: targets}, func(w *world) {
		id := w.submit("1").ID
		w.until(id, onejob.JobRunning)
		start, ok := w.engine.Reserve("fast")
		if !ok {
			t.Fatal("no slot")
		}
		started, err := w.store.AttemptStart(w.t.Context(), []onejob.AttemptStartParams{{JobID: id, Owner: "o", Lane: 1, StartParams: start}})
		if err != nil || started[0].Err != nil {
			t.Fatal(err, started[0].Err)
		}
		w.engine.Dispatch(*started[0].Claimed)
		job := w.until(id, onejob.JobSucceeded)
		if got, want := states(job), "succeeded: 1@slow=running 2@fast=succeeded"; got != want {
			t.Errorf("%s; want %s", got, want)
		}
		time.Sleep(10 * time.Minute)
		after := w.get(id)
		if got, want := states(after), "succeeded: 1@slow=discarded 2@fast=succeeded"; got != want || string(after.Result.Body) != `"fast"` {
			t.Errorf("%s with %s; want %s with \"fast\"", got, after.Result.Body, want)
		}
	})
}

func TestARaceStartsTheNextLaneAfterItsTimeAndNoEarlier(t *testing.T) {
	policy := onejob.Policy{Targets: []string{"slow", "fast"}, Lanes: 2, RaceAfter: 10 * time.Second, Timeout: time.Hour}
	targets := map[string]behaviour{"slow": answersAfter(10*time.Minute, `"slow"`), "fast": answersAfter(time.Second, `"fast"`)}
	in(t, setting{policy: policy, targets: targets}, func(w *world) {
		id := w.submit("1").ID
		time.Sleep(9 * time.Second)
		if n := w.calls.count(); n != 1 {
			t.Errorf("%d calls before race.after; want 1", n)
		}
		job := w.until(id, onejob.JobSucceeded)
		if got, want := states(job), "succeeded: 1@slow=running 2@fast=succeeded"; got != want || string(job.Result.Body) != `"fast"` {
			t.Errorf("%s with %s; want %s with \"fast\"", got, job.Result.Body, want)
		}
		time.Sleep(10 * time.Minute)
		after := w.get(id)
		loser := w.attempt(after, 1)
		if loser.State != onejob.AttemptDiscarded || after.Version != job.Version || after.CompletedBy != job.CompletedBy || w.calls.count() != 2 {
			t.Errorf("%s at version %d after %d calls; want the loser discarded and nothing else changed", states(after), after.Version, w.calls.count())
		}
	})
}

func TestAJobWithAnEffectNeverRaces(t *testing.T) {
	policy := onejob.Policy{Effect: onejob.EffectExternal, Targets: []string{"slow", "fast"}, RaceAfter: time.Second, Timeout: time.Hour, Failover: onejob.FailoverDeclared, FailoverWhy: "test"}
	targets := map[string]behaviour{"slow": answersAfter(time.Minute, `"slow"`), "fast": answers(`"fast"`)}
	in(t, setting{policy: policy, targets: targets}, func(w *world) {
		if job := w.until(w.submit("1").ID, onejob.JobSucceeded); states(job) != "succeeded: 1@slow=succeeded" {
			t.Errorf("%s; want one attempt", states(job))
		}
	})
}
