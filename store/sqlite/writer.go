package sqlite

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/onejob-dev/onejob"
)

// writer is the one connection that writes. Whoever holds the token in turn
// has it, and writes for all who wait.
type writer struct {
	path string
	busy time.Duration
	log  *slog.Logger
	turn chan struct{}
	conn *connection // nil once closed, or when it could not be opened again
	done bool

	terms *atomic.Pointer[onejob.GateTerms] // the store's

	mu      sync.Mutex
	waiting []*deed // in the order they came
}

func newWriter(path string, o Options) (*writer, error) {
	w := &writer{path: path, busy: o.BusyTimeout, log: o.Logger, turn: make(chan struct{}, 1)}
	if err := w.connect(); err != nil {
		return nil, err
	}
	w.turn <- struct{}{}
	return w, nil
}

func (w *writer) connect() (err error) {
	w.conn, err = connect(w.path, w.busy,
		`PRAGMA cache_size = -4096`,        // KiB: after most commits SQLite walks over all of it, for pages that it renumbered
		`PRAGMA wal_autocheckpoint = 8192`, // pages: each of those is then copied once for many batches
	)
	return err
}

func (w *writer) highWater() (high time.Time, err error) {
	err = w.conn.query(`SELECT high_water FROM clock WHERE id = 1`, func(r *row) error {
		high = r.Time()
		return nil
	})
	return high, err
}

func (w *writer) close() error {
	<-w.turn
	defer func() { w.turn <- struct{}{} }()
	w.done = true
	if w.conn == nil {
		return nil
	}
	err := w.conn.Close()
	w.conn = nil
	return err
}

// tx is one transaction at one moment.
type tx struct {
	speaker
	now   time.Time
	clock *clock            // nil in a caller's own transaction
	terms *onejob.GateTerms // nil: nobody said what the gate goes by
}

// rollback leaves the connection outside any transaction, or without itself: the
// next write then opens another.
func (w *writer) rollback() {
	if w.conn.AutocommitEnabled() {
		return // SQLite did it
	}
	_, err := w.conn.exec(`ROLLBACK`)
	if err == nil {
		return
	}
	w.log.Error("roll back; the connection is replaced", "error", errors.Join(err, w.conn.Close()))
	w.conn = nil
}

// batch judges every row by itself, in order, in one transaction. refuse makes the
// answer of a row that failed alone.
//
// Hardly ever does one fail, so that the rows share the transaction bare at first;
// if one does, all of it is undone and done again with a savepoint for each.
func batch[P, R any](ctx context.Context, s *Store, params []P, judge func(*tx, *P) (R, error), refuse func(error) R) (results []R, err error) {
	failed := false
	err = s.write(ctx, func(x *tx) (err error) {
		results, err = judgeBare(x, params, judge)
		failed = err != nil && concernsRow(err)
		return err
	})
	if failed {
		err = s.write(ctx, func(x *tx) (err error) {
			results, err = judgeAll(x, params, judge, refuse)
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	return results, nil
}

// judgeBare judges rows until one fails, which the whole transaction then has to.
func judgeBare[P, R any](x *tx, params []P, judge func(*tx, *P) (R, error)) (results []R, err error) {
	results = make([]R, len(params))
	for i := range params {
		if results[i], err = judge(x, &params[i]); err != nil {
			return nil, err
		}
	}
	return results, nil
}

func judgeAll[P, R any](x *tx, params []P, judge func(*tx, *P) (R, error), refuse func(error) R) ([]R, error) {
	results := make([]R, len(params))
	for i := range params {
		refused, err := x.row(func() (err error) {
			results[i], err = judge(x, &params[i])
			return err
		})
		if err != nil {
			return nil, err
		}
		if refused != nil {
			results[i] = refuse(refused)
		}
	}
	return results, nil
}

// row does one row of a batch. Its own error undoes that row alone and is
// returned as refused; err means that the whole transaction is lost.
func (x *tx) row(act func() error) (refused, err error) {
	if _, err := x.exec(`SAVEPOINT one`); err != nil {
		return nil, err
	}
	refused = act()
	if refused != nil {
		if !concernsRow(refused) {
			return nil, refused
		}
		if _, err := x.exec(`ROLLBACK TO one`); err != nil {
			return nil, err
		}
	}
	_, err = x.exec(`RELEASE one`)
	return asRowError(refused), err
}

// concernsRow says whether an error is about one row's content, rather than the
// database's ability to do anything.
func concernsRow(err error) bool {
	var e *onejob.Error
	if errors.As(err, &e) {
		return e.Code != onejob.CodeStoreUnavailable
	}
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultConstraint, sqlite.ResultMismatch, sqlite.ResultTooBig:
		return true
	default:
		return refusedByDriver(err)
	}
}

// asRowError gives the database's own refusal a code.
func asRowError(err error) error {
	var e *onejob.Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	if refusedByRestore(err) {
		return onejob.ErrorOfRestore()
	}
	return &onejob.Error{Code: onejob.CodeInvalidArgument, Message: "the database refuses this row", Err: err}
}
