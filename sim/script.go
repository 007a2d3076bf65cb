package sim

import (
	"slices"
	"sync"
)

// script holds the steps that wait for a request.
type script struct {
	mu       sync.Mutex
	queue    []Step
	byIntent map[string][]Step
}

func (s *script) add(intent string, keyed bool, steps []Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !keyed {
		s.queue = append(s.queue, steps...)
		return
	}
	if s.byIntent == nil {
		s.byIntent = map[string][]Step{}
	}
	s.byIntent[intent] = append(s.byIntent[intent], steps...)
}

// take removes and returns the next step for a request that wants one, the
// intent's own steps first.
func (s *script) take(intent string, wants func(Step) bool) (Step, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.byIntent[intent], wants); i >= 0 {
		step := s.byIntent[intent][i]
		s.byIntent[intent] = slices.Delete(s.byIntent[intent], i, i+1)
		if len(s.byIntent[intent]) == 0 {
			delete(s.byIntent, intent)
		}
		return step, true
	}
	if i := slices.IndexFunc(s.queue, wants); i >= 0 {
		step := s.queue[i]
		s.queue = slices.Delete(s.queue, i, i+1)
		return step, true
	}
	return Step{}, false
}

// waiting counts the steps not yet taken.
func (s *script) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.queue)
	for _, steps := range s.byIntent {
		n += len(steps)
	}
	return n
}

func (s *script) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue, s.byIntent = nil, nil
}
