package engine

import (
	"sync"
	"time"
)

// tally counts the attempts under way, lingering and reserved ones too. Unlike a
// WaitGroup it may grow while somebody waits: a reservation made before the drain
// may be used during it.
type tally struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed at zero; nil while nobody waits
}

func (t *tally) add() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
}

func (t *tally) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n--
	if t.n == 0 && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

// wait reports whether the tally came to zero within d.
func (t *tally) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-t.whenIdle():
		return true
	case <-timer.C:
		return false
	}
}

func (t *tally) whenIdle() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == 0 {
		now := make(chan struct{})
		close(now)
		return now
	}
	if t.idle == nil {
		t.idle = make(chan struct{})
	}
	return t.idle
}
