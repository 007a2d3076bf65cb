// Package postgres keeps jobs and attempts in PostgreSQL 15 or later, for any
// number of equal nodes at once.
//
// The database is the arbiter of every rule: a unique index makes two clicks one
// job, a partial one keeps a lane to one attempt in doubt, and a compare-and-swap
// fills the result slot once. What is decided in Go is decided from rows that the
// same transaction has locked, and each write repeats its condition.
//
// Every transaction runs at READ COMMITTED, locks the rows of job_states in the
// order of (part, job_id), after them the ends of audit chains in the order of
// (part, owner), and is sent in few round trips. A batch that one of
// its rows spoils is done again in smaller ones, so that only that row answers an
// error. No connection is held while anything but SQL happens.
//
// The schema is named by the URL's search_path. Connections go straight to the
// server or through a pooler of whole sessions.
package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/onejob-dev/onejob"
)

var (
	_ onejob.Store         = (*Store)(nil)
	_ onejob.ProbeStore    = (*Store)(nil)
	_ onejob.DeliveryStore = (*Store)(nil)
	_ onejob.KeyStore      = (*Store)(nil)
	_ onejob.AuditStore    = (*Store)(nil)
	_ onejob.IncidentStore = (*Store)(nil)
	_ onejob.CostStore     = (*Store)(nil)
	_ onejob.RestoreStore  = (*Store)(nil)

	_ onejob.CertificateStore = (*Store)(nil)
	_ onejob.WaiterStore      = (*Store)(nil)
	_ onejob.StreamStore      = (*Store)(nil)
)

// Store keeps jobs in one schema of a PostgreSQL database. It is safe for
// concurrent use, as are several on the same schema.
type Store struct {
	pool  *pgxpool.Pool
	log   *slog.Logger
	clock *clock
	seen  *seen
	terms *atomic.Pointer[onejob.GateTerms]

	hasty    bool          // nothing waits for others' open transactions
	patience chan struct{} // bounds those who wait
}

// Open connects to the database of url and checks that it may be trusted: its
// version, its durability, and that its schema is the one this program knows.
// The caller closes the store.
//
// The error says what to change, and never carries the URL's password.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if o.Migrate {
		if err := Migrate(ctx, url); err != nil {
			return nil, err
		}
	}
	known := &seen{}
	known.raise(o.Seen)
	pool, err := connect(ctx, url, o, known)
	if err != nil {
		return nil, err
	}
	s := &Store{pool: pool, log: o.Logger, clock: &clock{}, seen: known, terms: &atomic.Pointer[onejob.GateTerms]{}, patience: make(chan struct{}, max(o.MaxConns/4, 1))}
	if err := s.admit(ctx, o); err != nil {
		pool.Close()
		return nil, err
	}
	return s, nil
}

func connect(ctx context.Context, url string, o Options, known *seen) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, &onejob.Error{Code: onejob.CodeInvalidArgument, Message: "the URL of the database is not valid", Err: err}
	}
	config.MaxConns = int32(o.MaxConns)
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "onejob"
	}
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, sqlSession); err != nil {
			return err
		}
		return known.arrive(ctx, conn)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, onejob.Unavailable(err)
	}
	return pool, nil
}

// admit refuses a server that may lose what it acknowledged, and a schema that
// is not this program's.
func (s *Store) admit(ctx context.Context, o Options) error {
	if err := checkServer(ctx, s.pool, o.Durability); err != nil {
		return err
	}
	return s.Check(ctx)
}

// The transaction id is what a standby or a read-only session cannot give.
const sqlCheck = `SELECT onejob_now(), pg_current_xact_id()::text`

// Check reports whether the store can be written to and its schema is current.
func (s *Store) Check(ctx context.Context) error {
	if err := s.checkSchema(ctx); err != nil {
		return err
	}
	var now time.Time
	if err := s.pool.QueryRow(ctx, sqlCheck).Scan(&now, new(string)); err != nil {
		return onejob.Unavailable(fmt.Errorf("write to the store: %w", err))
	}
	s.clock.set(now)
	return nil
}

// Hasty returns the same store, but one that never waits for long: a row that
// somebody's open transaction holds answers [onejob.ReasonRowLocked] within a
// fraction of a second. It is what callers share a transaction through.
func (s *Store) Hasty() onejob.Store { return s.hastily() }

func (s *Store) hastily() *Store {
	hasty := *s
	hasty.hasty = true
	return &hasty
}

// Close waits for what is under way and closes every connection.
func (s *Store) Close() error {
	s.pool.Close()
	return nil
}

// Tx returns a creator that records jobs inside the caller's own transaction: they
// exist exactly if tx commits, and until then its answers are provisional. It
// starts no attempt. An error leaves tx as PostgreSQL does, fit for rollback only.
func Tx(tx pgx.Tx) onejob.JobCreator { return &joined{tx: tx} }

// clock is about what the database's clock says: good enough to make an id of,
// and for nothing that is decided.
type clock struct{ reading atomic.Pointer[reading] }

type reading struct {
	database time.Time
	at       time.Time // with a monotonic reading
}

func (c *clock) set(database time.Time) {
	c.reading.Store(&reading{database: database, at: time.Now()})
}

func (c *clock) about() time.Time {
	r := c.reading.Load() // set when the store was opened
	return r.database.Add(time.Since(r.at))
}
