package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/sim"
	"github.com/onejob-dev/onejob/webhook"
)

// playWebhook has a job end while its other attempt is still under way, and the
// receiver of its webhook fail at first.
func playWebhook(ctx context.Context, s *stage) error {
	s.scene("Two lanes race and finish one after the other, and the receiver of the webhook answers 500 at first. Where each finish tells the world, it hears of two ends; where each delivery has an id of its own, it acts twice. Here the end is told once, signed, and sent again under the same id.")
	r, err := s.receive(ctx)
	if err != nil {
		return err
	}
	defer r.close()
	s.primary.Script(sim.MustParse("hold")...)
	kind := `{effect: none, contract: charge.yaml, targets: [acme, backup], timeout: 20s, race: {after: 200ms, lanes: 2}, failover: {declared: "both draw the same picture"}}`
	if err := s.openRace(ctx, kind, ""); err != nil {
		return err
	}
	first, err := s.submit(ctx, "order-8", "8", 100)
	if err != nil {
		return err
	}
	s.say("caller", "POST order-8: %d %s", first.status, first.body.ID)
	won, err := s.untilState(ctx, first.body.ID, "succeeded")
	if err != nil {
		return err
	}
	if err := expect("attempts", len(won.body.Attempts), 2); err != nil {
		return err
	}
	if err := s.until(ctx, "the webhook was taken", func() (bool, error) { return r.taken() > 0, nil }); err != nil {
		return err
	}
	if _, err := s.releaseUntilDiscarded(ctx, won.body.Attempts[0].ID); err != nil {
		return err
	}
	s.say("attempt 1", "finishes too late: discarded, and nobody is told of another end")
	return s.countWebhooks(ctx, r, won.body.ID, won.body.CompletedBy)
}

// countWebhooks holds what was received against what happened.
func (s *stage) countWebhooks(ctx context.Context, r *receiver, jobID, winner string) error {
	if err := pause(ctx, 500*time.Millisecond); err != nil { // longer than the pause between tries
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := map[string]bool{}
	for _, e := range r.events {
		ids[e.id] = true
	}
	s.count("%d deliveries, %d webhook-id, %d terminal event, %d signatures verified", len(r.events), len(ids), len(ids), len(r.events))
	errs := []error{
		expect("deliveries", len(r.events), 2), expect("webhook-ids", len(ids), 1), expect("webhooks that were not genuine", r.forged, 0),
	}
	for _, e := range r.events {
		errs = append(errs, expect("the event", e.Type, "job.succeeded"), expect("its job", e.Data.ID, jobID), expect("the winner it tells of", e.Data.CompletedBy, winner))
	}
	return errors.Join(errs...)
}

// pause waits for something not to happen.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// receiver takes webhooks as an application would: it verifies, then believes.
type receiver struct {
	stage   *stage
	secrets []onejob.Secret
	server  *http.Server

	mu     sync.Mutex
	events []told // those that were genuine
	forged int
}

// told is what a webhook says.
type told struct {
	id   string
	Type string `json:"type"`
	Data struct {
		ID          string `json:"id"`
		CompletedBy string `json:"completed_by"`
	} `json:"data"`
}

// receive starts a receiver that answers 500 once, and has the server configured to
// tell it.
func (s *stage) receive(ctx context.Context) (*receiver, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	secret := webhook.NewSecret()
	r := &receiver{stage: s, secrets: []onejob.Secret{secret}}
	r.server = &http.Server{Handler: r, ReadTimeout: patience}
	go func() { _ = r.server.Serve(l) }() // it ends when it is closed
	s.webhooks = fmt.Sprintf(`webhooks:
  allow: [127.0.0.0/8]
  schedule: [300ms, 300ms, 300ms]
  endpoints: [{url: "http://%s/hooks", secret: %s, owner: demo}]`, l.Addr(), secret.Reveal())
	return r, nil
}

func (r *receiver) close() { _ = r.server.Close() }

// ServeHTTP answers 500 to the first genuine webhook and 204 to the others.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, 1<<20))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.WriteHeader(r.take(req.Header, body))
}

// take returns the status to answer a webhook with.
func (r *receiver) take(header http.Header, body []byte) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	var e told
	id, err := webhook.Verify(webhook.VerifyParams{Secrets: r.secrets, Header: header, Body: body})
	if err == nil {
		err = json.Unmarshal(body, &e)
	}
	if err != nil {
		r.forged++
		return http.StatusUnauthorized
	}
	e.id = id
	r.events = append(r.events, e)
	status := http.StatusNoContent
	if len(r.events) == 1 {
		status = http.StatusInternalServerError
	}
	r.stage.say("receiver", "verified %s of %s under %s…, and answers %d", e.Type, e.Data.ID, id[:12], status)
	return status
}

// taken counts the webhooks that were answered 2xx.
func (r *receiver) taken() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.events) - 1
}
