package grouped

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/onejob-dev/onejob"
)

// flushTimeout bounds one flush, since no caller's context does.
const flushTimeout = 30 * time.Second

// method is one method of a store, as a gatherer uses it.
type method[P, R any] struct {
	flush func(context.Context, []P) ([]R, error)
	// alone does a row that flush answered with [onejob.ReasonRowLocked] again.
	alone func(context.Context, []P) ([]R, error)
	errOf func(*R) error

	keyOf  func(*P) string // rows of one key never share a flush; nil: no such rule
	atOnce int             // flushes under way at most; more than one only without keys
}

// gatherer gathers the callers of one method. At most so many flushes are under
// way; who comes meanwhile waits for the next.
type gatherer[P, R any] struct {
	method[P, R]
	opts Options

	mu       sync.Mutex
	waiting  []*batch[P, R] // in the order in which they are flushed
	rows     int            // in waiting
	usual    int            // rows of the last batch: room for the next
	keys     map[string]struct{}
	flushing int        // flushes under way
	idle     *sync.Cond // signalled when flushing ends
}

// batch is what one flush does, and what came of it. Callers write their rows into
// it as they come and read their results out of it: nothing is handed around.
type batch[P, R any] struct {
	params []P
	keys   map[string]struct{} // of params; nil: no such rule, or being flushed

	done    chan struct{} // closed when there are results, or err
	results []R
	err     error
}

func newGatherer[P, R any](opts Options, m method[P, R]) *gatherer[P, R] {
	g := &gatherer[P, R]{opts: opts, method: m}
	g.idle = sync.NewCond(&g.mu)
	return g
}

// do adds params to a flush and waits for it. When ctx ends first nothing is
// known: the rows may or may not be committed.
func (g *gatherer[P, R]) do(ctx context.Context, params []P) ([]R, error) {
	if len(params) == 0 {
		return nil, nil
	}
	b, first, err := g.join(params)
	if err != nil {
		return nil, err
	}
	select {
	case <-b.done:
		if b.err != nil {
			return nil, b.err
		}
		end := first + len(params)
		results := b.results[first:end:end]
		return results, g.retryLocked(ctx, params, results)
	case <-ctx.Done():
		return nil, onejob.Unavailable(fmt.Errorf("waiting for a commit: %w", context.Cause(ctx)))
	}
}

// retryLocked does each row that another transaction stood in the way of once
// more, alone and on its caller's own time: the neighbours have their answers.
func (g *gatherer[P, R]) retryLocked(ctx context.Context, params []P, results []R) error {
	for i := range results {
		if !isLocked(g.errOf(&results[i])) {
			continue
		}
		again, err := g.alone(ctx, params[i:i+1])
		if err == nil && len(again) != 1 {
			err = onejob.Unavailable(fmt.Errorf("the store answered %d of 1 rows", len(again)))
		}
		if err != nil {
			return err // nothing is known of this row any more
		}
		results[i] = again[0]
	}
	return nil
}

func isLocked(err error) bool {
	if err == nil {
		return false
	}
	var e *onejob.Error
	return errors.As(err, &e) && e.Reason == onejob.ReasonRowLocked && e.Code == onejob.CodeStoreUnavailable
}

// join adds params to a batch and returns it, and where in it they begin.
func (g *gatherer[P, R]) join(params []P) (b *batch[P, R], first int, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.rows+len(params) > max(g.opts.MaxWaiting, len(params)) {
		return nil, 0, &onejob.Error{Code: onejob.CodeOverloaded, Message: "too many requests wait for the store", RetryAfter: time.Second}
	}
	b = g.place(params)
	first = len(b.params)
	b.params = append(b.params, params...)
	g.rows += len(params)
	if g.keyOf != nil {
		for i := range params {
			b.keys[g.keyOf(&params[i])] = struct{}{}
		}
	}
	if g.flushing < g.atOnce {
		g.flushing++
		go g.flushAll()
	}
	return b, first, nil
}

// place finds the first batch with room for params behind all that hold one of
// their keys, or begins one.
func (g *gatherer[P, R]) place(params []P) *batch[P, R] {
	from := len(g.waiting)
	for from > 0 && !g.sharesKey(g.waiting[from-1], params) {
		from--
	}
	for _, b := range g.waiting[from:] {
		if len(b.params)+len(params) <= g.opts.MaxBatch {
			return b
		}
	}
	b := &batch[P, R]{params: make([]P, 0, max(g.usual, len(params))), done: make(chan struct{})}
	if g.keyOf != nil {
		b.keys, g.keys = g.keys, nil
		if b.keys == nil {
			b.keys = map[string]struct{}{}
		}
	}
	g.waiting = append(g.waiting, b)
	return b
}

func (g *gatherer[P, R]) sharesKey(b *batch[P, R], params []P) bool {
	if g.keyOf == nil {
		return false
	}
	for i := range params {
		if _, taken := b.keys[g.keyOf(&params[i])]; taken {
			return true
		}
	}
	return false
}

// flushAll flushes until nobody waits. Callers that are about to come, woken by
// the same commit as the first, are let in first: it would else be flushed alone.
func (g *gatherer[P, R]) flushAll() {
	for {
		runtime.Gosched()
		b := g.take()
		if b == nil {
			return
		}
		g.flushOne(b)
	}
}

// take removes the next batch from those that wait. Without one it ends the
// flushing.
func (g *gatherer[P, R]) take() *batch[P, R] {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		g.flushing--
		g.idle.Broadcast()
		return nil
	}
	b := g.waiting[0]
	g.waiting = slices.Delete(g.waiting, 0, 1)
	g.rows -= len(b.params)
	g.usual = min(len(b.params), g.opts.MaxBatch)
	g.keys, b.keys = b.keys, nil
	clear(g.keys) // for the next batch
	return b
}

// flushOne flushes a batch and tells everybody in it.
func (g *gatherer[P, R]) flushOne(b *batch[P, R]) {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	b.results, b.err = g.flush(ctx, b.params)
	if b.err == nil && len(b.results) != len(b.params) {
		b.err = onejob.Unavailable(fmt.Errorf("the store answered %d of %d rows", len(b.results), len(b.params)))
	}
	close(b.done)
}

// drain waits until nobody waits and nothing is under way.
func (g *gatherer[P, R]) drain() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.flushing > 0 {
		g.idle.Wait()
	}
}
