package sqlite_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/sqlite"
)

func TestTx(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name  string
		act   func(t *testing.T, tx *sql.Tx, create func(key string))
		exist map[string]bool
	}{
		{"TheJobExistsOnceTheCallerCommits", func(t *testing.T, tx *sql.Tx, create func(string)) {
			create("k1")
			must(t, tx.Commit())
		}, map[string]bool{"k1": true}},
		{"ARollbackForgetsTheJob", func(t *testing.T, tx *sql.Tx, create func(string)) {
			create("k1")
			must(t, tx.Rollback())
		}, map[string]bool{"k1": false}},
		{"ASavepointOfTheCallersForgetsWhatCameAfterIt", func(t *testing.T, tx *sql.Tx, create func(string)) {
			create("k1")
			run(t, tx, `SAVEPOINT mine`)
			create("k2")
			run(t, tx, `ROLLBACK TO mine`)
			run(t, tx, `RELEASE mine`)
			create("k3")
			must(t, tx.Commit())
		}, map[string]bool{"k1": true, "k2": false, "k3": true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			path := filepath.Join(t.TempDir(), "one job?.db") // a path is a path
			s, tx := open(t, path, sqlite.Options{}), begin(t, path)
			ids := map[string]string{}
			tt.act(t, tx, func(key string) {
				ids[key] = mustCreate(t, sqlite.Tx(tx), startedIntent(t, key)).Job.ID
			})
			for key, want := range tt.exist {
				got, err := s.JobGet(t.Context(), []onejob.JobGetParams{{ID: ids[key]}})
				must(t, err)
				if exists := got[0].Err == nil; exists != want {
					t.Errorf("job of %s exists %t (%v); want %t", key, exists, got[0].Err, want)
				}
				if want && got[0].Job.State != onejob.JobQueued {
					t.Errorf("job of %s is %s; a caller's transaction starts nothing", key, got[0].Job.State)
				}
			}
		})
	}
}

func TestTxAnswersLikeTheStore(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "onejob.db")
	s := open(t, path, sqlite.Options{})
	first := intent(t, "alice", "k1")
	first.Metadata = []byte(`{"a":1}`)
	mustCreate(t, s, first)
	repeat, other, bad := first, first, intent(t, "alice", "k2")
	repeat.Token, other.Fingerprint = onejob.NewToken(), []byte("other")
	bad.Policy.Lanes = 2 // on an effect

	tx := begin(t, path)
	results, err := sqlite.Tx(tx).JobCreate(t.Context(), []onejob.JobCreateParams{repeat, other, bad, intent(t, "alice", "k3")})
	must(t, err)
	if r := results[0]; r.Err != nil || !r.Existed || r.Job.ID != first.ID || string(r.Job.Metadata) != `{"a":1}` {
		t.Errorf("the repeat answered %+v; want job %s as it is", r, first.ID)
	}
	if !errors.Is(results[1].Err, onejob.ErrKeyConflict) {
		t.Errorf("another intent answered %v; want a conflict", results[1].Err)
	}
	if results[2].Err == nil {
		t.Error("a race on an effect was taken")
	}
	if results[3].Err != nil {
		t.Errorf("the row after a bad one answered %v; each is judged by itself", results[3].Err)
	}
	must(t, tx.Commit())

	events, err := s.JobEvents(t.Context(), onejob.JobRef{Part: first.Part, ID: first.ID})
	must(t, err)
	if len(events) != 2 || events[0].Kind != onejob.EventReplayed || events[1].Kind != onejob.EventConflicted {
		t.Errorf("events are %v; want a replay and a conflict", events)
	}
}

func TestTxRefusesATransactionThatWouldNotBeDurable(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "onejob.db")
	open(t, path, sqlite.Options{})
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=synchronous(normal)&_pragma=foreign_keys(on)")
	must(t, err)
	defer func() { _ = db.Close() }()
	tx, err := db.BeginTx(t.Context(), nil)
	must(t, err)
	defer func() { _ = tx.Rollback() }()
	if _, err := sqlite.Tx(tx).JobCreate(t.Context(), []onejob.JobCreateParams{intent(t, "alice", "k1")}); !errors.Is(err, onejob.ErrStoreUnavailable) {
		t.Errorf("synchronous=NORMAL answered %v; want store-unavailable", err)
	}
}

func begin(t *testing.T, path string) *sql.Tx {
	t.Helper()
	tx, err := openDB(t, path).BeginTx(t.Context(), nil)
	must(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func run(t *testing.T, tx *sql.Tx, statement string) {
	t.Helper()
	_, err := tx.ExecContext(t.Context(), statement)
	must(t, err)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
