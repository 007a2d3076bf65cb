package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/sqlite"
)

// Every set of filters is a statement of its own, and callers choose them.
func TestListsKeepABoundedNumberOfStatements(t *testing.T) {
	t.Parallel()

	s := open(t, filepath.Join(t.TempDir(), "onejob.db"), sqlite.Options{Readers: 1})
	created, err := s.JobCreate(t.Context(), []onejob.JobCreateParams{intent(t, "alice", "k1")})
	if err != nil {
		t.Fatal(err)
	}
	job := created[0].Job
	for i := range 1 << 9 {
		has := func(bit int) bool { return i&(1<<bit) != 0 }
		p := onejob.JobListParams{Limit: 10, States: []onejob.JobState{onejob.JobQueued}}
		for bit, state := range onejob.JobStates()[1:5] {
			if has(bit) {
				p.States = append(p.States, state, onejob.JobQueued)
			}
		}
		if has(4) {
			p.Owner = job.Owner
		}
		if has(5) {
			p.Kind = job.Kind
		}
		if has(6) {
			p.Target = "a"
		}
		if has(7) {
			p.KeyHash = job.KeyHash
		}
		if has(8) {
			p.CreatedBefore = job.CreatedAt.Add(time.Hour)
		}
		page, err := s.JobList(t.Context(), p)
		if want := !has(6); err != nil || (len(page.Jobs) == 1) != want {
			t.Fatalf("JobList(%+v) = %d jobs, %v; want the job: %t", p, len(page.Jobs), err, want)
		}
	}
	if n, err := s.Statements(t.Context()); err != nil || n > sqlite.MaxStatements || n < sqlite.MaxStatements/2 {
		t.Errorf("after 512 kinds of list %d statements are kept, %v; want at most %d, and most of them used", n, err, sqlite.MaxStatements)
	}
}
