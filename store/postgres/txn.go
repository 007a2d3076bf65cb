package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// querier is a pool, a connection or a transaction.
type querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// A lock that a shared batch waits for longer is somebody's open transaction: its
// row is done alone, and waits as long again.
const sqlLockTimeout = `SET LOCAL lock_timeout = '2s'`

// rollbackWithin bounds the rollback of a transaction whose context may be over.
const rollbackWithin = 5 * time.Second

// How a transaction begins.
const (
	sqlBegin     = `BEGIN ISOLATION LEVEL READ COMMITTED`
	sqlBeginRead = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY` // several statements, one snapshot
)

// txn is one transaction, sent as batches of statements: BEGIN goes with the
// first and COMMIT with the last, so that few round trips make it up. One that
// joined a caller's own neither begins nor commits.
type txn struct {
	db     querier
	begin  string // empty: the caller's own
	begun  bool
	closed bool
}

// batch returns the next batch of the transaction.
func (t *txn) batch() *pgx.Batch {
	b := &pgx.Batch{}
	if t.begin != "" && !t.begun {
		b.Queue(t.begin)
		if t.begin == sqlBegin {
			b.Queue(sqlLockTimeout)
		}
	}
	return b
}

// send runs b's statements and their callbacks, which must not act: what follows
// them in b is sent already.
func (t *txn) send(ctx context.Context, b *pgx.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	t.begun = true
	return t.db.SendBatch(ctx, b).Close()
}

// commit runs b's statements and commits. After an error it is not known whether
// the transaction did.
func (t *txn) commit(ctx context.Context, b *pgx.Batch) error {
	if t.begin == "" {
		return t.send(ctx, b)
	}
	if !t.begun && b.Len() == 0 {
		return nil
	}
	b.Queue("COMMIT").Exec(func(tag pgconn.CommandTag) error {
		if tag.String() != "COMMIT" {
			return fmt.Errorf("the transaction ended in %s", tag)
		}
		t.closed = true
		return nil
	})
	return t.send(ctx, b)
}

// inTx runs act in a transaction of the store's own. act commits; if it does not,
// nothing happened.
func (s *Store) inTx(ctx context.Context, begin string, act func(t *txn) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release() // the pool drops a connection whose transaction is still open
	t := &txn{db: conn, begin: begin}
	err = act(t)
	if t.begun && !t.closed && !conn.Conn().IsClosed() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackWithin)
		defer cancel()
		_, _ = conn.Exec(ctx, "ROLLBACK") // if even this fails the pool drops the connection
	}
	return err
}

// read runs act over one snapshot.
func (s *Store) read(ctx context.Context, act func(t *txn) error) error {
	return s.inTx(ctx, sqlBeginRead, act)
}
