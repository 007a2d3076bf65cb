package cli_test

import (
	"context"
	"database/sql"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob/internal/cli"
	"github.com/onejob-dev/onejob/internal/pgtest"
	"github.com/onejob-dev/onejob/store/sqlite"
)

// attacked is a store whose owner changes it around the program.
type attacked struct {
	t    *testing.T
	url  string
	exec func(sql string) error
}

func (a *attacked) run(code int, args ...string) outcome {
	a.t.Helper()
	got := run(a.t.Context(), nil, "", append(args, "--store", a.url)...)
	if got.code != code {
		a.t.Fatalf("%v ends with %d; want %d\n%s%s", args, got.code, code, got.stdout, got.stderr)
	}
	return got
}

func (a *attacked) do(statements ...string) {
	a.t.Helper()
	for _, sql := range statements {
		if err := a.exec(sql); err != nil {
			a.t.Fatalf("%s: %v", sql, err)
		}
	}
}

func attackedSQLite(t *testing.T) *attacked {
	path := filepath.Join(t.TempDir(), "x.db")
	a := &attacked{t: t, url: "sqlite:" + path}
	a.run(0, "keys", "list")
	var db *sql.DB
	var err error
	if db, err = sqlite.OpenDB(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	a.exec = func(sql string) error { _, err := db.ExecContext(t.Context(), sql); return err }
	a.do("DROP TRIGGER audit_follows", "DROP TRIGGER audit_unchanged", "DROP TRIGGER audit_kept", "DROP TRIGGER audit_heads_forward")
	return a
}

func attackedPostgres(t *testing.T) *attacked {
	a := &attacked{t: t, url: pgtest.URL(t)}
	a.run(0, "migrate", "up")
	conn, err := pgx.Connect(t.Context(), a.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	a.exec = func(sql string) error { _, err := conn.Exec(t.Context(), sql); return err }
	a.do("ALTER TABLE audit DISABLE TRIGGER USER", "ALTER TABLE audit_heads DISABLE TRIGGER USER")
	return a
}

func TestAuditVerifyNamesWhatWasChanged(t *testing.T) {
	t.Parallel()

	for name, open := range map[string]func(*testing.T) *attacked{"SQLite": attackedSQLite, "PostgreSQL": attackedPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			a := open(t)
			for range 4 {
				a.run(0, "keys", "create", "--owner", "shop")
			}
			anchor := filepath.Join(t.TempDir(), "anchor.jsonl")
			if err := os.WriteFile(anchor, []byte(a.run(0, "audit", "anchor").stdout), 0o600); err != nil {
				t.Fatal(err)
			}
			a.run(0, "audit", "verify", "--anchor", anchor)

			for _, c := range []struct{ change, undo, says string }{
				{
					"UPDATE audit SET detail = 'role viewer' WHERE seq = 2", "UPDATE audit SET detail = 'role submitter' WHERE seq = 2",
					`owner "shop", entry 2: it was changed`,
				},
				{
					"UPDATE audit SET seq = 9 WHERE seq = 3", "UPDATE audit SET seq = 3 WHERE seq = 9",
					`owner "shop", entry 3: it is missing`,
				},
			} {
				a.do(c.change)
				if got := a.run(cli.ExitFailed, "audit", "verify"); !strings.Contains(got.stderr, c.says) {
					t.Errorf("after %s: %q; want it to say %q", c.change, got.stderr, c.says)
				}
				a.do(c.undo)
				a.run(0, "audit", "verify")
			}

			// Who cuts off the end, and what remembers it, is found by the anchor alone.
			a.do("DELETE FROM audit WHERE seq > 2", "UPDATE audit_heads SET seq = 2, hash = (SELECT hash FROM audit WHERE seq = 2)")
			if got := a.run(0, "audit", "verify"); !strings.Contains(got.stderr, "compared with no anchor") {
				t.Errorf("without an anchor: %q; want it said that a cut is not found", got.stderr)
			}
			if got := a.run(cli.ExitFailed, "audit", "verify", "--anchor", anchor); !strings.Contains(got.stderr, `owner "shop", entry 3: it is missing with all that followed; the anchor knows of 4`) {
				t.Errorf("with the anchor: %q", got.stderr)
			}
		})
	}
}

func TestIncidentsAreClosedWithTheirNote(t *testing.T) {
	t.Parallel()

	const open = `{"id":"inc_011","job_id":"job_1","attempt_id":"att_1","owner":"shop","kind":"duplicate_effect","state":"open","at":"2026-01-02T03:04:05Z","detail":"twice"}`
	asked := make(chan string, 2)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, r.ContentLength)
		_, _ = r.Body.Read(body)
		asked <- r.Method + " " + r.URL.String() + " " + string(body)
		if r.Method == http.MethodGet {
			_, _ = w.Write([]byte(`{"items":[` + open + `],"next_cursor":"abc"}`))
			return
		}
		_, _ = w.Write([]byte(strings.Replace(open, `"open"`, `"closed"`, 1)))
	}))
	defer srv.Close()
	list := run(t.Context(), nil, "", "incidents", "list", "--owner", "shop", "--server", srv.URL)
	if list.code != 0 || !strings.Contains(list.stdout, "inc_011  job_1  duplicate_effect  open   2026-01-02T03:04:05Z") ||
		!strings.Contains(list.stderr, "incidents list --state open --owner shop") {
		t.Errorf("the list: %+v", list)
	}
	closed := run(t.Context(), nil, "", "incidents", "close", "inc_011", "--note", "refunded", "--server", srv.URL)
	if closed.code != 0 || !strings.Contains(closed.stdout, "closed") {
		t.Errorf("the close: %+v", closed)
	}
	for _, want := range []string{"GET /v1/incidents?owner=shop&state=open ", `POST /v1/incidents/inc_011:close {"note":"refunded"}`} {
		if got := <-asked; got != want {
			t.Errorf("the server was asked %q; want %q", got, want)
		}
	}
}
