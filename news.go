package onejob

import (
	"context"
	"time"
)

// News is what one process tells the others that share its store. It is a hint,
// never a proof: whoever hears it looks into the store.
type News struct {
	Changed   []string // ids of jobs that changed
	Cancelled []string // ids of jobs that are to be given up
	Work      bool     // an attempt may be due
	Questions bool     // a provider may be due to be asked
	Outbox    bool     // a webhook may be due, and this process sends none
	// All says that more changed than is told, or that something was missed.
	All bool
}

// IsEmpty reports whether there is nothing to tell.
func (n *News) IsEmpty() bool {
	return len(n.Changed) == 0 && len(n.Cancelled) == 0 && !n.Work && !n.Questions && !n.Outbox && !n.All
}

// Bell takes news to other processes.
type Bell interface {
	// Ring must not block, and may lose what it is given.
	Ring(News)
}

// Notifier is a store that can carry short messages between the processes that
// share it. They are told at most once, to whoever listens at that moment.
type Notifier interface {
	// Notify sends messages to every process that listens, this one included. It is
	// no part of any transaction of the store's.
	Notify(ctx context.Context, messages []string) error
	// Listen calls hear for each message, one after the other, until ctx ends or the
	// connection is lost, which it returns as an error. ready is called once, when
	// listening has begun.
	Listen(ctx context.Context, ready func(), hear func(message string)) error
}

// Connect has what happens in this process told to others, too. It is called once,
// before the signals are used.
func (s *Signals) Connect(b Bell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bell = b
}

// Hear wakes whoever waits in this process for what another one told. It tells
// nobody in its turn.
func (s *Signals) Hear(n News) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hear(n)
}

func (s *Signals) hear(n News) {
	for _, id := range n.Changed {
		s.wake(id)
	}
	if n.All {
		for id := range s.waiting {
			s.wake(id)
		}
	}
	for _, id := range n.Cancelled {
		s.cancels.add(id)
	}
	if n.All {
		s.cancels.addAll()
	}
	if n.Work || n.All {
		s.workReady()
	}
	if n.Questions || n.All {
		ring(channel(&s.questions))
	}
	if n.Outbox || n.All {
		s.ringOutbox()
	}
}

// BeginHearing says that from now on the news of other processes are heard. What
// was told before may have been missed, so everybody looks. It is safe to repeat.
func (s *Signals) BeginHearing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hearing {
		s.hearing = true
		s.hear(News{All: true})
	}
}

// EndHearing says that they are not heard any more. Everybody looks, and from now
// on polls. It is safe to repeat.
func (s *Signals) EndHearing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hearing {
		s.hearing = false
		s.hear(News{All: true})
	}
}

// maxQuietPause is the longest pause between two looks that nobody asked for, while
// other processes are heard: what is told by nobody, such as a job created in the
// transaction of a program without a bell, waits for so long.
const maxQuietPause = 4 * time.Second

// PauseAfter returns how long to wait before the next look that nobody asks for,
// after a number of looks in a row that found nothing. It is interval, or up to 4 s
// where that is longer and the news of other processes are heard: then there is
// little to find by looking.
func (s *Signals) PauseAfter(quiet int, interval time.Duration) time.Duration {
	s.mu.Lock()
	hearing := s.hearing
	s.mu.Unlock()
	if !hearing || interval <= 0 {
		return interval
	}
	pause := interval
	for ; quiet > 0 && pause < maxQuietPause; quiet-- {
		pause *= 2
	}
	return max(interval, min(pause, maxQuietPause))
}

// maxCancels bounds the cancels that wait to be heard of; more are "all".
const maxCancels = 256

// cancels are the jobs whose providers are to be asked to give up.
type cancels struct {
	ids  map[string]struct{}
	all  bool
	told chan struct{} // nil: nobody asks providers here
}

func (c *cancels) add(id string) {
	switch {
	case c.told == nil:
		return
	case len(c.ids) >= maxCancels:
		c.all = true
	case c.ids == nil:
		c.ids = map[string]struct{}{id: {}}
	default:
		c.ids[id] = struct{}{}
	}
	ring(c.told)
}

func (c *cancels) addAll() {
	if c.told != nil {
		c.all = true
		ring(c.told)
	}
}

// CancelAsked says that a job is to be given up, so that whoever holds an attempt
// of it asks its provider.
func (s *Signals) CancelAsked(id string) {
	s.mu.Lock()
	s.cancels.add(id)
	s.mu.Unlock()
	s.tell(News{Cancelled: []string{id}})
}

// Cancels returns the channel that receives after [Signals.CancelAsked]. It has one
// receiver: the engine, which then takes the jobs by [Signals.TakeCancels].
func (s *Signals) Cancels() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return channel(&s.cancels.told)
}

// TakeCancels returns the jobs to be given up that were not taken before, or that
// any job may be one.
func (s *Signals) TakeCancels() (ids map[string]struct{}, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids, all = s.cancels.ids, s.cancels.all
	s.cancels.ids, s.cancels.all = nil, false
	return ids, all
}

// QuestionReady says that a provider may be due to be asked about an attempt.
func (s *Signals) QuestionReady() {
	s.mu.Lock()
	ring(channel(&s.questions))
	s.mu.Unlock()
	s.tell(News{Questions: true})
}

// Questions returns the channel that receives after [Signals.QuestionReady]. It has
// one receiver: the engine.
func (s *Signals) Questions() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return channel(&s.questions)
}

// OutboxFull says that webhooks are due which this process has no room to send.
func (s *Signals) OutboxFull() { s.tell(News{Outbox: true}) }

// tell takes news to other processes, if there is a bell.
func (s *Signals) tell(n News) {
	s.mu.Lock()
	bell := s.bell
	s.mu.Unlock()
	if bell != nil {
		bell.Ring(n)
	}
}

// channel returns a channel of one, made when first asked for.
func channel(ch *chan struct{}) chan struct{} {
	if *ch == nil {
		*ch = make(chan struct{}, 1)
	}
	return *ch
}
