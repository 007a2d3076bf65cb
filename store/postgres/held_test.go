package postgres_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/pgtest"
	"github.com/onejob-dev/onejob/store/grouped"
	"github.com/onejob-dev/onejob/store/postgres"
)

// heldFor is how long somebody's transaction is open. Neighbours have a sixth of it,
// but for the odd one on a busy machine.
const (
	heldFor    = 3 * time.Second
	neighbours = 500 * time.Millisecond
)

// answered is one creation's answer and how long it took.
type answered struct {
	onejob.JobCreateResult
	took time.Duration
}

func createTimed(t *testing.T, s onejob.Store, p onejob.JobCreateParams) answered {
	t.Helper()
	began := time.Now()
	results, err := s.JobCreate(t.Context(), []onejob.JobCreateParams{p})
	if err != nil {
		return answered{onejob.JobCreateResult{Err: err}, time.Since(began)}
	}
	return answered{results[0], time.Since(began)}
}

func TestGroupedAKeyInAnOpenTransactionHoldsNoNeighbour(t *testing.T) {
	t.Parallel()

	url := schema(t)
	tx := begin(t, url)
	s, err := grouped.New(open(t, url), grouped.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 { // connections and plans
		create(t, s, intent(t, fmt.Sprint("first", i)))
	}
	create(t, postgres.Tx(tx), intent(t, "held"))

	// The held one is alone in its flush; then it shares one with the others.
	held := make(chan answered, 2)
	for range 2 {
		go func() { held <- createTimed(t, s, intent(t, "held")) }()
	}
	opened, asked, late := time.Now(), 0, 0
	for ; time.Since(opened) < heldFor; asked++ {
		r := createTimed(t, s, intent(t, fmt.Sprint("neighbour", asked)))
		if r.Err != nil {
			t.Errorf("a neighbour was answered %v; want a job", r.Err)
		}
		if r.took > neighbours {
			late++
		}
	}
	if late > asked/10 {
		t.Errorf("%d of %d neighbours were answered after more than %s", late, asked, neighbours)
	}
	if len(held) > 0 {
		t.Errorf("the held key was answered %+v while another transaction held it", <-held)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	fresh := 0
	for range 2 {
		r := <-held
		if r.Err != nil {
			t.Errorf("the held key was answered %v; want a job once the transaction had ended", r.Err)
		}
		if !r.Existed {
			fresh++
		}
	}
	if fresh != 1 {
		t.Errorf("%d of 2 callers of the held key made its job; want 1", fresh)
	}
}

func TestHastyAnswersAHeldRowSoonAndItsNeighboursToo(t *testing.T) {
	t.Parallel()

	url := schema(t)
	tx := begin(t, url)
	s := open(t, url).Hasty()
	create(t, s, intent(t, "first"))
	create(t, postgres.Tx(tx), intent(t, "k17"))

	var params []onejob.JobCreateParams
	for i := range 40 {
		params = append(params, intent(t, fmt.Sprint("k", i)))
	}
	began := time.Now()
	for i, r := range create(t, s, params...) {
		if i != 17 && r.Err != nil {
			t.Errorf("neighbour %d was answered %v; want a job", i, r.Err)
		}
		if i == 17 {
			wantReason(t, r.Err, onejob.ReasonRowLocked)
		}
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the batch took %s", took)
	}
}

func wantReason(t *testing.T, err error, reason string) {
	t.Helper()
	var e *onejob.Error
	if !errors.As(err, &e) || e.Code != onejob.CodeStoreUnavailable || e.Reason != reason {
		t.Errorf("got %v; want store-unavailable because of %s", err, reason)
	}
}

func TestThoseWhoWaitForOthersTransactionsLeaveConnectionsToTheRest(t *testing.T) {
	t.Parallel()

	url := schema(t)
	tx := begin(t, url)
	s := open(t, url) // of four connections
	create(t, s, intent(t, "first"))
	var waiters errgroup.Group
	for i := range 8 {
		key := fmt.Sprint("held", i)
		create(t, postgres.Tx(tx), intent(t, key))
		waiters.Go(func() error { return createTimed(t, s, intent(t, key)).Err })
	}
	untilBlocked(t, url)
	for i := range 5 {
		if r := createTimed(t, s, intent(t, fmt.Sprint("free", i))); r.Err != nil || r.took > time.Second {
			t.Errorf("a free key was answered %v after %s; want a job at once", r.Err, r.took)
		}
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := waiters.Wait(); err != nil {
		t.Errorf("a held key was answered %v after the rollback; want a job", err)
	}
}

func TestTxThatRepeatsAKeyDoesNotKeepItsJobFromFinishing(t *testing.T) {
	t.Parallel()

	url := schema(t)
	s, tx := open(t, url), begin(t, url)
	p := intent(t, "k")
	p.Start = &starter
	a := create(t, s, p)[0].Started.Attempt
	again := intent(t, "k")
	if r := create(t, postgres.Tx(tx), again)[0]; r.Err != nil || !r.Existed {
		t.Fatalf("the repeat answered %+v; want the job", r)
	}

	// The transaction stays open.
	results, err := s.Hasty().AttemptFinish(t.Context(), []onejob.AttemptFinishParams{finish(a, onejob.OutcomeSucceeded)})
	if err != nil || results[0].Err != nil || results[0].JobState != onejob.JobSucceeded {
		t.Errorf("the finish answered %+v, %v; want succeeded", results, err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	events, err := s.JobEvents(t.Context(), onejob.JobRef{Part: a.Part, ID: a.JobID})
	if err != nil || len(events) != 1 || events[0].Kind != onejob.EventReplayed {
		t.Errorf("events %+v, %v; want the replay", events, err)
	}
}

func TestTxThatRepeatsAKeyDoesNotKeepItsJobFromBeingClaimed(t *testing.T) {
	t.Parallel()

	url := schema(t)
	s, tx := open(t, url), begin(t, url)
	create(t, s, intent(t, "k"))
	if r := create(t, postgres.Tx(tx), intent(t, "k"))[0]; r.Err != nil || !r.Existed {
		t.Fatalf("the repeat answered %+v; want the job", r)
	}

	// The transaction stays open.
	r, err := s.AttemptClaim(t.Context(), onejob.AttemptClaimParams{StartParams: starter, Max: 1})
	if err != nil || len(r.Claimed) != 1 {
		t.Errorf("the claim answered %+v, %v; want the job's attempt", r, err)
	}
}

// A job that a claim cannot start while somebody's transaction is open steps aside for
// a moment, not for as long as one whose row is spoiled.
func TestAJobWhoseStartMeetsAnOpenTransactionIsDueAgainSoon(t *testing.T) {
	t.Parallel()

	url := schema(t)
	s, tx := open(t, url), begin(t, url)
	clock := pgtest.Clock(t, url)
	id := create(t, s, intent(t, "k"))[0].Job.ID
	if _, err := tx.Exec(t.Context(), "LOCK TABLE attempts IN EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	if r := claim(t, s, 1); len(r.Claimed) != 0 {
		t.Errorf("a claim started %+v while nothing could be written", r.Claimed)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	clock.Advance(2 * time.Second)
	if r := claim(t, s, 1); len(r.Claimed) != 1 || r.Claimed[0].Job.ID != id {
		t.Errorf("two seconds later a claim answered %+v; want the job", r)
	}
}

func finish(a onejob.Attempt, o onejob.Outcome) onejob.AttemptFinishParams {
	return onejob.AttemptFinishParams{
		Ref: onejob.AttemptRef{Part: a.Part, JobID: a.JobID, ID: a.ID}, ClaimToken: a.ClaimToken,
		Outcome: o, Phase: onejob.PhaseAnswered, Result: &onejob.Result{Body: []byte("out")},
	}
}

// A statement that is cancelled from outside, as PostgreSQL itself does now and then
// when a lock timeout comes late, is the trouble of the row that waited.
func TestAStatementThatIsCancelledKeepsNoNeighbourFromItsJob(t *testing.T) {
	t.Parallel()

	const name = "to_be_cancelled"
	url := schema(t)
	tx := begin(t, url)
	s := open(t, url+"&application_name="+name)
	create(t, postgres.Tx(tx), intent(t, "held"))

	answered := make(chan []onejob.JobCreateResult, 1)
	go func() {
		results, err := s.JobCreate(t.Context(), []onejob.JobCreateParams{intent(t, "held"), intent(t, "neighbour")})
		if err != nil {
			t.Errorf("the batch was answered %v; want an answer for each row", err)
		}
		answered <- results
	}()
	cancelled := 0
	for deadline := time.Now().Add(10 * time.Second); cancelled < 2 && time.Now().Before(deadline); {
		var n int
		err := tx.QueryRow(t.Context(), `SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = $1`, name).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		cancelled += n
	}
	if cancelled == 0 {
		t.Fatal("no statement waited for the row that is held")
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	results := <-answered
	if len(results) != 2 {
		return
	}
	var e *onejob.Error
	if err := results[0].Err; err != nil && (!errors.As(err, &e) || e.Reason != onejob.ReasonRowLocked) {
		t.Errorf("the row that waited was answered %v; want a job, or that it is held", err)
	}
	if results[1].Err != nil || results[1].Job == nil {
		t.Errorf("its neighbour was answered %v; want a job", results[1].Err)
	}
}
