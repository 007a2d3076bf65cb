package postgres_test

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/pgtest"
	"github.com/onejob-dev/onejob/store/postgres"
)

// intent is a new intent under key.
func intent(t testing.TB, key string) onejob.JobCreateParams {
	t.Helper()
	policy, err := onejob.Policy{Effect: onejob.EffectExternal, Targets: []string{"a"}}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256([]byte(key))
	part := onejob.PartOf("alice", key)
	return onejob.JobCreateParams{
		ID: onejob.NewJobID(part, time.UnixMilli(0)), Owner: "alice", Part: part,
		KeyHash: hash[:], KeyPrefix: "k", Fingerprint: []byte("f"), FingerprintVersion: 1,
		Token: onejob.NewToken(), Kind: "charge", Input: []byte("in"), Policy: policy,
	}
}

var starter = onejob.StartParams{
	Worker: "w", Lease: time.Minute, Targets: map[string]onejob.TargetPins{"a": {Digest: "d", MaxExecution: time.Hour}},
}

func create(t testing.TB, c onejob.JobCreator, params ...onejob.JobCreateParams) []onejob.JobCreateResult {
	t.Helper()
	results, err := c.JobCreate(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func begin(t *testing.T, url string) pgx.Tx {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

func TestJobCreateAKeyInAnOpenTransactionHoldsNoNeighbour(t *testing.T) {
	t.Parallel()

	url := schema(t)
	s, tx := open(t, url), begin(t, url)
	create(t, postgres.Tx(tx), intent(t, "held"))

	r := create(t, s, intent(t, "before"), intent(t, "held"), intent(t, "after"))
	if r[0].Err != nil || r[2].Err != nil {
		t.Errorf("the neighbours answered %v and %v; want jobs", r[0].Err, r[2].Err)
	}
	wantCode(t, r[1].Err, onejob.CodeStoreUnavailable, "another transaction")

	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again := create(t, s, intent(t, "held"))[0]; again.Err != nil || again.Existed {
		t.Errorf("after the rollback the key answered %+v; want a new job", again)
	}
}

// The second of two was told of a conflict while the first rolled back: no job at
// all was left (oban-bg/oban#1087).
func TestJobCreateWaitsForACreatorThatRollsBack(t *testing.T) {
	t.Parallel()

	url := schema(t)
	s, tx := open(t, url), begin(t, url)
	create(t, postgres.Tx(tx), intent(t, "k"))
	answer := make(chan onejob.JobCreateResult)
	go func() {
		results, err := s.JobCreate(t.Context(), []onejob.JobCreateParams{intent(t, "k")})
		if err != nil {
			answer <- onejob.JobCreateResult{Err: err}
			return
		}
		answer <- results[0]
	}()
	untilBlocked(t, url)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := <-answer; r.Err != nil || r.Existed {
		t.Errorf("the second creator answered %+v; want a job of its own", r)
	}
}

// untilBlocked returns once a session waits for another's row of jobs.
func untilBlocked(t *testing.T, url string) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		n := lines(t, url, `SELECT pid::text FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'
			AND pid IN (SELECT pid FROM pg_locks WHERE relation = 'jobs'::regclass)`)
		if len(n) > 0 {
			return
		}
	}
	t.Fatal("nobody waited")
}

func TestJobCreateARowTheDatabaseRefusesFailsAlone(t *testing.T) {
	t.Parallel()

	s := open(t, schema(t))
	poisoned := intent(t, "poisoned")
	poisoned.Fingerprint = nil
	r := create(t, s, intent(t, "k1"), poisoned, intent(t, "k2"))
	if r[0].Err != nil || r[2].Err != nil {
		t.Errorf("the neighbours answered %v and %v; want jobs", r[0].Err, r[2].Err)
	}
	wantCode(t, r[1].Err, onejob.CodeInvalidArgument, "does not take")
}

func TestJobCreateALostAcknowledgementTakesItsAttemptUpAgain(t *testing.T) {
	t.Parallel()

	url := schema(t)
	s := open(t, url)
	clock := pgtest.Clock(t, url)
	p := intent(t, "k")
	p.Start = &starter
	first := create(t, s, p)[0]
	if first.Started == nil {
		t.Fatalf("the creation answered %+v; want its attempt", first)
	}
	clock.Advance(10 * time.Second)
	again := create(t, s, p)[0]
	if again.Existed || again.Started == nil || again.Started.Attempt.ClaimToken != first.Started.Attempt.ClaimToken {
		t.Fatalf("the repeat answered %+v; want the same attempt under the same claim", again)
	}
	late := again.Started.Attempt.SendBy.Sub(first.Started.Attempt.SendBy)
	quarantine := again.Started.Attempt.QuarantineUntil.Sub(first.Started.Attempt.QuarantineUntil)
	if late < 10*time.Second || quarantine != late {
		t.Errorf("send_by moved by %s and the quarantine by %s; want both from the second mark", late, quarantine)
	}
	stranger := intent(t, "k")
	stranger.Start = &starter
	if r := create(t, s, stranger)[0]; !r.Existed || r.Started != nil {
		t.Errorf("another caller answered %+v; want a repeat that starts nothing", r)
	}
}

func TestTxIsForgottenWithItsTransaction(t *testing.T) {
	t.Parallel()

	url := schema(t)
	s, tx := open(t, url), begin(t, url)
	p := intent(t, "k")
	p.Start = &starter
	r := create(t, postgres.Tx(tx), p, intent(t, "k"))
	if r[0].Existed || !r[1].Existed || r[0].Started != nil || r[0].Job.ID != r[1].Job.ID {
		t.Errorf("inside the transaction: %+v; want one job, repeated, not started", r)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := get(t, s, p.ID); onejob.CodeOf(r.Err) != onejob.CodeNotFound {
		t.Errorf("after the rollback: %+v; want no job", r)
	}
}

func TestTxIsKeptWithItsTransaction(t *testing.T) {
	t.Parallel()

	url := schema(t)
	s, tx := open(t, url), begin(t, url)
	p := intent(t, "k")
	create(t, postgres.Tx(tx), p)
	if r := get(t, s, p.ID); onejob.CodeOf(r.Err) != onejob.CodeNotFound {
		t.Errorf("before the commit others see %+v; want no job", r)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := get(t, s, p.ID); r.Err != nil || r.Job.State != onejob.JobQueued {
		t.Errorf("after the commit: %+v; want a queued job", r)
	}
}

func TestTxThatCannotBeSerialisedAsksForTheWholeAgain(t *testing.T) {
	t.Parallel()

	url := schema(t)
	s := open(t, url)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	tx, err := conn.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT FROM jobs"); err != nil { // its snapshot is of now
		t.Fatal(err)
	}
	create(t, s, intent(t, "k"))
	_, err = postgres.Tx(tx).JobCreate(t.Context(), []onejob.JobCreateParams{intent(t, "k")})
	wantCode(t, err, onejob.CodeStoreUnavailable, "repeat the whole transaction")
}

func TestAttemptFinishNoByteOfAnAnswerLosesIt(t *testing.T) {
	t.Parallel()

	s := open(t, schema(t))
	p := intent(t, "k")
	p.Start = &starter
	a := create(t, s, p)[0].Started.Attempt
	results, err := s.AttemptFinish(t.Context(), []onejob.AttemptFinishParams{{
		Ref: onejob.AttemptRef{Part: a.Part, JobID: a.JobID, ID: a.ID}, ClaimToken: a.ClaimToken,
		Outcome: onejob.OutcomeRefused, Phase: onejob.PhaseAnswered,
		Failure:    &onejob.Failure{Code: "x\x00y", Message: "\xff\x00 bad"},
		Evidence:   onejob.Evidence{Excerpt: "\x00\xfe"},
		ProviderID: "id\x00", Usage: []byte(`{"n":1}`),
	}})
	if err != nil || results[0].Err != nil || results[0].State != onejob.AttemptFailed {
		t.Errorf("the finish answered %+v, %v; want failed", results, err)
	}
}

func TestAttemptClaimManyAtOnceClaimsEachOnceAndNeverMoreThanMax(t *testing.T) {
	t.Parallel()

	const jobs, claimers, most = 60, 6, 7
	s := open(t, schema(t))
	var params []onejob.JobCreateParams
	for i := range jobs {
		params = append(params, intent(t, fmt.Sprint("k", i)))
	}
	create(t, s, params...)
	claimed := make(chan []onejob.Claimed)
	for range claimers {
		go func() {
			for {
				r, err := s.AttemptClaim(t.Context(), onejob.AttemptClaimParams{StartParams: starter, Max: most})
				if err != nil {
					t.Error(err)
				}
				claimed <- r.Claimed
				if len(r.Claimed) == 0 {
					return
				}
			}
		}()
	}
	seen := map[string]int{}
	for idle := 0; idle < claimers; {
		batch := <-claimed
		if len(batch) == 0 {
			idle++
		}
		if len(batch) > most {
			t.Errorf("%d claimed at once; want at most %d", len(batch), most)
		}
		for _, c := range batch {
			seen[c.Job.ID]++
		}
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("job %s was claimed %d times", id, n)
		}
	}
	if len(seen) != jobs {
		t.Errorf("%d jobs were claimed; want %d", len(seen), jobs)
	}
}

func get(t *testing.T, s *postgres.Store, id string) onejob.JobResult {
	t.Helper()
	results, err := s.JobGet(t.Context(), []onejob.JobGetParams{{ID: id}})
	if err != nil {
		t.Fatal(err)
	}
	return results[0]
}
