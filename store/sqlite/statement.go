package sqlite

import (
	"fmt"
	"time"

	"zombiezen.com/go/sqlite"
)

// speaker is all that the store's SQL needs of a connection. The store's own
// connections speak it, and so does a caller's transaction, so that statements
// and logic exist once. Arguments are int64, int, bool, string, []byte,
// time.Time (NULL when zero), a string type's pointer-free text or nil.
type speaker interface {
	// exec runs one statement and says how many rows it changed.
	exec(statement string, args ...any) (changed int, err error)
	// insert is exec of a statement that inserts a row, and returns its rowid.
	insert(statement string, args ...any) (rowid int64, inserted bool, err error)
	// query calls each for every row. The row is valid only in that call, which
	// must not speak itself.
	query(statement string, each func(*row) error, args ...any) error
}

// columns is one row's values, by position.
type columns interface {
	null(i int) bool
	integer(i int) int64
	text(i int) string
	blob(i int) []byte
}

// row reads one row's columns in the order of the SELECT.
type row struct {
	columns
	at int
}

func (r *row) next() int { r.at++; return r.at - 1 }

func (r *row) Int64() int64   { return r.integer(r.next()) }
func (r *row) Int() int       { return int(r.integer(r.next())) }
func (r *row) Bool() bool     { return r.integer(r.next()) != 0 }
func (r *row) String() string { return r.text(r.next()) } // "" for NULL

// Time returns a column of Unix milliseconds, and the zero time for NULL.
func (r *row) Time() time.Time {
	i := r.next()
	if r.null(i) {
		return time.Time{}
	}
	return time.UnixMilli(r.integer(i)).UTC()
}

// Bytes returns a copy of a blob, nil for NULL.
func (r *row) Bytes() []byte {
	i := r.next()
	if r.null(i) {
		return nil
	}
	return r.blob(i)
}

// Text is like String, and says whether there is one.
func (r *row) Text() (s string, ok bool) {
	i := r.next()
	return r.text(i), !r.null(i)
}

// orNull is text that is NULL when empty.
func orNull[T ~string](s T) any {
	if s == "" {
		return nil
	}
	return string(s)
}

// blobOrNull is a blob that is NULL when nil.
func blobOrNull(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

// maxStatements bounds what one connection keeps prepared. Without lists, whose
// filters make statements of their own, there are fewer than half as many.
const maxStatements = 200

// connection speaks through one of the store's own connections, and keeps what
// it has prepared.
//
// The driver keeps statements too, but clears a kept one's bindings before each
// use. SQLite takes that as a reason to prepare it again whenever the planner
// looked at a parameter, as it does at any that is compared with a column, and
// preparing costs many times what executing does. Here each use binds every
// parameter anew instead.
type connection struct {
	*sqlite.Conn
	statements map[string]*sqlite.Stmt
}

func connected(conn *sqlite.Conn) *connection {
	return &connection{Conn: conn, statements: map[string]*sqlite.Stmt{}}
}

func (c *connection) exec(statement string, args ...any) (int, error) {
	stmt, err := c.bound(statement, args)
	if err != nil {
		return 0, err
	}
	for {
		more, err := stmt.Step()
		if err != nil {
			_ = stmt.Reset()
			return 0, err
		}
		if !more {
			return c.Changes(), stmt.Reset()
		}
	}
}

func (c *connection) insert(statement string, args ...any) (rowid int64, inserted bool, err error) {
	n, err := c.exec(statement, args...)
	return c.LastInsertRowID(), n == 1, err
}

func (c *connection) query(statement string, each func(*row) error, args ...any) error {
	stmt, err := c.bound(statement, args)
	if err != nil {
		return err
	}
	for {
		more, err := stmt.Step()
		if err == nil && more {
			err = each(&row{columns: cells{stmt}})
		}
		if err != nil {
			_ = stmt.Reset()
			return err
		}
		if !more {
			return stmt.Reset()
		}
	}
}

func (c *connection) bound(statement string, args []any) (*sqlite.Stmt, error) {
	stmt, err := c.prepared(statement)
	if err != nil {
		return nil, err
	}
	if stmt.BindParamCount() != len(args) {
		return nil, fmt.Errorf("%d arguments for %d parameters of %s", len(args), stmt.BindParamCount(), statement)
	}
	for i, arg := range args {
		if err := bind(stmt, i+1, arg); err != nil {
			return nil, err
		}
	}
	return stmt, nil
}

// prepared returns a statement that stands nowhere. Its parameters may be bound to
// what they were before.
func (c *connection) prepared(statement string) (*sqlite.Stmt, error) {
	if stmt := c.statements[statement]; stmt != nil {
		return stmt, nil
	}
	for text, stmt := range c.statements {
		if len(c.statements) < maxStatements {
			break
		}
		delete(c.statements, text)
		if err := stmt.Finalize(); err != nil {
			return nil, err
		}
	}
	stmt, err := c.Prepare(statement)
	if err == nil {
		c.statements[statement] = stmt
	}
	return stmt, err
}

func bind(stmt *sqlite.Stmt, at int, arg any) error {
	switch v := arg.(type) {
	case nil:
		stmt.BindNull(at)
	case int:
		stmt.BindInt64(at, int64(v))
	case int64:
		stmt.BindInt64(at, v)
	case bool:
		stmt.BindBool(at, v)
	case string:
		stmt.BindText(at, v)
	case []byte:
		stmt.BindBytes(at, v)
	case time.Time:
		if v.IsZero() {
			stmt.BindNull(at)
		} else {
			stmt.BindInt64(at, v.UnixMilli())
		}
	default:
		return fmt.Errorf("a %T cannot be an argument", arg)
	}
	return nil
}

// cells are the columns of the row that a statement stands on.
type cells struct{ stmt *sqlite.Stmt }

func (c cells) null(i int) bool     { return c.stmt.ColumnType(i) == sqlite.TypeNull }
func (c cells) integer(i int) int64 { return c.stmt.ColumnInt64(i) }
func (c cells) text(i int) string   { return c.stmt.ColumnText(i) }

func (c cells) blob(i int) []byte {
	b := make([]byte, c.stmt.ColumnLen(i))
	c.stmt.ColumnBytes(i, b)
	return b
}
