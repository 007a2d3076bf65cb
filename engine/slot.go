package engine

import "sync"

// slots bounds how many attempts are under way, and knows whether jobs wait for
// one: new jobs then queue behind them, and a slot that comes free is worth a claim.
type slots struct {
	mu      sync.Mutex
	free    int
	closed  bool
	waiting bool          // due jobs wait, as far as the last look could tell
	freed   chan struct{} // rung when a slot comes free while jobs wait
	claim   chan struct{} // closed when the claim that has taken the free slots is over; nil: there is none
}

func newSlots(n int) *slots { return &slots{free: n, freed: make(chan struct{}, 1)} }

// takeAll takes every free slot, for one claim. Without one, jobs may wait unseen.
func (s *slots) takeAll() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0
	}
	n := s.free
	s.free = 0
	s.waiting = s.waiting || n == 0
	if n > 0 {
		s.claim = make(chan struct{})
	}
	return n
}

// over says that the claim is. The lock is held.
func (s *slots) over() {
	close(s.claim)
	s.claim = nil
}

// takeOne takes a slot for a job that is being created, unless older jobs wait
// for it. Where it takes none, claim is closed when the claim that has taken the free
// slots is over: most of them are free again then. Nil: there is no such claim, and what
// is not free is used. Both are looked at at once, or a claim could end in between.
func (s *slots) takeOne() (taken bool, claim <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.waiting || s.free == 0 {
		return false, s.claim
	}
	s.free--
	return true, nil
}

// claimed returns the slots that a claim of taken slots left over. When it came
// back full, more jobs may wait.
func (s *slots) claimed(taken, used int, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += taken - used
	s.waiting = full
	s.over()
}

// unclaimed returns the slots of a claim that failed. It rings nobody: claiming
// again at once would fail as fast.
func (s *slots) unclaimed(taken int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += taken
	s.over()
}

// give returns one slot.
func (s *slots) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	if s.waiting {
		select {
		case s.freed <- struct{}{}:
		default:
		}
	}
}

// close lets nobody take a slot any more.
func (s *slots) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}
