// Package sqlite keeps jobs in one SQLite file: the store of one node, without cgo.
//
// [Open] applies the schema, insists on a write-ahead log that is flushed before
// a commit returns, and refuses a file system on which locks are not to be
// trusted. One connection writes, others read. Other processes may open the same
// file (a command beside a server does): SQLite makes their writes take turns.
//
// # The clock
//
// The process's wall clock is the database's clock here. The store keeps a
// high-water mark of it in the file and never writes an earlier time. When the
// wall clock steps by more than five seconds against the monotonic clock, nothing
// may be concluded from time having passed: for a minute, or until the wall clock
// has caught up with the mark, [Store.AttemptExpire] changes nothing, rulings that
// rest on a quarantine are refused, and [Store.Check] says so. A mark in the
// far future, left by a clock that was wrong, holds the store's time still until
// it is reached; an operator who knows better stops the program and runs
// UPDATE clock SET high_water = 0.
//
// # The caller's own transaction
//
// [Tx] records jobs inside a transaction of database/sql on the same file, opened
// with [OpenDB].
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onejob-dev/onejob"
)

// Options tunes a [Store]. The zero value is ready to use.
type Options struct {
	// NowFunc returns the current time, from which the store's clock is made.
	//
	// Nil means [time.Now].
	NowFunc func() time.Time

	// ElapsedFunc returns the monotonic time since some fixed moment, against
	// which steps of NowFunc are found.
	//
	// Nil means the monotonic readings of NowFunc; a clock without them is never
	// found to step.
	ElapsedFunc func() time.Duration

	// Readers is how many connections read at once.
	//
	// Zero means as many as there are processors, and at least 4.
	Readers int

	// BusyTimeout is how long a write waits for another process's.
	//
	// Zero means 5 seconds.
	BusyTimeout time.Duration

	// Logger hears what nobody is told: a failed rollback, a step of the clock.
	//
	// Nil means silence.
	Logger *slog.Logger
}

func (o Options) withDefaults() (Options, error) {
	var errs []error
	if o.Readers < 0 {
		errs = append(errs, errors.New("Readers is negative"))
	}
	if o.BusyTimeout < 0 {
		errs = append(errs, errors.New("BusyTimeout is negative"))
	}
	if err := errors.Join(errs...); err != nil {
		return o, &onejob.Error{Code: onejob.CodeInvalidArgument, Message: "invalid Options", Err: err}
	}
	if o.NowFunc == nil {
		o.NowFunc = time.Now
	}
	if o.Readers == 0 {
		o.Readers = max(4, runtime.GOMAXPROCS(0))
	}
	if o.BusyTimeout == 0 {
		o.BusyTimeout = 5 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// Store is a SQLite database. It is safe for concurrent use.
type Store struct {
	path    string
	log     *slog.Logger
	clock   *clock
	writer  *writer
	readers *readers
	terms   atomic.Pointer[onejob.GateTerms]

	closing sync.Once
	closed  error // what Close answers
}

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

// Open opens the database at path, a file name, and creates it when there is
// none. It applies migrations that are missing and refuses a database of a newer
// program, one that does not flush before a commit returns, and a network file
// system.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	path, err = checkPath(path)
	if err != nil {
		return nil, err
	}
	if err := Migrate(ctx, path); err != nil {
		return nil, err
	}
	s := &Store{path: path, log: o.Logger}
	if err := s.open(o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// checkPath returns path, absolute, unless a database there could not be trusted.
func checkPath(path string) (string, error) {
	if path == "" || path == ":memory:" {
		return "", &onejob.Error{Code: onejob.CodeInvalidArgument, Message: "the store needs a file to keep jobs in"}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("store %s: %w", path, err)
	}
	if err := checkFileSystem(filepath.Dir(path)); err != nil {
		return "", fmt.Errorf("store %s: %w", path, err)
	}
	return path, nil
}

func (s *Store) open(o Options) (err error) {
	if s.writer, err = newWriter(s.path, o); err != nil {
		return err
	}
	s.writer.terms = &s.terms
	high, err := s.writer.highWater()
	if err != nil {
		return err
	}
	s.clock = newClock(o.NowFunc, o.ElapsedFunc, high)
	s.readers, err = newReaders(s.path, o)
	return err
}

// Close waits for what is under way and closes the file. It is safe to repeat;
// every other call fails from then on.
func (s *Store) Close() error {
	s.closing.Do(func() {
		var errs []error
		if s.writer != nil {
			errs = append(errs, s.writer.close())
		}
		if s.readers != nil {
			errs = append(errs, s.readers.close())
		}
		s.closed = errors.Join(errs...)
	})
	return s.closed
}

// Check reports whether the store can be written to, its schema is this
// program's, and its clock is sound. It writes and flushes one row.
func (s *Store) Check(ctx context.Context) error {
	err := s.write(ctx, func(x *tx) error {
		if _, err := x.exec(`UPDATE clock SET high_water = max(high_water, ?) WHERE id = 1`, x.now); err != nil {
			return err
		}
		return x.checkSchema()
	})
	if err != nil {
		return err
	}
	return s.clock.check()
}
