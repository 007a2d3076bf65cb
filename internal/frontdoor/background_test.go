package frontdoor_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/frontdoor"
	"github.com/onejob-dev/onejob/provider/openai"
	"github.com/onejob-dev/onejob/sim"
)

const (
	responses = "/openai/v1/responses"
	essay     = `{"model":"essay","input":"hello","background":true}`
)

// newLibrary serves essay, whose target makes responses in the background, note, which
// makes them while it is waited for, and fast, whose timeout is over soon.
func newLibrary(t *testing.T, script ...string) *world {
	t.Helper()
	provider := sim.ForTest(t, sim.Options{})
	if len(script) > 0 {
		provider.Script(sim.MustParse(script...)...)
	}
	w := &world{t: t, store: newStore(), provider: provider}
	var targets []onejob.Target
	for name, background := range map[string]bool{"deep": true, "quick": false} {
		p, err := openai.New(openai.Options{BaseURL: provider.URL() + "/v1", Model: name + "-x", API: openai.APIResponses, Background: background, Map: dropBackground[background]})
		if err != nil {
			t.Fatal(err)
		}
		targets = append(targets, onejob.Target{Name: name, Provider: p, Digest: p.Digest(), Reconcile: onejob.Reconcile{Lookup: true, Every: 10 * time.Millisecond}})
	}
	chatting, err := openai.New(openai.Options{BaseURL: provider.URL() + "/v1", Model: "gpt-x"})
	if err != nil {
		t.Fatal(err)
	}
	targets = append(targets, onejob.Target{Name: "gpt", Provider: chatting, Digest: chatting.Digest()})
	w.run(targets, map[string]onejob.Kind{
		"essay": {Policy: onejob.Policy{Effect: onejob.EffectNone, Targets: []string{"deep"}}},
		"note":  {Policy: onejob.Policy{Effect: onejob.EffectNone, Targets: []string{"quick"}}},
		"fast":  {Policy: onejob.Policy{Effect: onejob.EffectExternal, Targets: []string{"quick"}, Timeout: 200 * time.Millisecond, SendWithin: 100 * time.Millisecond, Linger: time.Minute}},
		"chat":  {Policy: onejob.Policy{Effect: onejob.EffectNone, Targets: []string{"gpt"}}},
	}, map[string]frontdoor.Model{
		"essay": {Kind: "essay", API: frontdoor.APIResponses}, "note": {Kind: "note", API: frontdoor.APIResponses}, "fast": {Kind: "fast", API: frontdoor.APIResponses},
		"chat": {Kind: "chat", API: frontdoor.APIChat},
	})
	return w
}

// dropBackground is the map of a target that knows nothing of it.
var dropBackground = map[bool]map[string]string{false: {"background": "drop"}}

// said is a response as a client reads it.
type said struct {
	ID, Object, Status, Model string
	CreatedAt                 int64 `json:"created_at"`
	Background                bool
	Error                     *struct{ Code, Message string }
	Output                    []struct{ Type string }
}

func (a answer) said(t *testing.T) said {
	t.Helper()
	var s said
	if err := json.Unmarshal(a.body, &s); err != nil || a.status != http.StatusOK || s.Object != "response" {
		t.Fatalf("%d %s: %v; want a response", a.status, a.body, err)
	}
	return s
}

// get asks for a path by a credential; empty: the world's own.
func (w *world) get(path, key string) answer {
	w.t.Helper()
	r := w.request(w.t.Context(), path, "")
	r.Method = http.MethodGet
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	return w.do(r)
}

// until waits until a job is in a state.
func (w *world) until(jobID string, state onejob.JobState) *onejob.Job {
	w.t.Helper()
	job, err := w.client.WatchUntil(w.t.Context(), "alice", jobID, func(j *onejob.Job) bool { return j.State == state })
	if err != nil {
		w.t.Fatal(err)
	}
	return job
}

func TestAResponseInTheBackgroundIsAnsweredAtOnceAndAskedForLater(t *testing.T) {
	t.Parallel()
	w := newLibrary(t, "accepted=300ms")
	first := w.post(responses, essay, "Idempotency-Key", "k1")
	s := first.said(t)
	jobID := first.header.Get("Onejob-Job-Id")
	if (s.Status != "queued" && s.Status != "in_progress") || s.ID != "resp_"+strings.TrimPrefix(jobID, "job_") || !s.Background || s.Model != "essay" ||
		s.CreatedAt == 0 || s.Error != nil || s.Output == nil || len(s.Output) > 0 {
		t.Errorf("it began as %s", first.body)
	}
	if first.header.Get("Onejob-Intent") != "keyed" || first.header.Get("Idempotent-Replayed") != "" || first.header.Get("Onejob-Attempts") == "" {
		t.Errorf("headers %v", first.header)
	}
	if job, err := w.client.Get(t.Context(), "alice", jobID); err != nil || job.ID != jobID {
		t.Errorf("it is not recorded: %v", err)
	}
	if again := w.post(responses, essay, "Idempotency-Key", "k1"); again.said(t).ID != s.ID || again.said(t).Model != "essay" || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("a repeat got %s", again.body)
	}
	if got := w.get(responses+"/"+s.ID, "").said(t); got.ID != s.ID || got.Status == "completed" || got.Status == "failed" || got.Model != "essay" {
		t.Errorf("while it is made it is %+v", got)
	}
	job := w.until(jobID, onejob.JobSucceeded)
	for _, done := range []answer{w.get(responses+"/"+s.ID, ""), w.post(responses, essay, "Idempotency-Key", "k1")} {
		if done.said(t).Status != "completed" || string(done.body) != string(job.Result.Body) || done.header.Get("Onejob-Target") != "deep" {
			t.Errorf("it ended as %s; want the provider's own bytes", done.body)
		}
	}
	if n := w.provider.TotalExecutions(); n != 1 {
		t.Errorf("%d executions; want 1", n)
	}
}

func TestAResponseInTheBackgroundWithoutAKeyIsAnIntentOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newLibrary(t)
	body := strings.Replace(essay, "essay", "note", 1) // its target does not work in the background
	first, second := w.post(responses, body, retry(0)...), w.post(responses, body, retry(1)...)
	if first.header.Get("Onejob-Intent") != "new" || first.said(t).ID == second.said(t).ID {
		t.Errorf("%s of %s, then %s", first.header.Get("Onejob-Intent"), first.body, second.body)
	}
	for range 2 {
		if p := soon(t, w.store.ended, "end of a waiting"); !p.Delivered {
			t.Error("what was answered at once counts as lost")
		}
	}
	w.until(first.header.Get("Onejob-Job-Id"), onejob.JobSucceeded)
	if got := w.get(responses+"/"+first.said(t).ID, "").said(t); got.Status != "completed" {
		t.Errorf("it ended as %+v", got)
	}
}

func TestAResponseInDoubtIsInProgressAndNeverFailed(t *testing.T) {
	t.Parallel()
	w := newLibrary(t, "silent")
	first := w.post(responses, strings.Replace(essay, "essay", "fast", 1), "Idempotency-Key", "k1")
	w.until(first.header.Get("Onejob-Job-Id"), onejob.JobBlocked)
	got := w.get(responses+"/"+first.said(t).ID, "")
	if s := got.said(t); s.Status != "in_progress" || s.Error != nil || got.header.Get("Location") != "/v1/jobs/"+first.header.Get("Onejob-Job-Id") {
		t.Errorf("%s, %v", got.body, got.header)
	}
}

func TestAResponseThatFailedSaysSo(t *testing.T) {
	t.Parallel()
	w := newLibrary(t, "status=400")
	first := w.post(responses, essay, "Idempotency-Key", "k1")
	w.until(first.header.Get("Onejob-Job-Id"), onejob.JobFailed)
	got := w.get(responses+"/"+first.said(t).ID, "").said(t)
	if got.Status != "failed" || got.Error == nil || got.Error.Code != "server_error" || got.Error.Message == "" || got.Output == nil {
		t.Errorf("%+v", got)
	}
}

func TestAResponseCanBeCancelledOnceAndAgain(t *testing.T) {
	t.Parallel()
	w := newLibrary(t, "accepted=1m")
	first := w.post(responses, essay, "Idempotency-Key", "k1")
	path := responses + "/" + first.said(t).ID
	if got := w.post(path+"/cancel", ""); got.said(t).ID != first.said(t).ID || got.said(t).Model != "essay" {
		t.Errorf("it was given as %s", got.body)
	}
	w.until(first.header.Get("Onejob-Job-Id"), onejob.JobCancelled)
	for _, got := range []answer{w.post(path+"/cancel", ""), w.get(path, "")} {
		if s := got.said(t); s.Status != "cancelled" || s.Error != nil {
			t.Errorf("it ended as %s", got.body)
		}
	}
}

func TestACancelledResponseThatWasMadeIsGiven(t *testing.T) {
	t.Parallel()
	w := newLibrary(t)
	first := w.post(responses, essay, "Idempotency-Key", "k1")
	w.until(first.header.Get("Onejob-Job-Id"), onejob.JobSucceeded)
	if got := w.post(responses+"/"+first.said(t).ID+"/cancel", "").said(t); got.Status != "completed" {
		t.Errorf("it is %+v", got)
	}
}

func TestAResponseOfAnotherOwnerIsNotFoundNorIsAnythingElse(t *testing.T) {
	t.Parallel()
	w := newLibrary(t)
	id := w.post(responses, essay, "Idempotency-Key", "k1").said(t).ID
	bob := w.keyOf("bob")
	w.get(responses+"/"+id, bob).wantProblem(t, http.StatusNotFound, onejob.CodeNotFound)
	w.post(responses+"/"+id+"/cancel", "", "Authorization", "Bearer "+bob).wantProblem(t, http.StatusNotFound, onejob.CodeNotFound)
	chatID := w.post(chat, hello).header.Get("Onejob-Job-Id")
	for _, other := range []string{"resp_" + strings.TrimPrefix(chatID, "job_"), chatID, "resp_none", "resp_" + chatID} {
		w.get(responses+"/"+other, "").wantProblem(t, http.StatusNotFound, onejob.CodeNotFound)
	}
	w.get(responses+"/"+id+"?stream=true", "").wantProblem(t, http.StatusUnprocessableEntity, onejob.CodeInvalidJob)
}

func TestAnImagesBackgroundIsAnotherOne(t *testing.T) {
	t.Parallel()
	provider := sim.ForTest(t, sim.Options{Models: map[string]sim.Mind{sim.AnyModel: {}}})
	w := newWorldAt(t, provider.URL())
	if got := w.post("/openai/v1/images/generations", `{"model":"pictures","prompt":"a grey dot","background":"transparent"}`); got.status != http.StatusOK {
		t.Errorf("%d %s", got.status, got.body)
	}
}
