// Package doorbell tells the processes that share a store what changed in it, so
// that nobody has to look all the time.
//
// It is a convenience: what it carries are hints, sent after the commits that they
// tell of and outside their transactions, gathered so that a process rings at most
// twenty times a second however much it does. Whoever waits polls as well. Where
// nothing can be heard, because the connection broke or a pooler stands between
// that does not know LISTEN, everybody polls at their own interval until it can.
package doorbell

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"

	"github.com/onejob-dev/onejob"
)

// Options tunes a [Bell]. The zero value is ready to use.
type Options struct {
	// Gap is the least time between two rings. Zero means 50 ms.
	Gap time.Duration
	// EchoWithin is how long it may take until a process hears itself. One that does
	// not hears nobody, and polls. Zero means 10 s.
	EchoWithin time.Duration
	// Logger is told when nothing can be heard, and when it can again. Nil discards.
	Logger *slog.Logger
}

const (
	defaultGap        = 50 * time.Millisecond
	defaultEchoWithin = 10 * time.Second

	// ringWithin bounds one ring, and retryAfter is the pause after one that failed.
	ringWithin = 5 * time.Second
	retryAfter = time.Second
)

// Bell joins the signals of one process to those of others on the same store. Make
// one with [New].
type Bell struct {
	store   onejob.Notifier
	signals *onejob.Signals
	opts    Options
	node    string // tells our own rings from others'

	rung chan struct{}
	echo chan struct{} // receives when we have heard ourselves

	mu      sync.Mutex
	pending pending
}

// New returns a bell between signals and whoever else rings at store. It is heard
// and hears while [Bell.Run] runs. The signals must not have another.
func New(store onejob.Notifier, signals *onejob.Signals, opts Options) *Bell {
	if opts.Gap <= 0 {
		opts.Gap = defaultGap
	}
	if opts.EchoWithin <= 0 {
		opts.EchoWithin = defaultEchoWithin
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	b := &Bell{
		store: store, signals: signals, opts: opts, node: rand.Text()[:12],
		rung: make(chan struct{}, 1), echo: make(chan struct{}, 1),
	}
	signals.Connect(b)
	return b
}

// Ring implements [onejob.Bell]: it notes what is to be told.
func (b *Bell) Ring(n onejob.News) {
	b.mu.Lock()
	b.pending.add(n)
	b.mu.Unlock()
	poke(b.rung)
}

// Run rings and listens until ctx ends, and rings once more for what happened
// last. It may be called once.
func (b *Bell) Run(ctx context.Context) {
	var listening sync.WaitGroup
	listening.Go(func() { b.listen(ctx) })
	b.ringLoop(ctx)
	listening.Wait()
}

// ringLoop rings at once when nothing was rung lately, and then for all that
// happened since.
func (b *Bell) ringLoop(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-b.rung:
			pause := b.opts.Gap
			if err := b.ring(ctx); err != nil {
				pause = retryAfter
			}
			rest(ctx, pause)
		}
	}
	_ = b.ring(context.WithoutCancel(ctx)) // others poll
}

// ring tells what is pending. What could not be told is told later, in short.
func (b *Bell) ring(ctx context.Context) error {
	b.mu.Lock()
	told := b.pending
	b.pending = pending{}
	b.mu.Unlock()
	messages := told.messages(b.node)
	if len(messages) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, ringWithin)
	defer cancel()
	err := b.store.Notify(ctx, messages)
	if err != nil {
		b.mu.Lock()
		b.pending.hello = b.pending.hello || told.hello
		b.mu.Unlock()
		b.Ring(onejob.News{All: true})
	}
	return err
}

func poke(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default: // already poked
	}
}

// rest pauses, unless ctx ends.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
