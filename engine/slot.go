package engine

import "sync"

// slots bounds how many attempts are under way. The zero value has none.
type slots struct {
	mu      *sync.Mutex
	free    int
	closed  bool
	backlog bool          // the last claim took all it could: due jobs are waiting
	freed   chan struct{} // rung when a slot comes free while jobs wait
}

func newSlots(n int) slots {
	return slots{mu: &sync.Mutex{}, free: n, freed: make(chan struct{}, 1)}
}

// takeAll takes every free slot, for one claim.
func (s *slots) takeAll() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0
	}
	n := s.free
	s.free = 0
	return n
}

// takeOne takes a slot for a job that is being created, unless older jobs wait
// for it.
func (s *slots) takeOne() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.backlog || s.free == 0 {
		return false
	}
	s.free--
	return true
}

// give returns n slots.
func (s *slots) give(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += n
	if n > 0 && s.backlog {
		select {
		case s.freed <- struct{}{}:
		default:
		}
	}
}

// claimed notes how a claim went: filled says that it took all it asked for.
func (s *slots) claimed(filled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backlog = filled
}

// close lets nobody take a slot any more.
func (s *slots) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}
