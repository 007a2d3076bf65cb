package sqlite

import (
	"context"

	"zombiezen.com/go/sqlite"
)

// WriterExec runs a statement on the connection that writes, as only its own
// pragmas need.
func (s *Store) WriterExec(statement string) error {
	<-s.writer.turn
	defer func() { s.writer.turn <- struct{}{} }()
	return s.writer.conn.query(statement, func(*row) error { return nil })
}

// MaxDeeds bounds what shares one transaction.
const MaxDeeds = maxDeeds

// Hold keeps everybody from writing until release is called.
func (s *Store) Hold() (release func()) {
	<-s.writer.turn
	return func() { s.writer.turn <- struct{}{} }
}

// Waiting is how many writes wait for their turn.
func (s *Store) Waiting() int {
	s.writer.mu.Lock()
	defer s.writer.mu.Unlock()
	return len(s.writer.waiting)
}

// PanicInTransaction panics where a defect of ours would.
func (s *Store) PanicInTransaction(ctx context.Context) {
	_ = s.write(ctx, func(*tx) error { panic("a defect") })
}

// VerifyAll asks every connection of the store for the pragmas it must have.
func (s *Store) VerifyAll(ctx context.Context, readers int) error {
	<-s.writer.turn
	err := verify(s.writer.conn)
	s.writer.turn <- struct{}{}
	for range readers {
		conn, takeErr := s.readers.take(ctx)
		if takeErr != nil {
			return takeErr
		}
		defer s.readers.put(conn)
		if err == nil {
			err = verify(conn)
		}
	}
	return err
}

// VerifyUnprepared opens a connection as SQLite does by itself and verifies it.
func VerifyUnprepared(path string) error {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return verify(connected(conn))
}

// MaxStatements bounds what a connection keeps prepared.
const MaxStatements = maxStatements

// Statements is how many statements a reader keeps prepared.
func (s *Store) Statements(ctx context.Context) (int, error) {
	db, err := s.readers.take(ctx)
	if err != nil {
		return 0, err
	}
	defer s.readers.put(db)
	return len(db.statements), nil
}

// MayCostMore asks the database about an attempt, by the words that sums are made of.
func (s *Store) MayCostMore(ctx context.Context, state, outcome, phase, currency string) (more bool, err error) {
	err = s.read(ctx, func(x *tx) error {
		return x.query(`SELECT `+mayCostMore+` FROM (SELECT ? AS state, ? AS outcome, ? AS phase, ? AS currency) a`, func(r *row) error {
			more = r.Bool()
			return nil
		}, state, orNull(outcome), phase, currency)
	})
	return more, err
}
