package engine

import (
	"sync"
	"time"
)

// complainEvery bounds how often one complaint is logged: an outage of the store
// would otherwise fill the disk with its own news.
const complainEvery = 5 * time.Second

// complaints remembers when each was last logged.
type complaints struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// complain logs a failure that repeats by itself, at most every few seconds.
func (e *Engine) complain(what string, err error, attrs ...any) {
	e.complaints.mu.Lock()
	now := time.Now()
	if e.complaints.last == nil {
		e.complaints.last = map[string]time.Time{}
	}
	due := now.Sub(e.complaints.last[what]) >= complainEvery
	if due {
		e.complaints.last[what] = now
	}
	e.complaints.mu.Unlock()
	if due {
		e.opts.Logger.Warn(what, append(attrs, "err", err)...)
	}
}
