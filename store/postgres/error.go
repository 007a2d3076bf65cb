package postgres

import (
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/onejob-dev/onejob"
)

// spoiled is one row's reason to roll its transaction back. Alone in a
// transaction the row answers err; in a batch its neighbours are done without it.
type spoiled struct{ err *onejob.Error }

func (s spoiled) Error() string { return s.err.Error() }

// cancelled is a statement that was ended from outside, and its transaction with it.
// This program ends none by itself. PostgreSQL also says so when a lock timeout fires
// in the moment in which the lock is granted, if the statement waits for another lock
// before it looks: its own mark of the timeout is wiped by the second wait
// (ProcessInterrupts and enable_timeouts of PostgreSQL 15).
const cancelled = "57014"

// ofRow reports whether err is a row's own and not the whole batch's: the
// statement was refused, on a connection that goes on working. What became of
// anything else is not known.
func ofRow(err error) bool {
	if errors.As(err, new(spoiled)) {
		return true
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || len(pg.Code) != 5 {
		return false
	}
	if pg.Code == cancelled {
		return pg.Severity == "ERROR"
	}
	switch pg.Code[:2] {
	case "08", "25", "28", "53", "57", "58", "XX": // the connection, the session, the server
		return false
	case "0A", "42": // the schema is not the one this program knows
		return false
	}
	return pg.Severity != "FATAL" && pg.Severity != "PANIC"
}

// inTheWay reports whether another transaction is the cause of err: it was not to
// be serialised with, waited for the same rows in another order, or held one.
func inTheWay(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01" || pg.Code == "55P03" || pg.Code == cancelled)
}

// rowError is what a row answers when the database refused it alone.
func rowError(err error) error {
	var s spoiled
	if errors.As(err, &s) {
		return s.err
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return onejob.Unavailable(err)
	}
	if inTheWay(err) {
		return &onejob.Error{
			Code: onejob.CodeStoreUnavailable, Reason: onejob.ReasonRowLocked, RetryAfter: time.Second, Err: err,
			Message: "another transaction holds this row; nothing was changed, repeat with the same idempotency key",
		}
	}
	if refusedByRestore(err) {
		return onejob.ErrorOfRestore()
	}
	if pg.Code[:2] == "22" || pg.Code[:2] == "23" {
		return &onejob.Error{Code: onejob.CodeInvalidArgument, Message: "the store does not take this row", Err: err}
	}
	return &onejob.Error{Code: onejob.CodeInternal, Message: "the store refused this row", Err: err}
}

func claimLost(ref onejob.AttemptRef) error {
	return &onejob.Error{
		Code: onejob.CodeClaimLost, JobID: ref.JobID, AttemptID: ref.ID,
		Message: "the attempt is no longer held under this claim",
	}
}
