package postgres_test

import (
	"testing"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/store/postgres"
)

func generationOf(t *testing.T, s *postgres.Store) onejob.Generation {
	t.Helper()
	g, err := s.Generation(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestTheFirstConnectionTellsADatabaseBehindWhatIsKnownOutside(t *testing.T) {
	t.Parallel()
	url := schema(t)
	s, err := postgres.Open(t.Context(), url, postgres.Options{MaxConns: 2, Seen: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if g := generationOf(t, s); !g.Unconfirmed() || g.Number <= 1<<40 {
		t.Errorf("the database is %+v; want it restored, and ahead of what was seen", g)
	}
	if g := generationOf(t, open(t, url)); !g.Unconfirmed() {
		t.Errorf("another process finds it %+v; want it restored", g)
	}
}

// A database that is put back always loses its connections, so no statement of a
// process that lived on reaches the copy ahead of the look at it.
func TestANewConnectionOfALiveProcessTellsADatabaseThatWentBack(t *testing.T) {
	t.Parallel()
	url := schema(t)
	s := open(t, url+"&application_name=went_back")
	for range 5 {
		if _, err := s.GenerationAdvance(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, sql := range []string{
		"UPDATE store_generation SET number = 3",
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'went_back'",
	} {
		if err := execute(t, url, sql); err != nil {
			t.Fatal(err)
		}
	}
	var created []onejob.JobCreateResult
	for {
		var err error
		if created, err = s.JobCreate(t.Context(), []onejob.JobCreateParams{intent(t, "k1")}); err == nil {
			break // else the dead connection was met
		}
	}
	if onejob.CodeOf(created[0].Err) != onejob.CodeRestoreUnconfirmed {
		t.Errorf("the copy answered a new job with %+v; want it refused", created[0])
	}
	if g := generationOf(t, s); !g.Unconfirmed() || g.Number != onejob.GenerationBeyond(6) {
		t.Errorf("the copy is %+v; want it restored, ahead of 6", g)
	}
}
