package webhook_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/memory"
	"github.com/onejob-dev/onejob/webhook"
)

// world is a store whose jobs are told to endpoints, and a sender.
type world struct {
	t       *testing.T
	store   *memory.Store
	client  *onejob.Client
	sender  *webhook.Sender
	stop    func() // drains the sender; safe to repeat
	tries   tally
	log     syncBuffer
	bodies  atomic.Int32 // how often a body was made
	signals *onejob.Signals
}

// syncBuffer may be written and read at once.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// tally observes tries.
type tally struct {
	mu      sync.Mutex
	results map[string]int // "endpoint result"
}

func (c *tally) WebhookTried(endpoint, result string, _ time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.results == nil {
		c.results = map[string]int{}
	}
	c.results[endpoint+" "+result]++
}

func (c *tally) of(endpoint, result string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.results[endpoint+" "+result]
}

// wire answers requests inside a bubble.
type wire func(r *http.Request, body []byte) (*http.Response, error)

func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	return w(r, body)
}

func say(status int, header ...string) (*http.Response, error) {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: http.NoBody}, nil
}

var testSecret = webhook.NewSecret()

func at(url string) webhook.Endpoint { return webhook.Endpoint{URL: url, Secret: testSecret} }

// in runs a test in a bubble, where time is free, against endpoints that answer by a
// wire.
func in(t *testing.T, o webhook.Options, answers wire, do func(w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, o, nil)
		w.sender.OverWire(answers)
		w.run()
		defer w.stop()
		do(w)
	})
}

// open makes a world whose sender does not run yet.
func open(t *testing.T, o webhook.Options, wrap func(webhook.Store) webhook.Store) *world {
	t.Helper()
	w := &world{t: t, store: memory.Open(memory.Options{}), signals: &onejob.Signals{}}
	o.Signals, o.Observer = w.signals, &w.tries
	o.Logger = slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if o.BodyFunc == nil {
		o.BodyFunc = func(d onejob.Delivery, j *onejob.Job) ([]byte, error) {
			return fmt.Appendf(nil, `{"type":%q,"job":%q,"state":%q,"made":%d}`, d.Event, j.ID, j.State, w.bodies.Add(1)), nil
		}
	}
	var err error
	w.client, err = onejob.New(w.store, onejob.Options{
		Secret: []byte("a secret of sixteen"), Signals: w.signals,
		Kinds:         map[string]onejob.Kind{"k": {Policy: onejob.Policy{Effect: onejob.EffectNone, Targets: []string{"a"}}}},
		SubscribeFunc: webhook.SubscribeFunc(o.Endpoints),
	})
	if err != nil {
		t.Fatal(err)
	}
	var store webhook.Store = w.store
	if wrap != nil {
		store = wrap(store)
	}
	if w.sender, err = webhook.New(store, o); err != nil {
		t.Fatal(err)
	}
	w.stop = func() {}
	return w
}

func (w *world) run() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := w.sender.Run(ctx); err != nil {
			w.t.Errorf("the sender ended with %v", err)
		}
	}()
	w.stop = func() {
		cancel()
		<-done
	}
}

// end records an intent and ends its job at once.
func (w *world) end(key string) *onejob.Job {
	w.t.Helper()
	return w.endFor("shop", key, "")
}

func (w *world) endFor(owner, key, url string) *onejob.Job {
	w.t.Helper()
	job, _, err := w.client.Submit(w.t.Context(), onejob.SubmitParams{Owner: owner, Key: key, Kind: "k", Input: []byte(`{}`), Webhook: url})
	if err != nil {
		w.t.Fatal(err)
	}
	if job, err = w.client.Cancel(w.t.Context(), onejob.JobCancelParams{ID: job.ID, Owner: owner}); err != nil || !job.State.Terminal() {
		w.t.Fatalf("cancelled: %+v, %v", job, err)
	}
	return job
}

// deliveries lists the outbox, newest first.
func (w *world) deliveries() []onejob.Delivery {
	w.t.Helper()
	page, err := w.client.Deliveries(w.t.Context(), onejob.DeliveryListParams{Limit: 200})
	if err != nil {
		w.t.Fatal(err)
	}
	return page.Deliveries
}

// only returns the one delivery there is.
func (w *world) only() onejob.Delivery {
	w.t.Helper()
	all := w.deliveries()
	if len(all) != 1 {
		w.t.Fatalf("%d deliveries; want 1", len(all))
	}
	return all[0]
}

// until polls, in time that is free in a bubble and short outside.
func (w *world) until(what string, done func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("waited in vain until %s; the log says\n%s", what, w.log.String())
		}
	}
}

func (w *world) untilState(state onejob.DeliveryState) onejob.Delivery {
	w.t.Helper()
	w.until("the delivery is "+string(state), func() bool { return w.only().State == state })
	return w.only()
}
