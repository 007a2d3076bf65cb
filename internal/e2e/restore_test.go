package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onejob-dev/onejob/sim"
)

// backup is how one sort of store is copied and put back.
type backup interface {
	storeURL() string
	take(t *testing.T)    // while no node runs
	putBack(t *testing.T) // in place of what is there
}

// A store that is put back an hour old has forgotten what was done since, and would
// do it again.
func TestAfterARestoreNothingIsSentUntilAPersonSaysSo(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		drill(t, &sqliteBackup{dir: t.TempDir(), kept: t.TempDir()}, "", restart)
	})
	t.Run("PostgreSQLWithTheFile", func(t *testing.T) {
		t.Parallel()
		drill(t, newPostgresBackup(t), "generation_file: "+filepath.Join(t.TempDir(), "generation")+"\n", restart)
	})
	t.Run("PostgreSQLUnderALiveNode", func(t *testing.T) {
		t.Parallel()
		drill(t, newPostgresBackup(t), "", func(_ *node, putBack func()) { putBack() })
	})
}

// restart puts the store back while no node runs.
func restart(n *node, putBack func()) {
	n.kill()
	putBack()
	n.launch()
}

const waiting = 5 // jobs that are due only after the backup

func drill(t *testing.T, b backup, config string, around func(n *node, putBack func())) {
	s := newSite(t, b.storeURL(), "{effect: external, targets: [acme], timeout: 20s, linger: 20s}", sim.Options{})
	s.addLines("secret:", config)
	s.provider.ScriptFor("under way", sim.MustParse("silent")...)
	n := s.newNode()
	n.start()

	due := time.Now().Add(4 * time.Second)
	open := map[string]string{}
	for i := range waiting {
		order := fmt.Sprintf("waiting-%d", i)
		open[order] = submitAt(t, n, order, due)
	}
	unsent := submitAt(t, n, "unsent", due)
	done := n.succeeds("done")
	underWay := n.submitted("under way")
	s.until(func() bool { return s.provider.Executions("under way") == 1 })
	n.kill()
	b.take(t)

	n.start() // life goes on after the backup
	if _, err := n.send(t.Context(), http.MethodPost, "/v1/jobs/"+unsent+"/cancel", "{}"); err != nil {
		t.Fatal(err)
	}
	for _, id := range open {
		n.wantState(id, "succeeded")
	}
	n.succeeds("after the backup")
	pause(t.Context(), 1500*time.Millisecond) // one advance, at least

	before := s.provider.TotalExecutions()
	around(n, func() { b.putBack(t) })
	n.wantUnconfirmed()
	n.wantHeld(open, unsent, done, underWay, due)
	pause(t.Context(), 3*time.Second) // past every lease and schedule
	if got := s.provider.TotalExecutions(); got != before {
		t.Errorf("after the restore %d more were executed; want 0", got-before)
	}

	s.run("restore", "confirm", "--yes", "--config", s.config(), "--store", s.store)
	if !eventually(20*time.Second, n.ready) {
		t.Fatalf("the confirmed node is not ready:\n%s", n.log.tail(2000))
	}
	n.succeeds("fresh")
	n.wantHeld(open, unsent, done, underWay, due)
	s.client(n, "jobs", "unblock", unsent, "--reason", "the provider has no such charge")
	n.wantState(unsent, "succeeded")
	pause(t.Context(), time.Second)
	twice := s.provider.Duplicates()
	t.Logf("%d jobs had been done since the backup: 0 done again, %d held; an unblocked one ran", waiting, waiting+1)
	if len(twice) != 0 {
		t.Errorf("executed more than once: %v", twice)
	}
}

func (n *node) submitted(order string) string {
	n.site.t.Helper()
	r, err := n.submit(n.site.t.Context(), order)
	if err != nil || r.status/100 != 2 {
		n.site.t.Fatalf("%s was answered %d %s, %v", order, r.status, r.job.Code, err)
	}
	return r.job.ID
}

func (n *node) succeeds(order string) string {
	n.site.t.Helper()
	id := n.submitted(order)
	n.wantState(id, "succeeded")
	return id
}

func (s *site) until(ok func() bool) {
	s.t.Helper()
	if err := s.provider.Wait(s.t.Context(), ok); err != nil {
		s.t.Fatal(err)
	}
}

// wantUnconfirmed waits until the node says that the store was restored, and holds
// it to refusing new jobs.
func (n *node) wantUnconfirmed() {
	t := n.site.t
	t.Helper()
	var last reply
	if !eventually(30*time.Second, func() bool {
		var err error
		last, err = n.send(t.Context(), http.MethodGet, "/readyz", "")
		return err == nil && last.status == http.StatusServiceUnavailable && last.job.Code == "restore-unconfirmed"
	}) {
		t.Fatalf("the node says of itself %+v; want restore-unconfirmed", last)
	}
	r, err := n.submit(t.Context(), "fresh")
	if err != nil || r.status != http.StatusServiceUnavailable || r.job.Code != "restore-unconfirmed" {
		t.Errorf("a new job was answered %d %s, %v; want 503 restore-unconfirmed", r.status, r.job.Code, err)
	}
}

// wantHeld checks that everything that was open waits for a person, and that known
// keys answer.
func (n *node) wantHeld(open map[string]string, unsent, done, underWay string, due time.Time) {
	t := n.site.t
	t.Helper()
	for order, id := range open {
		n.wantBlockedBy(id, "needs_operator")
		if again := submitAt(t, n, order, due); again != id {
			t.Errorf("the key of %s is now of %s; want %s", order, again, id)
		}
	}
	n.wantBlockedBy(unsent, "needs_operator")
	n.wantBlockedBy(underWay, "attempt_unknown")
	if r, err := n.submit(t.Context(), "done"); err != nil || r.job.ID != done || !r.replayed || r.job.State != "succeeded" {
		t.Errorf("what was done is answered %+v, %v; want the same job", r, err)
	}
}

func (n *node) wantBlockedBy(id, reason string) {
	n.site.t.Helper()
	var last reply
	if !eventually(20*time.Second, func() bool {
		var err error
		last, err = n.get(n.site.t.Context(), id)
		return err == nil && last.job.Blocked != nil && last.job.Blocked.Reason == reason
	}) {
		n.site.t.Fatalf("the job is %+v, %+v; want it blocked: %s", last.job, last.job.Blocked, reason)
	}
}

// sqliteBackup is a copy of the database's files. The file beside them that tells of
// a restore is none of them.
type sqliteBackup struct{ dir, kept string }

func (b *sqliteBackup) storeURL() string  { return "sqlite:" + filepath.Join(b.dir, "onejob.db") }
func (b *sqliteBackup) take(t *testing.T) { copyDatabase(t, b.dir, b.kept) }

func (b *sqliteBackup) putBack(t *testing.T) {
	for _, name := range databaseFiles {
		if err := os.Remove(filepath.Join(b.dir, name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	copyDatabase(t, b.kept, b.dir)
}

var databaseFiles = []string{"onejob.db", "onejob.db-wal"}

func copyDatabase(t *testing.T, from, to string) {
	t.Helper()
	for _, name := range databaseFiles {
		in, err := os.Open(filepath.Join(from, name))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		out, err := os.Create(filepath.Join(to, name))
		if err == nil {
			_, err = io.Copy(out, in)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, _ = in.Close(), out.Close()
	}
}

// postgresBackup is a second database made from the first as its template.
type postgresBackup struct{ admin, database string }

func newPostgresBackup(t *testing.T) *postgresBackup {
	t.Helper()
	b := &postgresBackup{admin: newCluster(t).URL()}
	b.exec(t, "CREATE DATABASE onejob")
	u, err := url.Parse(b.admin)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/onejob"
	b.database = u.String()
	return b
}

func (b *postgresBackup) storeURL() string { return b.database }

func (b *postgresBackup) take(t *testing.T) {
	b.exec(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'onejob'")
	if !eventually(10*time.Second, func() bool { return b.try(t, "CREATE DATABASE kept TEMPLATE onejob") == nil }) {
		b.exec(t, "CREATE DATABASE kept TEMPLATE onejob")
	}
}

func (b *postgresBackup) putBack(t *testing.T) {
	b.exec(t, "DROP DATABASE onejob WITH (FORCE)")
	b.exec(t, "ALTER DATABASE kept RENAME TO onejob")
}

func (b *postgresBackup) exec(t *testing.T, sql string) {
	t.Helper()
	if err := b.try(t, sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func (b *postgresBackup) try(t *testing.T, sql string) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), strings.TrimSpace(b.admin))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	_, err = conn.Exec(t.Context(), sql)
	return err
}
