package sqlite

import (
	"context"
	"errors"

	"github.com/onejob-dev/onejob"
)

// readers are the connections that read. Whoever takes one out of free has it.
type readers struct {
	free   chan *connection
	opened int
	closed chan struct{}
}

func newReaders(path string, o Options) (*readers, error) {
	r := &readers{free: make(chan *connection, o.Readers), closed: make(chan struct{})}
	for range o.Readers {
		db, err := connect(path, o.BusyTimeout, `PRAGMA query_only = ON`)
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		r.free <- db
		r.opened++
	}
	return r, nil
}

func (r *readers) take(ctx context.Context) (*connection, error) {
	select {
	case <-r.closed:
		return nil, errClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	default:
	}
	select {
	case <-r.closed:
		return nil, errClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	case db := <-r.free:
		return db, nil
	}
}

// put gives back what take returned, outside any transaction.
func (r *readers) put(db *connection) { r.free <- db }

// close waits for reads under way. It must be called once.
func (r *readers) close() error {
	close(r.closed)
	var errs []error
	for range r.opened {
		errs = append(errs, (<-r.free).Close())
	}
	return errors.Join(errs...)
}

// read does everything in one transaction that sees one moment and waits for no
// writer. It is interrupted when ctx ends.
func (s *Store) read(ctx context.Context, act func(*tx) error) error {
	db, err := s.readers.take(ctx)
	if err != nil {
		return onejob.Unavailable(err)
	}
	defer s.readers.put(db)
	if _, err := db.exec(`BEGIN`); err != nil {
		return onejob.Unavailable(err)
	}
	db.SetInterrupt(ctx.Done())
	err = act(&tx{speaker: db, now: s.clock.now(), clock: s.clock, terms: s.terms.Load()})
	db.SetInterrupt(nil) // the transaction ends, whatever the context says
	if _, endErr := db.exec(`ROLLBACK`); endErr != nil {
		err = errors.Join(err, endErr)
	}
	return onejob.Unavailable(err)
}
