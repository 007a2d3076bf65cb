package doorbell

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Pauses between tries to listen.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 30 * time.Second
	// deafPause is the pause after a connection that heard nothing, not even us.
	deafPause = 5 * time.Minute
)

// errDeaf says that we did not hear ourselves.
var errDeaf = errors.New("what was rung was not heard; a pooler between here and the database may not know LISTEN")

// listen hears others until ctx ends. A lost connection is made anew, ever more
// patiently while that fails.
func (b *Bell) listen(ctx context.Context) {
	said := false // that nothing is heard
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, longestPause) {
		heard, err := b.listenOnce(ctx, said)
		b.signals.EndHearing()
		switch {
		case ctx.Err() != nil:
			return
		case heard:
			pause, said = firstPause, false
		}
		if !said {
			b.opts.Logger.Warn("other processes on the store are not heard; looking for their work by polling until they are", "err", err)
			said = true
		}
		if errors.Is(err, errDeaf) {
			pause = deafPause
		}
		rest(ctx, pause/2+rand.N(pause))
	}
}

// listenOnce listens until the connection is lost, and reports whether anything
// was heard on it. That is said to have begun when we hear ourselves.
func (b *Bell) listenOnce(ctx context.Context, complained bool) (heard bool, err error) {
	ctx, hangUp := context.WithCancelCause(ctx)
	defer hangUp(nil)
	select {
	case <-b.echo: // of an earlier connection
	default:
	}
	deaf := time.AfterFunc(b.opts.EchoWithin+ringWithin, func() { hangUp(errDeaf) })
	defer deaf.Stop()
	hear := func(message string) {
		b.hear(message)
		select {
		case <-b.echo:
		default:
			return
		}
		if heard {
			return
		}
		heard = deaf.Stop()
		b.signals.BeginHearing()
		if complained {
			b.opts.Logger.Info("other processes on the store are heard again")
		}
	}
	err = b.store.Listen(ctx, b.hello, hear)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return heard, err
}

// hello rings to ourselves, to learn whether we hear anything.
func (b *Bell) hello() {
	b.mu.Lock()
	b.pending.hello = true
	b.mu.Unlock()
	poke(b.rung)
}

// hear passes on what others told, and knows our own rings.
func (b *Bell) hear(message string) {
	n, node := read(message)
	if node == b.node {
		poke(b.echo)
		return
	}
	if !n.IsEmpty() {
		b.signals.Hear(n)
	}
}
