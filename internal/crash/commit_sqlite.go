package main

import (
	"errors"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// sqliteWatch are the functions that SQLite calls. They live for as long as it is
// kept alive, which must be to the end of the process.
type sqliteWatch struct {
	opened    func(tls *libc.TLS, db, message, api uintptr) int32
	committed func(tls *libc.TLS, data uintptr) int32
}

// watchSQLite tells p of every commit of every connection that the process opens
// from now on. SQLite calls a commit hook before it writes the commit.
func watchSQLite(p *point) (*sqliteWatch, error) {
	w := &sqliteWatch{}
	w.committed = func(*libc.TLS, uintptr) int32 {
		p.aboutToCommit()
		return 0 // let it commit
	}
	w.opened = func(tls *libc.TLS, db, _, _ uintptr) int32 {
		sqlite3.Xsqlite3_commit_hook(tls, db, functionPointer(w.committed), 0)
		return sqlite3.SQLITE_OK
	}
	tls := libc.NewTLS()
	defer tls.Close()
	if rc := sqlite3.Xsqlite3_auto_extension(tls, functionPointer(w.opened)); rc != sqlite3.SQLITE_OK {
		return nil, errors.New("SQLite took no extension")
	}
	return w, nil
}

// functionPointer is what SQLite, translated to Go, takes for a function of C: the
// word that a Go function's value is made of. The caller keeps f alive.
func functionPointer[F any](f F) uintptr {
	return *(*uintptr)(unsafe.Pointer(&struct{ f F }{f}))
}
