package doorbell_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/doorbell"
)

// hub carries messages between the bells of one bubble.
type hub struct {
	mu       sync.Mutex
	ears     map[chan string]struct{}
	rings    int
	messages []string
	broken   bool // nothing can be sent, nor listened to
	mute     bool // nothing can be sent
	deaf     bool // listening works, and nothing comes
}

func (h *hub) Notify(_ context.Context, messages []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.broken || h.mute {
		return errors.New("no connection")
	}
	h.rings++
	h.messages = append(h.messages, messages...)
	for ear := range h.ears {
		for _, m := range messages {
			if !h.deaf {
				ear <- m
			}
		}
	}
	return nil
}

func (h *hub) Listen(ctx context.Context, ready func(), hear func(string)) error {
	ear := make(chan string, 1000)
	h.mu.Lock()
	if h.broken {
		h.mu.Unlock()
		return errors.New("no connection")
	}
	if h.ears == nil {
		h.ears = map[chan string]struct{}{}
	}
	h.ears[ear] = struct{}{}
	h.mu.Unlock()
	defer h.forget(ear)
	ready()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case m, ok := <-ear:
			if !ok {
				return errors.New("the connection broke")
			}
			hear(m)
		}
	}
}

func (h *hub) forget(ear chan string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.ears, ear)
}

// set changes what the hub can do. Breaking it ends every connection.
func (h *hub) set(broken, deaf bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.broken, h.deaf = broken, deaf
	for ear := range h.ears {
		if broken {
			close(ear)
			delete(h.ears, ear)
		}
	}
}

func (h *hub) setMute(mute bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mute = mute
}

func (h *hub) rung() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rings
}

// in runs bells on one hub in a bubble.
func in(t *testing.T, bells int, h *hub, do func(signals []*onejob.Signals, log *text)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		log := &text{}
		var all []*onejob.Signals
		for range bells {
			s := &onejob.Signals{}
			b := doorbell.New(h, s, doorbell.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
			go b.Run(ctx)
			all = append(all, s)
		}
		time.Sleep(time.Second)
		do(all, log)
	})
}

func hears(s *onejob.Signals) bool {
	return s.PauseAfter(100, time.Millisecond) > time.Millisecond
}

func got(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func TestWhatHappensInAMomentIsOneRing(t *testing.T) {
	h := &hub{}
	in(t, 2, h, func(s []*onejob.Signals, _ *text) {
		before := h.rung()
		for n := range 1000 {
			s[0].JobChanged(fmt.Sprintf("job_%d", n%100))
			s[0].WorkReady()
			time.Sleep(time.Millisecond)
		}
		if rings := h.rung() - before; rings < 10 || rings > 21 {
			t.Errorf("%d rings in a second; want at most twenty and one", rings)
		}
	})
}

func TestOthersHearWhatIsRungAndWeDoNot(t *testing.T) {
	in(t, 2, &hub{}, func(s []*onejob.Signals, _ *text) {
		here, stopHere := s[0].WatchJob("job_2")
		there, stopThere := s[1].WatchJob("job_1")
		defer stopHere()
		defer stopThere()
		got(s[0].Cancels()) // somebody asks providers
		got(s[1].Cancels())
		got(s[0].Work())
		got(s[1].Work())
		got(s[0].Outbox())
		got(s[1].Outbox())
		began := time.Now()
		s[0].JobChanged("job_1")
		<-there
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("heard after %s", took)
		}
		s[0].CancelAsked("job_3")
		s[0].WorkReady()
		time.Sleep(time.Second)
		ids, all := s[1].TakeCancels()
		if _, told := ids["job_3"]; !told || all || !got(s[1].Cancels()) {
			t.Errorf("cancels heard: %v, all %t; want job_3", ids, all)
		}
		if !got(s[1].Work()) || got(s[1].Outbox()) {
			t.Error("the other must hear of work, and of no webhook: whoever rang sends its own")
		}
		if got(here) {
			t.Error("a watcher of another job was woken")
		}
		got(s[0].Work())
		s[0].WorkReady()
		got(s[0].Work())
		time.Sleep(time.Second)
		if got(s[0].Work()) {
			t.Error("our own ring came back as news")
		}
	})
}

func TestMoreThanCanBeToldByNameHasEverybodyLook(t *testing.T) {
	h := &hub{}
	in(t, 2, h, func(s []*onejob.Signals, _ *text) {
		changed, stop := s[1].WatchJob("job_unnamed")
		defer stop()
		got(changed)
		time.Sleep(time.Second)
		for n := range 20_000 {
			s[0].JobChanged(fmt.Sprintf("job_%d", n))
		}
		time.Sleep(time.Second)
		if !got(changed) {
			t.Error("whoever waits was not woken")
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, m := range h.messages {
			if len(m) >= 8000 {
				t.Errorf("a message has %d bytes; PostgreSQL takes 7,999", len(m))
			}
		}
	})
}

func TestIdsOfTheLargestSortFitIntoAMessage(t *testing.T) {
	h := &hub{}
	in(t, 1, h, func(s []*onejob.Signals, _ *text) {
		for n := range 799 {
			s[0].JobChanged(fmt.Sprintf("job_%028d", n))
		}
		time.Sleep(time.Second)
		h.mu.Lock()
		defer h.mu.Unlock()
		ids := 0
		for _, m := range h.messages {
			ids += strings.Count(m, "job_")
			if len(m) >= 8000 {
				t.Errorf("a message has %d bytes; PostgreSQL takes 7,999", len(m))
			}
		}
		if ids != 799 {
			t.Errorf("%d ids were told; want 799", ids)
		}
	})
}

func TestALostConnectionHasEverybodyLookAndPoll(t *testing.T) {
	h := &hub{}
	in(t, 2, h, func(s []*onejob.Signals, log *text) {
		if !hears(s[0]) || !hears(s[1]) {
			t.Fatal("the bells do not hear each other")
		}
		changed, stop := s[1].WatchJob("job_1")
		defer stop()
		got(s[1].Work())
		h.set(true, false)
		time.Sleep(time.Minute)
		if hears(s[1]) || !got(changed) || !got(s[1].Work()) {
			t.Error("after the loss everybody must look, and poll")
		}
		s[0].JobChanged("job_1") // cannot be told now
		time.Sleep(10 * time.Second)
		if n := strings.Count(log.String(), "are not heard; looking"); n != 2 {
			t.Errorf("the loss is logged %d times for two bells:\n%s", n, log)
		}
		h.set(false, false)
		time.Sleep(time.Minute)
		if !hears(s[1]) || !got(changed) || strings.Count(log.String(), "heard again") != 2 {
			t.Errorf("once the connection is back everybody must look, and it is said:\n%s", log)
		}
	})
}

func TestARingThatFailedIsMadeUpFor(t *testing.T) {
	h := &hub{}
	in(t, 2, h, func(s []*onejob.Signals, _ *text) {
		changed, stop := s[1].WatchJob("job_1")
		defer stop()
		h.setMute(true)
		s[0].JobChanged("job_1")
		time.Sleep(5 * time.Second)
		if got(changed) {
			t.Fatal("heard though nothing could be sent")
		}
		h.setMute(false)
		time.Sleep(2 * time.Second)
		if !got(changed) {
			t.Error("what could not be told was forgotten")
		}
	})
}

// A pooler of transactions takes LISTEN and delivers nothing.
func TestWhoDoesNotHearItselfPollsAndSaysSoOnce(t *testing.T) {
	h := &hub{deaf: true}
	in(t, 1, h, func(s []*onejob.Signals, log *text) {
		if hears(s[0]) {
			t.Error("it believes to hear others though it does not hear itself")
		}
		time.Sleep(time.Hour)
		if hears(s[0]) || strings.Count(log.String(), "are not heard; looking") != 1 || !strings.Contains(log.String(), "pooler") {
			t.Errorf("hears %t; the log:\n%s", hears(s[0]), log)
		}
		h.set(false, false)
		time.Sleep(time.Hour)
		if !hears(s[0]) {
			t.Error("it does not hear though it could")
		}
	})
}

func TestAMessageOfALaterVersionHasEverybodyLook(t *testing.T) {
	h := &hub{}
	in(t, 1, h, func(s []*onejob.Signals, _ *text) {
		for _, m := range []string{`{"v":2,"n":"other","x":1}`, "not JSON"} {
			got(s[0].Work())
			if err := h.Notify(t.Context(), []string{m}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if !got(s[0].Work()) {
				t.Errorf("%s wakes nobody", m)
			}
		}
	})
}
