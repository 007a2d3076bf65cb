package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"maragu.dev/goqite"
	_ "modernc.org/sqlite" // the driver
)

// goqiteLife is a message sent, received and deleted, a transaction each: what the
// library has, on the pool of one connection that its documentation tells to use.
type goqiteLife struct {
	db *sql.DB
	q  *goqite.Queue
}

func openGoqite(ctx context.Context, s *services, _ int) (entrant, error) {
	path, err := s.newFile()
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	schema, err := moduleFile(ctx, "maragu.dev/goqite", "schema_sqlite.sql")
	if err == nil {
		_, err = db.ExecContext(ctx, schema)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &goqiteLife{db, goqite.New(goqite.NewOpts{DB: db, Name: "jobs"})}, nil
}

// moduleFile reads a file that a module expects its users to bring.
func moduleFile(ctx context.Context, module, name string) (string, error) {
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("find module %s: %w", module, err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), name))
	return string(text), err
}

func (g *goqiteLife) live(ctx context.Context, _ string) error {
	if err := g.q.Send(ctx, goqite.Message{Body: input}); err != nil {
		return err
	}
	m, err := g.q.Receive(ctx) // anybody's: each caller has sent one
	if err != nil || m == nil {
		return errors.Join(err, errors.New("nothing was received"))
	}
	return g.q.Delete(ctx, m.ID)
}

func (g *goqiteLife) close() error { return g.db.Close() }
