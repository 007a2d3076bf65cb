package sqlite_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/sqlite"
)

func asError(err error, target **onejob.Error) bool { return errors.As(err, target) }

func TestEveryConnectionFlushesBeforeACommitReturns(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "onejob.db")
	s := open(t, path, sqlite.Options{Readers: 3})
	must(t, s.VerifyAll(t.Context(), 3))
	if err := sqlite.VerifyUnprepared(filepath.Join(t.TempDir(), "plain.db")); !errors.Is(err, onejob.ErrStoreUnavailable) {
		t.Errorf("a connection as SQLite opens it answered %v; want store-unavailable", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()

	for name, path := range map[string]string{
		"Memory":         ":memory:",
		"NoPath":         "",
		"AFolderNotMade": filepath.Join(t.TempDir(), "none", "onejob.db"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if s, err := sqlite.Open(t.Context(), path, sqlite.Options{}); err == nil {
				_ = s.Close()
				t.Errorf("Open(%q) took it", path)
			}
		})
	}
}

// A job whose row something else has spoilt makes room for those behind it.
func TestAClaimGoesAroundAJobThatCannotBeRead(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "onejob.db")
	s := open(t, path, sqlite.Options{})
	spoilt := intent(t, "alice", "k1")
	spoilt.Priority = 9
	mustCreate(t, s, spoilt)
	healthy := mustCreate(t, s, intent(t, "alice", "k2")).Job
	// As a bad disk would: past the trigger that keeps the row.
	db := openDB(t, path)
	for _, statement := range []string{`DROP TRIGGER jobs_immutable`, `UPDATE jobs SET policy = '{' WHERE priority = 9`} {
		_, err := db.ExecContext(t.Context(), statement)
		must(t, err)
	}
	claim := onejob.AttemptClaimParams{StartParams: *startedIntent(t, "").Start, Max: 1}
	for range 2 {
		result, err := s.AttemptClaim(t.Context(), claim)
		must(t, err)
		if len(result.Claimed) == 1 && result.Claimed[0].Job.ID == healthy.ID {
			return
		}
	}
	t.Error("two claims of one job each did not come to the healthy one")
}

func TestACloseIsSafeToRepeatAndEndsEverything(t *testing.T) {
	t.Parallel()

	s := open(t, filepath.Join(t.TempDir(), "onejob.db"), sqlite.Options{})
	must(t, s.Close())
	must(t, s.Close())
	_, write := s.JobCreate(t.Context(), []onejob.JobCreateParams{intent(t, "alice", "k1")})
	_, read := s.JobGet(t.Context(), []onejob.JobGetParams{{ID: "job_none"}})
	for name, err := range map[string]error{"JobCreate": write, "JobGet": read, "Check": s.Check(t.Context())} {
		if !errors.Is(err, onejob.ErrStoreUnavailable) {
			t.Errorf("%s on a closed store answered %v; want store-unavailable", name, err)
		}
	}
}

// A full disk: refused, never acknowledged, and usable again once there is room.
func TestAFullDiskIsNeverAcknowledged(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "onejob.db")
	s := open(t, path, sqlite.Options{})
	must(t, s.WriterExec(`PRAGMA max_page_count = 120`))
	acknowledged, refused := map[string]bool{}, ""
	for i := 0; refused == "" && i < 10_000; i++ {
		p := startedIntent(t, fmt.Sprint("k", i))
		results, err := s.JobCreate(t.Context(), []onejob.JobCreateParams{p})
		switch {
		case err == nil && results[0].Err == nil:
			acknowledged[p.ID] = true
		case errors.Is(err, onejob.ErrStoreUnavailable):
			refused = p.ID
		default:
			t.Fatalf("a full disk answered %v, %v; want store-unavailable", err, results)
		}
	}
	if refused == "" {
		t.Error("the disk never filled up")
	}
	wantJobs(t, s, acknowledged)

	must(t, s.WriterExec(`PRAGMA max_page_count = 100000`))
	after := mustCreate(t, s, startedIntent(t, "after")).Job
	acknowledged[after.ID] = true
	wantJobs(t, s, acknowledged)
	if len(acknowledged) < 2 {
		t.Errorf("%d jobs were acknowledged; the test needs some before the disk is full", len(acknowledged))
	}
	var answer string
	must(t, openDB(t, path).QueryRowContext(t.Context(), `PRAGMA integrity_check`).Scan(&answer))
	if answer != "ok" {
		t.Errorf("integrity_check says %q", answer)
	}
}

// wantJobs checks that exactly these jobs exist.
func wantJobs(t *testing.T, s *sqlite.Store, want map[string]bool) {
	t.Helper()
	got, before := map[string]bool{}, (*onejob.JobCursor)(nil)
	for {
		page, err := s.JobList(t.Context(), onejob.JobListParams{Limit: 200, Before: before})
		must(t, err)
		for _, j := range page.Jobs {
			got[j.ID] = true
			before = &onejob.JobCursor{CreatedAt: j.CreatedAt, ID: j.ID}
		}
		if !page.More {
			break
		}
	}
	for id := range want {
		if !got[id] {
			t.Errorf("job %s was acknowledged and is gone", id)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d jobs exist; want the %d acknowledged", len(got), len(want))
	}
}

// An error in the middle of a transaction leaves nothing behind, and the store
// goes on as soon as its cause is gone.
func TestAFailedTransactionLeavesTheStoreUsable(t *testing.T) {
	t.Parallel()

	path, s := startedJob(t)
	db := openDB(t, path)
	execute := func(statement string) {
		_, err := db.ExecContext(t.Context(), statement)
		must(t, err)
	}
	execute(`ALTER TABLE events RENAME TO hidden`)
	batch := []onejob.JobCreateParams{intent(t, "alice", "k2"), startedIntent(t, "k1")} // the repeat needs an event
	if _, err := s.JobCreate(t.Context(), batch); !errors.Is(err, onejob.ErrStoreUnavailable) {
		t.Fatalf("a broken schema answered %v; want store-unavailable", err)
	}
	if stats, err := s.Stats(t.Context()); err != nil || stats.Jobs[onejob.JobQueued] != 0 {
		t.Errorf("stats are %+v, %v; want nothing of the failed batch", stats, err)
	}
	execute(`ALTER TABLE hidden RENAME TO events`)
	results, err := s.JobCreate(t.Context(), batch)
	if err != nil || results[0].Err != nil || results[0].Existed || !results[1].Existed {
		t.Errorf("once mended, the same batch answered %+v, %v; want a new job and a repeat", results, err)
	}
}

const crashPath = "ONEJOB_TEST_CRASH_PATH"

// TestCrash is the process that TestAnAcknowledgedJobOutlivesItsProcess kills.
func TestCrash(t *testing.T) {
	path := os.Getenv(crashPath)
	if path == "" {
		t.Skip("only as another test's process")
	}
	s := open(t, path, sqlite.Options{})
	for i := 0; ; i++ {
		fmt.Printf("acknowledged %s\n", mustCreate(t, s, startedIntent(t, fmt.Sprint(os.Getpid(), i))).Job.ID)
	}
}

func TestAnAcknowledgedJobOutlivesItsProcess(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "onejob.db")
	var acknowledged []string
	for range 3 {
		acknowledged = append(acknowledged, crashAfter(t, path, 40)...)
	}
	s := open(t, path, sqlite.Options{})
	params := make([]onejob.JobGetParams, len(acknowledged))
	for i, id := range acknowledged {
		params[i].ID = id
	}
	results, err := s.JobGet(t.Context(), params)
	must(t, err)
	for i, r := range results {
		if r.Err != nil {
			t.Errorf("job %s was acknowledged, and after a crash: %v", acknowledged[i], r.Err)
		}
	}
}

// crashAfter kills a process once it has acknowledged n jobs, and returns them all.
func crashAfter(t *testing.T, path string, n int) (acknowledged []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCrash$", "-test.v")
	cmd.Env = append(os.Environ(), crashPath+"="+path)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		id, ok := strings.CutPrefix(lines.Text(), "acknowledged ")
		if !ok {
			continue
		}
		if acknowledged = append(acknowledged, id); len(acknowledged) == n {
			must(t, cmd.Process.Kill())
		}
	}
	_ = cmd.Wait() // it was killed
	if len(acknowledged) < n {
		t.Fatalf("the process acknowledged %d jobs; want %d", len(acknowledged), n)
	}
	return acknowledged
}

// A command beside a server: both write, neither fails, nothing is lost.
func TestTwoProcessesOnOneFileTakeTurns(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "onejob.db")
	server, command := open(t, path, sqlite.Options{}), open(t, path, sqlite.Options{})
	const each = 50
	var both sync.WaitGroup
	both.Go(func() {
		for i := range each {
			mustCreate(t, server, intent(t, "alice", fmt.Sprint("k", i)))
		}
	})
	both.Go(func() {
		for i := range each {
			key := onejob.APIKey{ID: fmt.Sprint("key", i), Owner: "alice", Role: onejob.RoleAdmin, Hash: []byte{1}, CreatedAt: time.Now()}
			if err := command.KeyCreate(t.Context(), onejob.KeyCreateParams{Key: key}); err != nil {
				t.Error(err)
			}
		}
	})
	both.Wait()
	keys, err := server.KeyList(t.Context())
	must(t, err)
	stats, err := command.Stats(t.Context())
	must(t, err)
	if len(keys) != each || stats.Jobs[onejob.JobQueued] != each {
		t.Errorf("%d keys and %d jobs exist; want %d of each", len(keys), stats.Jobs[onejob.JobQueued], each)
	}
}
