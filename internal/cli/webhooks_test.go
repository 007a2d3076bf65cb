package cli_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/internal/cli"
	"github.com/onejob-dev/onejob/webhook"
)

const (
	hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	hookBody   = `{"type":"job.succeeded","timestamp":"2026-01-02T03:04:05Z","data":{"id":"job_1","state":"succeeded"}}`
)

// listening is a receiver that runs until the test ends.
type listening struct {
	t              *testing.T
	url            string
	stdout, stderr *lockedBuffer
	stop           func() int // ends it and returns its exit code
}

func listen(t *testing.T, env map[string]string, args ...string) *listening {
	t.Helper()
	address := freePort(t)
	l := &listening{t: t, url: "http://" + address + "/", stdout: &lockedBuffer{}, stderr: &lockedBuffer{}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Main(ctx, cli.Env{
			Stdin: strings.NewReader(""), Stdout: l.stdout, Stderr: l.stderr, Getenv: func(name string) string { return env[name] },
		}, append([]string{"onejob", "webhooks", "listen", "--listen", address}, args...))
	}()
	l.stop = sync.OnceValue(func() int { cancel(); return <-ended })
	t.Cleanup(func() { l.stop() })
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		res, err := http.Get(l.url)
		if err == nil {
			_ = res.Body.Close()
			return l
		}
		if time.Now().After(deadline) {
			t.Fatalf("nobody listens: %v\n%s", err, l.stderr)
		}
	}
}

// post sends a webhook, signed at a time, and returns the status.
func (l *listening) post(id, body string, at time.Time, secret onejob.Secret) int {
	l.t.Helper()
	req, err := http.NewRequestWithContext(l.t.Context(), http.MethodPost, l.url, strings.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if err := webhook.Sign(req.Header, webhook.SignParams{ID: id, At: at, Body: []byte(body), Secrets: []onejob.Secret{secret}}); err != nil {
		l.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		l.t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

func TestAReceiverPrintsWhatIsGenuineAndRefusesTheRest(t *testing.T) {
	t.Parallel()
	l := listen(t, map[string]string{"ONEJOB_WEBHOOK_SECRET": hookSecret}, "-o", "jsonl")
	now := time.Now()
	for name, tt := range map[string]struct {
		body   string
		at     time.Time
		secret onejob.Secret
		want   int
	}{
		"AnotherSecret": {hookBody, now, webhook.NewSecret(), 401},
		"TooOld":        {hookBody, now.Add(-10 * time.Minute), hookSecret, 401},
		"NoEvent":       {`{"a":1}`, now, hookSecret, 400},
		"NoJSON":        {`charge`, now, hookSecret, 400},
		"TooLarge":      {`{"type":"x","data":"` + strings.Repeat("x", 2<<20) + `"}`, now, hookSecret, 400},
	} {
		if got := l.post("msg_0", tt.body, tt.at, tt.secret); got != tt.want {
			t.Errorf("%s: status %d; want %d", name, got, tt.want)
		}
	}
	if s := l.stdout.String(); s != "" {
		t.Errorf("it printed %q; want nothing that is refused", s)
	}
	for range 2 {
		if got := l.post("msg_1", hookBody, now, hookSecret); got != http.StatusOK {
			t.Errorf("status %d; want 200", got)
		}
	}
	dec := json.NewDecoder(strings.NewReader(l.stdout.String()))
	for times := 1; times <= 2; times++ {
		var line struct {
			ID       string `json:"webhook_id"`
			Times    int
			Answered int
			Body     json.RawMessage
		}
		if err := dec.Decode(&line); err != nil || line.ID != "msg_1" || line.Times != times || line.Answered != 200 || string(line.Body) != hookBody {
			t.Errorf("line %d: %+v, %v\n%s", times, line, err, line.Body)
		}
	}
	if code := l.stop(); code != cli.ExitOK {
		t.Errorf("exit code %d; want 0", code)
	}
	if s := l.stderr.String(); strings.Contains(s, hookSecret) || !strings.Contains(s, "refused with 401") || !strings.Contains(s, "endpoints:") {
		t.Errorf("stderr %q", s)
	}
}

func TestAReceiverMakesASecretAndAnswersAsItIsTold(t *testing.T) {
	t.Parallel()
	l := listen(t, nil, "--answer", "500")
	_, made, found := strings.Cut(l.stderr.String(), "export ONEJOB_WEBHOOK_SECRET=")
	secret := onejob.Secret(strings.TrimSpace(made))
	if !found || !strings.Contains(l.stderr.String(), `{url: "`+l.url+`", secret: "${env:ONEJOB_WEBHOOK_SECRET}"}`) {
		t.Fatalf("it says %q", l.stderr)
	}
	for range 2 {
		if got := l.post("msg_1", hookBody, time.Now(), secret); got != http.StatusInternalServerError {
			t.Errorf("status %d; want 500", got)
		}
	}
	lines := strings.Split(strings.TrimSpace(l.stdout.String()), "\n")
	if len(lines) != 2 || !strings.HasSuffix(lines[0], "msg_1  job.succeeded    job_1 succeeded  answered 500") || !strings.HasSuffix(lines[1], "answered 500  again") {
		t.Errorf("it printed %q", lines)
	}
}

// What is forwarded can be verified anew, and the application's answer counts.
func TestAReceiverForwardsByteForByte(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		id, err := webhook.Verify(webhook.VerifyParams{Secrets: []onejob.Secret{hookSecret}, Header: r.Header, Body: body})
		if err != nil || id != "msg_1" || r.URL.Path != "/hooks" {
			t.Errorf("%s %s: id %q, %v", r.Method, r.URL, id, err)
		}
		if asked.Add(1) == 1 {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(app.Close)
	l := listen(t, nil, "--secret", hookSecret, "--forward", app.URL+"/hooks")
	for _, want := range []int{http.StatusTemporaryRedirect, http.StatusNoContent} {
		if got := l.post("msg_1", hookBody, time.Now(), hookSecret); got != want {
			t.Errorf("status %d; want %d", got, want)
		}
	}
	app.Close()
	if got := l.post("msg_1", hookBody, time.Now(), hookSecret); got != http.StatusBadGateway || !strings.Contains(l.stderr.String(), "not forwarded") {
		t.Errorf("status %d; want 502\n%s", got, l.stderr)
	}
}

func TestAReceiverRefusesToStartWrongly(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--secret", "password"},
		{"--secret", "whsec_"},
		{"--answer", "99"},
		{"--answer", "600"},
		{"--forward", "ftp://x"},
		{"--forward", "/hooks"},
		{"--forward", "http://x/", "--answer", "500"},
		{"now"},
	} {
		got := run(t.Context(), nil, "", append([]string{"webhooks", "listen"}, args...)...)
		if got.code != cli.ExitUsage || strings.Contains(got.stderr, "listening") || strings.Contains(got.stderr, "password") {
			t.Errorf("%q: exit code %d; want 2\n%s", args, got.code, got.stderr)
		}
	}
}

// The clients of the API ask for what their flags say and show what they get.
func TestWebhookCommandsAskAndShow(t *testing.T) {
	t.Parallel()
	const (
		delivery = `{"id":"msg_1","job_id":"job_1","endpoint":"ep_1","event":"job.failed","state":"pending","tries":2,"status":500,"error":"it answered 500","created_at":"2026-01-02T03:04:05Z"}`
		endpoint = `{"id":"ep_1","url":"https://app.example/hooks","events":["job.blocked"],"disabled":{"reason":"it answered 410","since":"2026-01-02T03:04:05Z"}}`
	)
	tests := []struct {
		args          []string
		asks, answers string
		stdout        []string
	}{
		{
			[]string{"list", "--job", "job_1", "--state", "failed", "--endpoint", "ep_1"},
			"GET /v1/deliveries?endpoint=ep_1&job_id=job_1&limit=50&state=failed", `{"items":[` + delivery + `]}`,
			[]string{"ID     EVENT", "msg_1  job.failed  job_1  ep_1      pending  2      500"},
		},
		{[]string{"list", "-o", "jsonl"}, "GET /v1/deliveries?limit=50", `{"items":[` + delivery + `]}`, []string{delivery}},
		{[]string{"get", "msg_1"}, "GET /v1/deliveries/msg_1", delivery, []string{"error     it answered 500"}},
		{[]string{"resend", "msg_1"}, "POST /v1/deliveries/msg_1:resend", delivery, []string{"state     pending"}},
		{[]string{"resend", "msg_1", "-o", "jsonl"}, "POST /v1/deliveries/msg_1:resend", delivery, []string{delivery}},
		{
			[]string{"endpoints"},
			"GET /v1/webhook-endpoints", `{"items":[` + endpoint + `,{"id":"ep_2","events":[]}]}`,
			[]string{"job.blocked  disabled since 2026-01-02T03:04:05Z: it answered 410", "not configured"},
		},
		{[]string{"enable", "ep_1"}, "POST /v1/webhook-endpoints/ep_1:enable", `{"id":"ep_1","url":"https://a","events":[]}`, []string{"state  enabled"}},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			t.Parallel()
			var asked lockedBuffer
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = asked.Write([]byte(r.Method + " " + r.URL.String()))
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(tt.answers))
			}))
			t.Cleanup(srv.Close)
			got := run(t.Context(), map[string]string{"ONEJOB_SERVER": srv.URL}, "", append([]string{"webhooks"}, tt.args...)...)
			if got.code != cli.ExitOK || asked.String() != tt.asks {
				t.Errorf("exit code %d, asked %q; want 0, %q\n%s", got.code, asked.String(), tt.asks, got.stderr)
			}
			for _, want := range tt.stdout {
				if !strings.Contains(got.stdout, want) {
					t.Errorf("stdout lacks %q:\n%s", want, got.stdout)
				}
			}
		})
	}
}

func TestSubmitNamesTheEndpointThatIsTold(t *testing.T) {
	t.Parallel()
	var body lockedBuffer
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(&body, r.Body)
		_, _ = w.Write([]byte(jobJSON))
	}))
	t.Cleanup(srv.Close)
	got := run(t.Context(), map[string]string{"ONEJOB_SERVER": srv.URL}, "1", "submit", "k", "--key", "k1", "--input", "-", "--webhook", "https://app.example/hooks")
	if want := `{"kind":"k","input":1,"webhook":{"url":"https://app.example/hooks"}}`; got.code != cli.ExitOK || body.String() != want {
		t.Errorf("%+v sent %s; want %s", got, body.String(), want)
	}
}
