package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/onejob-dev/onejob"
)

// Sender empties the outbox of a store. Make one with [New]. Any number may work on
// one store: what one claims no other is given while its lease lasts.
type Sender struct {
	store     Store
	recorder  recorder
	opts      Options
	endpoints map[string]*Endpoint         // by id
	wires     map[string]http.RoundTripper // by scheme
	lease     time.Duration

	gaveUp time.Time     // when the old were last looked for; Run's own
	freed  chan struct{} // rung when somebody waits for room and there is some

	mu         sync.Mutex
	underWay   map[string]int // tries by endpoint
	total      int
	waiting    bool // for room
	watched    bool // to its end
	complained map[string]time.Time
}

// New returns a sender. It returns [onejob.CodeInvalidArgument] with all that is
// wrong with the options and with each endpoint.
func New(store Store, opts Options) (*Sender, error) {
	opts, err := opts.withDefaults()
	guard, guardErr := NewGuard(opts.Allow)
	if err = errors.Join(err, guardErr); err != nil {
		return nil, invalid(err)
	}
	s := &Sender{
		store: store, recorder: recorder{store: store}, opts: opts, endpoints: map[string]*Endpoint{}, underWay: map[string]int{}, complained: map[string]time.Time{},
		freed: make(chan struct{}, 1),
		// A try is over, and as a rule written down, before anybody else may take it over.
		lease: opts.Timeout + recordTimeout,
		wires: map[string]http.RoundTripper{
			"https": newWire(guard, "https", opts.RootCAs, nil), "http": newWire(guard, "http", opts.RootCAs, nil),
		},
	}
	if err := s.addEndpoints(guard); err != nil {
		return nil, invalid(err)
	}
	return s, nil
}

func invalid(err error) error {
	return &onejob.Error{Code: onejob.CodeInvalidArgument, Message: err.Error(), Err: err}
}

func (s *Sender) addEndpoints(guard *Guard) error {
	var errs []error
	for i := range s.opts.Endpoints {
		e := s.opts.Endpoints[i]
		_, keysErr := keysOf(e.secrets())
		if err := errors.Join(guard.CheckURL(e.URL), keysErr); err != nil {
			errs = append(errs, fmt.Errorf("endpoint %d at %s: %w", i, e.Host(), err))
		}
		if s.endpoints[e.ID()] != nil {
			errs = append(errs, fmt.Errorf("endpoint %d at %s is there twice for one owner", i, e.Host()))
		}
		s.endpoints[e.ID()] = &e
	}
	return errors.Join(errs...)
}

// secrets are those that a webhook is signed with, the current one first.
func (e *Endpoint) secrets() []onejob.Secret {
	if e.PreviousSecret == "" {
		return []onejob.Secret{e.Secret}
	}
	return []onejob.Secret{e.Secret, e.PreviousSecret}
}

const (
	// batch bounds how many deliveries one claim takes.
	batch = 8
	// claimTimeout bounds one claim.
	claimTimeout = 10 * time.Second
	// gather is how long a signal waits for its neighbours: one claim serves all of
	// a burst.
	gather = 10 * time.Millisecond
	// giveUpEvery is how often the old are looked for, and so how often there is
	// anything to look for where nothing is sent.
	giveUpEvery = time.Minute
	// settleTime is how long tries that were cut off get to end.
	settleTime = 2 * time.Second
)

// Run sends until ctx ends, then drains: it goes on with what is due, for
// Options.Drain at most, and cuts off what is under way then. What was cut off is
// sent again, under the same id, once its lease is over. Run may be called once.
func (s *Sender) Run(ctx context.Context) error {
	sending, cutOff := context.WithCancel(context.WithoutCancel(ctx))
	defer cutOff()
	for quiet, full := 0, false; ctx.Err() == nil; {
		claimed, most := s.round(sending)
		if full && most == 0 {
			s.full()
		}
		if full = claimed > 0 && claimed == most; full {
			continue // there may be more
		}
		if s.wait(ctx, quiet) && claimed == 0 {
			quiet++
		} else {
			quiet = 0
		}
	}
	s.drain(sending, cutOff)
	for _, wire := range s.wires {
		if idle, ok := wire.(interface{ CloseIdleConnections() }); ok {
			idle.CloseIdleConnections()
		}
	}
	return nil
}

// full tells other processes that there is more to send than this one has room for.
func (s *Sender) full() {
	if s.opts.Signals != nil {
		s.opts.Signals.OutboxFull()
	}
}

// restAfter is after how many looks in a row that found nothing they are left to
// whoever else looks.
const restAfter = 3

// pauseAfter is how long to wait before the next look of one's own, after a number
// of them that found nothing.
func (s *Sender) pauseAfter(quiet int) time.Duration {
	pause := s.opts.Signals.PauseAfter(quiet, s.opts.PollInterval)
	if s.opts.LookedFor && quiet >= restAfter && pause > s.opts.PollInterval {
		return giveUpEvery
	}
	return pause
}

// wait returns when there may be something to send: after a signal, when room was
// made for an endpoint that had none, and from time to time by itself, which it
// reports.
func (s *Sender) wait(ctx context.Context, quiet int) (unasked bool) {
	var outbox <-chan struct{}
	poll := s.opts.PollInterval
	if len(s.endpoints) == 0 {
		poll = max(poll, giveUpEvery)
	} else if s.opts.Signals != nil {
		outbox, poll = s.opts.Signals.Outbox(), s.pauseAfter(quiet)
	}
	timer := time.NewTimer(jittered(poll))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	case <-s.freed:
	case <-outbox:
	}
	timer.Reset(gather)
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return false
}

// round claims what there is room for and starts its tries. It returns how many it
// claimed and could have claimed; zero and zero when there was room for none.
func (s *Sender) round(sending context.Context) (claimed, most int) {
	names, most := s.room()
	if most == 0 {
		return 0, 0
	}
	ctx, cancel := context.WithTimeout(sending, claimTimeout)
	defer cancel()
	until := time.Now().Add(s.lease)
	p := onejob.DeliveryClaimParams{Endpoints: names, Lease: s.lease, Max: most}
	if since := time.Since(s.gaveUp); since >= min(giveUpEvery, s.opts.GiveUpAfter) {
		p.GiveUpAfter, s.gaveUp = s.opts.GiveUpAfter, time.Now()
	}
	deliveries, err := s.store.DeliveryClaim(ctx, p)
	if err != nil && sending.Err() == nil {
		s.complain("no webhooks could be claimed", err)
	}
	for i := range deliveries {
		s.start(sending, &deliveries[i], until)
	}
	return len(deliveries), most
}

// room returns the endpoints that have room for another try, and how many may be
// claimed so that none gets more than it has room for. An endpoint that is slow fills
// its own room and is left out then; it takes none of the others'.
func (s *Sender) room() (names []string, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	most = min(batch, s.opts.Total-s.total)
	for id := range s.endpoints {
		if room := s.opts.PerEndpoint - s.underWay[id]; room > 0 {
			names = append(names, id)
			most = min(most, room)
		}
	}
	s.waiting = len(names) < len(s.endpoints) || most == 0
	if len(names) == 0 && len(s.endpoints) > 0 {
		return nil, 0
	}
	return names, most
}

// start begins a try of a delivery that is ours until a time.
func (s *Sender) start(sending context.Context, d *onejob.Delivery, until time.Time) {
	if s.endpoints[d.Endpoint] == nil {
		return // not asked for; its lease will end
	}
	s.mu.Lock()
	s.underWay[d.Endpoint]++
	s.total++
	s.mu.Unlock()
	go func() {
		defer s.ended(d.Endpoint)
		ctx, cancel := context.WithDeadline(sending, until)
		defer cancel()
		s.try(ctx, d)
	}()
}

func (s *Sender) ended(endpoint string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underWay[endpoint]--
	s.total--
	if s.waiting || s.watched {
		select {
		case s.freed <- struct{}{}:
		default: // already rung
		}
	}
}

// drain sends what is due until nothing is, or until its time is over.
func (s *Sender) drain(sending context.Context, cutOff context.CancelFunc) {
	over := time.NewTimer(s.opts.Drain)
	defer over.Stop()
	for {
		idle := s.watch() == 0
		claimed, most := s.round(sending)
		if claimed == 0 && idle {
			return
		}
		more := make(chan struct{}) // there may be, when a claim came back full
		if claimed > 0 && claimed == most {
			close(more)
		}
		select {
		case <-over.C:
			s.opts.Logger.Warn("webhooks under way were cut off; they are sent again, under the same ids", "webhooks", s.watch())
			cutOff()
			s.settle()
			return
		case <-s.freed:
		case <-more:
		}
	}
}

// watch returns how many tries are under way, and from now on has the end of each told.
func (s *Sender) watch() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched = true
	return s.total
}

// settle waits for tries that were cut off.
func (s *Sender) settle() {
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	for s.watch() > 0 {
		select {
		case <-s.freed:
		case <-timer.C:
			return
		}
	}
}

// complainEvery bounds how often one complaint is logged.
const complainEvery = 5 * time.Second

// complain logs a failure that repeats by itself, at most every few seconds.
func (s *Sender) complain(what string, err error, attrs ...any) {
	s.mu.Lock()
	now := time.Now()
	due := now.Sub(s.complained[what]) >= complainEvery
	if due {
		s.complained[what] = now
	}
	s.mu.Unlock()
	if due {
		s.opts.Logger.Warn(what, append(attrs, "err", err)...)
	}
}
