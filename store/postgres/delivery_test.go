package postgres_test

import (
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/postgres"
)

// hookedIntent is an intent whose end one endpoint is told.
func hookedIntent(t testing.TB, key string) onejob.JobCreateParams {
	t.Helper()
	p := intent(t, key)
	p.Webhooks = []onejob.Subscription{{Endpoint: "ep_1"}}
	return p
}

func deliveries(t *testing.T, s *postgres.Store) []onejob.Delivery {
	t.Helper()
	page, err := s.DeliveryList(t.Context(), onejob.DeliveryListParams{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	return page.Deliveries
}

func cancel(t *testing.T, s *postgres.Store, id string) {
	t.Helper()
	results, err := s.JobCancel(t.Context(), []onejob.JobCancelParams{{ID: id}})
	if err != nil || results[0].Err != nil {
		t.Fatalf("cancel: %v, %+v", err, results)
	}
}

// The caller ends a job of its own by SQL, in the transaction that made it: the
// outbox has the end exactly if that commits.
func TestTxTellsExactlyIfItCommits(t *testing.T) {
	t.Parallel()

	url := schema(t)
	s := open(t, url)
	for _, commits := range []bool{false, true} {
		p, tx := hookedIntent(t, "k"), begin(t, url)
		if r := create(t, postgres.Tx(tx), p)[0]; r.Err != nil || len(r.Job.Webhooks) != 1 {
			t.Fatalf("the intent answered %+v", r)
		}
		_, err := tx.Exec(t.Context(), `UPDATE job_states SET state = 'cancelled', cancel_requested_at = now(), finished_at = now()`)
		if err != nil {
			t.Fatal(err)
		}
		end, want := tx.Rollback, 0
		if commits {
			end, want = tx.Commit, 1
		}
		if err := end(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := deliveries(t, s); len(got) != want {
			t.Errorf("committed %t, the outbox holds %+v; want %d", commits, got, want)
		}
	}
}

func TestTheOutboxSurvivesAReopen(t *testing.T) {
	t.Parallel()

	url := schema(t)
	s := open(t, url)
	p := hookedIntent(t, "k")
	create(t, s, p)
	cancel(t, s, p.ID)
	claim := onejob.DeliveryClaimParams{Endpoints: []string{"ep_1"}, Lease: time.Hour, Max: 10}
	claimed, err := s.DeliveryClaim(t.Context(), claim)
	if err != nil || len(claimed) != 1 {
		t.Fatalf("claim: %+v, %v", claimed, err)
	}
	errs, err := s.DeliveryRecord(t.Context(), []onejob.DeliveryRecordParams{{
		ID: claimed[0].ID, State: onejob.DeliveryPending, Status: 500, Body: []byte("sent"), Error: "a byte \x00 that is no text",
	}})
	if err != nil || errs[0] != nil {
		t.Fatalf("record: %v, %v", errs, err)
	}
	_ = s.Close()
	again, err := open(t, url).DeliveryClaim(t.Context(), claim)
	if err != nil || len(again) != 1 || again[0].ID != claimed[0].ID || again[0].Tries != 1 || string(again[0].Body) != "sent" {
		t.Errorf("after reopening %+v is due, %v; want the delivery with its try and its body", again, err)
	}
}

// A sender that holds its rows keeps no other from going on with the rest.
func TestDeliveryClaimPassesOverWhatAnotherHolds(t *testing.T) {
	t.Parallel()

	url := schema(t)
	s := open(t, url)
	first, second := hookedIntent(t, "k1"), hookedIntent(t, "k2")
	create(t, s, first, second)
	cancel(t, s, first.ID)
	cancel(t, s, second.ID)
	tx := begin(t, url)
	if _, err := tx.Exec(t.Context(), `SELECT FROM deliveries WHERE job_id = $1 FOR UPDATE`, first.ID); err != nil {
		t.Fatal(err)
	}
	claimed, err := s.DeliveryClaim(t.Context(), onejob.DeliveryClaimParams{Endpoints: []string{"ep_1"}, Lease: time.Hour, Max: 1})
	if err != nil || len(claimed) != 1 || claimed[0].JobID != second.ID {
		t.Errorf("beside a held delivery %+v was claimed, %v; want the other one", claimed, err)
	}
}
