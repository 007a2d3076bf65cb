package httpapi

import (
	"context"
	"sync"
	"time"

	"github.com/onejob-dev/onejob"
)

// backlogAge is how long a count is trusted while jobs come in: other nodes add to
// the same queue.
const backlogAge = 5 * time.Second

// backlog refuses new jobs while too many wait. Counting the queue costs, so it is
// counted only when what was admitted since might have filled it, or the count is old.
type backlog struct {
	most      int64 // zero: any number may wait
	countFunc func(context.Context) (int64, error)
	nowFunc   func() time.Time

	mu        sync.Mutex
	queued    int64
	admitted  int64 // since it was counted
	countedAt time.Time
	counting  bool
}

// admit reports whether one more job may wait. When it cannot be counted the last
// word stands: the store itself refuses if it is down.
func (b *backlog) admit(ctx context.Context) bool {
	if b.most == 0 {
		return true
	}
	if b.due() {
		b.count(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queued+b.admitted >= b.most {
		return false
	}
	b.admitted++
	return true
}

// due reports whether the caller is to count; one at a time does.
func (b *backlog) due() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	age := b.nowFunc().Sub(b.countedAt)
	full := b.queued+b.admitted >= b.most && age >= backlogAge/10
	if b.counting || (!full && age < backlogAge) {
		return false
	}
	b.counting = true
	return true
}

func (b *backlog) count(ctx context.Context) {
	n, err := b.countFunc(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counting = false
	if err == nil {
		b.queued, b.admitted, b.countedAt = n, 0, b.nowFunc()
	}
}

// errorOfBacklog keeps the key free.
func errorOfBacklog() *onejob.Error {
	return &onejob.Error{
		Code: onejob.CodeOverloaded, RetryAfter: time.Second,
		Message: "too many jobs are waiting already; ask again with the same idempotency key",
	}
}
