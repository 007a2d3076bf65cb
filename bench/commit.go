package main

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
)

func repeated(s string, n int) string { return strings.Repeat(s, n) }

// counter makes numbers from 1 up.
type counter struct{ n atomic.Int64 }

func (c *counter) next() int64 { return c.n.Add(1) }

// committer is a group commit as small as it can be: whoever comes while a flush is
// under way waits for the next.
type committer[T any] struct {
	flush func(context.Context, []T) error

	mu      sync.Mutex
	waiting []T
	done    []chan error
	busy    bool
}

func newCommitter[T any](flush func(context.Context, []T) error) *committer[T] {
	return &committer[T]{flush: flush}
}

func (c *committer[T]) do(ctx context.Context, row T) error {
	done := make(chan error, 1)
	c.mu.Lock()
	c.waiting, c.done = append(c.waiting, row), append(c.done, done)
	if !c.busy {
		c.busy = true
		go c.flushAll(context.WithoutCancel(ctx))
	}
	c.mu.Unlock()
	return <-done
}

func (c *committer[T]) flushAll(ctx context.Context) {
	for {
		runtime.Gosched()
		c.mu.Lock()
		rows, done := c.waiting, c.done
		c.waiting, c.done = nil, nil
		c.busy = len(rows) > 0
		c.mu.Unlock()
		if len(rows) == 0 {
			return
		}
		err := c.flush(ctx, rows)
		for _, d := range done {
			d <- err
		}
	}
}
