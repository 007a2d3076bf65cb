package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/httpapi"
)

// withWorkers makes acme, the one target of kind charge, a target that workers pull.
func withWorkers(_ *onejob.Options, api *httpapi.Options) {
	api.Pulled = map[string]onejob.TargetPins{"acme": {Digest: "d", MaxExecution: time.Minute}}
}

const (
	charge     = `{"kind":"charge","input":{"amount": 1.50,  "order":7}}`
	claimOne   = `{"kinds":["charge"],"max":1,"lease_ms":10000}`
	claimLong  = `{"kinds":["charge"],"max":1,"lease_ms":10000,"wait_ms":20000}`
	resultDone = `,"outcome":"succeeded","result":{"charged":true}}`
)

// claimed is one item of a claim.
type claimed struct {
	Attempt struct {
		ID     string
		State  string
		SendBy time.Time `json:"send_by"`
	}
	JobID           string          `json:"job_id"`
	Kind            string          `json:"kind"`
	ClaimToken      string          `json:"claim_token"`
	ProviderKey     string          `json:"provider_key"`
	Input           json.RawMessage `json:"input"`
	LeaseExpiresAt  time.Time       `json:"lease_expires_at"`
	DoNotBeginAfter time.Time       `json:"do_not_begin_after"`
}

func (w *world) pull(key, body string) []claimed {
	w.t.Helper()
	return itemsOf(w.t, w.do(request{method: "POST", path: "/v1/attempts:claim", key: key, body: body}))
}

func itemsOf(t *testing.T, got answer) []claimed {
	t.Helper()
	var v struct{ Items []claimed }
	if err := json.Unmarshal(got.wantStatus(t, http.StatusOK).body, &v); err != nil {
		t.Fatal(err)
	}
	return v.Items
}

// pullOne submits a charge of alice's and claims it.
func (w *world) pullOne(idempotencyKey string) claimed {
	w.t.Helper()
	w.submit(idempotencyKey, charge)
	items := w.pull(w.alice, claimOne)
	if len(items) != 1 {
		w.t.Fatalf("%d claimed; want 1", len(items))
	}
	return items[0]
}

// verb says something of an attempt; members follow the claim token.
func (w *world) verb(c claimed, verb, members string) answer {
	w.t.Helper()
	return w.do(request{method: "POST", path: "/v1/attempts/" + c.Attempt.ID + ":" + verb, key: w.alice, body: `{"claim_token":"` + c.ClaimToken + `"` + members})
}

// expire ends the leases that are over, as an engine does.
func (w *world) expire() {
	w.t.Helper()
	refs, err := w.store.AttemptExpired(context.Background(), 10)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.store.AttemptExpire(context.Background(), refs); err != nil {
		w.t.Fatal(err)
	}
}

func TestAWorkerClaimsAnAttemptWithAllThatItNeeds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWorkers)
	c := w.pullOne("k1")
	if got, want := string(c.Input), `{"amount": 1.50,  "order":7}`; got != want {
		t.Errorf("input %s; want the caller's own bytes %s", got, want)
	}
	lease := w.clock.Now().Add(10 * time.Second)
	if c.Attempt.State != "running" || c.ClaimToken == "" || c.ProviderKey == "" || c.Kind != "charge" || c.JobID == "" ||
		c.LeaseExpiresAt.Sub(lease).Abs() > time.Millisecond || !c.DoNotBeginAfter.Equal(c.LeaseExpiresAt) {
		t.Errorf("claimed %+v; want it running, with a token and a provider key, until %s", c, lease)
	}
	if again := w.pull(w.alice, claimOne); len(again) != 0 {
		t.Errorf("the same attempt was claimed twice: %+v", again)
	}
}

func TestAClaimGivesNobodyElsesJobsAndNoOtherKinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWorkers)
	w.submit("k1", charge)
	if items := w.pull(w.bob, claimOne); len(items) != 0 {
		t.Errorf("bob claimed alice's job: %+v", items)
	}
	if items := w.pull(w.alice, `{"kinds":["summarise"],"max":5,"lease_ms":10000}`); len(items) != 0 {
		t.Errorf("a worker for summarise got %+v", items)
	}
	if items := w.pull(w.admin, claimOne); len(items) != 1 {
		t.Errorf("an admin's worker claimed %d; want 1, for it serves every owner", len(items))
	}
}

func TestOnlyTargetsForWorkersAreClaimable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWorkers)
	w.submit("k1", ticket) // at target large, which an engine calls
	if items := w.pull(w.alice, `{"kinds":["summarise","charge"],"max":5,"lease_ms":10000}`); len(items) != 0 {
		t.Errorf("a worker claimed %+v at a target that is not for workers", items)
	}
	none := newWorld(t, nil)
	none.do(request{method: "POST", path: "/v1/attempts:claim", key: none.alice, body: claimOne}).wantProblem(t, 400, onejob.CodeInvalidRequest)
}

func TestAClaimThatIsNotWellFormedIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWorkers)
	for _, body := range []string{
		`{"max":1,"lease_ms":10000}`, `{"kinds":[],"max":1,"lease_ms":10000}`, `{"kinds":["nope"],"max":1,"lease_ms":10000}`,
		`{"kinds":["charge"],"lease_ms":10000}`, `{"kinds":["charge"],"max":33,"lease_ms":10000}`, `{"kinds":["charge"],"max":1}`,
		`{"kinds":["charge"],"max":1,"lease_ms":999}`, `{"kinds":["charge"],"max":1,"lease_ms":9223372036854775807}`,
		`{"kinds":["charge"],"max":1,"lease_ms":10000,"wait_ms":-1}`, `{"kinds":["charge"],"max":1,"lease_ms":10000,"color":1}`,
	} {
		w.do(request{method: "POST", path: "/v1/attempts:claim", key: w.alice, body: body}).wantProblem(t, 400, onejob.CodeInvalidRequest)
	}
}

func TestAClaimWaitsForWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWorkers)
	got := make(chan []claimed, 1)
	go func() {
		got <- itemsOf(t, w.serve(request{method: "POST", path: "/v1/attempts:claim", key: w.alice, body: claimLong}.http(context.Background())))
	}()
	id := w.submit("k1", charge)
	select {
	case items := <-got:
		if len(items) != 1 || items[0].JobID != id {
			t.Errorf("the held claim got %+v; want job %s", items, id)
		}
	case <-time.After(10 * time.Second):
		t.Error("the held claim did not see the job")
	}
}

func TestAHeartbeatKeepsAClaimNoLongerThanTheTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWorkers) // timeout is 60 s
	c := w.pullOne("k1")
	for range 7 {
		w.clock.Advance(8 * time.Second)
		w.expire()
		beat := w.verb(c, "heartbeat", `,"lease_ms":10000}`).wantStatus(t, 200)
		if beat.text(t, "state") != "running" || beat.text(t, "do_not_begin_after") != beat.text(t, "lease_expires_at") {
			t.Errorf("heartbeat %s; want it running, to begin until the lease ends", beat.body)
		}
	}
	w.clock.Advance(4 * time.Second)
	w.verb(c, "heartbeat", `}`).wantProblem(t, 409, onejob.CodeClaimLost)
	w.expire()
	if got := w.do(request{method: "GET", path: "/v1/attempts/" + c.Attempt.ID, key: w.alice}).text(t, "state"); got != "unknown" {
		t.Errorf("after the timeout the attempt is %s; want unknown", got)
	}
	w.verb(c, "heartbeat", `}`).wantProblem(t, 409, onejob.CodeClaimLost)
}

func TestAHeartbeatTellsThatTheJobIsToBeCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWorkers)
	c := w.pullOne("k1")
	w.do(request{method: "POST", path: "/v1/jobs/" + c.JobID + "/cancel", key: w.alice}).wantStatus(t, 202)
	if beat := w.verb(c, "heartbeat", `}`).wantStatus(t, 200).object(t); beat["cancel_requested"] != true {
		t.Errorf("heartbeat %v; want cancel_requested", beat)
	}
}

func TestFinishingFillsTheResultSlotAndARepeatAnswersAsTheFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWorkers)
	c := w.pullOne("k1")
	members := `,"outcome":"succeeded","result":{"charged": true},"provider_id":"ch_1","usage":{"n":1},"cost_micros":5}`
	first := w.verb(c, "finish", members).wantStatus(t, 200)
	if first.text(t, "state") != "succeeded" || first.text(t, "provider_id") != "ch_1" || first.text(t, "currency") != "USD" {
		t.Errorf("finish %s; want succeeded with what was said of it", first.body)
	}
	if again := w.verb(c, "finish", members).wantStatus(t, 200); string(again.body) != string(first.body) {
		t.Errorf("a repeat answers %s\nthe first %s", again.body, first.body)
	}
	result := w.do(request{method: "GET", path: "/v1/jobs/" + c.JobID + "/result", key: w.alice}).wantStatus(t, 200)
	if string(result.body) != `{"charged": true}` {
		t.Errorf("result %s; want the worker's own bytes", result.body)
	}
	w.verb(claimed{Attempt: c.Attempt, ClaimToken: "another"}, "finish", resultDone).wantProblem(t, 409, onejob.CodeClaimLost)
}

func TestWhatAWorkerSaysOfAFailureDecidesWhatComesNext(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[string][2]string{
		"executed_failed": {"failed", "failed"}, "refused": {"failed", "failed"},
		"not_executed": {"failed", "queued"}, "unknown": {"unknown", "blocked"},
	} {
		t.Run(outcome, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withWorkers)
			c := w.pullOne("k1")
			got := w.verb(c, "finish", `,"outcome":"`+outcome+`","error":{"code":"card_declined","message":"no money"}}`).wantStatus(t, 200)
			job := w.do(request{method: "GET", path: "/v1/jobs/" + c.JobID, key: w.alice})
			if got.text(t, "state") != want[0] || job.text(t, "state") != want[1] {
				t.Errorf("attempt %s, job %s; want %s", got.text(t, "state"), job.text(t, "state"), want)
			}
		})
	}
}

func TestAReleasedAttemptGoesToTheNextWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWorkers)
	c := w.pullOne("k1")
	for range 2 { // a repeat too
		if got := w.verb(c, "release", `}`).wantStatus(t, 200); got.text(t, "state") != "failed" || got.text(t, "outcome") != "not_executed" {
			t.Errorf("release %s; want the attempt failed, not executed", got.body)
		}
	}
	w.clock.Advance(2 * time.Minute) // past any backoff
	items := w.pull(w.alice, claimOne)
	if len(items) != 1 || items[0].JobID != c.JobID || items[0].ProviderKey != c.ProviderKey || items[0].ClaimToken == c.ClaimToken {
		t.Errorf("next claim %+v; want job %s under the same provider key and a new token", items, c.JobID)
	}
}

func TestALostWorkersAttemptIsUnknownAndItsLateSuccessWinsIfNothingReplacedIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWorkers)
	c := w.pullOne("k1")
	w.clock.Advance(30 * time.Second)
	w.expire()
	job := w.do(request{method: "GET", path: "/v1/jobs/" + c.JobID, key: w.alice})
	if job.text(t, "state") != "blocked" || len(w.pull(w.alice, claimOne)) != 0 {
		t.Errorf("with its worker lost the job is %s; want blocked, and claimed by nobody", job.body)
	}
	if got := w.verb(c, "finish", resultDone).wantStatus(t, 200).text(t, "state"); got != "succeeded" {
		t.Errorf("the late finish is %s; want succeeded", got)
	}
}

func TestALateSuccessIsDiscardedWhenAnotherAttemptWon(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWorkers)
	frozen := w.pullOne("k1")
	w.clock.Advance(30 * time.Second)
	w.expire()
	w.clock.Advance(2 * time.Minute) // past quarantine
	w.do(request{
		method: "POST", path: "/v1/attempts/" + frozen.Attempt.ID + "/resolve", key: w.operator,
		body: `{"outcome":"failed","proves":"not_executed","evidence":"nothing in the ledger"}`,
	}).wantStatus(t, 200)
	w.clock.Advance(2 * time.Minute)
	second := w.pull(w.alice, claimOne)
	if len(second) != 1 {
		t.Fatal("after the ruling the job was not handed out again")
	}
	w.verb(second[0], "finish", `,"outcome":"succeeded","result":"second"}`).wantStatus(t, 200)
	late := w.verb(frozen, "finish", `,"outcome":"succeeded","result":"first"}`).wantStatus(t, 200)
	if late.text(t, "state") != "discarded" {
		t.Errorf("the late finish is %s; want discarded", late.body)
	}
	result := w.do(request{method: "GET", path: "/v1/jobs/" + frozen.JobID + "/result", key: w.alice})
	if string(result.body) != `"second"` {
		t.Errorf("result %s; want the second's", result.body)
	}
}

func TestWhatAWorkerSaysMustNotContradictItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWorkers)
	c := w.pullOne("k1")
	for _, members := range []string{
		`}`, `,"outcome":"succeeded"}`, `,"outcome":"failed"}`, `,"outcome":"accepted"}`, `,"outcome":"cancelled"}`,
		`,"outcome":"unknown","result":1}`, `,"outcome":"succeeded","result":1,"error":{"code":"x"}}`, `,"outcome":"refused","error":{}}`,
		`,"outcome":"unknown","cost_micros":-1}`, `,"outcome":"unknown","usage":[1]}`, `,"outcome":"unknown","provider_id":"\u0000"}`,
	} {
		w.verb(c, "finish", members).wantProblem(t, 400, onejob.CodeInvalidRequest)
	}
	w.do(request{method: "POST", path: "/v1/attempts/" + c.Attempt.ID + ":finish", key: w.alice, body: `{"outcome":"unknown"}`}).wantProblem(t, 400, onejob.CodeInvalidRequest)
	w.do(request{method: "POST", path: "/v1/attempts/" + c.Attempt.ID + ":begin", key: w.alice, body: `{}`})
	if got := w.do(request{method: "GET", path: "/v1/attempts/" + c.Attempt.ID, key: w.alice}).text(t, "state"); got != "running" {
		t.Errorf("after all that the attempt is %s; want running", got)
	}
}
