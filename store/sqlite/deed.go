package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/onejob-dev/onejob"
)

// maxDeeds is the most deeds that share one transaction.
const maxDeeds = 16

// deed is what somebody wants done in one transaction. It may be done more than
// once; only what the last time left behind counts.
type deed struct {
	act  func(*tx) error
	err  error         // what became of it; set before done is closed
	done chan struct{} // closed once it is known
}

// write does everything in one transaction that holds the write lock from its
// beginning. Whatever else waits to be written shares that transaction, and its
// flush, but not its fate: an error leaves nothing of this behind, and all of the
// others'. A transaction that has begun is short, and is not interrupted: its
// outcome is known.
func (s *Store) write(ctx context.Context, act func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return onejob.Unavailable(err)
	}
	w := s.writer
	d := &deed{act: act, done: make(chan struct{})}
	w.join(d)
	for {
		select {
		case <-d.done:
			return onejob.Unavailable(d.err)
		case <-w.turn:
			w.takeTurn(s.clock)
		case <-ctx.Done():
			if w.leave(d) {
				return onejob.Unavailable(ctx.Err())
			}
			<-d.done
		}
	}
}

// takeTurn writes, and passes the turn on.
func (w *writer) takeTurn(clock *clock) {
	defer func() { w.turn <- struct{}{} }()
	w.doWaiting(clock)
}

func (w *writer) join(d *deed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = append(w.waiting, d)
}

// leave takes back a deed that nobody has taken in hand yet.
func (w *writer) leave(d *deed) (left bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := slices.Index(w.waiting, d)
	if at >= 0 {
		w.waiting = slices.Delete(w.waiting, at, at+1)
	}
	return at >= 0
}

func (w *writer) take() (deeds []*deed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(len(w.waiting), maxDeeds)
	deeds = slices.Clone(w.waiting[:n])
	w.waiting = slices.Delete(w.waiting, 0, n)
	return deeds
}

// doWaiting does what waits, all in one transaction; where one of them fails, it
// gives each a transaction of its own. Who is about to come, woken by the same
// commit as the first, is let in.
func (w *writer) doWaiting(clock *clock) {
	runtime.Gosched()
	deeds := w.take()
	if len(deeds) == 0 {
		return
	}
	defer func() {
		for _, d := range deeds {
			close(d.done)
		}
	}()
	settle(deeds, errInterrupted) // stays only if one of them panics
	err := w.transact(clock, deeds)
	if len(deeds) == 1 || !isDeeds(err) {
		settle(deeds, err)
		return
	}
	for i := range deeds {
		settle(deeds[i:i+1], w.transact(clock, deeds[i:i+1]))
	}
}

func settle(deeds []*deed, err error) {
	var own errDeed
	if errors.As(err, &own) {
		err = own.error
	}
	for _, d := range deeds {
		d.err = err
	}
}

var (
	errClosed      = errors.New("the store is closed")
	errInterrupted = errors.New("the transaction was interrupted")
)

// errDeed is a deed's own error, and not the transaction's.
type errDeed struct{ error }

func isDeeds(err error) bool { return errors.As(err, new(errDeed)) }

// ready makes sure that there is a connection.
func (w *writer) ready() error {
	switch {
	case w.done:
		return errClosed
	case w.conn == nil:
		return w.connect()
	}
	return nil
}

// transact does all deeds in one transaction, or nothing. An error leaves the
// connection usable.
func (w *writer) transact(clock *clock, deeds []*deed) (err error) {
	if err := w.ready(); err != nil {
		return err
	}
	if _, err := w.conn.exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	committed := false
	defer func() {
		if !committed {
			w.rollback()
		}
	}()
	// The time is read under the lock, so that it never runs against the order of commits.
	x := &tx{speaker: w.conn, now: clock.now(), clock: clock, terms: w.terms.Load()}
	for _, d := range deeds {
		if err := d.act(x); err != nil {
			return errDeed{err}
		}
	}
	written, err := clock.keep(w.conn)
	if err != nil {
		return err
	}
	if _, err := w.conn.exec(`COMMIT`); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	committed = true
	written()
	return nil
}
