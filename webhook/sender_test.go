package webhook_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/webhook"
)

// received is one request as an endpoint got it.
type received struct {
	at   time.Time
	id   string
	url  string
	body []byte
	err  error // of verifying it
}

// inbox keeps what endpoints got, and says what they answer.
type inbox struct {
	mu     sync.Mutex
	all    []received
	answer func(n int, r *http.Request) (*http.Response, error) // n counts from 1
}

func (b *inbox) wire(r *http.Request, body []byte) (*http.Response, error) {
	id, err := webhook.Verify(webhook.VerifyParams{Secrets: []onejob.Secret{testSecret}, Header: r.Header, Body: body})
	b.mu.Lock()
	b.all = append(b.all, received{time.Now(), id, r.URL.String(), body, err})
	n := len(b.all)
	b.mu.Unlock()
	if b.answer == nil {
		return say(http.StatusNoContent)
	}
	return b.answer(n, r)
}

func (b *inbox) got() []received {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]received(nil), b.all...)
}

const hook = "https://app.example/hooks?token=CANARY"

func TestAWebhookLeavesSignedAsSoonAsItsJobHasEnded(t *testing.T) {
	var b inbox
	in(t, webhook.Options{Endpoints: []webhook.Endpoint{at(hook)}}, b.wire, func(w *world) {
		time.Sleep(10 * time.Millisecond)
		began := time.Now()
		job := w.end("k1")
		d := w.untilState(onejob.DeliveryDelivered)
		got := b.got()
		if len(got) != 1 || got[0].err != nil || got[0].id != d.ID || got[0].url != hook {
			t.Fatalf("got %+v; want one webhook under %s, verified", got, d.ID)
		}
		if waited := got[0].at.Sub(began); waited > 100*time.Millisecond {
			t.Errorf("it left after %s; want it woken, not polled", waited)
		}
		if !strings.Contains(string(got[0].body), job.ID) || !strings.Contains(string(got[0].body), `"state":"cancelled"`) {
			t.Errorf("body %s; want the job as it ended", got[0].body)
		}
		if d.Tries != 1 || d.Status != http.StatusNoContent || d.Error != "" || w.tries.of(d.Endpoint, webhook.ResultDelivered) != 1 {
			t.Errorf("recorded %+v; want one try, 204", d)
		}
	})
}

func TestAnEndpointThatIsDownIsTriedByTheScheduleUnderOneID(t *testing.T) {
	b := inbox{answer: func(int, *http.Request) (*http.Response, error) { return say(http.StatusInternalServerError) }}
	in(t, webhook.Options{Endpoints: []webhook.Endpoint{at(hook)}, PollInterval: 10 * time.Second}, b.wire, func(w *world) {
		w.end("k1")
		time.Sleep(5 * 24 * time.Hour)
		d, got := w.only(), b.got()
		if d.State != onejob.DeliveryFailed || d.Tries != 10 || len(got) != 10 || d.Status != 500 || d.Error != "it answered 500" {
			t.Fatalf("%d requests, recorded %+v; want 10 tries, then failed", len(got), d)
		}
		pauses := []time.Duration{
			5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
			10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
		}
		exact := 0
		for i, pause := range pauses {
			gap := got[i+1].at.Sub(got[i].at)
			if gap < pause*8/10 || gap > pause*12/10+15*time.Second {
				t.Errorf("pause %d was %s; want %s, give or take a fifth", i+1, gap, pause)
			}
			if gap > pause && gap < pause+15*time.Second && pause > time.Hour {
				exact++
			}
		}
		if exact > 2 {
			t.Errorf("%d of the pauses are not jittered", exact)
		}
		for _, r := range got {
			if r.id != d.ID || r.err != nil || !bytes.Equal(r.body, got[0].body) {
				t.Errorf("a try had id %q, %v and body %s; want %s, signed anew, and the first bytes", r.id, r.err, r.body, d.ID)
			}
		}
		if w.bodies.Load() != 1 {
			t.Errorf("the body was made %d times; want once", w.bodies.Load())
		}
		if n, m := w.tries.of(d.Endpoint, webhook.ResultRetrying), w.tries.of(d.Endpoint, webhook.ResultFailed); n != 9 || m != 1 {
			t.Errorf("%d tries were counted as retrying and %d as failed; want 9 and 1", n, m)
		}
		if strings.Contains(w.log.String(), "CANARY") || strings.Contains(w.log.String(), "/hooks") {
			t.Errorf("the log tells the URL:\n%s", w.log.String())
		}
	})
}

func TestRetryAfterIsRespectedWithinADay(t *testing.T) {
	for _, tt := range []struct {
		name, value string
		status      int
		least, most time.Duration
	}{
		{"Seconds", "3600", 503, time.Hour, time.Hour + 8*time.Second},
		{"TooMany", "99999999", 429, 24 * time.Hour, 24*time.Hour + 8*time.Second},
		{"Date", time.Date(2000, 1, 1, 2, 0, 0, 0, time.UTC).Format(http.TimeFormat), 503, 2*time.Hour - time.Second, 2*time.Hour + 8*time.Second}, // a bubble begins at midnight
		{"ShorterThanTheSchedule", "1", 503, 4 * time.Second, 14 * time.Second},
		{"Nonsense", "soon", 503, 4 * time.Second, 14 * time.Second},
		{"Negative", "-5", 503, 4 * time.Second, 14 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := inbox{answer: func(n int, _ *http.Request) (*http.Response, error) {
				if n == 1 {
					return say(tt.status, "Retry-After", tt.value)
				}
				return say(http.StatusOK)
			}}
			in(t, webhook.Options{Endpoints: []webhook.Endpoint{at(hook)}, PollInterval: 5 * time.Second}, b.wire, func(w *world) {
				w.end("k1")
				time.Sleep(tt.most + 10*time.Second)
				got := b.got()
				if len(got) != 2 || w.only().State != onejob.DeliveryDelivered {
					t.Fatalf("%d requests, %+v; want 2 and delivered", len(got), w.only())
				}
				if gap := got[1].at.Sub(got[0].at); gap < tt.least || gap > tt.most {
					t.Errorf("tried again after %s; want %s to %s", gap, tt.least, tt.most)
				}
			})
		})
	}
}

func TestAnEndpointThatIsGoneIsDisabledUntilSomebodyEnablesIt(t *testing.T) {
	b := inbox{answer: func(n int, _ *http.Request) (*http.Response, error) {
		if n == 1 {
			return say(http.StatusGone)
		}
		return say(http.StatusOK)
	}}
	in(t, webhook.Options{Endpoints: []webhook.Endpoint{at(hook)}}, b.wire, func(w *world) {
		w.end("k1")
		gone := w.untilState(onejob.DeliveryFailed)
		disabled, err := w.client.DisabledEndpoints(t.Context())
		if err != nil || len(disabled) != 1 || disabled[0].ID != gone.Endpoint || !strings.Contains(disabled[0].Reason, "410") {
			t.Fatalf("disabled %+v, %v; want the endpoint", disabled, err)
		}
		time.Sleep(time.Second) // or both are of one moment, and either is listed first
		w.end("k2")
		time.Sleep(time.Hour)
		if n := len(b.got()); n != 1 {
			t.Fatalf("%d requests to an endpoint that is disabled; want none after the first", n)
		}
		if err := w.client.EnableEndpoint(t.Context(), onejob.EndpointEnableParams{ID: gone.Endpoint, Actor: "olga"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if got := b.got(); len(got) != 2 || w.deliveries()[0].State != onejob.DeliveryDelivered {
			t.Errorf("%d requests, %+v; want what waited to be delivered", len(got), w.deliveries())
		}
		if w.tries.of(gone.Endpoint, webhook.ResultGone) != 1 {
			t.Error("the try was not counted as gone")
		}
	})
}

// A receiver that never answers took a whole queue of webhooks with it.
func TestAnEndpointThatIsSlowHoldsUpNobodyElse(t *testing.T) {
	var mu sync.Mutex
	slow, most := 0, 0
	var b inbox
	b.answer = func(_ int, r *http.Request) (*http.Response, error) {
		if r.URL.Host != "slow.example" {
			return say(http.StatusOK)
		}
		mu.Lock()
		slow++
		most = max(most, slow)
		mu.Unlock()
		defer func() { mu.Lock(); slow--; mu.Unlock() }()
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	endpoints := []webhook.Endpoint{at("https://slow.example/"), at("https://quick.example/")}
	endpoints[0].Owner, endpoints[1].Owner = "slow", "quick"
	in(t, webhook.Options{Endpoints: endpoints}, b.wire, func(w *world) {
		const each = 40
		for i := range each {
			w.endFor("slow", strings.Repeat("s", i+1), "")
		}
		for i := range each {
			w.endFor("quick", strings.Repeat("q", i+1), "")
		}
		began := time.Now()
		w.until("all that is quick was delivered", func() bool {
			return w.tries.of(endpoints[1].ID(), webhook.ResultDelivered) == each
		})
		if took := time.Since(began); took > time.Second {
			t.Errorf("the quick ones took %s behind a slow endpoint; want no waiting", took)
		}
		time.Sleep(10 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if most != 8 {
			t.Errorf("%d were under way at the slow endpoint at once; want 8", most)
		}
	})
}

func TestASilentEndpointIsGivenUpOnAfterTheTimeoutAndTriedAgain(t *testing.T) {
	b := inbox{answer: func(n int, r *http.Request) (*http.Response, error) {
		if n == 1 {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		return say(http.StatusOK)
	}}
	in(t, webhook.Options{Endpoints: []webhook.Endpoint{at(hook)}}, b.wire, func(w *world) {
		w.end("k1")
		w.until("the first try is over", func() bool { return w.only().Tries == 1 })
		if d := w.only(); d.Status != 0 || d.Error != "no answer within 15s" {
			t.Errorf("recorded %+v; want a try without an answer", d)
		}
		w.untilState(onejob.DeliveryDelivered)
		if got := b.got(); len(got) != 2 || got[0].id != got[1].id || got[1].at.Sub(got[0].at) < 19*time.Second {
			t.Errorf("got %+v; want two under one id, 15 s and a pause apart", got)
		}
	})
}

func TestAllTogetherHaveABoundToo(t *testing.T) {
	var mu sync.Mutex
	now, most := 0, 0
	b := inbox{answer: func(_ int, r *http.Request) (*http.Response, error) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		defer func() { mu.Lock(); now--; mu.Unlock() }()
		select {
		case <-time.After(time.Second):
		case <-r.Context().Done():
		}
		return say(http.StatusOK)
	}}
	var endpoints []webhook.Endpoint
	for _, host := range []string{"a", "b", "c", "d"} {
		endpoints = append(endpoints, at("https://"+host+".example/"))
	}
	in(t, webhook.Options{Endpoints: endpoints, Total: 5}, b.wire, func(w *world) {
		for i := range 10 {
			w.end(strings.Repeat("k", i+1))
		}
		w.until("all is delivered", func() bool { return len(b.got()) == 40 && w.deliveries()[0].State == onejob.DeliveryDelivered })
		mu.Lock()
		defer mu.Unlock()
		if most != 5 {
			t.Errorf("%d were under way at once; want 5", most)
		}
	})
}

func TestAStopSendsWhatIsDueFirst(t *testing.T) {
	b := inbox{answer: func(_ int, r *http.Request) (*http.Response, error) {
		time.Sleep(time.Second)
		return say(http.StatusOK)
	}}
	in(t, webhook.Options{Endpoints: []webhook.Endpoint{at(hook)}}, b.wire, func(w *world) {
		const jobs = 30 // more than there is room for at once
		for i := range jobs {
			w.end(strings.Repeat("k", i+1))
		}
		w.stop()
		if n := w.tries.of(webhook.EndpointID("", hook), webhook.ResultDelivered); n != jobs {
			t.Errorf("%d webhooks were delivered before the stop; want %d", n, jobs)
		}
	})
}

func TestAStopCutsOffWhatIsSilentAndItIsSentAgain(t *testing.T) {
	b := inbox{answer: func(_ int, r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}}
	in(t, webhook.Options{Endpoints: []webhook.Endpoint{at(hook)}, Timeout: time.Minute, Drain: 2 * time.Second}, b.wire, func(w *world) {
		w.end("k1")
		w.until("it is under way", func() bool { return len(b.got()) == 1 })
		began := time.Now()
		w.stop()
		if took := time.Since(began); took < 2*time.Second || took > 5*time.Second {
			t.Errorf("the stop took %s; want the drain", took)
		}
		if d := w.only(); d.State != onejob.DeliveryPending || d.Tries != 0 {
			t.Errorf("recorded %+v; want it left to its lease", d)
		}
		time.Sleep(2 * time.Minute)
		claimed, err := w.store.DeliveryClaim(t.Context(), onejob.DeliveryClaimParams{Endpoints: []string{webhook.EndpointID("", hook)}, Lease: time.Second, Max: 1})
		if err != nil || len(claimed) != 1 || claimed[0].ID != b.got()[0].id {
			t.Errorf("claimed %+v, %v; want the same webhook again", claimed, err)
		}
	})
}

// broken is a store whose methods fail when they are told to.
type broken struct {
	webhook.Store
	mu                  sync.Mutex
	claim, get, written error
	claims              atomic.Int32
}

func (s *broken) set(claim, get, written error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claim, s.get, s.written = claim, get, written
}

func (s *broken) fault(of func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return of()
}

func (s *broken) DeliveryClaim(ctx context.Context, p onejob.DeliveryClaimParams) ([]onejob.Delivery, error) {
	if err := s.fault(func() error { s.claims.Add(1); return s.claim }); err != nil {
		return nil, err
	}
	return s.Store.DeliveryClaim(ctx, p)
}

func (s *broken) JobGet(ctx context.Context, p []onejob.JobGetParams) ([]onejob.JobResult, error) {
	if err := s.fault(func() error { return s.get }); err != nil {
		return nil, err
	}
	return s.Store.JobGet(ctx, p)
}

func (s *broken) DeliveryRecord(ctx context.Context, p []onejob.DeliveryRecordParams) ([]error, error) {
	if err := s.fault(func() error { return s.written }); err != nil {
		return nil, err
	}
	return s.Store.DeliveryRecord(ctx, p)
}

func inBroken(t *testing.T, b *inbox, do func(w *world, s *broken)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &broken{}
		w := open(t, webhook.Options{Endpoints: []webhook.Endpoint{at(hook)}}, func(under webhook.Store) webhook.Store {
			s.Store = under
			return s
		})
		w.sender.OverWire(wire(b.wire))
		w.run()
		defer w.stop()
		do(w, s)
	})
}

var errDown = errors.New("the database is down")

// Crash row 7a, without the crash: delivered, and not written down.
func TestADeliveryThatCouldNotBeWrittenDownIsSentAgainUnderItsID(t *testing.T) {
	var b inbox
	inBroken(t, &b, func(w *world, s *broken) {
		s.set(nil, nil, errDown)
		w.end("k1")
		w.until("it was sent", func() bool { return len(b.got()) == 1 })
		synctest.Wait()
		s.set(nil, nil, nil)
		time.Sleep(time.Minute)
		got := b.got()
		if len(got) != 2 || got[0].id != got[1].id || got[1].err != nil {
			t.Fatalf("got %+v; want two deliveries under one id", got)
		}
		if d := w.only(); d.State != onejob.DeliveryDelivered || d.Tries != 1 {
			t.Errorf("recorded %+v; want it delivered", d)
		}
	})
}

func TestAJobThatCannotBeReadCostsTheEndpointNoTry(t *testing.T) {
	var b inbox
	inBroken(t, &b, func(w *world, s *broken) {
		s.set(nil, errDown, nil)
		w.end("k1")
		time.Sleep(time.Minute)
		if d := w.only(); d.Tries != 0 || len(b.got()) != 0 {
			t.Errorf("%d requests, recorded %+v; want none", len(b.got()), d)
		}
		s.set(nil, nil, nil)
		time.Sleep(time.Minute)
		if d := w.only(); d.State != onejob.DeliveryDelivered || d.Tries != 1 {
			t.Errorf("recorded %+v; want it delivered at the first try", d)
		}
	})
}

func TestAnOutageOfTheStoreIsComplainedOfNowAndThenAndOutlived(t *testing.T) {
	var b inbox
	inBroken(t, &b, func(w *world, s *broken) {
		s.set(errDown, nil, nil)
		for i := range 20 {
			w.end(strings.Repeat("k", i+1)) // each rings
			time.Sleep(time.Second)
		}
		if n := strings.Count(w.log.String(), "no webhooks could be claimed"); n == 0 || n > 5 {
			t.Errorf("%d complaints in 20 s; want one every 5 s", n)
		}
		if s.claims.Load() > 100 {
			t.Errorf("%d claims in 20 s of an outage; want no storm", s.claims.Load())
		}
		s.set(nil, nil, nil)
		time.Sleep(5 * time.Second)
		if n := len(b.got()); n != 20 {
			t.Errorf("%d webhooks after the outage; want 20", n)
		}
	})
}

func TestABodyThatCannotBeMadeIsAFailedTry(t *testing.T) {
	var b inbox
	o := webhook.Options{
		Endpoints: []webhook.Endpoint{at(hook)},
		BodyFunc:  func(onejob.Delivery, *onejob.Job) ([]byte, error) { return nil, errors.New("CANARY") },
	}
	in(t, o, b.wire, func(w *world) {
		w.end("k1")
		time.Sleep(time.Second)
		if d := w.only(); d.Tries != 1 || d.Error != "its body could not be made" || len(b.got()) != 0 {
			t.Errorf("%d requests, recorded %+v; want a try that sent nothing", len(b.got()), d)
		}
	})
}

func TestWhatWaitsForAnEndpointThatNobodyKnowsIsGivenUpInTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, webhook.Options{Endpoints: []webhook.Endpoint{at(hook)}}, nil)
		w.end("k1") // told to an endpoint that was taken out of the configuration since
		other, err := webhook.New(w.store, webhook.Options{BodyFunc: func(onejob.Delivery, *onejob.Job) ([]byte, error) { return nil, nil }})
		if err != nil {
			t.Fatal(err)
		}
		w.sender = other
		w.run()
		defer w.stop()
		time.Sleep(4*24*time.Hour - 2*time.Minute)
		if d := w.only(); d.State != onejob.DeliveryPending {
			t.Fatalf("after less than four days it is %s; want it to wait", d.State)
		}
		time.Sleep(4 * time.Minute)
		if d := w.only(); d.State != onejob.DeliveryFailed || d.Tries != 0 {
			t.Errorf("after four days it is %+v; want it given up untried", d)
		}
	})
}

func TestNothingIsSentWithoutSignaturesFromEverySecret(t *testing.T) {
	endpoint := at(hook)
	endpoint.Secret, endpoint.PreviousSecret = webhook.NewSecret(), testSecret
	var signatures string
	b := inbox{answer: func(_ int, r *http.Request) (*http.Response, error) {
		signatures = r.Header.Get(webhook.HeaderSignature)
		return say(http.StatusOK)
	}}
	in(t, webhook.Options{Endpoints: []webhook.Endpoint{endpoint}}, b.wire, func(w *world) {
		w.end("k1")
		w.untilState(onejob.DeliveryDelivered)
		if got := b.got(); got[0].err != nil || len(strings.Fields(signatures)) != 2 {
			t.Errorf("with the previous secret: %v; signatures %q; want two", got[0].err, signatures)
		}
	})
}

func TestAllThatIsWrongWithASenderIsSaidAtOnce(t *testing.T) {
	t.Parallel()

	_, err := webhook.New(nil, webhook.Options{Timeout: -1, Schedule: []time.Duration{0}})
	for _, want := range []string{"BodyFunc is nil", "Timeout is negative", "Schedule is not positive"} {
		if onejob.CodeOf(err) != onejob.CodeInvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want %q", err, want)
		}
	}
	_, err = webhook.New(nil, webhook.Options{
		BodyFunc:  func(onejob.Delivery, *onejob.Job) ([]byte, error) { return nil, nil },
		Endpoints: []webhook.Endpoint{at(hook), at(hook), {URL: "https://b.example/CANARY", Secret: "whsec_"}, at("http://c.example/CANARY")},
	})
	for _, want := range []string{"endpoint 1 at app.example is there twice", "endpoint 2 at b.example: not a webhook secret", "endpoint 3 at c.example: webhooks may not go"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want %q", err, want)
		}
	}
	if err != nil && strings.Contains(err.Error(), "CANARY") {
		t.Errorf("the error tells a URL: %v", err)
	}
}

func TestAnEndpointsIDIsStable(t *testing.T) {
	t.Parallel()

	id := webhook.EndpointID("acme", "https://acme.example/hooks")
	if id != "ep_wpnmeoswttyrvaggz2gm" {
		t.Errorf("id %q changed; what waits in the outbox would wait for ever", id)
	}
	for _, other := range []string{webhook.EndpointID("", "https://acme.example/hooks"), webhook.EndpointID("acme", "https://acme.example/hook"), webhook.EndpointID("acmeh", "ttps://acme.example/hooks")} {
		if other == id {
			t.Error("two endpoints have one id")
		}
	}
}
