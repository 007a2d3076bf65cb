package grouped

import (
	"context"
	"errors"
	"fmt"
	"runtime"
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
	waiting  []*caller[P, R]
	rows     int        // in waiting
	flushing int        // flushes under way
	idle     *sync.Cond // signalled when flushing ends
}

// caller is one call, answered as a whole by one flush.
type caller[P, R any] struct {
	params []P
	done   chan answer[R]
}

type answer[R any] struct {
	results []R
	err     error
}

func newGatherer[P, R any](opts Options, m method[P, R]) *gatherer[P, R] {
	g := &gatherer[P, R]{opts: opts, method: m}
	g.idle = sync.NewCond(&g.mu)
	return g
}

// do adds params to the next flush and waits for it. When ctx ends first nothing
// is known: the rows may or may not be committed.
func (g *gatherer[P, R]) do(ctx context.Context, params []P) ([]R, error) {
	if len(params) == 0 {
		return nil, nil
	}
	c := &caller[P, R]{params: params, done: make(chan answer[R], 1)}
	if err := g.join(c); err != nil {
		return nil, err
	}
	select {
	case a := <-c.done:
		if a.err != nil {
			return nil, a.err
		}
		return a.results, g.retryLocked(ctx, params, a.results)
	case <-ctx.Done():
		return nil, onejob.Unavailable(fmt.Errorf("waiting for a commit: %w", context.Cause(ctx)))
	}
}

// retryLocked does each row that another transaction stood in the way of once
// more, alone and on its caller's own time: the neighbours have their answers.
func (g *gatherer[P, R]) retryLocked(ctx context.Context, params []P, results []R) error {
	for i := range results {
		var e *onejob.Error
		if !errors.As(g.errOf(&results[i]), &e) || e.Reason != onejob.ReasonRowLocked || e.Code != onejob.CodeStoreUnavailable {
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

func (g *gatherer[P, R]) join(c *caller[P, R]) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.rows+len(c.params) > max(g.opts.MaxWaiting, len(c.params)) {
		return &onejob.Error{Code: onejob.CodeOverloaded, Message: "too many requests wait for the store", RetryAfter: time.Second}
	}
	g.waiting = append(g.waiting, c)
	g.rows += len(c.params)
	if g.flushing < g.atOnce {
		g.flushing++
		go g.flushAll()
	}
	return nil
}

// flushAll flushes until nobody waits. Callers that are about to come, woken by
// the same commit as the first, are let in first: it would else be flushed alone.
func (g *gatherer[P, R]) flushAll() {
	for {
		runtime.Gosched()
		batch := g.take()
		if len(batch) == 0 {
			return
		}
		g.answer(batch)
	}
}

// take removes the next batch from those who wait, in their order. Without one it
// ends the flushing.
func (g *gatherer[P, R]) take() []*caller[P, R] {
	g.mu.Lock()
	defer g.mu.Unlock()
	var batch, left []*caller[P, R]
	size, keys := 0, map[string]bool{}
	for _, c := range g.waiting {
		fits := len(batch) == 0 || size+len(c.params) <= g.opts.MaxBatch
		if !fits || !g.claimKeys(keys, c) {
			left = append(left, c)
			continue
		}
		batch, size = append(batch, c), size+len(c.params)
	}
	g.waiting, g.rows = left, g.rows-size
	if len(batch) == 0 {
		g.flushing--
		g.idle.Broadcast()
	}
	return batch
}

// claimKeys reports whether no row of c shares a key with an earlier caller of the
// batch; either way c's keys are taken, so that a later caller cannot overtake it.
func (g *gatherer[P, R]) claimKeys(keys map[string]bool, c *caller[P, R]) bool {
	if g.keyOf == nil {
		return true
	}
	free := true
	for i := range c.params {
		free = free && !keys[g.keyOf(&c.params[i])]
	}
	for i := range c.params {
		keys[g.keyOf(&c.params[i])] = true
	}
	return free
}

// answer flushes one batch and tells every caller its part.
func (g *gatherer[P, R]) answer(batch []*caller[P, R]) {
	params := batch[0].params
	if len(batch) > 1 {
		n := 0
		for _, c := range batch {
			n += len(c.params)
		}
		params = make([]P, 0, n)
		for _, c := range batch {
			params = append(params, c.params...)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	results, err := g.flush(ctx, params)
	if err == nil && len(results) != len(params) {
		err = onejob.Unavailable(fmt.Errorf("the store answered %d of %d rows", len(results), len(params)))
	}
	for _, c := range batch {
		if err != nil {
			c.done <- answer[R]{err: err}
			continue
		}
		c.done <- answer[R]{results: results[:len(c.params):len(c.params)]}
		results = results[len(c.params):]
	}
}

// drain waits until nobody waits and nothing is under way.
func (g *gatherer[P, R]) drain() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.flushing > 0 {
		g.idle.Wait()
	}
}
