package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/sqlite"
)

// hookedIntent is an intent whose end one endpoint is told.
func hookedIntent(tb testing.TB, key string) onejob.JobCreateParams {
	tb.Helper()
	p := intent(tb, "alice", key)
	p.Webhooks = []onejob.Subscription{{Endpoint: "ep_1"}}
	return p
}

func deliveries(t *testing.T, s *sqlite.Store) []onejob.Delivery {
	t.Helper()
	page, err := s.DeliveryList(t.Context(), onejob.DeliveryListParams{Limit: 10})
	must(t, err)
	return page.Deliveries
}

// A job whose deadline has passed ends as it is created: here in the caller's own
// transaction, which then makes the delivery too, or does not.
func TestTxTellsExactlyIfItCommits(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "onejob.db")
	s := open(t, path, sqlite.Options{})
	for _, commits := range []bool{false, true} {
		p := hookedIntent(t, "k1")
		p.Deadline = time.Now().Add(-time.Hour)
		tx := begin(t, path)
		results, err := sqlite.Tx(tx).JobCreate(t.Context(), []onejob.JobCreateParams{p})
		must(t, err)
		must(t, results[0].Err)
		if state := results[0].Job.State; state != onejob.JobFailed {
			t.Fatalf("the job is %s; want failed at once", state)
		}
		want := 0
		if commits {
			must(t, tx.Commit())
			want = 1
		} else {
			must(t, tx.Rollback())
		}
		if got := deliveries(t, s); len(got) != want {
			t.Errorf("committed %t, the outbox holds %+v; want %d", commits, got, want)
		}
	}
}

func TestTheOutboxSurvivesAReopen(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "onejob.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	must(t, err)
	p := hookedIntent(t, "k1")
	mustCreate(t, s, p)
	_, err = s.JobCancel(t.Context(), []onejob.JobCancelParams{{ID: p.ID}})
	must(t, err)
	claim := onejob.DeliveryClaimParams{Endpoints: []string{"ep_1"}, Lease: time.Hour, Max: 10}
	claimed, err := s.DeliveryClaim(t.Context(), claim)
	must(t, err)
	errs, err := s.DeliveryRecord(t.Context(), []onejob.DeliveryRecordParams{{
		ID: claimed[0].ID, State: onejob.DeliveryPending, Status: 500, Body: []byte("sent"),
	}})
	must(t, err)
	must(t, errs[0])
	must(t, s.EndpointDisable(t.Context(), "ep_2", "gone"))
	must(t, s.Close())

	s = open(t, path, sqlite.Options{})
	again, err := s.DeliveryClaim(t.Context(), claim)
	must(t, err)
	if len(again) != 1 || again[0].ID != claimed[0].ID || again[0].Tries != 1 || string(again[0].Body) != "sent" {
		t.Errorf("after reopening %+v is due; want the delivery with its try and its body", again)
	}
	if disabled, err := s.EndpointDisabled(t.Context()); err != nil || len(disabled) != 1 {
		t.Errorf("after reopening %v are disabled, %v; want ep_2", disabled, err)
	}
}

// A step of the clock makes every delivery look old.
func TestNothingIsGivenUpWhileTheClockIsInDoubt(t *testing.T) {
	t.Parallel()

	clock, elapsed := newWallClock(), newWallClock()
	start := elapsed.Now()
	s := open(t, filepath.Join(t.TempDir(), "onejob.db"), sqlite.Options{
		NowFunc: clock.Now, ElapsedFunc: func() time.Duration { return elapsed.Now().Sub(start) },
	})
	p := hookedIntent(t, "k1")
	mustCreate(t, s, p)
	_, err := s.JobCancel(t.Context(), []onejob.JobCancelParams{{ID: p.ID}})
	must(t, err)
	clock.Advance(365 * 24 * time.Hour)
	giveUp := func() onejob.DeliveryState {
		_, err := s.DeliveryClaim(t.Context(), onejob.DeliveryClaimParams{GiveUpAfter: time.Hour})
		must(t, err)
		return deliveries(t, s)[0].State
	}
	if state := giveUp(); state != onejob.DeliveryPending {
		t.Errorf("after a step of the clock the delivery is %s; want it pending", state)
	}
	clock.Advance(2 * time.Minute)
	elapsed.Advance(2 * time.Minute)
	if state := giveUp(); state != onejob.DeliveryFailed {
		t.Errorf("once the clock has settled the delivery is %s; want it given up", state)
	}
}
