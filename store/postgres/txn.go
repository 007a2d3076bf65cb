package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/onejob-dev/onejob"
)

// querier is a pool, a connection or a transaction.
type querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// What every connection begins with.
//
// A lock that is waited for longer is somebody's open transaction: whoever shares a
// transaction goes on without its row, and only a row alone has patience.
//
// Every statement finds its rows by an index, whatever its parameters. A plan that
// was made while a table was empty would read all of it, and is kept while the
// table grows; and a plan for every execution costs more than the execution.
const sqlSession = `
SET lock_timeout = '50ms';
SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET plan_cache_mode = force_generic_plan;
SET default_transaction_isolation = 'read committed';
SET jit = off` // what no index serves has an enormous cost now, and would be compiled

const sqlPatience = `SET LOCAL lock_timeout = '5s'`

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
	db      querier
	begin   string // empty: the caller's own
	patient bool   // waits for others' open transactions
	begun   bool
	closed  bool

	terms *onejob.GateTerms // what the gate goes by. Nil: nobody said
}

// joined reports whether the transaction is a caller's own.
func (t *txn) joined() bool { return t.begin == "" }

// batch returns the next batch of the transaction.
func (t *txn) batch() *pgx.Batch { return &pgx.Batch{} }

// send runs b's statements and their callbacks, which must not act: what follows
// them in b is sent already.
func (t *txn) send(ctx context.Context, b *pgx.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	if !t.joined() && !t.begun {
		t.beginWith(b)
	}
	t.begun = true
	return t.db.SendBatch(ctx, b).Close()
}

// beginWith puts the beginning of the transaction ahead of b's statements.
func (t *txn) beginWith(b *pgx.Batch) {
	first := &pgx.Batch{}
	first.Queue(t.begin)
	if t.patient {
		first.Queue(sqlPatience)
	}
	b.QueuedQueries = append(first.QueuedQueries, b.QueuedQueries...)
}

// commit runs b's statements and commits. After an error it is not known whether
// the transaction did.
//
// One statement that is all there is to a transaction is sent alone: it commits by
// itself before its last answer, under the session's isolation.
func (t *txn) commit(ctx context.Context, b *pgx.Batch) error {
	if t.joined() {
		return t.send(ctx, b)
	}
	if !t.begun && !t.patient && b.Len() <= 1 {
		if b.Len() == 0 {
			return nil
		}
		return t.db.SendBatch(ctx, b).Close()
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
	return s.within(ctx, &txn{begin: begin}, act)
}

// patiently runs act in a transaction that waits for others' open ones. At most a
// few do at once: each holds a connection that everybody else could use.
func (s *Store) patiently(ctx context.Context, act func(t *txn) error) error {
	select {
	case s.patience <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.patience }()
	return s.within(ctx, &txn{begin: sqlBegin, patient: true}, act)
}

func (s *Store) within(ctx context.Context, t *txn, act func(t *txn) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release() // the pool drops a connection whose transaction is still open
	t.db, t.terms = conn, s.terms.Load()
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
