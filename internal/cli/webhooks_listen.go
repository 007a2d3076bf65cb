package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/webhook"
)

const (
	defaultListen   = "127.0.0.1:4646"
	secretVariable  = "ONEJOB_WEBHOOK_SECRET"
	maxWebhookBytes = 2 << 20 // a result in it has 256 KiB at most
	maxReceiving    = 64      // at once
	maxRemembered   = 10_000  // webhook-ids
	forwardWithin   = 15 * time.Second
	receiveWithin   = 30 * time.Second
)

func webhooksListenCommand(env Env) *cli.Command {
	return &cli.Command{
		Name: "listen", Usage: "receive webhooks while developing: verify them, print them, answer",
		Description: `It prints the lines of configuration that make a server send here. Every webhook is
one line, with "again" when its id was seen before; what does not verify is refused
with 401, and said on stderr.

  onejob webhooks listen
  onejob webhooks listen --forward http://127.0.0.1:3000/hooks -o jsonl
  onejob webhooks listen --answer 500

The secret is taken from --secret or ` + secretVariable + `; without one a fresh one is
made and printed.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Value: defaultListen, Usage: "`ADDRESS` to listen at"},
			&cli.StringFlag{Name: "secret", Usage: "`SECRET` that the server signs with, whsec_… (" + secretVariable + ")"},
			&cli.StringFlag{Name: "forward", Usage: "`URL` to send what verifies to, byte for byte; its status is the answer"},
			&cli.IntFlag{Name: "answer", Value: http.StatusOK, Usage: "`STATUS` to answer with, as in 500 to see what is sent again"},
			outputFlag(),
		},
		Action: func(ctx context.Context, c *cli.Command) error { return runWebhooksListen(ctx, env, c) },
	}
}

func runWebhooksListen(ctx context.Context, env Env, c *cli.Command) error {
	r, fresh, err := newReceiver(env, c)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.String("listen"))
	if err != nil {
		return cannotListen(c.String("listen"), err)
	}
	r.introduce("http://"+listener.Addr().String()+"/", fresh)
	srv := &http.Server{
		Handler: r, ReadHeaderTimeout: receiveWithin, ReadTimeout: receiveWithin, IdleTimeout: time.Minute,
		WriteTimeout: receiveWithin + forwardWithin, MaxHeaderBytes: 64 << 10,
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
		return srv.Close()
	}
}

// receiver verifies webhooks, prints them and answers.
type receiver struct {
	env     Env
	form    string
	secret  onejob.Secret
	status  int
	forward *url.URL // nil: nowhere
	http    *http.Client
	room    chan struct{}

	mu   sync.Mutex
	seen map[string]int // webhooks by id
	ids  []string       // of seen, oldest first
}

// newReceiver reports whether the secret was made on the spot.
func newReceiver(env Env, c *cli.Command) (_ *receiver, fresh bool, err error) {
	if err := noArguments(c); err != nil {
		return nil, false, err
	}
	r := &receiver{
		env: env, form: c.String("output"), status: c.Int("answer"), room: make(chan struct{}, maxReceiving), seen: map[string]int{},
		secret: onejob.Secret(cmp.Or(c.String("secret"), env.Getenv(secretVariable))),
		http: &http.Client{
			Transport:     &http.Transport{DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext, MaxIdleConnsPerHost: maxReceiving},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Timeout:       forwardWithin,
		},
	}
	if r.secret == "" {
		r.secret, fresh = webhook.NewSecret(), true
	}
	if err := webhook.CheckSecret(r.secret); err != nil {
		return nil, false, usage(c, "%w", err)
	}
	if r.status < 200 || r.status > 599 {
		return nil, false, usage(c, "--answer is a status from 200 to 599, not %d", r.status)
	}
	if address := c.String("forward"); address != "" {
		if c.IsSet("answer") {
			return nil, false, usage(c, "with --forward the answer is the application's: leave out --answer")
		}
		r.forward, err = url.Parse(address)
		if err != nil || r.forward.Host == "" || (r.forward.Scheme != "http" && r.forward.Scheme != "https") {
			return nil, false, usage(c, "--forward: %q is not a URL, as in http://127.0.0.1:3000/hooks", address)
		}
	}
	return r, fresh, nil
}

// introduce says how to make a server send here. A secret that was given is not
// repeated.
func (r *receiver) introduce(address string, fresh bool) {
	say(r.env, "listening for webhooks at %s; add to the server's configuration:\n", address)
	say(r.env, "webhooks:\n  allow: [127.0.0.0/8]   # only while developing\n  endpoints:\n    - {url: %q, secret: \"${env:%s}\"}\n", address, secretVariable)
	if fresh {
		say(r.env, "and where the server is started:\nexport %s=%s\n", secretVariable, r.secret.Reveal())
	}
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	switch req.Method {
	case http.MethodPost:
	case http.MethodGet, http.MethodHead:
		answerText(w, http.StatusOK, "webhooks are sent here by POST")
		return
	default:
		w.Header().Set("Allow", "GET, POST")
		answerText(w, http.StatusMethodNotAllowed, "webhooks are sent here by POST")
		return
	}
	select {
	case r.room <- struct{}{}:
		defer func() { <-r.room }()
	default:
		answerText(w, http.StatusServiceUnavailable, "too many webhooks at once")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxWebhookBytes))
	if err != nil {
		r.refuse(w, http.StatusBadRequest, "its body did not arrive whole, or is too large")
		return
	}
	id, err := webhook.Verify(webhook.VerifyParams{Secrets: []onejob.Secret{r.secret}, Header: req.Header, Body: body, Now: r.env.NowFunc()})
	if err != nil {
		r.refuse(w, http.StatusUnauthorized, err.Error())
		return
	}
	got := received{ID: id, At: r.env.NowFunc().UTC(), Body: body, Status: r.status}
	if got.read() != nil {
		r.refuse(w, http.StatusBadRequest, "its body is not an event")
		return
	}
	got.Times = r.count(id)
	if r.forward != nil {
		got.Status = r.pass(req, body)
	}
	r.print(&got)
	answerText(w, got.Status, http.StatusText(got.Status))
}

// refuse answers what is not a webhook of ours.
func (r *receiver) refuse(w http.ResponseWriter, status int, why string) {
	r.mu.Lock()
	say(r.env, "refused with %d: %s", status, clean(why))
	r.mu.Unlock()
	answerText(w, status, why)
}

func answerText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	if status != http.StatusNoContent && status != http.StatusNotModified {
		_, _ = io.WriteString(w, text+"\n") // the sender has left
	}
}

// count returns how often a webhook was received, this time included, as far as
// it is remembered.
func (r *receiver) count(id string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[id]++; r.seen[id] == 1 {
		r.ids = append(r.ids, id)
	}
	if len(r.ids) > maxRemembered {
		delete(r.seen, r.ids[0])
		r.ids = r.ids[1:]
	}
	return r.seen[id]
}

// pass sends a webhook on as it came and returns the application's status, 502 if
// none came. It is sent once: who sent it here sends it again.
func (r *receiver) pass(req *http.Request, body []byte) int {
	on, err := http.NewRequestWithContext(req.Context(), http.MethodPost, r.forward.String(), bytes.NewReader(body))
	if err != nil {
		return http.StatusBadGateway
	}
	on.GetBody = nil
	for _, name := range []string{webhook.HeaderID, webhook.HeaderTimestamp, webhook.HeaderSignature, "Content-Type", "User-Agent"} {
		on.Header.Set(name, req.Header.Get(name))
	}
	res, err := r.http.Do(on)
	if err != nil {
		r.mu.Lock()
		say(r.env, "not forwarded: %v", rootCause(err))
		r.mu.Unlock()
		return http.StatusBadGateway
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxWebhookBytes)) // for the connection to be used again
	return res.StatusCode
}

// received is one webhook as it is printed.
type received struct {
	ID     string          `json:"webhook_id"`
	Times  int             `json:"times"` // received so far, this one included
	At     time.Time       `json:"received_at"`
	Status int             `json:"answered"`
	Body   json.RawMessage `json:"body"`

	event struct {
		Type onejob.WebhookEvent `json:"type"`
		Data struct {
			ID        string          `json:"id"`
			State     onejob.JobState `json:"state"`
			AttemptID string          `json:"attempt_id"`
		} `json:"data"`
	}
}

func (g *received) read() error {
	if err := json.Unmarshal(g.Body, &g.event); err != nil {
		return err
	}
	if g.event.Type == "" {
		return errors.New("it has no type")
	}
	return nil
}

// print writes one line, or one JSON object.
func (r *receiver) print(got *received) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.form != formTable {
		raw, err := json.Marshal(got)
		if err != nil {
			return // its body was read as JSON before
		}
		if r.form == formJSON {
			_ = printJSON(r.env.Stdout, raw)
			return
		}
		_ = printJSONLine(r.env.Stdout, raw)
		return
	}
	e := &got.event
	line := fmt.Sprintf("%s  %s  %-15s  %s %s", when(got.At), got.ID, e.Type, e.Data.ID, e.Data.State)
	if e.Data.AttemptID != "" {
		line += " " + e.Data.AttemptID
	}
	line += fmt.Sprintf("  answered %d", got.Status)
	if got.Times > 1 {
		line += "  again"
	}
	_, _ = fmt.Fprintln(r.env.Stdout, clean(line))
}
