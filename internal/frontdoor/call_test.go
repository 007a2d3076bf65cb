package frontdoor_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/frontdoor"
	"github.com/onejob-dev/onejob/sim"
)

const (
	chat     = "/openai/v1/chat/completions"
	messages = "/anthropic/v1/messages"

	hello  = `{"model":"chat","messages":[{"role":"user","content":"hello"}],"x_unknown":{"kept":true}}`
	brief  = `{"model":"brief","messages":[{"role":"user","content":"hello"}]}`
	claude = `{"model":"claude","max_tokens":50,"messages":[{"role":"user","content":"hello"}]}`
)

func TestACallIsAnsweredWithTheProvidersOwnBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.post(chat, hello, "Idempotency-Key", "k1")
	if first.status != http.StatusOK || first.header.Get("Onejob-Intent") != "keyed" || first.header.Get("Onejob-Target") != "gpt" ||
		first.header.Get("Onejob-Attempts") != "1" || first.header.Get("Idempotent-Replayed") != "" {
		t.Fatalf("%d, %v: %s", first.status, first.header, first.body)
	}
	job, err := w.client.Get(t.Context(), "alice", first.header.Get("Onejob-Job-Id"))
	if err != nil || string(job.Result.Body) != string(first.body) || first.header.Get("Content-Type") != job.Result.ContentType {
		t.Errorf("the answer is not the winner's: %v", err)
	}
	repeat := w.post(chat, hello, "X-Idempotency-Key", "k1")
	if string(repeat.body) != string(first.body) || repeat.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("a repeat got %d %s; want the same bytes, marked", repeat.status, repeat.body)
	}
	if n := len(w.provider.Ledger()); n != 1 {
		t.Errorf("%d requests at the provider; want 1", n)
	}
}

func TestWhatADoorDoesNotKnowPassesThrough(t *testing.T) {
	t.Parallel()
	sent := make(chan string, 1)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent <- string(body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"hi"}}]}`)
	}))
	t.Cleanup(provider.Close)
	w := newWorldAt(t, provider.URL)
	if got := w.post(chat, hello, "Idempotency-Key", "k1"); got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if got, want := <-sent, strings.Replace(hello, `"model":"chat"`, `"model":"gpt-x"`, 1); got != want {
		t.Errorf("the provider got %s; want %s", got, want)
	}
}

func TestVectorsAndPicturesAreAnsweredOnceAKey(t *testing.T) {
	t.Parallel()
	provider := sim.ForTest(t, sim.Options{Models: map[string]sim.Mind{sim.AnyModel: {}}})
	w := newWorldAt(t, provider.URL())
	for path, body := range map[string]string{
		"/openai/v1/embeddings":         `{"model":"vectors","input":["hello","world"]}`,
		"/openai/v1/images/generations": `{"model":"pictures","prompt":"a grey dot","n":2}`,
	} {
		first, repeat := w.post(path, body, "Idempotency-Key", "k"+path), w.post(path, body, "Idempotency-Key", "k"+path)
		var answer struct {
			Data []struct {
				Embedding []float64
				B64JSON   string `json:"b64_json"`
			}
		}
		if err := json.Unmarshal(first.body, &answer); err != nil || first.status != http.StatusOK || len(answer.Data) != 2 ||
			(answer.Data[1].Embedding == nil && answer.Data[1].B64JSON == "") {
			t.Errorf("%s: %d %s", path, first.status, first.body)
		}
		if string(repeat.body) != string(first.body) || repeat.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: a repeat got %d %s; want the same bytes, marked", path, repeat.status, repeat.body)
		}
	}
	if n := len(provider.Ledger()); n != 2 {
		t.Errorf("%d requests at the provider; want 2", n)
	}
}

func TestTokensAreCountedWithoutAJob(t *testing.T) {
	t.Parallel()
	provider := sim.ForTest(t, sim.Options{Models: map[string]sim.Mind{sim.AnyModel: {}}})
	w := newWorldAt(t, provider.URL())
	const counting = messages + "/count_tokens"
	if got := w.post(counting, claude); got.status != http.StatusOK || string(got.body) != `{"input_tokens":6}` {
		t.Errorf("%d %s; want 6 tokens", got.status, got.body)
	}
	if n := provider.TotalExecutions(); n != 0 {
		t.Errorf("%d executions; want none", n)
	}
	w.post(counting, hello).wantProblem(t, 422, onejob.CodeInvalidJob)
	w.post(counting, `{"model":"claude"}`).wantProblem(t, 502, onejob.CodeProviderFailed)
	w.post(counting, `{"model":"claude","messages":[],"temperature":1e999}`).wantProblem(t, 400, onejob.CodePayloadNotCanonical)
	if got, err := w.client.List(t.Context(), onejob.JobListParams{Owner: "alice"}); err != nil || len(got.Jobs) != 0 {
		t.Errorf("%d jobs, %v; want none", len(got.Jobs), err)
	}
}

func TestTheSameKeyWithOtherBytesIsAConflict(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.post(chat, hello, "Idempotency-Key", "k1")
	w.post(chat, strings.Replace(hello, "hello", "good-bye", 1), "Idempotency-Key", "k1").wantProblem(t, 409, onejob.CodeKeyConflict)
}

func TestCallsWithoutAKeyAreIntentsOfTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.post(chat, hello), w.post(chat, hello)
	if a.header.Get("Onejob-Intent") != "new" || a.header.Get("Onejob-Job-Id") == b.header.Get("Onejob-Job-Id") {
		t.Errorf("jobs %s and %s, %s", a.header.Get("Onejob-Job-Id"), b.header.Get("Onejob-Job-Id"), a.header.Get("Onejob-Intent"))
	}
	w.post(chat, strings.Replace(hello, `"chat"`, `"strict"`, 1)).wantProblem(t, 400, onejob.CodeKeyMissing)
}

func TestAnthropicsClientsComeWithTheirOwnHeader(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := w.post(messages, claude, "Authorization", "", "X-Api-Key", w.key)
	var message struct{ Type, Model string }
	if err := json.Unmarshal(got.body, &message); err != nil || got.status != 200 || message.Type != "message" {
		t.Errorf("%d %s", got.status, got.body)
	}
	w.post(messages, claude, "Authorization", "", "X-Api-Key", "oj_nobody").wantProblem(t, 401, onejob.CodeUnauthenticated)
	if got := w.post("/v1/jobs", `{}`, "Authorization", "", "X-Api-Key", w.key); got.status != http.StatusUnauthorized {
		t.Errorf("the header let somebody in elsewhere: %d", got.status)
	}
}

func TestALateAnswerIsWaitedForAndIsOneExecution(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "late=600ms")
	got := w.post(chat, brief, "Idempotency-Key", "k1")
	if got.status != http.StatusOK || got.header.Get("Onejob-Attempts") != "1" {
		t.Errorf("%d %s; want the late answer", got.status, got.body)
	}
	if n := len(w.provider.Ledger()); n != 1 {
		t.Errorf("%d requests at the provider; want 1", n)
	}
}

func TestSilenceIsDoubtAndNeverAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "silent")
	got := w.post(chat, brief, "Idempotency-Key", "k1", "Prefer", "wait=1")
	got.wantProblem(t, http.StatusConflict, onejob.CodeOutcomeUnknown)
	if got.header.Get("X-Should-Retry") != "false" || got.header.Get("Location") != "/v1/jobs/"+got.header.Get("Onejob-Job-Id") {
		t.Errorf("headers %v", got.header)
	}
	again := w.post(chat, brief, "Idempotency-Key", "k1", "Prefer", "wait=1")
	again.wantProblem(t, http.StatusConflict, onejob.CodeOutcomeUnknown)
	if n := len(w.provider.Ledger()); n != 1 {
		t.Errorf("%d requests at the provider; want 1", n)
	}
}

func TestWhatFailedForGoodFailsTheSameWayEachTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "status=400")
	first := w.post(chat, hello, "Idempotency-Key", "k1")
	first.wantProblem(t, http.StatusBadGateway, onejob.CodeProviderFailed)
	second := w.post(chat, hello, "Idempotency-Key", "k1")
	if string(first.body) != string(second.body) {
		t.Errorf("first %s, then %s", first.body, second.body)
	}
}

func TestWhoDoesNotWantToWaitGetsTheJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "late=500ms")
	got := w.post(chat, hello, "Idempotency-Key", "k1", "Prefer", "respond-async")
	if got.status != http.StatusAccepted || got.header.Get("Location") == "" || got.header.Get("Preference-Applied") != "respond-async" {
		t.Errorf("%d %v %s", got.status, got.header, got.body)
	}
}

// Its job is recorded and goes on without it.
func TestACallThatThereIsNoPlaceForIsToldItsJob(t *testing.T) {
	t.Parallel()
	m := newMouth(t)
	defer close(m.says)
	w := &world{t: t, store: newStore(), holding: 1}
	w.run(w.targets(m.URL), kinds(), map[string]frontdoor.Model{"chat": {Kind: "chat", API: frontdoor.APIChat}})
	m.say(t, head, word("hel"))
	first := w.read(chat, streamed, "Idempotency-Key", "k1")
	first.want(head + word("hel"))
	for key, body := range map[string]string{"k2": plain, "k3": streamed} {
		got := w.post(chat, body, "Idempotency-Key", key)
		got.wantProblem(t, http.StatusTooManyRequests, onejob.CodeOverloaded)
		if _, err := w.client.Get(t.Context(), "alice", got.header.Get("Onejob-Job-Id")); err != nil || got.header.Get("Retry-After") == "" || got.header.Get("X-Should-Retry") != "true" {
			t.Errorf("headers %v: %v; want the job, and when to come back", got.header, err)
		}
	}
}

func TestACallThatCannotBeServedTakesNoKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, tt := range []struct {
		name, path, body string
		status           int
		code             onejob.Code
	}{
		{"NoModel", chat, `{"messages":[]}`, 400, onejob.CodeInvalidRequest},
		{"AnotherModel", chat, `{"model":"none"}`, 404, onejob.CodeNotFound},
		{"AnotherRoute", messages, hello, 422, onejob.CodeInvalidJob},
		{"TargetsThatDiffer", chat, `{"model":"mixed"}`, 422, onejob.CodeInvalidJob},
		{"AList", chat, `[]`, 400, onejob.CodeInvalidRequest},
		{"TheSameMemberTwice", chat, `{"model":"chat","model":"brief"}`, 400, onejob.CodePayloadNotCanonical},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w.post(tt.path, tt.body, "Idempotency-Key", "k-"+tt.name).wantProblem(t, tt.status, tt.code)
			if got := w.post(chat, hello, "Idempotency-Key", "k-"+tt.name); got.status != http.StatusOK {
				t.Errorf("the key is taken: %d %s", got.status, got.body)
			}
		})
	}
}

// A kind that was taken out of the configuration does not deny the jobs that it has.
func TestAKeyAnswersThoughItsModelIsGone(t *testing.T) {
	t.Parallel()
	provider := newGated(t)
	provider.open()
	before := newWorldAt(t, provider.url)
	first := before.post(chat, hello, "Idempotency-Key", "k1")
	if first.status != http.StatusOK {
		t.Fatalf("%d %s", first.status, first.body)
	}
	after := &world{t: t, store: before.store}
	left := kinds()
	delete(left, "chat")
	after.run(after.targets(provider.url), left, map[string]frontdoor.Model{
		"vectors": {Kind: "vectors", API: frontdoor.APIEmbeddings}, "brief": {Kind: "brief", API: frontdoor.APIChat},
	})
	repeat := after.post(chat, hello, "Idempotency-Key", "k1")
	if repeat.status != http.StatusOK || string(repeat.body) != string(first.body) || repeat.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("a repeat is answered %d %s; want the first answer, as a replay", repeat.status, repeat.body)
	}
	for path, model := range map[string]string{chat: "none", messages: "brief"} {
		after.post(path, strings.Replace(hello, `"chat"`, `"`+model+`"`, 1), "Idempotency-Key", "k1").wantProblem(t, http.StatusConflict, onejob.CodeKeyConflict)
	}
	after.post(chat, hello, "Idempotency-Key", "k2").wantProblem(t, http.StatusNotFound, onejob.CodeNotFound)
	after.post(chat, hello).wantProblem(t, http.StatusNotFound, onejob.CodeNotFound)
	provider.wantCalls(t, 1)
}

func TestTheModelsAreListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/openai/v1/models", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.key)
	var list struct {
		Object string
		Data   []struct{ ID, Object string }
	}
	got := w.do(r)
	if err := json.Unmarshal(got.body, &list); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, m := range list.Data {
		ids = append(ids, m.ID)
	}
	if want := []string{"again", "alive", "brief", "chat", "claude", "mixed", "pictures", "strict", "vectors"}; !slices.Equal(ids, want) || list.Object != "list" {
		t.Errorf("models %v; want %v", ids, want)
	}
}
