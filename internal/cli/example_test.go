package cli_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onejob-dev/onejob/internal/cli"
)

// example is a server of one of the examples, whose provider the test plays.
type example struct {
	t   *testing.T
	url string
	env map[string]string // of its client
}

// serveExample serves an example, changed only where it names its provider, its
// store and itself.
func serveExample(t *testing.T, file, vendor string, provider http.Handler, change ...string) *example {
	t.Helper()
	srv := httptest.NewServer(provider)
	t.Cleanup(srv.Close)
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", file))
	if err != nil {
		t.Fatal(err)
	}
	listen, dir := freePort(t), t.TempDir()
	pairs := append([]string{vendor, srv.URL, "https://onejob.example", "http://" + listen, "store: sqlite:onejob.db\n", ""}, change...)
	path, store := filepath.Join(dir, file), "sqlite:"+filepath.Join(dir, "onejob.db")
	changed := strings.NewReplacer(pairs...).Replace(string(text))
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"REPLICATE_KEY": "r8_key", "REPLICATE_WEBHOOK_KEY": webhookKey, "FAL_KEY": "fal_key"}
	key := strings.TrimSpace(run(t.Context(), nil, "", "keys", "create", "--owner", "o", "--role", "operator", "--store", store).stdout)
	serving, stop := context.WithCancel(t.Context())
	served := make(chan outcome, 1)
	go func() {
		served <- run(serving, env, "", "serve", "--config", path, "--store", store, "--listen", listen)
	}()
	t.Cleanup(func() {
		stop()
		if got := <-served; got.code != cli.ExitOK {
			t.Errorf("serve: %+v", got)
		}
	})
	waitUntilReady(t, listen, served)
	return &example{t: t, url: "http://" + listen, env: map[string]string{"ONEJOB_API_KEY": key, "ONEJOB_SERVER": listen}}
}

const webhookKey = "whsec_dGhlIHdlYmhvb2sga2V5"

func (x *example) submit(key, input string) string {
	x.t.Helper()
	got := run(x.t.Context(), x.env, input, "submit", "picture", "--key", key, "--input", "-")
	id, _, _ := strings.Cut(got.stdout, " ")
	if got.code != cli.ExitOK || !strings.HasPrefix(id, "job_") {
		x.t.Fatalf("submit: %+v", got)
	}
	return id
}

// exampleJob is what a test reads of a job.
type exampleJob struct {
	State    string          `json:"state"`
	Result   json.RawMessage `json:"result"`
	Error    *struct{ Code, Message string }
	Attempts []struct{ ID, State string } `json:"attempts"`
}

func (x *example) job(id string) (j exampleJob) {
	x.t.Helper()
	got := run(x.t.Context(), x.env, "", "jobs", "get", id, "-o", "json")
	if err := json.Unmarshal([]byte(got.stdout), &j); err != nil {
		x.t.Fatalf("jobs get: %+v", got)
	}
	j.Result = bytes.Join(bytes.Fields(j.Result), nil)
	return j
}

func (x *example) until(id, state string) exampleJob {
	x.t.Helper()
	var j exampleJob
	for start := time.Now(); time.Since(start) < 20*time.Second; {
		if j = x.job(id); j.State == state {
			return j
		}
		pauseFor(20 * time.Millisecond)
	}
	x.t.Fatalf("job %s is %+v; want it %s", id, j, state)
	return j
}

// accepted waits until the provider's id is committed, and returns the attempt's id.
func (x *example) accepted(id string) string {
	x.t.Helper()
	for start := time.Now(); time.Since(start) < 20*time.Second; {
		if j := x.job(id); len(j.Attempts) == 1 {
			got := run(x.t.Context(), x.env, "", "attempts", "get", j.Attempts[0].ID)
			if strings.Contains(got.stdout, "accepted") && strings.Contains(got.stdout, "asked again") {
				return j.Attempts[0].ID
			}
		}
		pauseFor(20 * time.Millisecond)
	}
	x.t.Fatalf("job %s has no accepted attempt: %+v", id, x.job(id))
	return ""
}

func pauseFor(d time.Duration) { <-time.After(d) }

// fal says COMPLETED of work that failed, and shows it only where the result is
// fetched (TanStack/ai#396).
type fal struct {
	mu     sync.Mutex
	made   int
	status string
	result int // the status of the result
	asked  int
}

func (p *fal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Header.Get("Authorization") != "Key fal_key":
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprint(w, `{"detail":"no key"}`)
	case r.Method == http.MethodPost && r.URL.Path == "/fal-ai/flux/dev":
		p.made++
		_, _ = fmt.Fprintf(w, `{"status":"IN_QUEUE","request_id":"req-%d"}`, p.made)
	case r.URL.Path == fmt.Sprintf("/fal-ai/flux/requests/req-%d/status", p.made):
		p.asked++
		_, _ = fmt.Fprintf(w, `{"status":%q,"request_id":"req-%d"}`, p.status, p.made)
	case r.URL.Path == fmt.Sprintf("/fal-ai/flux/requests/req-%d", p.made):
		w.WriteHeader(p.result)
		if p.result == http.StatusOK {
			_, _ = fmt.Fprint(w, `{"images":[{"url":"https://fal.example/1.png"}]}`)
			return
		}
		_, _ = fmt.Fprint(w, `{"detail":"the prompt was not allowed"}`)
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprint(w, `{"detail":"no such path"}`)
	}
}

func (p *fal) say(status string, result int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status, p.result = status, result
}

func (p *fal) count() (made, asked int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.made, p.asked
}

func TestTheFalExampleTellsCompletedFromDone(t *testing.T) {
	t.Parallel()

	provider := &fal{}
	provider.say("IN_QUEUE", http.StatusNotFound)
	x := serveExample(t, "fal.yaml", "https://queue.fal.run", provider, "every: 1s", "every: 200ms")
	good := x.submit("good", `{"prompt":"a cat"}`)
	x.accepted(good)
	provider.say("IN_PROGRESS", http.StatusNotFound)
	provider.say("COMPLETED", http.StatusOK)
	if j := x.until(good, "succeeded"); !strings.Contains(string(j.Result), "1.png") {
		t.Errorf("the result is %s", j.Result)
	}
	provider.say("COMPLETED", http.StatusUnprocessableEntity)
	bad := x.submit("bad", `{"prompt":"not allowed"}`)
	j := x.until(bad, "failed")
	got := run(t.Context(), x.env, "", "attempts", "get", j.Attempts[0].ID, "-o", "json")
	if !strings.Contains(got.stdout, `"executed_failed"`) || !strings.Contains(got.stdout, "the prompt was not allowed") {
		t.Errorf("the attempt: %s; want it executed and failed, in the provider's words", got.stdout)
	}
	if made, _ := provider.count(); made != 2 {
		t.Errorf("%d pictures were asked for; want 2", made)
	}
}

func TestReconcileAsksTheProviderNow(t *testing.T) {
	t.Parallel()

	provider := &fal{}
	provider.say("IN_QUEUE", http.StatusNotFound)
	x := serveExample(t, "fal.yaml", "https://queue.fal.run", provider, "every: 1s", "every: 1h")
	id := x.submit("one", `{"prompt":"a cat"}`)
	attempt := x.accepted(id)
	// Until the first answer is written down, the next question is the end of its lease.
	for start := time.Now(); ; pauseFor(20 * time.Millisecond) {
		var seen struct {
			NextProbeAt time.Time `json:"next_probe_at"`
		}
		shown := run(t.Context(), x.env, "", "attempts", "get", attempt, "-o", "json")
		err := json.Unmarshal([]byte(shown.stdout), &seen)
		if _, asked := provider.count(); err == nil && asked == 1 && time.Until(seen.NextProbeAt) > 10*time.Minute {
			break
		}
		if time.Since(start) > 20*time.Second {
			t.Fatalf("it is asked about at %s, %v; want that to be far off", seen.NextProbeAt, err)
		}
	}
	provider.say("COMPLETED", http.StatusOK)
	if got := run(t.Context(), x.env, "", "attempts", "reconcile", attempt); got.code != cli.ExitOK || !strings.Contains(got.stdout, "provider id") {
		t.Errorf("reconcile: %+v", got)
	}
	x.until(id, "succeeded")
	if got := run(t.Context(), x.env, "", "attempts", "reconcile", attempt); got.code != cli.ExitConflict {
		t.Errorf("reconcile of what has ended: %+v; want a conflict", got)
	}
	if made, _ := provider.count(); made != 1 {
		t.Errorf("%d pictures were asked for; want 1", made)
	}
}

// replicate takes predictions and reports them to the webhook of the request.
type replicate struct {
	mu    sync.Mutex
	hooks []string
	state string
	body  string
}

func (p *replicate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Header.Get("Authorization") != "Bearer r8_key":
		w.WriteHeader(http.StatusUnauthorized)
	case r.Method == http.MethodPost && r.URL.Path == "/v1/predictions":
		var body struct {
			Version, Webhook string
			Input            json.RawMessage
		}
		_ = json.NewDecoder(r.Body).Decode(&body)
		p.hooks, p.body = append(p.hooks, body.Webhook), fmt.Sprintf("%s %s", body.Version, body.Input)
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"id":"p-%d","status":"starting","error":null}`, len(p.hooks))
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/cancel"):
		p.state = "canceled"
		_, _ = fmt.Fprint(w, `{"status":"canceled"}`)
	case r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/v1/predictions/p-"):
		_, _ = fmt.Fprintf(w, `{"id":%q,"status":%q,"output":["looked-up"]}`, strings.TrimPrefix(r.URL.Path, "/v1/predictions/"), p.state)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (p *replicate) last() (hook, body string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hooks[len(p.hooks)-1], p.body
}

// reports signs and sends what Replicate does.
func (p *replicate) reports(t *testing.T, hook, body, key string) int {
	t.Helper()
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(key, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, raw)
	mac.Write([]byte("msg_1." + stamp + "." + body))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, hook, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{
		"Content-Type": {"application/json"}, "Webhook-Id": {"msg_1"}, "Webhook-Timestamp": {stamp},
		"Webhook-Signature": {"v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))},
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode
}

func TestTheReplicateExampleHearsByReportAndByLookUp(t *testing.T) {
	t.Parallel()

	provider := &replicate{state: "processing"}
	x := serveExample(t, "replicate.yaml", "https://api.replicate.com", provider, "every: 2s", "every: 200ms")
	id := x.submit("one", `{"version":"v9","input":{"prompt":"a cat"}}`)
	x.accepted(id)
	hook, body := provider.last()
	if body != `v9 {"prompt":"a cat"}` || !strings.HasPrefix(hook, x.url+"/v1/callbacks/replicate/") {
		t.Errorf("it was asked for %s, to report to %s", body, hook)
	}
	const done = `{"id":"p-1","status":"succeeded","output":["reported"],"error":null}`
	if status := provider.reports(t, hook, done, "whsec_YW5vdGhlciBrZXk="); status != http.StatusUnauthorized {
		t.Errorf("a report that is signed with another key is answered %d; want 401", status)
	}
	if j := x.job(id); j.State != "running" {
		t.Errorf("after it the job is %s; want it running", j.State)
	}
	if status := provider.reports(t, hook, done, webhookKey); status != http.StatusOK {
		t.Errorf("the report is answered %d", status)
	}
	if j := x.until(id, "succeeded"); string(j.Result) != `["reported"]` {
		t.Errorf("the result is %s; want the output that was reported", j.Result)
	}

	lost := x.submit("lost", `{"version":"v9","input":{}}`) // its report never comes
	x.accepted(lost)
	provider.mu.Lock()
	provider.state = "succeeded"
	provider.mu.Unlock()
	if j := x.until(lost, "succeeded"); string(j.Result) != `["looked-up"]` {
		t.Errorf("the result is %s; want the output that was looked up", j.Result)
	}
	provider.mu.Lock()
	provider.state = "processing"
	provider.mu.Unlock()
	cancelled := x.submit("cancelled", `{"version":"v9","input":{}}`)
	x.accepted(cancelled)
	if got := run(t.Context(), x.env, "", "jobs", "cancel", cancelled); got.code != cli.ExitOK {
		t.Errorf("cancel: %+v", got)
	}
	x.until(cancelled, "cancelled")
}
