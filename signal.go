package onejob

import "sync"

// Signals are wake-ups within one process: a job changed, there is work. They are
// a convenience only. Whoever waits also polls, so that a signal that is lost, or
// raised in another process, costs at most one poll. Safe for concurrent use; the
// zero value is ready.
type Signals struct {
	mu      sync.Mutex
	waiting map[string]map[chan struct{}]struct{}
	work    chan struct{}
	pulling map[chan struct{}]struct{} // of workers that wait for something to claim
	outbox  chan struct{}
}

// JobChanged wakes whoever waits for the job, and who sends webhooks.
func (s *Signals) JobChanged(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outbox != nil {
		ring(s.outbox)
	}
	for ch := range s.waiting[id] {
		ring(ch)
	}
}

// WatchJob returns a channel that receives after each change of the job, changes
// in quick succession merged into one. stop must be called once.
func (s *Signals) WatchJob(id string) (changed <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		s.waiting = map[string]map[chan struct{}]struct{}{}
	}
	if s.waiting[id] == nil {
		s.waiting[id] = map[chan struct{}]struct{}{}
	}
	s.waiting[id][ch] = struct{}{}
	return ch, func() { s.forget(id, ch) }
}

func (s *Signals) forget(id string, ch chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting[id], ch)
	if len(s.waiting[id]) == 0 {
		delete(s.waiting, id)
	}
}

// WorkReady says that an attempt may be due. It wakes the engine and every worker
// that waits.
func (s *Signals) WorkReady() {
	ring(s.workChannel())
	s.mu.Lock()
	defer s.mu.Unlock()
	for ch := range s.pulling {
		ring(ch)
	}
}

// watchWork returns a channel that receives after each [Signals.WorkReady], those
// in quick succession merged into one. stop must be called once.
func (s *Signals) watchWork() (ready <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pulling == nil {
		s.pulling = map[chan struct{}]struct{}{}
	}
	s.pulling[ch] = struct{}{}
	return ch, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.pulling, ch)
	}
}

// Work returns the channel that receives after [Signals.WorkReady]. It has one
// receiver: the engine.
func (s *Signals) Work() <-chan struct{} { return s.workChannel() }

func (s *Signals) workChannel() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.work == nil {
		s.work = make(chan struct{}, 1)
	}
	return s.work
}

// Outbox returns the channel that receives after each [Signals.JobChanged] of any
// job, those in quick succession merged into one. It has one receiver: who sends
// webhooks.
func (s *Signals) Outbox() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outbox == nil {
		s.outbox = make(chan struct{}, 1)
	}
	return s.outbox
}

func ring(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default: // already rung
	}
}
