package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	modernc "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/onejob-dev/onejob"
)

// Tx records jobs inside the caller's own transaction, begun on a database that
// [OpenDB] opened: they exist exactly if that transaction commits, and everything
// that is answered before is provisional. Nothing is started in it. An error
// carries [onejob.CodeStoreUnavailable] when the transaction can only be rolled
// back; one row's own error leaves it as it was before that row.
func Tx(caller *sql.Tx) onejob.JobCreator { return &joined{caller: caller} }

type joined struct {
	caller *sql.Tx
}

// JobCreate is the store's, at the database's time: the wall clock's, or the
// high-water mark that the store keeps when that is later.
func (t *joined) JobCreate(ctx context.Context, params []onejob.JobCreateParams) ([]onejob.JobCreateResult, error) {
	db := transaction{ctx: ctx, tx: t.caller}
	if err := verify(db); err != nil {
		return nil, onejob.Unavailable(err)
	}
	now, err := databaseNow(db)
	if err != nil {
		return nil, onejob.Unavailable(err)
	}
	results, err := judgeAll(&tx{speaker: db, now: now}, params, (*tx).createOnly, refuseCreate)
	return results, onejob.Unavailable(err)
}

// createOnly starts nothing: the caller may still roll back.
func (x *tx) createOnly(p *onejob.JobCreateParams) (onejob.JobCreateResult, error) {
	only := *p
	only.Start = nil
	return x.create(&only)
}

func databaseNow(db speaker) (now time.Time, err error) {
	err = db.query(`SELECT max(high_water, CAST(unixepoch('subsec') * 1000 AS INTEGER)) FROM clock WHERE id = 1`, func(r *row) error {
		now = r.Time()
		return nil
	})
	if err == nil && now.IsZero() {
		err = errors.New("the database has no clock")
	}
	return now, err
}

// transaction speaks through a transaction of database/sql. It lives for one call,
// whose context it carries.
type transaction struct {
	ctx context.Context
	tx  *sql.Tx
}

func (t transaction) exec(statement string, args ...any) (int, error) {
	result, err := t.tx.ExecContext(t.ctx, statement, values(args)...)
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

func (t transaction) insert(statement string, args ...any) (rowid int64, inserted bool, err error) {
	result, err := t.tx.ExecContext(t.ctx, statement, values(args)...)
	if err != nil {
		return 0, false, err
	}
	n, err := result.RowsAffected()
	if err != nil || n != 1 {
		return 0, false, err
	}
	rowid, err = result.LastInsertId()
	return rowid, err == nil, err
}

func (t transaction) query(statement string, each func(*row) error, args ...any) (err error) {
	rows, err := t.tx.QueryContext(t.ctx, statement, values(args)...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	found, into := make(scanned, len(names)), make([]any, len(names))
	for i := range found {
		into[i] = &found[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if err := each(&row{columns: found}); err != nil {
			return err
		}
	}
	return rows.Err()
}

// values turns times into what rows keep.
func values(args []any) []any {
	out := make([]any, len(args))
	for i, arg := range args {
		out[i] = arg
		if t, isTime := arg.(time.Time); isTime {
			out[i] = nil
			if !t.IsZero() {
				out[i] = t.UnixMilli()
			}
		}
	}
	return out
}

// scanned are one row's columns, as the driver returns them.
type scanned []any

func (s scanned) null(i int) bool     { return s[i] == nil }
func (s scanned) integer(i int) int64 { n, _ := s[i].(int64); return n }

func (s scanned) text(i int) string {
	switch v := s[i].(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}

func (s scanned) blob(i int) []byte {
	if b, _ := s[i].([]byte); b != nil {
		return b
	}
	return []byte{}
}

// refusedByDriver is concernsRow for the driver of database/sql.
func refusedByDriver(err error) bool {
	var e *modernc.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG:
		return true
	}
	return false
}
